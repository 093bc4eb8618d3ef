//! The Rust side of plumb, behind the C ABI of include/plumb_rust.h: what good crates do and C++
//! has no equal for. Tokenizers here; every function that C++ calls goes through `abi::guard`. Read
//! in this order: abi, tokenizer_abi, vocabulary (which tokenizer), pretokenizer, the models
//! (byte_level and word_cache, spm, wordpiece), tokenizer_json and token_classes; then template and
//! template_abi; grammar_abi, grammar, step_watch, grammar_source and what it names; hash (BLAKE3).

mod abi;
mod added_tokens;
mod byte_level;
mod calendar;
mod call_grammar;
mod call_guard;
mod call_json;
mod call_text;
mod compile_thread;
mod ebnf;
mod ebnf_parse;
mod grammar;
mod grammar_abi;
mod grammar_source;
#[cfg(test)]
mod grammar_test;
mod grammar_vocabulary;
mod hash;
mod lark_guard;
mod pattern;
mod pretokenizer;
mod schema;
mod schema_check;
mod schema_finite;
mod schema_refs;
mod schema_rewrite;
mod schema_values;
mod spm;
mod step_watch;
mod template;
mod template_abi;
mod template_keep;
mod template_source;
mod tojson;
mod token_classes;
mod tokenizer;
mod tokenizer_abi;
mod tokenizer_json;
mod vocabulary;
mod word_cache;
mod wordpiece;
