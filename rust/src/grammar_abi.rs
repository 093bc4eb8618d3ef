//! The C functions of grammars; their contract is in include/plumb_rust.h. Handles of shared
//! objects are boxed Arcs, so that a state keeps its grammar and a grammar its vocabulary.

use std::sync::Arc;
use std::time::Duration;

use crate::abi::{guard, slice, Failure, Owned, View};
use crate::grammar::{Grammar, State};
use crate::grammar_source::{compile, End, Kind, Spec};
use crate::grammar_vocabulary::GrammarVocabulary;
use crate::tokenizer::Tokenizer;

/// plumb_grammar_spec, field by field.
#[repr(C)]
pub struct SpecAbi {
    kind: u8,
    source: View,
    choices: *const View,
    choice_count: usize,
    end_text: View,
    end_token: u32,
}

unsafe fn read_spec(abi: &SpecAbi) -> Result<Spec, Failure> {
    let kind = match abi.kind {
        0 => Kind::JsonSchema,
        1 => Kind::JsonObject,
        2 => Kind::Regex,
        3 => Kind::Lark,
        4 => Kind::Ebnf,
        5 => Kind::Choice,
        6 => Kind::Calls,
        _ => return Err(Failure::Internal("a grammar of no known kind".into())),
    };
    let end_text = abi.end_text.text("the end")?;
    let choices = slice(abi.choices, abi.choice_count);
    Ok(Spec {
        kind,
        source: abi.source.text("the grammar")?.to_string(),
        choices: choices
            .iter()
            .map(|view| Ok(view.text("a choice")?.to_string()))
            .collect::<Result<_, Failure>>()?,
        end: match (abi.end_token, end_text) {
            (u32::MAX, "") => End::None,
            (u32::MAX, text) => End::Text(text.to_string()),
            (token, _) => End::Token(token),
        },
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_vocabulary_new(
    tokenizer: *const Tokenizer,
    end_tokens: *const u32,
    end_count: usize,
    out: *mut *mut Arc<GrammarVocabulary>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        let vocabulary = GrammarVocabulary::new(&*tokenizer, slice(end_tokens, end_count))?;
        out.write(Box::into_raw(Box::new(Arc::new(vocabulary))));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_vocabulary_free(vocabulary: *mut Arc<GrammarVocabulary>) {
    if !vocabulary.is_null() {
        drop(Box::from_raw(vocabulary));
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_compile(
    vocabulary: *const Arc<GrammarVocabulary>,
    spec: *const SpecAbi,
    ms_max: u32,
    out: *mut *mut Arc<Grammar>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        let time = Duration::from_millis(ms_max.into());
        let grammar = compile(&*vocabulary, read_spec(&*spec)?, time)?;
        out.write(Box::into_raw(Box::new(Arc::new(grammar))));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_free(grammar: *mut Arc<Grammar>) {
    if !grammar.is_null() {
        drop(Box::from_raw(grammar));
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_new(
    grammar: *const Arc<Grammar>,
    out: *mut *mut State,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        out.write(Box::into_raw(Box::new(State::new(&*grammar))));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_free(state: *mut State) {
    if !state.is_null() {
        drop(Box::from_raw(state));
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_mask(
    state: *mut State,
    mask: *mut u32,
    words: usize,
    error: *mut Owned<u8>,
) -> i32 {
    guard(error, || {
        if words == 0 {
            return Err(Failure::Internal("a mask without words".into()));
        }
        (*state).fill_mask(std::slice::from_raw_parts_mut(mask, words))
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_accept(
    state: *mut State,
    token: u32,
    accepted: *mut u8,
    error: *mut Owned<u8>,
) -> i32 {
    accepted.write(0);
    guard(error, || {
        accepted.write((*state).accept(token)? as u8);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_rollback(
    state: *mut State,
    count: usize,
    error: *mut Owned<u8>,
) -> i32 {
    guard(error, || (*state).rollback(count))
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_count_allowed(
    state: *mut State,
    tokens: *const u32,
    count: usize,
    allowed: *mut usize,
    error: *mut Owned<u8>,
) -> i32 {
    allowed.write(0);
    guard(error, || {
        allowed.write((*state).count_allowed(slice(tokens, count))?);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_forced(
    state: *mut State,
    max: usize,
    out: *mut Owned<u32>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        out.write(Owned::of((*state).forced(max)?));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_grammar_state_complete(
    state: *mut State,
    complete: *mut u8,
    error: *mut Owned<u8>,
) -> i32 {
    complete.write(0);
    guard(error, || {
        complete.write((*state).complete()? as u8);
        Ok(())
    })
}
