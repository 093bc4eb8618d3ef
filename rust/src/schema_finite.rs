//! Which definitions of a converted schema have an instance that ends. An object that must hold an
//! object like itself has none, and a model that began one could never end its answer. Only
//! structure is looked at, so "yes" may be wrong where bounds or patterns exclude each other, which
//! llguidance finds; "no" is always right.

use serde_json::{Map, Value};

use crate::schema_refs::{LISTS, MAPS, ONE};

type Members = Map<String, Value>;

/// Makes what refers to a definition without an instance `false`. False: the root is that itself.
pub fn keep_finite(root: &mut Value, definitions: &mut [Value]) -> bool {
    let mut users = vec![Vec::new(); definitions.len()];
    for (index, schema) in definitions.iter_mut().enumerate() {
        references(schema, &mut |target| users[target].push(index));
    }
    // Instances are built from within: what has one may give its users one.
    let mut finite = vec![false; definitions.len()];
    let mut todo: Vec<usize> = (0..definitions.len()).rev().collect();
    while let Some(index) = todo.pop() {
        if !finite[index] && ends(&definitions[index], &finite) {
            finite[index] = true;
            todo.extend(users[index].iter().filter(|user| !finite[**user]));
        }
    }
    if finite.iter().all(|finite| *finite) {
        return true;
    }
    // llguidance would follow a reference to `false` only when it is too late.
    for schema in definitions.iter_mut().chain([&mut *root]) {
        prune(schema, &finite);
    }
    ends(root, &finite)
}

fn target(reference: &Value) -> Option<usize> {
    reference.as_str()?.strip_prefix("#/$defs/d")?.parse().ok()
}

/// The schemas right inside a schema.
pub fn inner(members: &mut Members) -> impl Iterator<Item = &mut Value> {
    members.iter_mut().flat_map(|(keyword, value)| -> Vec<&mut Value> {
        let is_in = |keywords: &[&str]| keywords.contains(&keyword.as_str());
        if value.is_array() && is_in(&LISTS) {
            value.as_array_mut().into_iter().flatten().collect()
        } else if value.is_object() && is_in(&MAPS) {
            value.as_object_mut().into_iter().flat_map(Map::values_mut).collect()
        } else if is_in(&ONE) {
            vec![value]
        } else {
            vec![]
        }
    })
}

fn references(schema: &mut Value, found: &mut impl FnMut(usize)) {
    if let Value::Object(members) = schema {
        members.get("$ref").and_then(target).into_iter().for_each(&mut *found);
        inner(members).for_each(|schema| references(schema, found));
    }
}

fn prune(schema: &mut Value, finite: &[bool]) {
    if let Value::Object(members) = schema {
        if members.get("$ref").and_then(target).is_some_and(|index| !finite[index]) {
            *schema = Value::Bool(false);
        } else {
            inner(members).for_each(|schema| prune(schema, finite));
        }
    }
}

/// Adds the schema and those in its allOf, which hold together. False: one of them is `false`.
fn gather<'a>(schema: &'a Value, out: &mut Vec<&'a Members>) -> bool {
    match schema {
        Value::Object(members) => {
            out.push(members);
            let all = members.get("allOf").and_then(Value::as_array);
            all.into_iter().flatten().all(|schema| gather(schema, out))
        }
        other => *other != Value::Bool(false),
    }
}

/// Whether the schema has an instance, where the definitions have one as `finite` says.
fn ends(schema: &Value, finite: &[bool]) -> bool {
    let mut all = Vec::new();
    if !gather(schema, &mut all) {
        return false;
    }
    if all.is_empty() {
        return true; // the schema is `true`
    }
    let reachable = all.iter().all(|members| {
        let refers = members.get("$ref").and_then(target).is_none_or(|index| finite[index]);
        refers
            && ["anyOf", "oneOf"].iter().all(|keyword| match members.get(*keyword) {
                Some(Value::Array(ways)) => ways.iter().any(|way| ends(way, finite)),
                _ => true,
            })
    });
    if !reachable {
        return false;
    }
    let may_be = |kind: &str| all.iter().all(|members| allows(members, kind));
    if ["null", "boolean", "number", "integer", "string"].iter().any(|kind| may_be(kind)) {
        return true;
    }
    let is_literal =
        |members: &&Members| ["const", "enum"].iter().any(|k| members.contains_key(*k));
    let literal = all.iter().any(is_literal);
    (may_be("object") && (literal || object_ends(&all, finite)))
        || (may_be("array") && (literal || array_ends(&all, finite)))
}

