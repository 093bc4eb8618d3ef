//! Byte-level BPE: the alphabet in which GPT-2 style vocabularies write bytes as printable
//! characters (Radford et al. 2019, encoder.py, bytes_to_unicode), and the model over crate
//! tokenizers' BPE. Also its variant without that alphabet ("gemma4"): spaces as U+2581, bytes as
//! "<0x0A>".

use std::collections::HashMap;

use tokenizers::models::bpe::BPE;
use tokenizers::Model;

use crate::abi::Failure;
use crate::pretokenizer::PreTokenizer;
use crate::tokenizer::Kind;
use crate::vocabulary::{FragmentModel, Vocabulary};
use crate::word_cache::WordCache;

/// The two directions of the alphabet.
pub struct Alphabet {
    char_of: [char; 256],
    byte_of: HashMap<char, u8>,
}

impl Alphabet {
    pub fn new() -> Self {
        let mut char_of = ['\0'; 256];
        let mut moved = 0;
        for byte in 0..=255u8 {
            let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
            char_of[byte as usize] = if printable {
                byte as char
            } else {
                moved += 1;
                char::from_u32(255 + moved).expect("256..=323 are characters")
            };
        }
        let byte_of = (0..=255u8).map(|byte| (char_of[byte as usize], byte)).collect();
        Alphabet { char_of, byte_of }
    }

    pub fn write(&self, bytes: &[u8], out: &mut String) {
        out.extend(bytes.iter().map(|byte| self.char_of[*byte as usize]));
    }

    /// The bytes that an entry stands for; its own UTF-8 when it is not written in the alphabet.
    pub fn read(&self, name: &str) -> Vec<u8> {
        name.chars()
            .map(|character| self.byte_of.get(&character).copied())
            .collect::<Option<Vec<u8>>>()
            .unwrap_or_else(|| name.as_bytes().to_vec())
    }
}

pub struct ByteLevelModel {
    alphabet: Alphabet,
    pre: PreTokenizer,
    bpe: BPE,
    words: WordCache,
}

impl ByteLevelModel {
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, Failure> {
        let pre = PreTokenizer::named(vocabulary.pre)?;
        // Its own cache makes a string of every token that it gives.
        let bpe = build_bpe(vocabulary, pre.ignore_merges, false, Some(0))?;
        Ok(ByteLevelModel { alphabet: Alphabet::new(), pre, bpe, words: WordCache::new() })
    }
}

impl FragmentModel for ByteLevelModel {
    fn tokenize(&self, text: &str, _: bool, ids: &mut Vec<u32>) -> Result<(), Failure> {
        let mut written = String::new();
        self.pre.split(text, &mut |piece| {
            if self.words.find(piece, ids) {
                return Ok(());
            }
            let before = ids.len();
            written.clear();
            self.alphabet.write(piece.as_bytes(), &mut written);
            append(&self.bpe, &written, ids)?;
            self.words.remember(piece, &ids[before..]);
            Ok(())
        })
    }
}

/// "gemma4": BPE over whole lines of plain text; a run of newlines that is an entry stays whole.
pub struct PlainBpeModel {
    pre: PreTokenizer,
    bpe: BPE,
}

impl PlainBpeModel {
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, Failure> {
        let pre = PreTokenizer::named("gemma4")?;
        let bpe = build_bpe(vocabulary, false, true, None)?;
        Ok(PlainBpeModel { pre, bpe })
    }
}

impl FragmentModel for PlainBpeModel {
    fn tokenize(&self, text: &str, _: bool, ids: &mut Vec<u32>) -> Result<(), Failure> {
        let escaped = text.replace(' ', "\u{2581}");
        self.pre.split(&escaped, &mut |piece| {
            if piece.starts_with('\n') {
                if let Some(id) = self.bpe.token_to_id(piece) {
                    ids.push(id);
                    return Ok(());
                }
            }
            append(&self.bpe, piece, ids)
        })
    }
}

fn append(bpe: &BPE, piece: &str, ids: &mut Vec<u32>) -> Result<(), Failure> {
    let tokens = bpe
        .tokenize(piece)
        .map_err(|error| Failure::Internal(format!("byte pair encoding failed: {error}")))?;
    ids.extend(tokens.iter().map(|token| token.id));
    Ok(())
}

/// The crate's model. Control and unknown entries are left out, so that no text can become one by
/// merging; merges that name entries which are not there are dropped, as they could never apply.
fn build_bpe(
    vocabulary: &Vocabulary,
    ignore_merges: bool,
    byte_fallback: bool,
    cache_capacity: Option<usize>,
) -> Result<BPE, Failure> {
    let mut ids: HashMap<String, u32> = HashMap::with_capacity(vocabulary.tokens.len());
    for (id, token) in vocabulary.tokens.iter().enumerate() {
        let hidden = matches!(vocabulary.kinds[id], Kind::Control | Kind::Unknown);
        if !hidden && !token.is_empty() {
            ids.entry(token.to_string()).or_insert(id as u32);
        }
    }
    let mut merges = Vec::with_capacity(vocabulary.merges.len());
    let mut joined = String::new();
    for merge in &vocabulary.merges {
        // The left part is never empty, but may itself begin with a space.
        let Some(space) = merge.char_indices().skip(1).find(|(_, c)| *c == ' ') else {
            return Err(Failure::Invalid(format!("merge {:?} has no two parts", short(merge))));
        };
        let (left, right) = (&merge[..space.0], &merge[space.0 + 1..]);
        joined.clear();
        joined.push_str(left);
        joined.push_str(right);
        if ids.contains_key(left) && ids.contains_key(right) && ids.contains_key(&joined) {
            merges.push((left.to_string(), right.to_string()));
        }
    }
    let mut builder = BPE::builder()
        .vocab_and_merges(ids.into_iter().collect::<ahash::AHashMap<_, _>>(), merges)
        .ignore_merges(ignore_merges)
        .byte_fallback(byte_fallback);
    if let Some(capacity) = cache_capacity {
        builder = builder.cache_capacity(capacity);
    }
    builder.build().map_err(|error| Failure::Invalid(format!("the merges: {error}")))
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
