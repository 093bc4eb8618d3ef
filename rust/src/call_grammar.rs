//! Calls of tools as the grammar of an answer: whatever is written is a call of a tool that there
//! is, with arguments that its parameters' schema takes. The syntaxes of text/tool_syntax.h: those
//! where a call or its arguments are one JSON object are in call_json.rs; here is DeepSeek's DSML,
//! where each parameter stands between tags of its own, texts without quotes. The source is written
//! by text/tool_grammar.cc. Read next: call_json.rs, call_text.rs (texts without quotes),
//! call_guard.rs (JSON that spells no tag).

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::{Map, Value};

use crate::abi::Failure;
use crate::call_guard as guard;
use crate::call_json;
use crate::call_text;
use crate::grammar_source::{json_grammar, lark_string};
use crate::schema;

const PARAMETER_END: &str = "</｜DSML｜ parameter>\n";

pub struct Tool {
    pub name: String,
    pub schema: Option<Value>, // as schema.rs gives it; none: any arguments
}

/// `token` finds a control token by its name.
pub fn grammar(
    source: &str,
    token: impl Fn(&str) -> Option<u32>,
) -> Result<TopLevelGrammar, Failure> {
    let bad = |what: &str| Failure::Internal(format!("a source of calls without {what}"));
    let source: Value = serde_json::from_str(source).map_err(|_| bad("JSON"))?;
    let lead = source["lead"].as_str().ok_or_else(|| bad("lead"))?;
    let parallel = source["parallel"].as_bool().ok_or_else(|| bad("parallel"))?;
    let mut tools = Vec::new();
    for tool in source["tools"].as_array().ok_or_else(|| bad("tools"))? {
        let name = tool["name"].as_str().ok_or_else(|| bad("name"))?.to_string();
        let schema = match &tool["schema"] {
            Value::Null => None,
            given => Some(schema::normalise(given).map_err(|why| of_tool(&name, why))?),
        };
        tools.push(Tool { name, schema });
    }
    let flag = |name: &str| source[name].as_bool().unwrap_or(false);
    let calls = call_json::Calls {
        tools: &tools,
        lead,
        marked: flag("marked"),
        free: flag("free"),
        parallel,
        mark: |text: &str| match token(text) {
            Some(id) => format!("<[{id}]>"),
            None => lark_string(text),
        },
    };
    match source["syntax"].as_str() {
        Some("dsml") => Dsml::default().write(lead, parallel, &tools),
        Some("hermes") => Ok(calls.hermes()),
        Some("llama") => Ok(calls.llama()),
        Some("mistral") => Ok(calls.mistral()),
        Some("mistral-named") => Ok(calls.mistral_named()),
        _ => Err(bad("syntax")),
    }
}

fn of_tool(name: &str, why: Failure) -> Failure {
    let say = |message: String| format!("the parameters of the tool {name}: {message}");
    match why {
        Failure::Invalid(message) => Failure::Invalid(say(message)),
        Failure::Unsupported(message) => Failure::Unsupported(say(message)),
        Failure::Limit(message) => Failure::Limit(say(message)),
        other => other,
    }
}

/// The grammar on its way.
#[derive(Default)]
struct Dsml {
    lark: String,
    grammars: Vec<GrammarWithLexer>,
    terminals: usize,
}

impl Dsml {
    fn write(
        mut self,
        lead: &str,
        parallel: bool,
        tools: &[Tool],
    ) -> Result<TopLevelGrammar, Failure> {
        let lead = if lead.is_empty() { String::new() } else { lark_string(lead) };
        let names: Vec<String> = (0..tools.len()).map(|index| format!("f{index}")).collect();
        let repeat = if parallel { "+" } else { "" };
        self.lark = format!(
            "start: {lead} call{repeat} \"</｜DSML｜ calls>\"\ncall: {}\n",
            names.join(" | ")
        );
        let mut any = None;
        for (index, tool) in tools.iter().enumerate() {
            let body = match &tool.schema {
                Some(schema) => self.parameters(schema).map_err(|why| of_tool(&tool.name, why))?,
                None => any.get_or_insert_with(|| self.any_parameters()).clone(),
            };
            let begin = lark_string(&format!("<｜DSML｜ invoke name=\"{}\">\n", tool.name));
            self.lark += &format!("f{index}: {begin} {body} \"</｜DSML｜ invoke>\\n\"\n");
        }
        let outer = GrammarWithLexer::from_lark(self.lark);
        let mut grammars = vec![outer];
        grammars.append(&mut self.grammars);
        Ok(TopLevelGrammar { grammars, max_tokens: None })
    }

    fn terminal(&mut self, body: String) -> String {
        let name = format!("T{}", self.terminals);
        self.terminals += 1;
        self.lark += &format!("{name}: {body}\n");
        name
    }

    /// A JSON value by its schema, then the end of its parameter.
    fn value(&mut self, schema: Value) -> String {
        let name = format!("j{}", self.grammars.len());
        self.grammars.push(GrammarWithLexer { name: Some(name.clone()), ..json_grammar(schema) });
        format!("@{name} {}", lark_string(PARAMETER_END))
    }

