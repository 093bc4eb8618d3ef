//! The texts that a converted schema takes, as a terminal of Lark: for formats that write them
//! without quotes. Such a text may hold everything but the mark of the format's tags. Only what
//! schema.rs puts out is read here.

use serde_json::{Map, Value};

use crate::grammar_source::lark_string;

pub const MARK: &str = "｜DSML｜";
pub const ANY: &str = "/(?s:.*)/";
pub const HOPS_MAX: usize = 16;
const SIZE_MAX: usize = 100_000;

pub const STRING: u8 = 1;
pub const OBJECT: u8 = 2;
pub const ARRAY: u8 = 4;
const ALL: u8 = 0b11_1111;

/// The text and no mark within.
pub fn unmarked(text: &str) -> String {
    without(text, MARK)
}

/// The text and nothing within that spells `mark`.
pub fn without(text: &str, mark: &str) -> String {
    format!("(({text}) & ~({ANY} {} {ANY}))", lark_string(mark))
}

pub fn target<'a>(
    members: &Map<String, Value>,
    definitions: &'a Map<String, Value>,
) -> Option<&'a Value> {
    definitions.get(members.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?)
}

fn kind_of(name: &str) -> u8 {
    match name {
        "string" => STRING,
        "object" => OBJECT,
        "array" => ARRAY,
        "null" => 8,
        "boolean" => 16,
        _ => 32,
    }
}

fn kind_of_value(value: &Value) -> u8 {
    kind_of(match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    })
}

/// The types that an instance may have; one that none has may be among them.
pub fn kinds(schema: &Value, definitions: &Map<String, Value>, hops: usize) -> u8 {
    let members = match schema {
        Value::Object(members) => members,
        other => return if *other == Value::Bool(false) { 0 } else { ALL },
    };
    let of = |schema: &Value| kinds(schema, definitions, hops + 1);
    let list = |keyword: &str| members.get(keyword).and_then(Value::as_array);
    let mut all = ALL;
    match members.get("type") {
        Some(Value::String(name)) => all &= kind_of(name),
        Some(Value::Array(names)) => {
            all &= names.iter().filter_map(Value::as_str).fold(0, |any, name| any | kind_of(name));
        }
        _ => {}
    }
    if let Some(value) = members.get("const") {
        all &= kind_of_value(value);
    }
    if let Some(values) = list("enum") {
        all &= values.iter().fold(0, |any, value| any | kind_of_value(value));
    }
    if hops >= HOPS_MAX {
        return all;
    }
    all = list("allOf").into_iter().flatten().fold(all, |all, schema| all & of(schema));
    for keyword in ["anyOf", "oneOf"] {
        if let Some(ways) = list(keyword) {
            all &= ways.iter().fold(0, |any, schema| any | of(schema));
        }
    }
    match target(members, definitions) {
        Some(schema) => all & of(schema),
        None => all,
    }
}

pub struct Texts<'a> {
    pub definitions: &'a Map<String, Value>,
}

