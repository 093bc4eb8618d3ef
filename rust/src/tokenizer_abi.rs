//! The C functions of tokenizers; their contract is in include/plumb_rust.h. What comes from C++ is
//! borrowed for the call.

use crate::abi::{guard, slice, Failure, Owned, View};
use crate::tokenizer::{Entry, Kind, Spelled, Stretch, Tokenizer};
use crate::tokenizer_json;
use crate::vocabulary::{self, Vocabulary};

/// What stands for an id where a stretch is text; PLUMB_TEXT_OPENS, PLUMB_TEXT_FOLLOWS.
const TEXT_OPENS: u32 = u32::MAX;
const TEXT_FOLLOWS: u32 = u32::MAX - 1;

/// plumb_vocabulary, field by field.
#[repr(C)]
pub struct VocabularyAbi {
    model: View,
    pre: View,
    tokens: *const View,
    scores: *const f32,
    kinds: *const u8,
    count: usize,
    merges: *const View,
    merge_count: usize,
    unknown: u32,
    add_space_prefix: u8,
    before: *const u32,
    before_count: usize,
    after: *const u32,
    after_count: usize,
}

unsafe fn read_vocabulary<'a>(abi: &VocabularyAbi) -> Result<Vocabulary<'a>, Failure> {
    let tokens = slice(abi.tokens, abi.count)
        .iter()
        .map(|view| view.text("a token"))
        .collect::<Result<Vec<_>, _>>()?;
    let merges = slice(abi.merges, abi.merge_count)
        .iter()
        .map(|view| view.text("a merge"))
        .collect::<Result<Vec<_>, _>>()?;
    let kinds =
        slice(abi.kinds, abi.count).iter().map(|kind| Kind::of(*kind)).collect::<Result<_, _>>()?;
    let scores = if abi.scores.is_null() { &[] } else { slice(abi.scores, abi.count) };
    Ok(Vocabulary {
        model: abi.model.text("the tokenizer model")?,
        pre: abi.pre.text("the pre-tokenizer's name")?,
        tokens,
        scores,
        kinds,
        merges,
        unknown: (abi.unknown != u32::MAX).then_some(abi.unknown),
        add_space_prefix: abi.add_space_prefix != 0,
        before: slice(abi.before, abi.before_count).to_vec(),
        after: slice(abi.after, abi.after_count).to_vec(),
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_from_vocabulary(
    abi: *const VocabularyAbi,
    out: *mut *mut Tokenizer,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        let tokenizer = vocabulary::build(read_vocabulary(&*abi)?)?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_from_json(
    json: View,
    ids_max: u32,
    out: *mut *mut Tokenizer,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(std::ptr::null_mut());
    guard(error, || {
        let tokenizer = tokenizer_json::build(json.text("tokenizer.json")?, ids_max)?;
        out.write(Box::into_raw(Box::new(tokenizer)));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_free(tokenizer: *mut Tokenizer) {
    if !tokenizer.is_null() {
        drop(Box::from_raw(tokenizer));
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_size(tokenizer: *const Tokenizer) -> u32 {
    (*tokenizer).entries.len() as u32
}

unsafe fn entry<'a>(tokenizer: *const Tokenizer, id: u32) -> Option<&'a Entry> {
    let entries: &'a [Entry] = &(*tokenizer).entries;
    entries.get(id as usize)
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_name(tokenizer: *const Tokenizer, id: u32) -> View {
    View::of(entry(tokenizer, id).map_or(&[], |entry| entry.name.as_bytes()))
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_bytes(tokenizer: *const Tokenizer, id: u32) -> View {
    View::of(entry(tokenizer, id).map_or(&[], |entry| &entry.bytes))
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_is_control(tokenizer: *const Tokenizer, id: u32) -> u8 {
    entry(tokenizer, id).is_some_and(|entry| entry.control) as u8
}

/// C++ indexes by these ids without looking again.
fn checked(tokenizer: &Tokenizer, ids: Vec<u32>) -> Result<Owned<u32>, Failure> {
    if ids.iter().any(|id| *id as usize >= tokenizer.entries.len()) {
        return Err(Failure::Internal("the tokenizer made an id out of range".into()));
    }
    Ok(Owned::of(ids))
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_encode(
    tokenizer: *const Tokenizer,
    text: View,
    spelled: u8,
    add_special: u8,
    out: *mut Owned<u32>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        let tokenizer = &*tokenizer;
        let text = text.text("the text")?;
        let ids = tokenizer.encoder.encode(text, Spelled::of(spelled)?, add_special != 0)?;
        out.write(checked(tokenizer, ids)?);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_cut(
    tokenizer: *const Tokenizer,
    text: View,
    spelled: u8,
    out: *mut Owned<u32>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        let text = text.text("the text")?;
        let mut pairs = Vec::new();
        (*tokenizer).encoder.cut(text, Spelled::of(spelled)?, &mut |stretch| match stretch {
            Stretch::Token { id, name } => pairs.extend([name.len() as u32, id]),
            Stretch::Text { text, opens } => {
                pairs.extend([text.len() as u32, if opens { TEXT_OPENS } else { TEXT_FOLLOWS }])
            }
        })?;
        out.write(Owned::of(pairs));
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_encode_stretch(
    tokenizer: *const Tokenizer,
    text: View,
    spelled: u8,
    opens: u8,
    out: *mut Owned<u32>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        let tokenizer = &*tokenizer;
        let text = text.text("the text")?;
        let ids = tokenizer.encoder.encode_stretch(text, Spelled::of(spelled)?, opens != 0)?;
        out.write(checked(tokenizer, ids)?);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn plumb_tokenizer_classes(
    tokenizer: *const Tokenizer,
    out: *mut Owned<u32>,
    error: *mut Owned<u8>,
) -> i32 {
    out.write(Owned::empty());
    guard(error, || {
        out.write(Owned::of((*tokenizer).encoder.classes()?));
        Ok(())
    })
}