    /// Any names, any values.
    fn any_parameters(&mut self) -> String {
        let name = r#""<｜DSML｜ parameter name=\"" /[^"\x00-\x1F\x7F｜]{1,64}/"#;
        let text = call_text::unmarked(call_text::ANY);
        let end = lark_string(PARAMETER_END);
        let text = self.terminal(format!(r#"{name} "\" string=\"true\">" {text} {end}"#));
        let head = self.terminal(format!(r#"{name} "\" string=\"false\">""#));
        let value = self.value(guard::any());
        self.lark += &format!("any: {text} | {head} {value}\n");
        "any* \"\\n\"?".into()
    }

    /// Those of the schema, in its order, each once.
    fn parameters(&mut self, schema: &Value) -> Result<String, Failure> {
        let none = Map::new();
        let definitions = schema.get("$defs").and_then(Value::as_object).unwrap_or(&none);
        let members = root_object(schema, definitions)?;
        let all = members.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let required: Vec<&str> = members
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let rest = members.get("additionalProperties").cloned().unwrap_or(Value::Bool(true));
        let unlisted = required.iter().filter(|name| !all.contains_key(**name));
        let mut body = String::new();
        for (name, schema) in all
            .iter()
            .map(|(name, schema)| (name.as_str(), schema))
            .chain(unlisted.map(|name| (*name, &rest)))
        {
            let ways = self.parameter(name, schema, definitions)?;
            let must = required.contains(&name);
            match ways.is_empty() {
                true if must => {
                    return Err(Failure::Invalid(format!(
                        "the schema allows nothing: the parameter {name:?} has no value"
                    )))
                }
                true => {}
                false => body += &format!("({}){} ", ways.join(" | "), if must { "" } else { "?" }),
            }
        }
        // Without parameters an empty line stands between the tags.
        Ok(if required.is_empty() { format!("{body} \"\\n\"?") } else { body })
    }

    /// The ways to write one: its texts as they are, all else as JSON.
    fn parameter(
        &mut self,
        name: &str,
        schema: &Value,
        definitions: &Map<String, Value>,
    ) -> Result<Vec<String>, Failure> {
        let cannot = |why: &str| {
            Failure::Unsupported(format!("the parameter {name:?} cannot be enforced: {why}"))
        };
        if name.is_empty() || name.contains(|c: char| c == '"' || c == '｜' || c.is_control()) {
            return Err(cannot("its name cannot stand in a tag"));
        }
        let begin = |kind: &str| {
            lark_string(&format!("<｜DSML｜ parameter name=\"{name}\" string=\"{kind}\">"))
        };
        let mut ways = Vec::new();
        let texts = call_text::Texts { definitions };
        if let Some(text) = texts.of(schema).map_err(|why| cannot(&why))? {
            let text = call_text::unmarked(&text);
            let end = lark_string(PARAMETER_END);
            ways.push(self.terminal(format!("{} {text} {end}", begin("true"))));
        }
        if let Some(schema) = guard::values(schema, definitions).map_err(|why| cannot(&why))? {
            let value = self.value(schema);
            ways.push(format!("{} {value}", begin("false")));
        }
        Ok(ways)
    }
}

/// The object schema that the parameters are, through references.
fn root_object<'a>(
    schema: &'a Value,
    definitions: &'a Map<String, Value>,
) -> Result<&'a Map<String, Value>, Failure> {
    const KNOWN: [&str; 5] = ["type", "properties", "required", "additionalProperties", "$defs"];
    let mut at = schema;
    for _ in 0..call_text::HOPS_MAX {
        let Value::Object(members) = at else { break };
        match call_text::target(members, definitions) {
            Some(definition) if members.keys().all(|k| k == "$ref" || k == "$defs") => {
                at = definition;
            }
            _ => {
                if let Some(keyword) = members.keys().find(|k| !KNOWN.contains(&k.as_str())) {
                    return Err(schema::refuse(
                        keyword,
                        "",
                        "parameters are written one by one, so it cannot hold for all of them",
                    ));
                }
                let kinds = call_text::kinds(at, definitions, 0);
                if kinds & call_text::OBJECT == 0 {
                    return Err(schema::malformed("type", "", "parameters are an object"));
                }
                return Ok(members);
            }
        }
    }
    Err(schema::malformed("$ref", "", "it leads to no object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dsml(schema: Value) -> Result<TopLevelGrammar, Failure> {
        let source = json!({"syntax": "dsml", "lead": "", "parallel": true,
            "tools": [{"name": "f", "schema": schema}]});
        grammar(&source.to_string(), |_| None)
    }

    #[test]
    fn refusals_name_the_tool_and_the_parameter() {
        let of = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
        for (schema, says) in [
            (of(json!({"uniqueItems": true})), "uniqueItems"),
            (of(json!({"type": "string", "format": "email"})), "format"),
            (of(json!({"type": "string", "pattern": "^a|b"})), "pattern"),
            (json!({"type": "object", "properties": {"a\"b": {}}}), "a\\\"b"),
            (json!({"type": "object", "minProperties": 1}), "minProperties"),
            (json!({"type": "array"}), "type"),
            (json!({"required": ["a"], "additionalProperties": false}), "\"a\""),
        ] {
            let message = dsml(schema.clone()).err().expect("refused").into_message();
            assert!(message.contains("tool f"), "{message}");
            assert!(message.contains(says), "{message}");
        }
    }
}
