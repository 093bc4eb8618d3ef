//! Whether a schema is one: every keyword of the standard has a value of its kind, everywhere, also
//! under "not" and in definitions that nobody refers to. A keyword that is misread limits nothing,
//! so this comes before all else. Annotations may hold anything. Read next: schema.rs.

use serde_json::Value;

use crate::abi::Failure;
use crate::schema::malformed;
use crate::schema_refs::{escape, LISTS, MAPS, ONE};
use crate::schema_values as values;

const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];
const STRINGS: [&str; 8] =
    ["$schema", "$id", "$anchor", "$ref", "$dynamicRef", "$dynamicAnchor", "pattern", "format"];
const COUNTS: [&str; 8] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
];
const NUMBERS: [&str; 4] = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// The keyword that a schema at `pointer` is the value of.
pub fn holder(pointer: &str) -> &str {
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    match steps[..] {
        [.., list, index] if LISTS.contains(&list) && index.parse::<usize>().is_ok() => list,
        [.., map, _] if MAPS.contains(&map) => map,
        [.., keyword] => keyword,
        [] => "a schema",
    }
}

/// Of anything that stands where a schema should.
pub fn no_schema(pointer: &str) -> Failure {
    malformed(holder(pointer), pointer, "a schema must be an object or a boolean")
}

pub fn check(root: &Value) -> Result<(), Failure> {
    schema(root, "")
}

/// JSON is read to a depth of 128, so this goes no deeper.
fn schema(value: &Value, pointer: &str) -> Result<(), Failure> {
    let members = match value {
        Value::Bool(_) => return Ok(()),
        Value::Object(members) => members,
        _ => return Err(no_schema(pointer)),
    };
    for (keyword, value) in members {
        let child = format!("{pointer}/{}", escape(keyword));
        match (keyword.as_str(), value) {
            (name, Value::Array(items)) if LISTS.contains(&name) => {
                for (index, item) in items.iter().enumerate() {
                    schema(item, &format!("{child}/{index}"))?;
                }
            }
            (name, Value::Object(named)) if MAPS.contains(&name) => {
                for (name, item) in named {
                    schema(item, &format!("{child}/{}", escape(name)))?;
                }
            }
            (name, _) if ONE.contains(&name) => schema(value, &child)?,
            _ => {}
        }
        if let Some(why) = fault(keyword, value) {
            return Err(malformed(keyword, pointer, &why));
        }
    }
    Ok(())
}

/// What is wrong with the value of one keyword.
fn fault(keyword: &str, value: &Value) -> Option<String> {
    let must = |holds: bool, what: &str| (!holds).then(|| format!("it must be {what}"));
    match keyword {
        "type" => types(value),
        "enum" => {
            must(value.as_array().is_some_and(|all| !all.is_empty()), "an array with a value")
        }
        "required" => names(value),
        "dependentRequired" => match value.as_object() {
            Some(named) => named.values().find_map(names),
            None => must(false, "an object of arrays"),
        },
        "multipleOf" => must(value.as_f64().is_some_and(|step| step > 0.0), "a number above 0"),
        "uniqueItems" => must(value.is_boolean(), "a boolean"),
        "$anchor" | "$dynamicAnchor" => must(value.as_str().is_some_and(is_anchor), "a name"),
        _ if STRINGS.contains(&keyword) => must(value.is_string(), "a string"),
        _ if NUMBERS.contains(&keyword) => must(value.is_number(), "a number"),
        _ if COUNTS.contains(&keyword) => {
            must(values::whole(value).is_some(), "a whole number, not below 0")
        }
        _ if MAPS.contains(&keyword) => must(value.is_object(), "an object of schemas"),
        // Before 2020-12, items may be an array.
        "items" => must(value.as_array().is_none_or(|all| !all.is_empty()), "a schema"),
        _ if LISTS.contains(&keyword) => {
            must(value.as_array().is_some_and(|all| !all.is_empty()), "an array with a schema")
        }
        "$vocabulary" => must(value.is_object(), "an object"),
        _ => None,
    }
}

fn types(value: &Value) -> Option<String> {
    let known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let holds = match value {
        Value::Array(names) => {
            !names.is_empty() && names.iter().all(known) && twice(names).is_none()
        }
        name => known(name),
    };
    (!holds).then(|| "it must be a type of JSON, or an array of different ones".into())
}

