//! Schemas of JSON values between tags of DSML, made so that no text within spells the mark of a
//! tag: who reads the answer looks for tags first and for JSON then. Only what schema.rs puts out
//! is read here.

use serde_json::{json, Map, Value};

use crate::call_text::{self, kinds, ARRAY, MARK, OBJECT, STRING};

const ANYTHING: &str = "any";

/// Texts without the mark, as a regular expression.
fn unmarked() -> String {
    // After a bar and the letters so far: a bar begins anew, any other character is harmless.
    let again = "(?:D|DS|DSM)?｜";
    let harmless = "[^｜D]|D[^｜S]|DS[^｜M]|DSM[^｜L]|DSML[^｜]";
    format!("^(?:[^｜]|｜(?:{again})*(?:{harmless}))*(?:｜(?:{again})*(?:DSML|DSM|DS|D)?)?$")
}

/// Any JSON value.
fn anything() -> Value {
    let same = json!({"$ref": format!("#/$defs/{ANYTHING}")});
    json!({"anyOf": [
        {"type": ["null", "boolean", "number"]},
        {"type": "string", "pattern": unmarked()},
        {"type": "array", "items": same},
        {"type": "object", "patternProperties": {unmarked(): same}, "additionalProperties": false},
    ]})
}

/// Any value but a text.
pub fn any() -> Value {
    values(&Value::Bool(true), &Map::new()).ok().flatten().expect("it has no names of its own")
}

/// The instances that are no texts; nothing when there are none.
pub fn values(schema: &Value, definitions: &Map<String, Value>) -> Result<Option<Value>, String> {
    let may_be = kinds(schema, definitions, 0);
    if may_be & !STRING == 0 {
        return Ok(None);
    }
    let mut out = json!({"allOf": [guarded(schema)?]});
    if may_be & STRING != 0 {
        out["type"] = json!(["null", "boolean", "number", "array", "object"]);
    }
    let mut named = Map::from_iter([(ANYTHING.to_string(), anything())]);
    for (name, schema) in definitions {
        named.insert(name.clone(), guarded(schema)?);
    }
    out["$defs"] = Value::Object(named);
    Ok(Some(out))
}

fn guarded(schema: &Value) -> Result<Value, String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Bool(false) => return Ok(schema.clone()),
        _ => return Ok(json!({"$ref": format!("#/$defs/{ANYTHING}")})),
    };
    let literal = ["const", "enum"].iter().find_map(|keyword| members.get(*keyword));
    if literal.is_some_and(|literal| literal.to_string().contains(MARK)) {
        return Err(format!("a text in it spells {MARK}"));
    }
    let mut out = Map::new();
    for (keyword, value) in members {
        let value = match (keyword.as_str(), value) {
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                Value::Array(all.iter().map(guarded).collect::<Result<_, _>>()?)
            }
            ("properties" | "patternProperties", Value::Object(all)) => {
                if all.keys().any(|name| name.contains('｜')) {
                    return Err("a name in it has the character ｜".into());
                }
                let all = all.iter().map(|(name, schema)| Ok((name.clone(), guarded(schema)?)));
                Value::Object(all.collect::<Result<_, String>>()?)
            }
            ("items" | "additionalProperties", schema) => guarded(schema)?,
            ("$defs", _) => continue,
            _ => value.clone(),
        };
        out.insert(keyword.clone(), value);
    }
    // What a schema leaves open is guarded once: where another that is guarded holds for the same
    // instance, all is said. (llguidance takes nothing beside a reference that leads back.)
    let said =
        ["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| members.contains_key(*keyword));
    if said || literal.is_some() {
        return Ok(Value::Object(out));
    }
    let may_be = kinds(schema, &Map::new(), call_text::HOPS_MAX);
    let mut also = Vec::new();
    if may_be & STRING != 0 {
        also.push(json!({"pattern": unmarked()}));
    }
    if may_be & ARRAY != 0 && !out.contains_key("items") {
        out.insert("items".into(), guarded(&Value::Bool(true))?);
    }
    if may_be & OBJECT != 0 {
        open_names(&mut out, &mut also)?;
    }
    if !also.is_empty() {
        out.insert("allOf".into(), Value::Array(also));
    }
    Ok(Value::Object(out))
}

/// Names that a schema does not list are texts, too.
fn open_names(out: &mut Map<String, Value>, also: &mut Vec<Value>) -> Result<(), String> {
    let any = guarded(&Value::Bool(true))?;
    let rest = out.get("additionalProperties").cloned();
    if rest == Some(Value::Bool(false)) {
        return Ok(());
    }
    if out.contains_key("patternProperties") {
        return Err("\"patternProperties\" beside other names is not taken in it".into());
    }
    let listed =
        out.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    match rest {
        Some(rest) if rest != any && listed => {
            Err("\"additionalProperties\" beside \"properties\" is not taken in it".into())
        }
        rest => {
            out.remove("additionalProperties");
            let names = Map::from_iter([(unmarked(), rest.unwrap_or(any))]);
            also.push(json!({"patternProperties": names, "additionalProperties": false}));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_finds_the_mark_alone() {
        let regex = regex::Regex::new(&unmarked()).unwrap();
        for good in [
            "",
            "｜",
            "a｜b",
            "｜DSML",
            "｜｜DSM｜",
            "｜DSMLx｜",
            "DSML｜",
            "｜D｜DS｜DSM",
            "\n｜\n",
        ] {
            assert!(regex.is_match(good), "{good}");
        }
        for bad in ["｜DSML｜", "a｜DSML｜b", "｜｜DSML｜", "｜DSM｜DSML｜", "｜DSMLx｜DSML｜"]
        {
            assert!(!regex.is_match(bad), "{bad}");
        }
    }

    #[test]
    fn texts_are_left_out() {
        let none = Map::new();
        assert_eq!(values(&json!({"type": "string"}), &none).unwrap(), None);
        assert_eq!(values(&json!({"enum": ["a", "b"]}), &none).unwrap(), None);
        let both = values(&json!({"type": ["string", "integer"]}), &none).unwrap().unwrap();
        assert!(!both["type"].to_string().contains("string"));
    }
}
