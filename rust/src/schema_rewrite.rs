//! Keywords that llguidance does not have, as others that mean the same: implications as
//! alternatives ("a implies b" is "not a, or b"), with what can be said of "not". Each rewriting is
//! an equality, so that a schema is enforced to the letter or refused.

use serde_json::{json, Map, Value};

use crate::abi::Failure;
use crate::schema::{is_annotation, refuse, Converter, Object};
use crate::schema_refs::escape;
use crate::schema_values as values;

const HOPS_MAX: usize = 16;

pub fn not<'a>(object: &mut Object<'_, 'a>, value: &'a Value) -> Result<(), Failure> {
    let pointer = format!("{}/not", object.pointer);
    let negated = negate(object.converter, value, &pointer, object.depth + 1)?;
    object.also.push(negated);
    Ok(())
}

/// if: what holds then, what holds otherwise.
pub fn condition<'a>(object: &mut Object<'_, 'a>, value: &'a Value) -> Result<(), Failure> {
    let (then, otherwise) = (object.members.get("then"), object.members.get("else"));
    if let Some(then) = then {
        let pointer = format!("{}/if", object.pointer);
        let fails = negate(object.converter, value, &pointer, object.depth + 1)?;
        let then = object.child("then", then)?;
        object.also.push(json!({"anyOf": [fails, then]}));
    }
    if let Some(otherwise) = otherwise {
        let holds = object.child("if", value)?;
        let otherwise = object.child("else", otherwise)?;
        object.also.push(json!({"anyOf": [holds, otherwise]}));
    }
    Ok(())
}

/// dependentRequired and dependentSchemas: a member is absent, or something holds.
pub fn dependent<'a>(
    object: &mut Object<'_, 'a>,
    keyword: &str,
    value: &'a Value,
) -> Result<(), Failure> {
    let Some(members) = value.as_object() else {
        return object.malformed(keyword, "it must be an object");
    };
    for (name, value) in members {
        object.converter.count(object.pointer)?;
        let holds = if keyword == "dependentRequired" {
            json!({"required": object.names(keyword, value)?})
        } else {
            object.child(&format!("{keyword}/{}", escape(name)), value)?
        };
        object.also.push(json!({"anyOf": [{"properties": {name: false}}, holds]}));
    }
    Ok(())
}

/// Names as patterns: everything else is no member.
pub fn property_names<'a>(object: &mut Object<'_, 'a>, value: &'a Value) -> Result<(), Failure> {
    const WHY: &str = "only one of pattern, minLength, maxLength, enum and const is taken in it";
    let members = match value {
        Value::Bool(true) => return Ok(()),
        Value::Bool(false) => {
            object.also.push(json!({"maxProperties": 0}));
            return Ok(());
        }
        Value::Object(members) => members,
        _ => return object.malformed("propertyNames", "it must be a schema"),
    };
    let demands: Vec<(&String, &Value)> = members
        .iter()
        .filter(|(keyword, value)| {
            !is_annotation(keyword) && !(*keyword == "type" && *value == "string")
        })
        .collect();
    let [(keyword, value)] = demands[..] else {
        return match demands.len() {
            0 => Ok(()),
            _ => object.refuse("propertyNames", WHY),
        };
    };
    let one_of = |names: &[Value]| -> Option<String> {
        let names: Option<Vec<String>> =
            names.iter().map(|name| name.as_str().map(crate::pattern::escape)).collect();
        names.filter(|names| !names.is_empty()).map(|names| format!("^(?:{})$", names.join("|")))
    };
    let pattern = match (keyword.as_str(), value) {
        ("pattern", Value::String(pattern)) => crate::pattern::translate(pattern).ok(),
        ("maxLength", count) => {
            let most = object.whole("maxLength", count)?;
            Some(format!("^[\\x{{0}}-\\x{{10FFFF}}]{{0,{most}}}$"))
        }
        ("minLength", count) => {
            let least = object.whole("minLength", count)?;
            Some(format!("^[\\x{{0}}-\\x{{10FFFF}}]{{{least},}}$"))
        }
        ("const", name) => one_of(std::slice::from_ref(name)),
        ("enum", Value::Array(names)) => one_of(names),
        _ => None,
    };
    let Some(pattern) = pattern else {
        return object.refuse("propertyNames", WHY);
    };
    object.also.push(json!({"patternProperties": {pattern: true}, "additionalProperties": false}));
    Ok(())
}

/// Of contains, only what does not depend on the items.
pub fn contains<'a>(object: &mut Object<'_, 'a>, value: &'a Value) -> Result<(), Failure> {
    let bound = |keyword: &str| match object.members.get(keyword) {
        Some(count) => object.whole(keyword, count).map(Some),
        None => Ok(None),
    };
    let (least, most) = (bound("minContains")?.unwrap_or(1), bound("maxContains")?);
    let all = *value == Value::Bool(true) || value.as_object().is_some_and(Map::is_empty);
    if *value == Value::Bool(false) {
        if least > 0 {
            object.also.push(negated_types(&["array"]));
        }
    } else if all {
        object.also.push(json!({"minItems": least}));
        if let Some(most) = most {
            object.also.push(json!({"maxItems": most}));
        }
    } else if least > 0 || most.is_some() {
        return object.refuse("contains", "an item among others cannot be demanded");
    }
    Ok(())
}

