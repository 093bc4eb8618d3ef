//! Steps that were cancelled, as when the machine stood still in the middle of one: made again, but
//! not without end. Tests of grammar.rs.

use std::sync::Arc;
use std::time::Duration;

use crate::abi::Failure;
use crate::grammar::{State, MASKS_OF_REPLAY};
use crate::grammar_source::{compile, End, Kind, Spec};
use crate::grammar_vocabulary::GrammarVocabulary;
use crate::tokenizer::{Encoder, Entry, Spelled, Tokenizer};

struct Nothing;

impl Encoder for Nothing {
    fn encode(&self, _: &str, _: Spelled, _: bool) -> Result<Vec<u32>, Failure> {
        Err(Failure::Internal("nothing is encoded here".into()))
    }
}

/// Digits, and an end.
fn state_of_digits() -> State {
    let mut entries: Vec<Entry> = (b'0'..=b'9')
        .map(|byte| Entry { name: char::from(byte).to_string(), bytes: vec![byte], control: false })
        .collect();
    entries.push(Entry { name: "<end>".into(), bytes: Vec::new(), control: true });
    let tokenizer = Tokenizer { entries, encoder: Box::new(Nothing) };
    let vocabulary = Arc::new(GrammarVocabulary::new(&tokenizer, &[10]).ok().unwrap());
    let spec =
        Spec { kind: Kind::Regex, source: "(01)*".into(), choices: Vec::new(), end: End::None };
    State::new(&Arc::new(compile(&vocabulary, spec, Duration::from_secs(60)).ok().unwrap()))
}

/// Accepts "01" over and over, `pairs` times, with one step in `distance` cancelled.
fn accept(state: &mut State, pairs: usize, distance: usize) -> Result<(), Failure> {
    let mut mask = [0];
    for i in 0..2 * pairs {
        if i % distance == 0 {
            state.hold_up();
        }
        state.fill_mask(&mut mask)?;
        let allowed = [1 << 0 | 1 << 10, 1 << 1][i % 2];
        assert_eq!(mask[0], allowed, "after {i} tokens");
        assert!(state.accept((i % 2) as u32)?);
    }
    Ok(())
}

#[test]
fn a_step_that_was_held_up_is_made_again() {
    let mut state = state_of_digits();
    assert!(accept(&mut state, 1, 1_000).is_ok());
    // Far more often than an answer may ask at once, and earned by its masks.
    let earned = MASKS_OF_REPLAY as usize;
    assert!(accept(&mut state, 20 * earned, 4 * earned).is_ok());
}

#[test]
fn steps_that_are_held_up_all_the_time_end_the_answer() {
    let mut state = state_of_digits();
    let message = match accept(&mut state, 100, 1) {
        Err(Failure::Limit(message)) => message,
        _ => panic!("no limit"),
    };
    assert!(message.contains("again and again"), "{message}");
}
