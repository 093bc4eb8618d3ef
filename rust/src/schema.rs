//! JSON Schema (2020-12) in the part that llguidance enforces exactly. What a schema says in other
//! words is rewritten into that part; what cannot be enforced is refused with the keyword and the
//! JSON pointer where it stands, and so is every keyword that is not known, since a misspelt limit
//! would limit nothing. Annotations pass. Read next: schema_check.rs (values of keywords),
//! schema_refs.rs ($ref, $id, $anchor), schema_rewrite.rs (not, if, dependent..., unevaluated...),
//! schema_values.rs (formats, numbers), schema_finite.rs (references without end).

use serde_json::{json, Map, Value};

use crate::abi::Failure;
use crate::schema_finite as finite;
use crate::schema_refs::{escape, Resources};
use crate::schema_rewrite as rewrite;
use crate::schema_values as values;

pub const NODES_MAX: usize = 10_000;
pub const DEPTH_MAX: usize = 64;

const DIALECTS: [&str; 3] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
];
/// Keywords that describe without demanding, or that are looked up by others.
const ANNOTATIONS: [&str; 17] = [
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "contentSchema",
    "$schema",
];

/// A refusal: `keyword` at `pointer` cannot be enforced.
pub fn refuse(keyword: &str, pointer: &str, why: &str) -> Failure {
    let place = if pointer.is_empty() { "the root" } else { pointer };
    Failure::Unsupported(format!("{keyword:?} at {place} of the schema cannot be enforced: {why}"))
}

/// A malformed schema.
pub fn malformed(keyword: &str, pointer: &str, why: &str) -> Failure {
    let place = if pointer.is_empty() { "the root" } else { pointer };
    Failure::Invalid(format!("{keyword:?} at {place} of the schema is wrong: {why}"))
}

pub fn parse(source: &str) -> Result<Value, Failure> {
    serde_json::from_str(source)
        .map_err(|error| Failure::Invalid(format!("the schema is not JSON: {error}")))
}

pub fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword) || (keyword.starts_with("x-") && keyword != "x-guidance")
}

/// Converts schemas, each of them known by its JSON pointer in the whole.
pub struct Converter<'a> {
    pub resources: Resources<'a>,
    /// The pointer of each referenced schema; its definition is named by its index.
    definitions: Vec<String>,
    nodes: usize,
    draft_7: bool, // a reference makes its neighbours void
}

impl<'a> Converter<'a> {
    /// The name of the definition of the schema at `pointer`, which will be converted.
    pub fn define(&mut self, pointer: String) -> Value {
        let index = self.definitions.iter().position(|known| *known == pointer);
        let index = index.unwrap_or_else(|| {
            self.definitions.push(pointer);
            self.definitions.len() - 1
        });
        json!({"$ref": format!("#/$defs/d{index}")})
    }

    /// Schemas produced by rewriting count too, or a small source could become a large one.
    pub fn count(&mut self, pointer: &str) -> Result<(), Failure> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(Failure::Limit(format!(
                "the schema has more than {NODES_MAX} parts, counted up to {pointer}"
            )));
        }
        Ok(())
    }

    pub fn convert(
        &mut self,
        schema: &'a Value,
        pointer: &str,
        depth: usize,
    ) -> Result<Value, Failure> {
        self.count(pointer)?;
        if depth > DEPTH_MAX {
            return Err(Failure::Limit(format!("the schema is nested deeper than {DEPTH_MAX}")));
        }
        match schema {
            Value::Bool(_) => Ok(schema.clone()),
            Value::Object(members) => Object {
                converter: self,
                members,
                pointer,
                depth,
                out: Map::new(),
                also: Vec::new(),
            }
            .convert(),
            _ => Err(crate::schema_check::no_schema(pointer)),
        }
    }

    /// Each schema of an array.
    pub fn convert_all(
        &mut self,
        list: &'a Value,
        keyword: &str,
        pointer: &str,
        depth: usize,
    ) -> Result<Vec<Value>, Failure> {
        let items = list.as_array().filter(|items| !items.is_empty()).ok_or_else(|| {
            malformed(keyword, pointer, "it must be an array with a schema in it")
        })?;
        let child = |index| format!("{pointer}/{keyword}/{index}");
        (0..items.len())
            .map(|index| self.convert(&items[index], &child(index), depth + 1))
            .collect()
    }
}

/// One schema object on its way.
pub struct Object<'c, 'a> {
    pub converter: &'c mut Converter<'a>,
    pub members: &'a Map<String, Value>,
    pub pointer: &'c str,
    pub depth: usize,
    pub out: Map<String, Value>,
    /// Schemas that must hold too.
    pub also: Vec<Value>,
}

