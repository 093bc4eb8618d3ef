//! Which entries of a vocabulary are the same to DeepSeek's n-gram tables: those whose texts are
//! equal without case, accents, compatibility forms and kinds of white space. The normalisers are
//! the crate's own, since the model was trained with what they do to each of 129,280 texts.
//! Source: DeepInfer 0.1.0, models/v4_modules/engram_metadata.py.

use std::collections::HashMap;

use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::normalizers::{Lowercase, Replace, Strip, StripAccents, NFD, NFKC};
use tokenizers::{NormalizedString, Normalizer, Tokenizer};

use crate::abi::Failure;

/// Stands for a text that is one space, which stripping would make empty.
const ONE_SPACE: &str = "\u{E000}";

/// Class of every id, numbered in the order in which they are first seen.
pub fn classes(tokenizer: &Tokenizer) -> Result<Vec<u32>, Failure> {
    classes_of(tokenizer)
        .map_err(|error| Failure::Internal(format!("the tokenizer's normalisers failed: {error}")))
}

fn classes_of(tokenizer: &Tokenizer) -> tokenizers::Result<Vec<u32>> {
    let steps = steps()?;
    let count = tokenizer.get_vocab(true).values().max().map_or(0, |id| id + 1);
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut classes = Vec::with_capacity(count as usize);
    for id in 0..count {
        let next = seen.len() as u32;
        classes.push(*seen.entry(key(tokenizer, &steps, id)?).or_insert(next));
    }
    Ok(classes)
}

fn key(
    tokenizer: &Tokenizer,
    steps: &[Box<dyn Normalizer>],
    id: u32,
) -> tokenizers::Result<String> {
    let text = tokenizer.decode(&[id], false)?;
    if text.contains('\u{FFFD}') {
        // Part of a character: only itself.
        return Ok(tokenizer.id_to_token(id).unwrap_or_default());
    }
    let mut normalized = NormalizedString::from(text.as_str());
    for step in steps {
        step.normalize(&mut normalized)?;
    }
    Ok(if normalized.is_empty() { text } else { normalized.get().to_string() })
}

fn steps() -> tokenizers::Result<Vec<Box<dyn Normalizer>>> {
    let regex = |pattern: &str| ReplacePattern::Regex(pattern.into());
    Ok(vec![
        Box::new(NFKC),
        Box::new(NFD),
        Box::new(StripAccents),
        Box::new(Lowercase),
        Box::new(Replace::new(regex("[ \\t\\r\\n]+"), " ")?),
        Box::new(Replace::new(regex("^ $"), ONE_SPACE)?),
        Box::new(Strip::new(true, true)),
        Box::new(Replace::new(ONE_SPACE, " ")?),
    ])
}
