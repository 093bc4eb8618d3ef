//! What a caller wrote (a schema, a regular expression, a grammar, choices) as the source that
//! llguidance compiles, with the text or token that must stand after it. Everything here refuses
//! rather than guesses. Read next: schema.rs, pattern.rs, lark_guard.rs, ebnf.rs, call_grammar.rs.

use std::sync::Arc;
use std::time::Duration;

use llguidance::api::{GrammarWithLexer, TopLevelGrammar};
use llguidance::JsonCompileOptions;
use serde_json::Value;

use crate::abi::Failure;
use crate::grammar::Grammar;
use crate::grammar_vocabulary::GrammarVocabulary;
use crate::{call_grammar, ebnf, lark_guard, pattern, schema};

/// Between the parts of a JSON text: nothing, one space, or a line break and its indentation. A
/// model that may write more of it without end sometimes does.
const WHITESPACE: &str = r"\x20|\x0A\x20{0,32}";
/// Escapes in JSON strings. Without \u, each text has one spelling, so that a member's name cannot
/// be written another way to escape its schema.
const ESCAPES: &str = "nrbtf\\\"";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    JsonSchema,
    JsonObject,
    Regex,
    Lark,
    Ebnf,
    Choice,
    Calls, // by text/tool_grammar.cc
}

/// What stands after the grammar.
pub enum End {
    None,
    Text(String),
    Token(u32),
}

pub struct Spec {
    pub kind: Kind,
    pub source: String,
    pub choices: Vec<String>,
    pub end: End,
}

/// A string literal of Lark.
pub fn lark_string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A grammar that is one terminal; a text after it belongs to the terminal, since the lexer takes
/// the longest match of each.
fn terminal(body: &str, end: &End) -> TopLevelGrammar {
    TopLevelGrammar::from_lark(match end {
        End::None => format!("start: T\nT: {body}\n"),
        End::Text(text) => format!("start: T\nT: ({body}) {}\n", lark_string(text)),
        End::Token(id) => format!("start: T <[{id}]>\nT: {body}\n"),
    })
}

/// `inner`, then what stands after it.
fn with_end(inner: GrammarWithLexer, end: &End) -> TopLevelGrammar {
    let after = match end {
        End::None => return TopLevelGrammar::from_grammar(inner),
        End::Text(text) => lark_string(text),
        End::Token(id) => format!("<[{id}]>"),
    };
    let outer = GrammarWithLexer::from_lark(format!("start: @inner {after}\n"));
    let inner = GrammarWithLexer { name: Some("inner".into()), ..inner };
    TopLevelGrammar { grammars: vec![outer, inner], max_tokens: None }
}

/// A schema as schema.rs gives it.
pub fn json_grammar(mut schema: Value) -> GrammarWithLexer {
    let options = JsonCompileOptions {
        whitespace_flexible: false,
        whitespace_pattern: Some(WHITESPACE.into()),
        json_allowed_escapes: Some(ESCAPES.into()),
        ..JsonCompileOptions::default()
    };
    options.apply_to(&mut schema);
    GrammarWithLexer::from_json_schema(schema)
}

/// The grammar as llguidance takes it, and for a schema the schema as given, to name what is
/// refused later.
fn translate(
    vocabulary: &GrammarVocabulary,
    spec: &Spec,
) -> Result<(TopLevelGrammar, Option<Value>), Failure> {
    Ok(match spec.kind {
        Kind::JsonSchema => {
            let given = schema::parse(&spec.source)?;
            (with_end(json_grammar(schema::normalise(&given)?), &spec.end), Some(given))
        }
        Kind::JsonObject => {
            (with_end(json_grammar(serde_json::json!({"type": "object"})), &spec.end), None)
        }
        Kind::Calls => {
            let control = |name: &str| vocabulary.env.tok_trie().get_special_token(name);
            (call_grammar::grammar(&spec.source, control)?, None)
        }
        Kind::Regex => {
            let regex = pattern::translate(&spec.source).map_err(|why| {
                Failure::Unsupported(format!("the regular expression cannot be enforced: {why}"))
            })?;
            let regex = llguidance::regex_to_lark(&regex, "");
            (terminal(&format!("/{regex}/"), &spec.end), None)
        }
        Kind::Lark => {
            lark_guard::check(&spec.source)?;
            (with_end(GrammarWithLexer::from_lark(spec.source.clone()), &spec.end), None)
        }
        Kind::Ebnf => {
            let lark = ebnf::to_lark(&spec.source)?;
            (with_end(GrammarWithLexer::from_lark(lark), &spec.end), None)
        }
        Kind::Choice => {
            let choices: Vec<String> = spec.choices.iter().map(|text| lark_string(text)).collect();
            (terminal(&choices.join(" | "), &spec.end), None)
        }
    })
}

fn refused(kind: Kind, given: Option<&Value>, message: String) -> Failure {
    let large = ["too large", "too complex", "too big", "fuel", "limit", "stack level"];
    if large.iter().any(|word| message.contains(word)) {
        return Failure::Limit(format!("the grammar is too large to compile: {message}"));
    }
    match (kind, given) {
        (Kind::JsonSchema, Some(given)) => schema::explain(given, &message),
        (Kind::Calls, _) if message.contains("nsatisfiable") => {
            Failure::Invalid(format!("no call of a tool can be written: {message}"))
        }
        (Kind::Calls, _) => {
            Failure::Unsupported(format!("the calls of tools cannot be enforced: {message}"))
        }
        (Kind::Regex, _) => {
            Failure::Unsupported(format!("the regular expression cannot be enforced: {message}"))
        }
        _ => Failure::Invalid(format!("the grammar is not understood: {message}")),
    }
}

/// Compiles on a thread with room for llguidance's recursion, for at most `time`.
pub fn compile(
    vocabulary: &Arc<GrammarVocabulary>,
    spec: Spec,
    time: Duration,
) -> Result<Grammar, Failure> {
    let vocabulary = vocabulary.clone();
    crate::compile_thread::run(time, move || {
        let (source, given) = translate(&vocabulary, &spec)?;
        Grammar::compile(&vocabulary, source)
            .map_err(|message| refused(spec.kind, given.as_ref(), message))
    })
}