impl<'a> Object<'_, 'a> {
    fn convert(mut self) -> Result<Value, Failure> {
        for (keyword, value) in self.members {
            self.keyword(keyword, value)?;
        }
        rewrite::unevaluated(&mut self)?;
        if values::no_number(self.members) {
            let others = ["null", "boolean", "string", "array", "object"];
            self.also.push(json!({"type": others}));
        }
        if !self.also.is_empty() {
            let all = self.out.entry("allOf").or_insert_with(|| json!([]));
            all.as_array_mut().expect("an array was put there").append(&mut self.also);
        }
        Ok(Value::Object(self.out))
    }

    pub fn refuse<T>(&self, keyword: &str, why: &str) -> Result<T, Failure> {
        Err(refuse(keyword, self.pointer, why))
    }

    pub fn malformed<T>(&self, keyword: &str, why: &str) -> Result<T, Failure> {
        Err(malformed(keyword, self.pointer, why))
    }

    pub fn child(&mut self, keyword: &str, schema: &'a Value) -> Result<Value, Failure> {
        let pointer = format!("{}/{keyword}", self.pointer);
        self.converter.convert(schema, &pointer, self.depth + 1)
    }

    /// The schemas of an object by name, through `name`.
    fn children(
        &mut self,
        keyword: &str,
        value: &'a Value,
        name: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Value, Failure> {
        let Some(members) = value.as_object() else {
            return self.malformed(keyword, "it must be an object");
        };
        let mut out = Map::new();
        for (key, schema) in members {
            let pointer = format!("{}/{keyword}/{}", self.pointer, escape(key));
            let schema = self.converter.convert(schema, &pointer, self.depth + 1)?;
            let key = name(key).map_err(|why| refuse(keyword, self.pointer, &why))?;
            if out.insert(key, schema).is_some() {
                return self.refuse(keyword, "two patterns are the same");
            }
        }
        Ok(Value::Object(out))
    }

    fn put(&mut self, keyword: &str, value: Value) {
        self.out.insert(keyword.into(), value);
    }

    fn keyword(&mut self, keyword: &str, value: &'a Value) -> Result<(), Failure> {
        match keyword {
            "$schema" => self.dialect(value)?,
            "$ref" => self.reference(value)?,
            "type" => self.put(keyword, value.clone()), // as schema_check.rs wants it
            "enum" | "const" => self.literal(keyword, value)?,
            "allOf" | "anyOf" | "oneOf" => {
                let all = self.converter.convert_all(value, keyword, self.pointer, self.depth)?;
                self.put(keyword, Value::Array(all));
            }
            "properties" => {
                let out = self.children(keyword, value, |name| Ok(name.into()))?;
                self.put(keyword, out);
            }
            "patternProperties" => {
                let out = self.children(keyword, value, crate::pattern::translate)?;
                self.put(keyword, out);
            }
            "additionalProperties" => {
                let out = self.child(keyword, value)?;
                self.put(keyword, out);
            }
            "items" | "additionalItems" | "prefixItems" => self.items(keyword, value)?,
            "required" => {
                let names = self.names(keyword, value)?;
                self.put(keyword, names.into());
            }
            "minItems" | "maxItems" | "minLength" | "maxLength" | "maxProperties" => {
                let count = self.whole(keyword, value)?;
                self.put(keyword, count.into());
            }
            "minProperties" => self.properties_min(value)?,
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                let number =
                    values::number(value).map_err(|why| refuse(keyword, self.pointer, &why))?;
                self.put(keyword, number);
            }
            "multipleOf" => self.multiple(value)?,
            "pattern" => self.pattern(value)?,
            "format" => self.format(value)?,
            "uniqueItems" => self.unique(value)?,
            "contains" => rewrite::contains(self, value)?,
            "not" => rewrite::not(self, value)?,
            "if" => rewrite::condition(self, value)?,
            "dependentRequired" | "dependentSchemas" => rewrite::dependent(self, keyword, value)?,
            "propertyNames" => rewrite::property_names(self, value)?,
            // Read together with another keyword; alone they demand nothing.
            "then" | "else" | "minContains" | "maxContains" => {}
            "unevaluatedProperties" | "unevaluatedItems" => {}
            _ if is_annotation(keyword) => {}
            "$dynamicRef" => return self.refuse(keyword, "its target depends on who refers to it"),
            "$vocabulary" => {
                return self.refuse(keyword, "only the standard vocabularies are known")
            }
            _ => return self.refuse(keyword, "it is not a keyword that is known here"),
        }
        Ok(())
    }

    fn dialect(&self, value: &Value) -> Result<(), Failure> {
        let name = value.as_str().unwrap_or_default().trim_end_matches('#');
        if !DIALECTS.contains(&name) {
            return self.refuse("$schema", "this dialect is not known; 2020-12 is");
        }
        Ok(())
    }

    fn reference(&mut self, value: &Value) -> Result<(), Failure> {
        let Some(reference) = value.as_str() else {
            return self.malformed("$ref", "it must be a string");
        };
        let demands = self.members.keys().filter(|keyword| !is_annotation(keyword)).count();
        let moves = self.members.contains_key("$id");
        if self.converter.draft_7 && (demands > 1 || moves) {
            return self.refuse("$ref", "in draft 7 what stands beside it would be ignored");
        }
        let target = self
            .converter
            .resources
            .resolve(self.pointer, reference)
            .map_err(|why| refuse("$ref", self.pointer, &why))?;
        let definition = self.converter.define(target);
        self.put("$ref", definition["$ref"].clone());
        Ok(())
    }

    fn literal(&mut self, keyword: &str, value: &Value) -> Result<(), Failure> {
        let literal =
            values::literal(value, 0).map_err(|why| refuse(keyword, self.pointer, &why))?;
        if keyword == "enum" && literal.as_array().is_none_or(Vec::is_empty) {
            return self.malformed(keyword, "it must be an array with a value in it");
        }
        self.put(keyword, literal);
        Ok(())
    }

    // Before 2020-12, an array of items was what prefixItems is now.
    fn items(&mut self, keyword: &str, value: &'a Value) -> Result<(), Failure> {
        let listed = self.members.get("items").is_some_and(Value::is_array);
        if listed && self.members.contains_key("prefixItems") {
            return self.malformed("items", "it must be a schema beside prefixItems");
        }
        match keyword {
            "additionalItems" if !listed => {
                return self.refuse(keyword, "without an array of items it says nothing");
            }
            "items" if !listed => {
                let out = self.child(keyword, value)?;
                self.put("items", out);
            }
            "additionalItems" => {
                let out = self.child(keyword, value)?;
                self.put("items", out);
            }
            _ => {
                let all = self.converter.convert_all(value, keyword, self.pointer, self.depth)?;
                self.put("prefixItems", Value::Array(all));
            }
        }
        Ok(())
    }

    pub fn names(&self, keyword: &str, value: &Value) -> Result<Vec<String>, Failure> {
        let names: Option<Vec<String>> = value
            .as_array()
            .and_then(|names| names.iter().map(|name| name.as_str().map(str::to_string)).collect());
        let Some(names) = names else {
            return self.malformed(keyword, "it must be an array of strings");
        };
        if names.iter().any(|name| !values::writable(name)) {
            return self.refuse(keyword, "a control character in a name has no short escape");
        }
        Ok(names)
    }

    pub fn whole(&self, keyword: &str, value: &Value) -> Result<u64, Failure> {
        match values::whole(value) {
            Some(count) if count <= values::COUNT_MAX => Ok(count),
            Some(_) => self.refuse(keyword, &format!("it is above {}", values::COUNT_MAX)),
            None => self.malformed(keyword, "it must be a whole number, not below 0"),
        }
    }

    // A member's name may come twice, and then counts once: one free name is all that can be
    // demanded.
    fn properties_min(&mut self, value: &Value) -> Result<(), Failure> {
        let least = self.whole("minProperties", value)?;
        let required = match self.members.get("required") {
            Some(names) => self.names("required", names)?.len() as u64,
            None => 0,
        };
        if least > required + 1 {
            return self.refuse(
                "minProperties",
                "only one more than the names in \"required\" can be demanded",
            );
        }
        self.put("minProperties", least.into());
        Ok(())
    }

    // llguidance wants a multiple with all the decimals of its step ("5.50" for 0.25). With fewer
    // decimals it is a multiple of a coarser step.
    fn multiple(&mut self, value: &Value) -> Result<(), Failure> {
        let steps = values::steps(value).map_err(|why| refuse("multipleOf", self.pointer, &why))?;
        let whole = self.members.get("type").is_some_and(|name| name == "integer");
        if steps.len() == 1 || whole {
            self.put("multipleOf", steps[0].clone());
            return Ok(());
        }
        // Values of other types pass by the first.
        let coarse = steps[1..].iter().map(|step| json!({"type": "number", "multipleOf": step}));
        let ways = std::iter::once(json!({"multipleOf": steps[0]})).chain(coarse);
        self.also.push(json!({"anyOf": ways.collect::<Vec<Value>>()}));
        Ok(())
    }

    fn pattern(&mut self, value: &Value) -> Result<(), Failure> {
        let Some(pattern) = value.as_str() else {
            return self.malformed("pattern", "it must be a string");
        };
        let pattern = crate::pattern::translate(pattern)
            .map_err(|why| refuse("pattern", self.pointer, &why))?;
        self.put("pattern", pattern.into());
        Ok(())
    }

    // By the standard a format only annotates. Beside "type": "string" it is plainly meant.
    fn format(&mut self, value: &Value) -> Result<(), Failure> {
        let is_string = |name: &Value| name == "string";
        let typed = match self.members.get("type") {
            Some(Value::Array(names)) => names.iter().any(is_string),
            Some(name) => is_string(name),
            None => false,
        };
        if !typed {
            return self.refuse("format", "it is enforced beside \"type\": \"string\" only");
        }
        match value.as_str().and_then(values::format) {
            Some(schema) => self.also.push(schema),
            None => return self.refuse("format", &format!("{value} is not a known format")),
        }
        Ok(())
    }

    fn unique(&mut self, value: &Value) -> Result<(), Failure> {
        let most = self.members.get("maxItems").and_then(values::whole);
        match value {
            Value::Bool(false) => Ok(()),
            Value::Bool(true) if most.is_some_and(|most| most <= 1) => Ok(()),
            Value::Bool(true) => {
                self.refuse("uniqueItems", "what was written before cannot be excluded")
            }
            _ => self.malformed("uniqueItems", "it must be a boolean"),
        }
    }
}

