//! WordPiece ("bert"): crate tokenizers' model, normaliser and pre-tokenizer. GGUF writes the start
//! of a word as U+2581 and its continuation bare; the crate wants it bare and with "##".

use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer,
};

use crate::abi::Failure;
use crate::spm::SPACE;
use crate::tokenizer::Kind;
use crate::vocabulary::{FragmentModel, Vocabulary};

/// Longer words become the unknown entry, as in the reference; also keeps the search short.
const WORD_CHARS_MAX: usize = 100;

pub struct WordPieceModel {
    normalizer: BertNormalizer,
    model: WordPiece,
}

impl WordPieceModel {
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, Failure> {
        let Some(unknown) = vocabulary.unknown else {
            return Err(Failure::Invalid("a \"bert\" vocabulary needs an unknown token".into()));
        };
        let mut ids = ahash::AHashMap::with_capacity(vocabulary.tokens.len());
        for (id, token) in vocabulary.tokens.iter().enumerate() {
            let hidden = vocabulary.kinds[id] == Kind::Control && id as u32 != unknown;
            if !hidden && !token.is_empty() {
                ids.entry(crate_name(token, vocabulary.kinds[id])).or_insert(id as u32);
            }
        }
        let unknown = vocabulary.tokens[unknown as usize];
        ids.entry(unknown.to_string()).or_insert(vocabulary.unknown.unwrap_or_default());
        let model = WordPiece::builder()
            .vocab(ids)
            .unk_token(unknown.to_string())
            .continuing_subword_prefix("##".into())
            .max_input_chars_per_word(WORD_CHARS_MAX)
            .build()
            .map_err(|error| Failure::Invalid(format!("the vocabulary: {error}")))?;
        Ok(WordPieceModel { normalizer: BertNormalizer::default(), model })
    }

    fn run(&self, text: &str, ids: &mut Vec<u32>) -> tokenizers::Result<()> {
        let mut normalized = NormalizedString::from(text);
        self.normalizer.normalize(&mut normalized)?;
        let mut words = PreTokenizedString::from(normalized);
        BertPreTokenizer.pre_tokenize(&mut words)?;
        for (word, _, _) in words.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
            ids.extend(self.model.tokenize(word)?.iter().map(|token| token.id));
        }
        Ok(())
    }
}

impl FragmentModel for WordPieceModel {
    fn tokenize(&self, text: &str, _: bool, ids: &mut Vec<u32>) -> Result<(), Failure> {
        self.run(text, ids).map_err(|error| Failure::Internal(format!("WordPiece failed: {error}")))
    }
}

fn crate_name(token: &str, kind: Kind) -> String {
    match token.strip_prefix(SPACE) {
        Some(start) => start.to_string(),
        None if kind == Kind::Control || kind == Kind::Unknown => token.to_string(),
        None => format!("##{token}"),
    }
}

/// The bytes of an entry: a word with the space before it, or a continuation.
pub fn entry_bytes(name: &str) -> Vec<u8> {
    name.replace(SPACE, " ").into_bytes()
}
