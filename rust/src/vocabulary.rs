//! A tokenizer from the vocabulary of a GGUF file: which model, what each entry stands for, and the
//! whole of an encoding (special entries cut out, the rest through the model).

use crate::abi::Failure;
use crate::added_tokens::{AddedTokens, Part};
use crate::byte_level::{Alphabet, ByteLevelModel, PlainBpeModel};
use crate::spm::{self, SpmModel};
use crate::tokenizer::{Encoder, Entry, Kind, Spelled, Stretch, Tokenizer};
use crate::wordpiece::{self, WordPieceModel};

/// What the file says, borrowed. `kinds` is as long as `tokens`; ids are in range (C++ checks
/// them).
pub struct Vocabulary<'a> {
    pub model: &'a str,
    pub pre: &'a str,
    pub tokens: Vec<&'a str>,
    pub scores: &'a [f32],
    pub kinds: Vec<Kind>,
    pub merges: Vec<&'a str>,
    pub unknown: Option<u32>,
    pub add_space_prefix: bool,
    pub before: Vec<u32>,
    pub after: Vec<u32>,
}

/// Turns text without special entries into ids. `opens`: the text begins the whole or follows a
/// special entry.
pub trait FragmentModel: Send + Sync {
    fn tokenize(&self, text: &str, opens: bool, ids: &mut Vec<u32>) -> Result<(), Failure>;
}

struct VocabularyEncoder {
    added: AddedTokens,
    model: Box<dyn FragmentModel>,
    before: Vec<u32>,
    after: Vec<u32>,
}

impl Encoder for VocabularyEncoder {
    fn encode(&self, text: &str, spelled: Spelled, add_special: bool) -> Result<Vec<u32>, Failure> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 8);
        if add_special {
            ids.extend_from_slice(&self.before);
        }
        let mut opens = true;
        self.added.split(text, spelled, |part| {
            match part {
                Part::Token(id, _) => ids.push(id),
                Part::Text(text) => self.model.tokenize(text, opens, &mut ids)?,
            }
            opens = matches!(part, Part::Token(..));
            Ok(())
        })?;
        if add_special {
            ids.extend_from_slice(&self.after);
        }
        Ok(ids)
    }

    fn cut<'a>(
        &self,
        text: &'a str,
        spelled: Spelled,
        each: &mut dyn FnMut(Stretch<'a>),
    ) -> Result<(), Failure> {
        let mut opens = true;
        self.added.split(text, spelled, |part| {
            match part {
                Part::Token(id, name) => each(Stretch::Token { id, name }),
                Part::Text(text) => each(Stretch::Text { text, opens }),
            }
            opens = matches!(part, Part::Token(..));
            Ok(())
        })
    }

    fn encode_stretch(&self, text: &str, _: Spelled, opens: bool) -> Result<Vec<u32>, Failure> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 8);
        self.model.tokenize(text, opens, &mut ids)?;
        Ok(ids)
    }
}

pub fn build(vocabulary: Vocabulary) -> Result<Tokenizer, Failure> {
    let count = vocabulary.tokens.len();
    let out_of_range = |id: &u32| *id as usize >= count;
    if vocabulary.kinds.len() != count
        || vocabulary.unknown.iter().any(out_of_range)
        || vocabulary.before.iter().any(out_of_range)
        || vocabulary.after.iter().any(out_of_range)
    {
        return Err(Failure::Invalid("the vocabulary's parts do not agree in size".into()));
    }
    let model: Box<dyn FragmentModel> = match vocabulary.model {
        "gpt2" => Box::new(ByteLevelModel::new(&vocabulary)?),
        "gemma4" => Box::new(PlainBpeModel::new(&vocabulary)?),
        "llama" => Box::new(SpmModel::new(&vocabulary)?),
        "bert" => Box::new(WordPieceModel::new(&vocabulary)?),
        other => {
            let other: String = other.chars().take(40).collect();
            return Err(Failure::Unsupported(format!("tokenizer model \"{other}\"")));
        }
    };
    Ok(Tokenizer {
        entries: entries(&vocabulary),
        encoder: Box::new(VocabularyEncoder {
            added: AddedTokens::new(&vocabulary.tokens, &vocabulary.kinds)?,
            model,
            before: vocabulary.before,
            after: vocabulary.after,
        }),
    })
}

fn entries(vocabulary: &Vocabulary) -> Vec<Entry> {
    let alphabet = Alphabet::new();
    let bytes_of = |name: &str, kind: Kind| match (kind, vocabulary.model) {
        (Kind::Control | Kind::Unknown, _) => Vec::new(),
        (Kind::UserDefined, _) => name.as_bytes().to_vec(),
        (_, "gpt2") => alphabet.read(name),
        (_, "bert") => wordpiece::entry_bytes(name),
        _ => spm::entry_bytes(name, kind),
    };
    vocabulary
        .tokens
        .iter()
        .zip(&vocabulary.kinds)
        .map(|(name, kind)| Entry {
            name: name.to_string(),
            bytes: bytes_of(name, *kind),
            control: *kind == Kind::Control,
        })
        .collect()
}
