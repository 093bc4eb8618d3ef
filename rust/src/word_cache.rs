//! Remembers the ids of single words, which are few and come again and again: a look-up is many
//! times faster than merging pairs. Shared by all callers; bounded, and begun anew when it is full.

use std::sync::{PoisonError, RwLock};

use ahash::AHashMap;

const WORDS_MAX: usize = 1 << 15;
/// Longer ones are rarely words.
const WORD_BYTES_MAX: usize = 32;
const FEW: usize = 3;

/// Most words are one token, and hardly one has more than three.
enum Ids {
    Few(u8, [u32; FEW]),
    Many(Box<[u32]>),
}

impl Ids {
    fn of(ids: &[u32]) -> Ids {
        if ids.len() > FEW {
            return Ids::Many(ids.into());
        }
        let mut few = [0; FEW];
        few[..ids.len()].copy_from_slice(ids);
        Ids::Few(ids.len() as u8, few)
    }

    fn get(&self) -> &[u32] {
        match self {
            Ids::Few(count, few) => &few[..usize::from(*count)],
            Ids::Many(ids) => ids,
        }
    }
}

/// Thread: any.
pub struct WordCache {
    words: RwLock<AHashMap<Box<str>, Ids>>,
}

impl WordCache {
    pub fn new() -> Self {
        WordCache { words: RwLock::new(AHashMap::new()) }
    }

    /// Appends the ids of a word that is remembered; false when it is not.
    pub fn find(&self, word: &str, ids: &mut Vec<u32>) -> bool {
        if word.len() > WORD_BYTES_MAX {
            return false;
        }
        // A panic while it was locked leaves a map that is whole: insert and clear do not call out.
        let words = self.words.read().unwrap_or_else(PoisonError::into_inner);
        match words.get(word) {
            Some(known) => {
                ids.extend_from_slice(known.get());
                true
            }
            None => false,
        }
    }

    /// `ids` are always the same for the same word.
    pub fn remember(&self, word: &str, ids: &[u32]) {
        if word.len() > WORD_BYTES_MAX {
            return;
        }
        let mut words = self.words.write().unwrap_or_else(PoisonError::into_inner);
        if words.len() >= WORDS_MAX {
            words.clear();
        }
        words.insert(word.into(), Ids::of(ids));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_back_what_was_remembered() {
        let cache = WordCache::new();
        let mut ids = vec![9];
        assert!(!cache.find("word", &mut ids));
        for (word, known) in [("", &[][..]), ("word", &[1, 2, 3]), ("longer", &[4, 5, 6, 7])] {
            cache.remember(word, known);
            ids.truncate(1);
            assert!(cache.find(word, &mut ids));
            assert_eq!(ids[1..], *known);
        }
    }

    #[test]
    fn holds_a_bounded_number_of_short_words() {
        let cache = WordCache::new();
        for number in 0..3 * WORDS_MAX {
            cache.remember(&number.to_string(), &[number as u32]);
            assert!(cache.words.read().unwrap().len() <= WORDS_MAX);
        }
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        cache.remember(&long, &[1]);
        assert!(!cache.find(&long, &mut Vec::new()));
    }
}
