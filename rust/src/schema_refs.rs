//! Where a $ref leads within one schema: base URIs ($id), anchors and JSON pointers. Documents are
//! never fetched: a reference out of the schema is an error that says so.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::abi::Failure;

/// Keywords whose value is a schema, a list of schemas, or schemas by name.
pub const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
pub const LISTS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
pub const MAPS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// A step of a JSON pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Everything that a reference can name, each known by its JSON pointer.
pub struct Resources<'a> {
    root: &'a Value,
    bases: BTreeMap<String, String>, // of schemas with $id, and of the root: absolute or as given
    by_uri: BTreeMap<String, String>,
    anchors: BTreeMap<(String, String), String>, // (resource, name)
}

impl<'a> Resources<'a> {
    pub fn index(root: &'a Value) -> Result<Resources<'a>, Failure> {
        let mut resources = Resources {
            root,
            bases: BTreeMap::from([(String::new(), String::new())]),
            by_uri: BTreeMap::from([(String::new(), String::new())]),
            anchors: BTreeMap::new(),
        };
        resources.visit(root, String::new(), String::new())?;
        Ok(resources)
    }

    fn visit(&mut self, schema: &Value, pointer: String, base: String) -> Result<(), Failure> {
        let Some(members) = schema.as_object() else { return Ok(()) };
        let mut base = base;
        if let Some(id) = members.get("$id").and_then(Value::as_str) {
            match id.strip_prefix('#') {
                // Draft 7 wrote an anchor so.
                Some(name) => self.add_anchor(&base, name, &pointer)?,
                None => {
                    base = join(&base, id.trim_end_matches('#'));
                    self.bases.insert(pointer.clone(), base.clone());
                    if self
                        .by_uri
                        .insert(base.clone(), pointer.clone())
                        .is_some_and(|at| !at.is_empty() || !pointer.is_empty())
                    {
                        return Err(Failure::Invalid(format!("two schemas have the $id {base}")));
                    }
                }
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = members.get(keyword).and_then(Value::as_str) {
                self.add_anchor(&base, name, &pointer)?;
            }
        }
        for (keyword, value) in members {
            let keyword = keyword.as_str();
            let child = format!("{pointer}/{}", escape(keyword));
            match value {
                Value::Array(items) if LISTS.contains(&keyword) => {
                    for (index, item) in items.iter().enumerate() {
                        self.visit(item, format!("{child}/{index}"), base.clone())?;
                    }
                }
                Value::Object(named) if MAPS.contains(&keyword) => {
                    for (name, item) in named {
                        self.visit(item, format!("{child}/{}", escape(name)), base.clone())?;
                    }
                }
                Value::Object(_) if ONE.contains(&keyword) => {
                    self.visit(value, child, base.clone())?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add_anchor(&mut self, base: &str, name: &str, pointer: &str) -> Result<(), Failure> {
        let key = (base.to_string(), name.to_string());
        match self.anchors.insert(key, pointer.to_string()) {
            None => Ok(()),
            Some(_) => Err(Failure::Invalid(format!("two schemas have the anchor {name}"))),
        }
    }

    fn base(&self, pointer: &str) -> &str {
        let mut at = pointer;
        loop {
            if let Some(base) = self.bases.get(at) {
                return base;
            }
            at = &at[..at.rfind('/').unwrap_or(0)];
        }
    }

    /// The schema at a pointer that `resolve` gave.
    pub fn at(&self, pointer: &str) -> &'a Value {
        self.root.pointer(pointer).expect("resolve found it")
    }

    /// The pointer of what `reference`, written at `pointer`, leads to.
    pub fn resolve(&self, pointer: &str, reference: &str) -> Result<String, String> {
        let uri = join(self.base(pointer), reference);
        let (uri, fragment) = uri.split_once('#').unwrap_or((&uri, ""));
        let Some(resource) = self.by_uri.get(uri) else {
            return Err(format!("{reference:?} is another document, and none is fetched"));
        };
        let target = if fragment.is_empty() {
            resource.clone()
        } else if fragment.starts_with('/') {
            format!("{resource}{}", percent_decode(fragment))
        } else {
            let key = (uri.to_string(), percent_decode(fragment));
            let anchor = self.anchors.get(&key);
            anchor.ok_or_else(|| format!("there is no anchor {fragment:?}"))?.clone()
        };
        match self.root.pointer(&target) {
            Some(Value::Object(_) | Value::Bool(_)) => Ok(target),
            _ => Err(format!("{reference:?} leads to no schema")),
        }
    }
}

fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (bytes[index], hex(index + 1), hex(index + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                index += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                index += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn scheme(uri: &str) -> Option<&str> {
    let (name, _) = uri.split_once(':')?;
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    valid.then_some(name)
}

/// A reference against its base (RFC 3986, section 5.2, for what schemas use).
fn join(base: &str, reference: &str) -> String {
    let base = base.split('#').next().unwrap_or_default();
    if scheme(reference).is_some() || base.is_empty() {
        return reference.to_string();
    }
    if reference.is_empty() || reference.starts_with('#') {
        return format!("{base}{reference}");
    }
    let Some(name) = scheme(base) else {
        return format!("{}{reference}", directory(base, 0));
    };
    let rest = &base[name.len() + 1..];
    if reference.starts_with("//") {
        return format!("{name}:{reference}");
    }
    let Some(after) = rest.strip_prefix("//") else {
        return reference.to_string(); // urn: and the like have no directories
    };
    let authority = &after[..after.find('/').unwrap_or(after.len())];
    let root = name.len() + 3 + authority.len();
    if reference.starts_with('/') {
        return format!("{}{reference}", &base[..root]);
    }
    let mut folder = directory(base, root).to_string();
    if folder.len() == root {
        folder.push('/');
    }
    let mut reference = reference;
    loop {
        if let Some(rest) = reference.strip_prefix("./") {
            reference = rest;
        } else if let Some(rest) = reference.strip_prefix("../") {
            reference = rest;
            let parent = folder.trim_end_matches('/').rfind('/').unwrap_or(0);
            folder.truncate(parent.max(root) + 1);
        } else {
            return format!("{folder}{reference}");
        }
    }
}

/// The part of `uri` up to its last '/', which stands at `from` or behind.
fn directory(uri: &str, from: usize) -> &str {
    match uri[from..].rfind('/') {
        Some(at) => &uri[..from + at + 1],
        None => &uri[..from],
    }
}

#[cfg(test)]
mod tests {
    use super::{join, Resources};
    use serde_json::json;

    #[test]
    fn references_join_their_base() {
        for (base, reference, wanted) in [
            ("http://x.y/a/b.json", "c.json#/d", "http://x.y/a/c.json#/d"),
            ("http://x.y/a/b.json", "/c", "http://x.y/c"),
            ("http://x.y/a/b/c", "../d", "http://x.y/a/d"),
            ("http://x.y", "c", "http://x.y/c"),
            ("urn:uuid:1", "#/a", "urn:uuid:1#/a"),
            ("", "a.json", "a.json"),
            ("a/b.json", "c.json", "a/c.json"),
            ("http://x.y/a", "urn:z", "urn:z"),
        ] {
            assert_eq!(join(base, reference), wanted);
        }
    }

    #[test]
    fn resolves_pointers_anchors_and_ids() {
        let schema = json!({
            "$id": "http://x.y/root.json",
            "$defs": {
                "a/b": {"$anchor": "here"},
                "c": {"$id": "c.json", "$defs": {"d%": {"type": "null"}}},
            },
        });
        let resources = Resources::index(&schema).unwrap();
        for (at, reference, wanted) in [
            ("", "#", ""),
            ("/properties/x", "#/$defs/a~1b", "/$defs/a~1b"),
            ("", "#here", "/$defs/a~1b"),
            ("", "c.json#/$defs/d%25", "/$defs/c/$defs/d%"),
            ("/$defs/c/items", "#", "/$defs/c"),
            ("/$defs/c", "root.json", ""),
        ] {
            assert_eq!(resources.resolve(at, reference).unwrap(), wanted, "{reference}");
        }
        for reference in ["other.json", "#nowhere", "#/$defs/none", "#/$id"] {
            assert!(resources.resolve("", reference).is_err(), "{reference}");
        }
    }
}