impl Texts<'_> {
    /// Nothing: no text is an instance. The error is why they cannot be written so.
    pub fn of(&self, schema: &Value) -> Result<Option<String>, String> {
        self.read(schema, 0)
    }

    fn read(&self, schema: &Value, hops: usize) -> Result<Option<String>, String> {
        if hops > HOPS_MAX {
            return Err("its schema is nested too deeply".into());
        }
        let members = match schema {
            Value::Object(members) => members,
            other => return Ok((*other != Value::Bool(false)).then(|| ANY.to_string())),
        };
        if kinds(schema, self.definitions, 0) & STRING == 0 {
            return Ok(None);
        }
        let mut all = Vec::new();
        for (keyword, value) in members {
            let texts = match keyword.as_str() {
                "const" => literals(std::slice::from_ref(value)),
                "enum" => literals(value.as_array().map_or(&[], Vec::as_slice)),
                "pattern" => whole(value.as_str().unwrap_or_default())
                    .ok_or("only a \"pattern\" with ^ and $ at its ends is taken for texts")
                    .map(Some)?,
                "minLength" => Some(format!("/(?s:.{{{value},}})/")),
                "maxLength" => Some(format!("/(?s:.{{0,{value}}})/")),
                "format" => return Err("this \"format\" is not taken for texts".into()),
                "$ref" => match target(members, self.definitions) {
                    Some(schema) => self.read(schema, hops + 1)?,
                    None => return Err("\"$ref\" leads nowhere".into()),
                },
                "allOf" => {
                    for schema in value.as_array().into_iter().flatten() {
                        match self.read(schema, hops + 1)? {
                            Some(texts) => all.push(texts),
                            None => return Ok(None),
                        }
                    }
                    continue;
                }
                "anyOf" | "oneOf" => self.one_of(keyword, value, hops)?,
                _ => continue, // says nothing of texts
            };
            match texts {
                Some(texts) => all.push(texts),
                None => return Ok(None),
            }
        }
        if all.iter().map(String::len).sum::<usize>() > SIZE_MAX {
            return Err("its schema is too large".into());
        }
        all.retain(|texts| texts != ANY);
        Ok(Some(match all.len() {
            0 => ANY.to_string(),
            1 => all.remove(0),
            _ => format!("(({}))", all.join(") & (")),
        }))
    }

    fn one_of(&self, keyword: &str, ways: &Value, hops: usize) -> Result<Option<String>, String> {
        let mut some = Vec::new();
        for schema in ways.as_array().into_iter().flatten() {
            some.extend(self.read(schema, hops + 1)?);
        }
        if keyword == "oneOf" && some.len() > 1 {
            return Err("\"oneOf\" with several kinds of texts is not taken".into());
        }
        if some.iter().any(|texts| texts == ANY) {
            return Ok(Some(ANY.into()));
        }
        Ok((!some.is_empty()).then(|| format!("({})", some.join(" | "))))
    }
}

fn literals(values: &[Value]) -> Option<String> {
    let texts: Vec<String> = values.iter().filter_map(Value::as_str).map(lark_string).collect();
    (!texts.is_empty()).then(|| format!("({})", texts.join(" | ")))
}

/// A pattern, as pattern.rs gives it, that is found anywhere in a text, for all of the text. There
/// '^', '$' and '|' outside of classes mean what they do, and as characters they are escaped.
fn whole(pattern: &str) -> Option<String> {
    let (begin, rest) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => ("(?s:.*)", pattern),
    };
    let (end, body) = match rest.strip_suffix('$') {
        Some(body) => ("", body),
        None => ("(?s:.*)", rest),
    };
    let anchored = begin.is_empty() || end.is_empty();
    let (mut groups, mut classes) = (0, 0);
    for (index, c) in body.char_indices() {
        match c {
            '[' => classes += 1,
            ']' => classes -= 1,
            '(' => groups += 1,
            ')' => groups -= 1,
            '^' if !body[..index].ends_with('[') => return None,
            '$' => return None,
            '|' if groups == 0 && classes == 0 && anchored => return None,
            _ => {}
        }
    }
    let regex = format!("{begin}(?:{body}){end}");
    Some(format!("/{}/", llguidance::regex_to_lark(&regex, "")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_of_schemas() {
        let none = Map::new();
        let of = |schema: Value| Texts { definitions: &none }.of(&schema);
        assert_eq!(of(json!({})).unwrap().unwrap(), ANY);
        assert_eq!(of(json!({"type": "integer"})).unwrap(), None);
        assert_eq!(of(json!({"enum": ["a", 1, "b"]})).unwrap().unwrap(), r#"("a" | "b")"#);
        assert_eq!(
            of(json!({"type": ["string", "null"], "maxLength": 3})).unwrap().unwrap(),
            "/(?s:.{0,3})/"
        );
        assert_eq!(
            of(json!({"anyOf": [{"type": "null"}, {"const": "x"}]})).unwrap().unwrap(),
            r#"(("x"))"#
        );
        assert!(of(json!({"oneOf": [{"const": "x"}, {"const": "y"}]})).is_err());
    }

    #[test]
    fn patterns_hold_for_the_whole_text() {
        for (pattern, regex) in [
            ("^a$", Some("/(?:a)/")),
            ("a|b", Some("/(?s:.*)(?:a|b)(?s:.*)/")),
            ("^(?:a|b)[^0-9]", Some("/(?:(?:a|b)[^0-9])(?s:.*)/")),
            ("^a|b$", None),
            ("a^b", None),
        ] {
            assert_eq!(whole(pattern).as_deref(), regex, "{pattern}");
        }
    }
}
