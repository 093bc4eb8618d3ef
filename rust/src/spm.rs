//! SentencePiece's BPE (Kudo & Richardson 2018): no list of merges; of all neighbouring symbols
//! whose concatenation is an entry, the one with the highest score is joined first, the leftmost on
//! a tie. Own code, since crate tokenizers only merges by a list of pairs, which cannot express
//! such ties.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashSet};

use crate::abi::Failure;
use crate::tokenizer::{byte_of_name, Kind};
use crate::vocabulary::{FragmentModel, Vocabulary};

/// The character that stands for a space in such vocabularies.
pub const SPACE: char = '\u{2581}';

pub struct SpmModel {
    ids: ahash::AHashMap<Box<str>, u32>,
    scores: Vec<f32>,
    bytes: [Option<u32>; 256],
    unknown: Option<u32>,
    add_space_prefix: bool,
    token_bytes_max: usize,
    /// Characters that some entry has right before a SPACE. Everywhere else a text may be cut
    /// before a SPACE without changing the result, since no join can cross the cut.
    before_space: HashSet<char>,
}

impl SpmModel {
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, Failure> {
        let count = vocabulary.tokens.len();
        let mut model = SpmModel {
            ids: ahash::AHashMap::with_capacity(count),
            scores: vocabulary.scores.to_vec(),
            bytes: [None; 256],
            unknown: vocabulary.unknown,
            add_space_prefix: vocabulary.add_space_prefix,
            token_bytes_max: 0,
            before_space: HashSet::new(),
        };
        if model.scores.len() != count {
            return Err(Failure::Invalid("a \"llama\" vocabulary needs a score per token".into()));
        }
        for (id, token) in vocabulary.tokens.iter().enumerate() {
            match vocabulary.kinds[id] {
                Kind::Control | Kind::Unknown => {}
                Kind::Byte => {
                    let byte = byte_of_name(token).ok_or_else(|| {
                        Failure::Invalid(format!("token {id} is of kind byte but names none"))
                    })?;
                    model.bytes[byte as usize].get_or_insert(id as u32);
                }
                _ if token.is_empty() => {}
                _ => model.add_piece(token, id as u32),
            }
        }
        Ok(model)
    }

    fn add_piece(&mut self, token: &str, id: u32) {
        self.ids.entry(token.into()).or_insert(id);
        self.token_bytes_max = self.token_bytes_max.max(token.len());
        let mut previous = SPACE;
        for character in token.chars() {
            if character == SPACE && previous != SPACE {
                self.before_space.insert(previous);
            }
            previous = character;
        }
    }

    /// Calls `each` with the parts of an escaped text between which no join is possible.
    fn cut<'a>(&self, text: &'a str, mut each: impl FnMut(&'a str)) {
        let mut start = 0;
        let mut previous = SPACE;
        for (index, character) in text.char_indices() {
            let boundary = character == SPACE && previous != SPACE;
            if boundary && !self.before_space.contains(&previous) {
                each(&text[start..index]);
                start = index;
            }
            previous = character;
        }
        if start < text.len() {
            each(&text[start..]);
        }
    }

    fn join(&self, text: &str, ids: &mut Vec<u32>) {
        let mut work = Work { model: self, text, symbols: Vec::new(), queue: BinaryHeap::new() };
        for (index, character) in text.char_indices() {
            let next = index + character.len_utf8();
            let here = work.symbols.len() as u32;
            work.symbols.push(Symbol {
                start: index as u32,
                size: character.len_utf8() as u32,
                previous: here.checked_sub(1).unwrap_or(NONE),
                next: if next == text.len() { NONE } else { here + 1 },
            });
        }
        for right in 1..work.symbols.len() as u32 {
            work.offer(right - 1, right);
        }
        while let Some(pair) = work.queue.pop() {
            work.apply(pair);
        }
        let mut at = if work.symbols.is_empty() { NONE } else { 0 };
        while at != NONE {
            let symbol = &work.symbols[at as usize];
            self.emit(work.piece(symbol.start, symbol.size), ids);
            at = symbol.next;
        }
    }

    fn emit(&self, piece: &str, ids: &mut Vec<u32>) {
        if let Some(id) = self.ids.get(piece) {
            ids.push(*id);
            return;
        }
        for byte in piece.bytes() {
            ids.extend(self.bytes[byte as usize].or(self.unknown));
        }
    }
}

impl FragmentModel for SpmModel {
    fn tokenize(&self, text: &str, opens: bool, ids: &mut Vec<u32>) -> Result<(), Failure> {
        let mut escaped = String::with_capacity(text.len() + 3);
        if opens && self.add_space_prefix {
            escaped.push(SPACE);
        }
        escaped.extend(text.chars().map(|c| if c == ' ' { SPACE } else { c }));
        self.cut(&escaped, |part| self.join(part, ids));
        Ok(())
    }
}

const NONE: u32 = u32::MAX;

/// A stretch of the text; size 0 = joined into its left neighbour.
struct Symbol {
    start: u32,
    size: u32,
    previous: u32,
    next: u32,
}

struct Pair {
    score: f32,
    left: u32,
    right: u32,
    size: u32,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        // Scores are never NaN (checked when the vocabulary is read).
        self.score.total_cmp(&other.score).then(other.left.cmp(&self.left))
    }
}
impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Pair {}

struct Work<'a> {
    model: &'a SpmModel,
    text: &'a str,
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Pair>,
}

impl Work<'_> {
    fn piece(&self, start: u32, size: u32) -> &str {
        &self.text[start as usize..(start + size) as usize]
    }

    fn offer(&mut self, left: u32, right: u32) {
        if left == NONE || right == NONE {
            return;
        }
        let start = self.symbols[left as usize].start;
        let size = self.symbols[left as usize].size + self.symbols[right as usize].size;
        if size as usize > self.model.token_bytes_max {
            return;
        }
        if let Some(id) = self.model.ids.get(self.piece(start, size)) {
            let score = self.model.scores[*id as usize];
            self.queue.push(Pair { score, left, right, size });
        }
    }

    fn apply(&mut self, pair: Pair) {
        let (left, right) = (pair.left as usize, pair.right as usize);
        let (left_size, right_size) = (self.symbols[left].size, self.symbols[right].size);
        if left_size == 0 || right_size == 0 || left_size + right_size != pair.size {
            return; // one of the two has been joined with another since
        }
        self.symbols[left].size = pair.size;
        self.symbols[right].size = 0;
        let next = self.symbols[right].next;
        self.symbols[left].next = next;
        if next != NONE {
            self.symbols[next as usize].previous = pair.left;
        }
        self.offer(self.symbols[left].previous, pair.left);
        self.offer(pair.left, next);
    }
}

/// The bytes of an entry: its byte, or its text with SPACE as a space.
pub fn entry_bytes(name: &str, kind: Kind) -> Vec<u8> {
    match (kind, byte_of_name(name)) {
        (Kind::Byte, Some(byte)) => vec![byte],
        _ => name.replace(SPACE, " ").into_bytes(),
    }
}