/// The schema as llguidance enforces it exactly.
pub fn normalise(root: &Value) -> Result<Value, Failure> {
    crate::schema_check::check(root)?;
    values::check_multiples(root)?;
    let resources = Resources::index(root)?;
    let dialect = root.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let draft_7 = dialect.trim_end_matches('#') == DIALECTS[2];
    let mut converter = Converter { resources, definitions: Vec::new(), nodes: 0, draft_7 };
    let mut out = match converter.convert(root, "", 0)? {
        Value::Bool(true) => json!({}),
        Value::Bool(_) => return Err(Failure::Invalid("the schema allows nothing".into())),
        out => out,
    };
    let mut definitions = Vec::new();
    // Converting one may define more.
    while definitions.len() < converter.definitions.len() {
        let pointer = converter.definitions[definitions.len()].clone();
        let schema = root.pointer(&pointer).expect("resolve found it");
        definitions.push(converter.convert(schema, &pointer, 0)?);
    }
    if !finite::keep_finite(&mut out, &mut definitions) {
        let place = locate(root, "$ref", String::new()).unwrap_or_default();
        let why = "each value would hold another of its kind, without end; nothing satisfies it";
        return Err(malformed("$ref", &place, why));
    }
    if !definitions.is_empty() {
        let named = definitions.into_iter().enumerate();
        let named = named.map(|(index, schema)| (format!("d{index}"), schema)).collect();
        out["$defs"] = Value::Object(named);
    }
    values::check_bounds(&out)?;
    Ok(out)
}