/// What a schema evaluates of an object or array whatever the instance.
#[derive(Default)]
struct Evaluated {
    names: Vec<String>,
    patterns: Vec<String>,
    items: usize,
    all: bool,
}

/// unevaluatedProperties and unevaluatedItems, where what is evaluated is known beforehand.
pub fn unevaluated(object: &mut Object) -> Result<(), Failure> {
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        let Some(value) = object.members.get(keyword) else { continue };
        if *value == Value::Bool(true) {
            continue;
        }
        let mut evaluated = Evaluated::default();
        let of_items = keyword == "unevaluatedItems";
        let here = Some(keyword);
        evaluate(
            object.converter,
            object.members,
            object.pointer,
            of_items,
            here,
            0,
            &mut evaluated,
        )?;
        if evaluated.all {
            continue;
        }
        let rest = object.child(keyword, value)?;
        object.also.push(if of_items {
            json!({"prefixItems": vec![true; evaluated.items], "items": rest})
        } else {
            let named = |names: Vec<String>| -> Map<String, Value> {
                names.into_iter().map(|name| (name, Value::Bool(true))).collect()
            };
            json!({
                "properties": named(evaluated.names),
                "patternProperties": named(evaluated.patterns),
                "additionalProperties": rest,
            })
        });
    }
    Ok(())
}

/// `asks` is the keyword that wants to know, where it stands itself.
fn evaluate<'a>(
    converter: &Converter<'a>,
    members: &'a Map<String, Value>,
    pointer: &str,
    of_items: bool,
    asks: Option<&str>,
    hops: usize,
    out: &mut Evaluated,
) -> Result<(), Failure> {
    let keyword = if of_items { "unevaluatedItems" } else { "unevaluatedProperties" };
    let depends = |why: &str| {
        Err(refuse(keyword, pointer, &format!("what {why} evaluates depends on the answer")))
    };
    if hops > HOPS_MAX {
        return depends("a chain of references");
    }
    for (name, value) in members {
        let mut inner: Vec<(&Value, String)> = Vec::new();
        match (name.as_str(), of_items) {
            ("properties", false) => {
                out.names
                    .extend(value.as_object().into_iter().flatten().map(|(name, _)| name.clone()));
            }
            ("patternProperties", false) => {
                for (pattern, _) in value.as_object().into_iter().flatten() {
                    let pattern = crate::pattern::translate(pattern)
                        .map_err(|why| refuse("patternProperties", pointer, &why))?;
                    out.patterns.push(pattern);
                }
            }
            ("additionalProperties", false) => out.all = true,
            // Before 2020-12, an array of items was what prefixItems is now.
            ("items", true) => match value.as_array() {
                Some(list) => out.items = out.items.max(list.len()),
                None => out.all = true,
            },
            ("additionalItems", true) => {
                out.all |= members.get("items").is_some_and(Value::is_array);
            }
            ("unevaluatedProperties", false) | ("unevaluatedItems", true) => {
                out.all |= asks != Some(keyword);
            }
            ("prefixItems", true) => {
                out.items = out.items.max(value.as_array().map_or(0, Vec::len));
            }
            ("contains", true) => return depends("\"contains\""),
            ("allOf" | "$ref", _) => inner = always(converter, name, value, pointer)?,
            (
                "anyOf" | "oneOf" | "if" | "then" | "else" | "dependentSchemas" | "$dynamicRef",
                _,
            ) => {
                return depends(&format!("{name:?}"));
            }
            _ => {}
        }
        for (schema, pointer) in inner {
            if let Some(members) = schema.as_object() {
                evaluate(converter, members, &pointer, of_items, None, hops + 1, out)?;
            }
        }
    }
    Ok(())
}

/// The schemas that allOf or $ref apply to the same instance, whatever it is.
fn always<'a>(
    converter: &Converter<'a>,
    keyword: &str,
    value: &'a Value,
    pointer: &str,
) -> Result<Vec<(&'a Value, String)>, Failure> {
    if keyword == "$ref" {
        let target = converter
            .resources
            .resolve(pointer, value.as_str().unwrap_or_default())
            .map_err(|why| refuse(keyword, pointer, &why))?;
        return Ok(vec![(converter.resources.at(&target), target)]);
    }
    let schemas = value.as_array().into_iter().flatten().enumerate();
    Ok(schemas.map(|(index, schema)| (schema, format!("{pointer}/allOf/{index}"))).collect())
}

fn negated_types(names: &[&str]) -> Value {
    let all = ["null", "boolean", "object", "array", "number", "string"];
    let rest: Vec<&str> = all.into_iter().filter(|name| !names.contains(name)).collect();
    match rest.is_empty() {
        true => Value::Bool(false),
        false => json!({"type": rest}),
    }
}

