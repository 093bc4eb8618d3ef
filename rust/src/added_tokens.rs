//! Finds the entries that a text may spell out whole: user-defined ones unless none are wanted,
//! control and unknown ones when the caller asks. Leftmost, then longest, match; the text between
//! goes to the model.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::abi::Failure;
use crate::tokenizer::{Kind, Spelled};

#[derive(Clone, Copy)]
pub enum Part<'a> {
    /// With its name, as the text spells it.
    Token(u32, &'a str),
    Text(&'a str),
}

pub struct AddedTokens {
    always: Matcher,
    parsed: Matcher,
}

struct Matcher {
    automaton: Option<AhoCorasick>,
    ids: Vec<u32>,
}

impl AddedTokens {
    pub fn new(tokens: &[&str], kinds: &[Kind]) -> Result<Self, Failure> {
        let always = |kind: Kind| kind == Kind::UserDefined;
        let parsed = |kind: Kind| always(kind) || matches!(kind, Kind::Control | Kind::Unknown);
        Ok(AddedTokens {
            always: Matcher::new(tokens, kinds, always)?,
            parsed: Matcher::new(tokens, kinds, parsed)?,
        })
    }

    /// Calls `each` with the parts of the text, in order; texts are not empty.
    pub fn split<'a>(
        &self,
        text: &'a str,
        spelled: Spelled,
        mut each: impl FnMut(Part<'a>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (matcher, look) = match spelled {
            Spelled::Parse => (&self.parsed, true),
            Spelled::AsText => (&self.always, true),
            Spelled::Never => (&self.always, false),
        };
        let mut start = 0;
        if let Some(automaton) = matcher.automaton.as_ref().filter(|_| look) {
            for found in automaton.find_iter(text) {
                if found.start() > start {
                    each(Part::Text(&text[start..found.start()]))?;
                }
                let id = matcher.ids[found.pattern().as_usize()];
                each(Part::Token(id, &text[found.range()]))?;
                start = found.end();
            }
        }
        if start < text.len() {
            each(Part::Text(&text[start..]))?;
        }
        Ok(())
    }
}

impl Matcher {
    fn new(
        tokens: &[&str],
        kinds: &[Kind],
        wanted: impl Fn(Kind) -> bool,
    ) -> Result<Self, Failure> {
        let ids: Vec<u32> = (0..tokens.len())
            .filter(|index| wanted(kinds[*index]) && !tokens[*index].is_empty())
            .map(|index| index as u32)
            .collect();
        if ids.is_empty() {
            return Ok(Matcher { automaton: None, ids });
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(ids.iter().map(|id| tokens[*id as usize]))
            .map_err(|error| Failure::Invalid(format!("the special tokens: {error}")))?;
        Ok(Matcher { automaton: Some(automaton), ids })
    }
}