/// What llguidance refused, with the keyword that its message speaks of and where that stands.
pub fn explain(root: &Value, message: &str) -> Failure {
    if message.contains("nsatisfiable") {
        return Failure::Invalid(format!("the schema allows nothing: {message}"));
    }
    const NAMED: [(&str, &str); 8] = [
        ("oneOf", "oneOf"),
        ("patternProperty", "patternProperties"),
        ("maxProperties", "maxProperties"),
        ("maxProperties", "minProperties"),
        ("multipleOf", "multipleOf"),
        ("circular", "$ref"),
        ("regex", "pattern"),
        ("ange", "minimum"),
    ];
    let exclusive = "its cases must exclude each other by type or by a constant required member";
    for (word, keyword) in NAMED {
        if !message.contains(word) {
            continue;
        }
        let message = if word == "oneOf" { exclusive } else { message };
        if let Some(pointer) = locate(root, keyword, String::new()) {
            return refuse(keyword, &pointer, message);
        }
    }
    Failure::Unsupported(format!("the schema cannot be enforced: {message}"))
}

/// The first place where `keyword` stands.
fn locate(value: &Value, keyword: &str, pointer: String) -> Option<String> {
    match value {
        Value::Object(members) if members.contains_key(keyword) => Some(pointer),
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            locate(value, keyword, format!("{pointer}/{}", escape(name)))
        }),
        Value::Array(items) => (0..items.len())
            .find_map(|index| locate(&items[index], keyword, format!("{pointer}/{index}"))),
        _ => None,
    }
}