/// The instances that `schema` refuses, as a converted schema: one keyword or another fails.
fn negate<'a>(
    converter: &mut Converter<'a>,
    schema: &'a Value,
    pointer: &str,
    depth: usize,
) -> Result<Value, Failure> {
    converter.count(pointer)?;
    if depth > crate::schema::DEPTH_MAX {
        return Err(Failure::Limit(
            "the schema is nested too deeply under \"not\" or \"if\"".into(),
        ));
    }
    let members = match schema {
        Value::Bool(holds) => return Ok(Value::Bool(!holds)),
        Value::Object(members) => members,
        _ => return Err(Failure::Invalid(format!("the schema at {pointer} is no schema"))),
    };
    let mut ways = Vec::new();
    for (keyword, value) in members {
        if !is_annotation(keyword) {
            negate_keyword(converter, members, keyword, value, pointer, depth, &mut ways)?;
        }
    }
    Ok(match ways.len() {
        0 => Value::Bool(false),
        1 => ways.remove(0),
        _ => json!({"anyOf": ways}),
    })
}

/// Adds the ways in which the instance may fail one keyword.
fn negate_keyword<'a>(
    converter: &mut Converter<'a>,
    members: &'a Map<String, Value>,
    keyword: &str,
    value: &'a Value,
    pointer: &str,
    depth: usize,
    ways: &mut Vec<Value>,
) -> Result<(), Failure> {
    let refused = |why: &str| Err(refuse(keyword, pointer, why));
    const NEGATED: &str = "its negation (under \"not\" or \"if\") cannot be enforced";
    let child = |name: &str| format!("{pointer}/{keyword}/{}", escape(name));
    match keyword {
        "type" => ways.push(negate_type(value, pointer)?),
        "required" => {
            for name in value.as_array().into_iter().flatten() {
                let Some(name) = name.as_str() else { return refused(NEGATED) };
                ways.push(json!({"type": "object", "properties": {name: false}}));
            }
        }
        "properties" => {
            for (name, schema) in value.as_object().into_iter().flatten() {
                let fails = negate(converter, schema, &child(name), depth + 1)?;
                if fails != Value::Bool(false) {
                    ways.push(json!({
                        "type": "object", "required": [name], "properties": {name: fails},
                    }));
                }
            }
        }
        "allOf" | "anyOf" => {
            let mut fails = Vec::new();
            for (index, schema) in value.as_array().into_iter().flatten().enumerate() {
                fails.push(negate(converter, schema, &child(&index.to_string()), depth + 1)?);
            }
            let all = if keyword == "allOf" { "anyOf" } else { "allOf" };
            ways.push(json!({all: fails}));
        }
        "not" => ways.push(converter.convert(value, &format!("{pointer}/not"), depth + 1)?),
        "$ref" => {
            let reference = value.as_str().unwrap_or_default();
            let target = match converter.resources.resolve(pointer, reference) {
                Ok(target) => target,
                Err(why) => return refused(&why),
            };
            let schema = converter.resources.at(&target);
            ways.push(negate(converter, schema, &target, depth + 1)?);
        }
        "const" => ways.push(match value {
            Value::Null => negated_types(&["null"]),
            Value::Bool(flag) => json!({"anyOf": [negated_types(&["boolean"]), {"const": !flag}]}),
            _ => return refused(NEGATED),
        }),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            let opposite = match keyword {
                "minimum" => "exclusiveMaximum",
                "maximum" => "exclusiveMinimum",
                "exclusiveMinimum" => "maximum",
                _ => "minimum",
            };
            let number = values::number(value).map_err(|why| refuse(keyword, pointer, &why))?;
            ways.push(json!({"type": "number", opposite: number}));
        }
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            negate_count(members, keyword, value, pointer, ways)?;
        }
        _ => return refused(NEGATED),
    }
    Ok(())
}

fn negate_type(value: &Value, pointer: &str) -> Result<Value, Failure> {
    let names: Vec<&str> = match value {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    };
    if names.contains(&"integer") && !names.contains(&"number") {
        return Err(refuse("type", pointer, "numbers that are no integers cannot be enforced"));
    }
    Ok(negated_types(&names))
}

fn negate_count(
    members: &Map<String, Value>,
    keyword: &str,
    value: &Value,
    pointer: &str,
    ways: &mut Vec<Value>,
) -> Result<(), Failure> {
    let (bound, what) = keyword.split_at(3);
    let kind = match what {
        "Length" => "string",
        "Items" => "array",
        _ => "object",
    };
    let Some(count) = values::whole(value).filter(|count| *count < values::COUNT_MAX) else {
        return Err(refuse(keyword, pointer, "it is no count, or too large"));
    };
    // One more name than those demanded is all that can be demanded (schema.rs).
    if keyword == "maxProperties" && (count > 0 || members.contains_key("required")) {
        return Err(refuse(keyword, pointer, "its negation cannot be enforced"));
    }
    if bound == "max" {
        ways.push(json!({"type": kind, format!("min{what}"): count + 1}));
    } else if count > 0 {
        ways.push(json!({"type": kind, format!("max{what}"): count - 1}));
    }
    Ok(())
}