fn names(value: &Value) -> Option<String> {
    match value.as_array() {
        Some(names) if names.iter().all(Value::is_string) => {
            twice(names).map(|name| format!("{name} stands in it twice"))
        }
        _ => Some("it must be an array of strings".into()),
    }
}

fn twice(values: &[Value]) -> Option<&Value> {
    let mut seen = std::collections::HashSet::new();
    values.iter().find(|value| !seen.insert(value.as_str()))
}

fn is_anchor(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(first) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Keyword, and the kinds that it takes, as the test below numbers them.
    const TAKES: &[(&str, &[usize])] = &[
        ("$schema", &[5]),
        ("$id", &[5]),
        ("$anchor", &[5]),
        ("$ref", &[5]),
        ("$dynamicRef", &[5]),
        ("$dynamicAnchor", &[5]),
        ("$vocabulary", &[8]),
        ("$defs", &[]),
        ("definitions", &[]),
        ("type", &[]),
        ("enum", &[7]),
        ("const", &[0, 1, 2, 3, 4, 5, 6, 7, 8]),
        ("allOf", &[]),
        ("anyOf", &[]),
        ("oneOf", &[]),
        ("not", &[1, 8]),
        ("if", &[1, 8]),
        ("then", &[1, 8]),
        ("else", &[1, 8]),
        ("properties", &[]),
        ("patternProperties", &[]),
        ("additionalProperties", &[1, 8]),
        ("propertyNames", &[1, 8]),
        ("unevaluatedProperties", &[1, 8]),
        ("required", &[6]),
        ("dependentRequired", &[]),
        ("dependentSchemas", &[]),
        ("items", &[1, 8]),
        ("prefixItems", &[]),
        ("contains", &[1, 8]),
        ("unevaluatedItems", &[1, 8]),
        ("minItems", &[2]),
        ("maxItems", &[2]),
        ("minContains", &[2]),
        ("maxContains", &[2]),
        ("uniqueItems", &[1]),
        ("minProperties", &[2]),
        ("maxProperties", &[2]),
        ("minLength", &[2]),
        ("maxLength", &[2]),
        ("pattern", &[5]),
        ("format", &[5]),
        ("minimum", &[2, 3, 4]),
        ("maximum", &[2, 3, 4]),
        ("exclusiveMinimum", &[2, 3, 4]),
        ("exclusiveMaximum", &[2, 3, 4]),
        ("multipleOf", &[2, 4]),
    ];

    /// Values of every kind, at the root and everywhere else that a schema may stand.
    #[test]
    fn each_keyword_is_refused_by_name_with_a_value_of_another_kind() {
        let kinds = [
            json!(null),
            json!(true),
            json!(5),
            json!(-1),
            json!(1.5),
            json!("x"),
            json!([]),
            json!([5]),
            json!({"a": 5}),
        ];
        for (keyword, good) in TAKES {
            for (index, kind) in kinds.iter().enumerate() {
                for (place, schema) in [
                    ("the root", json!({*keyword: kind})),
                    ("/not", json!({"not": {*keyword: kind}})),
                    ("/$defs/x", json!({"$defs": {"x": {*keyword: kind}}})),
                    ("/allOf/1/items", json!({"allOf": [true, {"items": {*keyword: kind}}]})),
                ] {
                    let result = check(&schema);
                    assert_eq!(result.is_ok(), good.contains(&index), "{schema}: {result:?}");
                    let Err(failure) = result else { continue };
                    let message = failure.into_message();
                    let place = place.trim_start_matches("the root");
                    assert!(message.contains(&format!("{keyword:?} at ")), "{schema}: {message}");
                    assert!(message.contains(place), "{schema}: {message}");
                }
            }
        }
    }

    #[test]
    fn names_stand_once() {
        for schema in [
            json!({"required": ["a", "b", "a"]}),
            json!({"dependentRequired": {"x": ["a", "a"]}}),
            json!({"type": ["null", "null"]}),
            json!({"type": "strin"}),
            json!({"type": ["null", "any"]}),
        ] {
            assert!(check(&schema).is_err(), "{schema}");
        }
        assert!(check(&json!({"required": ["a", "b"], "enum": [1, 1]})).is_ok());
    }

    #[test]
    fn holders_are_keywords() {
        for (pointer, keyword) in [
            ("/items", "items"),
            ("/allOf/0", "allOf"),
            ("/properties/items", "properties"),
            ("/$defs/a~1b/not", "not"),
            ("", "a schema"),
        ] {
            assert_eq!(holder(pointer), keyword);
        }
    }
}
