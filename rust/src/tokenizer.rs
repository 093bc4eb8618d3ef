//! What every tokenizer is to C++: a table of entries (name, bytes, control) and an encoder of
//! whole texts. The encoder depends on the model; the table is always complete and checked.

use crate::abi::Failure;

/// How a vocabulary entry is used; the values of text::TokenKind (GGUF's token_type).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

impl Kind {
    pub fn of(value: u8) -> Result<Kind, Failure> {
        Ok(match value {
            1 => Kind::Normal,
            2 => Kind::Unknown,
            3 => Kind::Control,
            4 => Kind::UserDefined,
            5 => Kind::Unused,
            6 => Kind::Byte,
            _ => return Err(Failure::Invalid(format!("token kind {value} is not known"))),
        })
    }
}

/// One entry. `bytes` is what it adds to a text: empty for control and unknown entries.
pub struct Entry {
    pub name: String,
    pub bytes: Vec<u8>,
    pub control: bool,
}

/// Which entries that are written out in a text become tokens; the values of text::ControlTokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spelled {
    /// User-defined ones.
    AsText,
    /// Control tokens too.
    Parse,
    /// None: only what the model's own merges make.
    Never,
}

impl Spelled {
    pub fn of(value: u8) -> Result<Spelled, Failure> {
        Ok(match value {
            0 => Spelled::AsText,
            1 => Spelled::Parse,
            2 => Spelled::Never,
            _ => return Err(Failure::Internal(format!("no way to read control tokens: {value}"))),
        })
    }
}

/// A part of a text whose ids do not depend on the parts around it, but for `opens`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stretch<'a> {
    /// An entry that is written out.
    Token { id: u32, name: &'a str },
    /// `opens`: it begins the whole text or follows a token.
    Text { text: &'a str, opens: bool },
}

/// Text to ids. Thread: any.
pub trait Encoder: Send + Sync {
    /// `add_special`: with what stands around a text.
    fn encode(&self, text: &str, spelled: Spelled, add_special: bool) -> Result<Vec<u32>, Failure>;

    /// The text in parts: their ids, one after the other, are what `encode` gives of the whole
    /// without `add_special`. An encoder that cannot tell gives the whole as one.
    fn cut<'a>(
        &self,
        text: &'a str,
        _spelled: Spelled,
        each: &mut dyn FnMut(Stretch<'a>),
    ) -> Result<(), Failure> {
        if !text.is_empty() {
            each(Stretch::Text { text, opens: true });
        }
        Ok(())
    }

    /// The ids of a part with text that `cut` has given for the same `spelled`.
    fn encode_stretch(
        &self,
        text: &str,
        spelled: Spelled,
        _opens: bool,
    ) -> Result<Vec<u32>, Failure> {
        self.encode(text, spelled, false)
    }

    /// For each id, the class of entries whose texts are the same to n-gram tables
    /// (token_classes.rs).
    fn classes(&self) -> Result<Vec<u32>, Failure> {
        Err(Failure::Unsupported("token classes are made from a tokenizer.json alone".into()))
    }
}

pub struct Tokenizer {
    pub entries: Vec<Entry>,
    pub encoder: Box<dyn Encoder>,
}

/// The byte of an entry named "<0x0A>", if it is one.
pub fn byte_of_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}
