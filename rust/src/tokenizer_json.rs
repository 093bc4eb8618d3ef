//! A tokenizer from a tokenizer.json, which is crate tokenizers' own format: the crate encodes;
//! what each entry stands for is read from the file's decoder, which has to be one of the usual
//! kinds.

use serde_json::Value;
use tokenizers::{
    Model, NormalizedString, Normalizer, OffsetType, PreTokenizedString, PreTokenizer,
    Tokenizer as CrateTokenizer,
};

use crate::abi::Failure;
use crate::byte_level::Alphabet;
use crate::spm;
use crate::token_classes;
use crate::tokenizer::{byte_of_name, Encoder, Entry, Kind, Spelled, Tokenizer};

/// As text::kTokensMax.
const TOKENS_MAX: usize = 1 << 20;

/// With `ids_max` != 0 no entry has an id from there on: added tokens are left out, since models
/// are published whose tokenizer names one that the model lacks (Gemma 3, for images).
pub fn build(json: &str, ids_max: u32) -> Result<Tokenizer, Failure> {
    let mut parsed: Value = serde_json::from_str(json)
        .map_err(|error| Failure::Invalid(format!("tokenizer.json is not JSON: {error}")))?;
    let decoder = Decoder::of(&parsed["decoder"])?;
    let shorter = (ids_max != 0 && drop_added(&mut parsed, ids_max)).then(|| parsed.to_string());
    let mut parsing = CrateTokenizer::from_bytes(shorter.as_deref().unwrap_or(json).as_bytes())
        .map_err(|error| Failure::Invalid(format!("tokenizer.json: {error}")))?;
    parsing.with_padding(None);
    parsing
        .with_truncation(None)
        .map_err(|error| Failure::Invalid(format!("tokenizer.json: {error}")))?;
    let entries = entries(&parsing, &decoder)?;
    if ids_max != 0 && entries.len() > ids_max as usize {
        return Err(Failure::Invalid(format!(
            "tokenizer.json has ids up to {}, but the model has {ids_max} entries",
            entries.len() - 1
        )));
    }
    let mut plain = parsing.clone();
    plain.set_encode_special_tokens(true);
    Ok(Tokenizer { entries, encoder: Box::new(JsonEncoder { parsing, plain }) })
}

/// Whether any was left out.
fn drop_added(json: &mut Value, ids_max: u32) -> bool {
    let added = json.get_mut("added_tokens").and_then(Value::as_array_mut);
    let Some(added) = added else { return false };
    let before = added.len();
    added.retain(|token| token["id"].as_u64().is_none_or(|id| id < u64::from(ids_max)));
    added.len() != before
}

/// Whether special tokens are parsed is a property of the crate's tokenizer, so there are two.
struct JsonEncoder {
    parsing: CrateTokenizer,
    plain: CrateTokenizer,
}

impl Encoder for JsonEncoder {
    fn encode(&self, text: &str, spelled: Spelled, add_special: bool) -> Result<Vec<u32>, Failure> {
        let tokenizer = match spelled {
            Spelled::Parse => &self.parsing,
            Spelled::AsText => &self.plain,
            Spelled::Never => return self.encode_merges(text),
        };
        let encoding = tokenizer
            .encode_fast(text, add_special)
            .map_err(|error| Failure::Internal(format!("the tokenizer failed: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    fn classes(&self) -> Result<Vec<u32>, Failure> {
        token_classes::classes(&self.parsing)
    }
}

impl JsonEncoder {
    /// Normaliser, pre-tokenizer and model, without the step that cuts out added tokens.
    fn encode_merges(&self, text: &str) -> Result<Vec<u32>, Failure> {
        let run = || -> tokenizers::Result<Vec<u32>> {
            let mut normalized = NormalizedString::from(text);
            if let Some(normalizer) = self.plain.get_normalizer() {
                normalizer.normalize(&mut normalized)?;
            }
            let mut pieces = PreTokenizedString::from(normalized);
            if let Some(pre_tokenizer) = self.plain.get_pre_tokenizer() {
                pre_tokenizer.pre_tokenize(&mut pieces)?;
            }
            pieces.tokenize(|piece| self.plain.get_model().tokenize(piece.get()))?;
            Ok(pieces.into_encoding(None, 0, OffsetType::None)?.get_ids().to_vec())
        };
        run().map_err(|error| Failure::Internal(format!("the tokenizer failed: {error}")))
    }
}

/// How an entry is written.
enum Decoder {
    ByteLevel(Alphabet),
    Spaces,
    WordPiece(String),
}

impl Decoder {
    fn of(json: &Value) -> Result<Decoder, Failure> {
        match json["type"].as_str().unwrap_or("none") {
            "ByteLevel" => Ok(Decoder::ByteLevel(Alphabet::new())),
            "Metaspace" => Ok(Decoder::Spaces),
            "WordPiece" => {
                Ok(Decoder::WordPiece(json["prefix"].as_str().unwrap_or("##").to_string()))
            }
            "Sequence" => Decoder::of_sequence(&json["decoders"]),
            other => Err(Failure::Unsupported(format!("tokenizer.json with decoder {other:.40}"))),
        }
    }

    fn of_sequence(json: &Value) -> Result<Decoder, Failure> {
        let parts = json.as_array().map(Vec::as_slice).unwrap_or_default();
        let kinds: Vec<&str> =
            parts.iter().map(|part| part["type"].as_str().unwrap_or("none")).collect();
        if kinds.contains(&"ByteLevel") {
            return Ok(Decoder::ByteLevel(Alphabet::new()));
        }
        let spaces = parts.iter().any(|part| {
            part["type"] == "Metaspace"
                || (part["type"] == "Replace" && part["pattern"]["String"] == "\u{2581}")
        });
        let usual = ["Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"];
        if spaces && kinds.iter().all(|kind| usual.contains(kind)) {
            return Ok(Decoder::Spaces);
        }
        Err(Failure::Unsupported(format!("tokenizer.json with decoders {:.80}", kinds.join(", "))))
    }

    fn bytes(&self, name: &str) -> Vec<u8> {
        match self {
            Decoder::ByteLevel(alphabet) => alphabet.read(name),
            Decoder::Spaces => {
                let kind = byte_of_name(name).map_or(Kind::Normal, |_| Kind::Byte);
                spm::entry_bytes(name, kind)
            }
            Decoder::WordPiece(prefix) => match name.strip_prefix(prefix.as_str()) {
                Some(rest) => rest.as_bytes().to_vec(),
                None => format!(" {name}").into_bytes(),
            },
        }
    }
}

fn entries(tokenizer: &CrateTokenizer, decoder: &Decoder) -> Result<Vec<Entry>, Failure> {
    let vocabulary = tokenizer.get_vocab(true);
    let count = vocabulary.values().max().map_or(0, |id| *id as usize + 1);
    if count == 0 || count > TOKENS_MAX {
        return Err(Failure::Invalid(format!(
            "tokenizer.json: {count} tokens are not in [1, {TOKENS_MAX}]"
        )));
    }
    let mut entries: Vec<Entry> = (0..count)
        .map(|_| Entry { name: String::new(), bytes: Vec::new(), control: false })
        .collect();
    for (name, id) in vocabulary {
        let bytes = decoder.bytes(&name);
        entries[id as usize] = Entry { name, bytes, control: false };
    }
    for (id, added) in tokenizer.get_added_tokens_decoder() {
        if let Some(entry) = entries.get_mut(id as usize) {
            entry.control = added.special;
            entry.bytes = if added.special { Vec::new() } else { added.content.into_bytes() };
        }
    }
    Ok(entries)
}
