//! Calls of tools that are JSON, as the grammar of an answer. Marks ("<tool_call>") are control
//! tokens where the vocabulary has them as such, and texts otherwise. Arguments that no schema is
//! given for are any JSON object. Read next: call_grammar.rs.

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use serde_json::{json, Map, Value};

use crate::call_grammar::Tool;
use crate::call_text;
use crate::grammar_source::{json_grammar, lark_string};
use crate::schema_finite::inner;

/// What all syntaxes have in common.
pub struct Calls<'a, Mark: Fn(&str) -> String> {
    pub tools: &'a [Tool],
    pub lead: &'a str,  // what stands before the first call
    pub marked: bool,   // the first call's mark has been written
    pub free: bool,     // a text without calls will do, too, or stand before them
    pub parallel: bool, // more than one
    pub mark: Mark,
}

impl<Mark: Fn(&str) -> String> Calls<'_, Mark> {
    /// Each between its tags, a line break between two.
    pub fn hermes(&self) -> TopLevelGrammar {
        let (begin, end) = ((self.mark)("<tool_call>"), (self.mark)("</tool_call>"));
        let more = if self.parallel { "(\"\\n\" more)*" } else { "" };
        let lark = format!(
            "{}calls: body {more}\nmore: {begin} body\nbody: \"\\n\" @call \"\\n\" {end}\n",
            self.start("<tool_call>")
        );
        made(lark, vec![self.object("arguments")])
    }

    /// The whole answer; a semicolon between two. A text that begins otherwise is no call.
    pub fn llama(&self) -> TopLevelGrammar {
        let more = if self.parallel { "(\"; \" @call)*" } else { "" };
        let start = if self.free { "calls | TEXT?" } else { "LEAD calls" };
        let lark = format!("start: {start}\ncalls: @call {more}\n")
            .replace("LEAD", &self.lead_string())
            + "TEXT: /[ \\t\\r\\n]*[^ \\t\\r\\n{](?s:.*)/\n";
        made(lark, vec![self.object("parameters")])
    }

    /// In one list.
    pub fn mistral(&self) -> TopLevelGrammar {
        let more = if self.parallel { "(\", \" @call)*" } else { "" };
        let lark = format!("{}calls: \"[\" @call {more} \"]\"\n", self.start("[TOOL_CALLS]"));
        made(lark, vec![self.object("arguments")])
    }

    /// Each with a mark of its own; the name stands before the arguments.
    pub fn mistral_named(&self) -> TopLevelGrammar {
        let (begin, arguments) = ((self.mark)("[TOOL_CALLS]"), (self.mark)("[ARGS]"));
        let more = if self.parallel { format!("({begin} one)*") } else { String::new() };
        let names: Vec<String> = (0..self.tools.len()).map(|index| format!("f{index}")).collect();
        let mut lark = format!(
            "{}calls: one {more}\none: {}\n",
            self.start("[TOOL_CALLS]"),
            names.join(" | ")
        );
        let mut grammars = Vec::new();
        for (index, tool) in self.tools.iter().enumerate() {
            lark += &format!("f{index}: {} {arguments} @a{index}\n", lark_string(&tool.name));
            let schema = tool.schema.clone().unwrap_or_else(|| json!({"type": "object"}));
            let mut definitions = Map::new();
            let schema = hoisted(schema, index, &mut definitions);
            let schema = json!({"allOf": [{"type": "object"}, schema], "$defs": definitions});
            grammars
                .push(GrammarWithLexer { name: Some(format!("a{index}")), ..json_grammar(schema) });
        }
        made(lark, grammars)
    }

    fn lead_string(&self) -> String {
        if self.lead.is_empty() {
            String::new()
        } else {
            lark_string(self.lead)
        }
    }

    /// The rule "start": what stands before "calls", which follow the mark.
    fn start(&self, mark: &str) -> String {
        let spelled = (self.mark)(mark);
        let lead = self.lead_string();
        if !self.free {
            let mark = if self.marked { String::new() } else { spelled };
            return format!("start: {lead} {mark} calls\n");
        }
        const SOME: &str = "/(?s:.+)/";
        if spelled.starts_with('<') {
            return format!("start: TEXT? ({spelled} calls)?\nTEXT: {SOME}\n");
        }
        // One terminal, since the lexer takes the longest match of each.
        format!(
            "start: TEXT? | MARKED calls\nTEXT: {}\nMARKED: {} {spelled}\n",
            call_text::without(SOME, mark),
            call_text::without(call_text::ANY, mark),
        )
    }

    /// The grammar "call": {"name": ..., `arguments`: {...}}.
    fn object(&self, arguments: &str) -> GrammarWithLexer {
        let (mut ways, mut definitions) = (Vec::new(), Map::new());
        for (index, tool) in self.tools.iter().enumerate() {
            let schema = tool.schema.clone().unwrap_or_else(|| json!({"type": "object"}));
            let schema = hoisted(schema, index, &mut definitions);
            ways.push(json!({
                "type": "object",
                "properties": {
                    "name": {"const": tool.name},
                    arguments: {"allOf": [{"type": "object"}, schema]},
                },
                "required": ["name", arguments],
                "additionalProperties": false,
            }));
        }
        let schema = json!({"anyOf": ways, "$defs": definitions});
        GrammarWithLexer { name: Some("call".into()), ..json_grammar(schema) }
    }
}

fn made(lark: String, inner: Vec<GrammarWithLexer>) -> TopLevelGrammar {
    let mut grammars = vec![GrammarWithLexer::from_lark(lark)];
    grammars.extend(inner);
    TopLevelGrammar { grammars, max_tokens: None }
}

/// The schema without definitions, which get names of their own among those of all tools.
fn hoisted(mut schema: Value, tool: usize, definitions: &mut Map<String, Value>) -> Value {
    let own = schema.as_object_mut().and_then(|members| members.remove("$defs"));
    rename(&mut schema, tool);
    for (name, mut schema) in own.and_then(|own| own.as_object().cloned()).unwrap_or_default() {
        rename(&mut schema, tool);
        definitions.insert(format!("t{tool}{name}"), schema);
    }
    schema
}

fn rename(schema: &mut Value, tool: usize) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::String(reference)) = members.get_mut("$ref") {
        *reference = reference.replacen("#/$defs/", &format!("#/$defs/t{tool}"), 1);
    }
    inner(members).for_each(|schema| rename(schema, tool));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_definitions_stay_apart() {
        let mut schema =
            json!({"$ref": "#/$defs/d0", "properties": {"$ref": {"$ref": "#/$defs/d1"}}});
        rename(&mut schema, 3);
        assert_eq!(schema["$ref"], "#/$defs/t3d0");
        assert_eq!(schema["properties"]["$ref"]["$ref"], "#/$defs/t3d1");
    }
}
