//! The tokens that grammars mask: a trie of a tokenizer's bytes, and what llguidance shares between
//! all grammars over it. Tokenisation is left to the model: any spelling of an allowed text in
//! tokens is allowed, so that a mask depends on the text alone. Read next: grammar.rs.

use std::sync::Arc;

use llguidance::api::ParserLimits;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::ParserFactory;

use crate::abi::Failure;
use crate::step_watch::StepWatch;
use crate::tokenizer::Tokenizer;

/// Sets of tokens that a grammar often allows as a whole, so that their tries are not walked: white
/// space, texts of JSON, and words of plain text for grammars without quotes. Without DeepSeek's
/// bar, a few tokens, that texts between its tags may not spell everywhere (call_guard.rs).
fn slices() -> Vec<String> {
    let text = r#"[^"\\\x00-\x1F\x7F｜]"#;
    let bounds = ["{1,10}", "{1,30}", "+"].map(|bounds| format!("{text}{bounds}"));
    let mut slices = vec![r"[\x20\x0A\x0D\x09]+".to_string(), r"[a-z ]{1,10}".to_string()];
    slices.extend(bounds);
    slices
}

/// What one mask, one grammar and one answer may cost; steps and states, so the same everywhere.
/// Ordinary masks take some hundred items. 20 are about a microsecond of work where rows are short;
/// what long rows take is for step_watch.rs.
fn limits() -> ParserLimits {
    ParserLimits {
        max_items_in_row: 2_000,
        initial_lexer_fuel: 1_000_000,
        step_lexer_fuel: 100_000,
        step_max_items: 20_000,
        max_lexer_states: 20_000,
        max_grammar_size: 200_000,
        precompute_large_lexemes: true,
        verbose_errors: false,
    }
}

struct Env {
    trie: TokTrie,
}

impl TokenizerEnv for Env {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.greedy_tokenize(bytes)
    }

    // So that nothing is forced into one tokenisation.
    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}

/// Immutable; any thread.
pub struct GrammarVocabulary {
    pub factory: ParserFactory,
    pub env: TokEnv,
    pub end_tokens: Vec<u32>,
    pub watch: StepWatch,
}

impl GrammarVocabulary {
    pub fn new(tokenizer: &Tokenizer, end_tokens: &[u32]) -> Result<GrammarVocabulary, Failure> {
        let marker = TokTrie::SPECIAL_TOKEN_MARKER;
        let words: Vec<Vec<u8>> = tokenizer
            .entries
            .iter()
            .map(|entry| match entry.bytes.first() {
                _ if entry.control && !entry.name.is_empty() => {
                    [&[marker], entry.name.as_bytes()].concat()
                }
                // The byte FF is never part of a text, and here it begins control tokens.
                None => Vec::new(),
                Some(first) if *first == marker || entry.control => Vec::new(),
                Some(_) => entry.bytes.clone(),
            })
            .collect();
        let size = words.len() as u32;
        let end_tokens: Vec<u32> = end_tokens.iter().copied().filter(|id| *id < size).collect();
        let Some(end) = end_tokens.first() else {
            return Err(Failure::Invalid("the vocabulary has no token that ends an answer".into()));
        };
        let trie = TokTrie::from(&TokRxInfo::new(size, *end), &words).with_eos_tokens(&end_tokens);
        let env: TokEnv = Arc::new(Env { trie });
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &slices())
            .map_err(|error| Failure::Internal(format!("the vocabulary has no trie: {error}")))?;
        factory.quiet();
        *factory.limits_mut() = limits();
        Ok(GrammarVocabulary { factory, env, end_tokens, watch: StepWatch::start()? })
    }

    pub fn size(&self) -> usize {
        self.env.tok_trie().vocab_size()
    }
}