/// Whether a value of that type may be an instance, by `type`, `const` and `enum`.
fn allows(members: &Members, kind: &str) -> bool {
    let is = |name: &Value| name == kind || (kind == "integer" && name == "number");
    let typed = match members.get("type") {
        Some(Value::Array(names)) => names.iter().any(is),
        Some(name) => is(name),
        None => true,
    };
    let of_kind = |value: &Value| match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(_) => kind == "number" || kind == "integer",
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    };
    let listed = match (members.get("const"), members.get("enum")) {
        (Some(value), _) => of_kind(value),
        (None, Some(Value::Array(values))) => values.iter().any(of_kind),
        _ => true,
    };
    typed && listed
}

/// Whether every member that must be there has a value.
fn object_ends(all: &[&Members], finite: &[bool]) -> bool {
    let required = all.iter().filter_map(|members| members.get("required")?.as_array()).flatten();
    required.filter_map(Value::as_str).all(|name| {
        all.iter().all(|members| match members.get("properties").and_then(|all| all.get(name)) {
            Some(schema) => ends(schema, finite),
            // A pattern may take the name.
            None if members.contains_key("patternProperties") => true,
            None => members.get("additionalProperties").is_none_or(|rest| ends(rest, finite)),
        })
    })
}

/// Whether every item that must be there has a value.
fn array_ends(all: &[&Members], finite: &[bool]) -> bool {
    let least = all.iter().filter_map(|members| members.get("minItems")?.as_u64()).max();
    let listed = |members: &Members| members.get("prefixItems")?.as_array().map(Vec::len);
    let lists = all.iter().filter_map(|members| listed(members)).max().unwrap_or(0);
    // Behind the lists, one item is like the next.
    let count = usize::try_from(least.unwrap_or(0)).unwrap_or(usize::MAX).min(lists + 1);
    (0..count).all(|index| {
        all.iter().all(|members| {
            let list = members.get("prefixItems").and_then(|list| list.get(index));
            list.or(members.get("items")).is_none_or(|schema| ends(schema, finite))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn finite(schema: Value) -> bool {
        crate::schema::normalise(&schema).is_ok()
    }

    #[test]
    fn tells_what_can_end() {
        for schema in [
            json!({"type": "object", "properties": {"next": {"$ref": "#"}}}),
            json!({"type": "object", "required": ["next"], "properties":
                {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}),
            json!({"type": "array", "items": {"$ref": "#"}}),
            json!({"type": ["object", "null"], "required": ["a"],
                "properties": {"a": {"$ref": "#"}}}),
            json!({"required": ["a"], "properties": {"a": {"$ref": "#"}}}), // numbers pass
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, true]},
                "b": {"$ref": "#/$defs/a"}}}),
            json!({"const": {"a": 1}, "required": ["a"]}),
        ] {
            assert!(finite(schema.clone()), "{schema}");
        }
        for schema in [
            json!({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}}),
            json!({"type": "object", "required": ["a"], "additionalProperties": {"$ref": "#"}}),
            json!({"type": "object", "properties": {"a": {"$ref": "#"}},
                "allOf": [{"required": ["a"]}]}),
            json!({"type": "array", "items": {"$ref": "#"}, "minItems": 1}),
            json!({"type": "array", "prefixItems": [true, {"$ref": "#"}], "minItems": 2}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"},
                "b": {"$ref": "#/$defs/a"}}}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {
                "a": {"type": "object", "required": ["b"],
                    "properties": {"b": {"$ref": "#/$defs/b"}}},
                "b": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/a"}}}}),
        ] {
            let message = crate::schema::normalise(&schema).unwrap_err().into_message();
            assert!(message.contains("\"$ref\" at "), "{schema}: {message}");
        }
    }

    #[test]
    fn an_endless_branch_is_never_begun() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}, "b": {}},
            "$defs": {"a": {"type": "object", "required": ["x"], "properties":
                {"x": {"$ref": "#/$defs/a"}}}}});
        let out = crate::schema::normalise(&schema).unwrap();
        assert_eq!(out["properties"]["a"], json!(false));
    }
}
