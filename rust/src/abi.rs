//! The C ABI's common parts: borrowed views, owned buffers, error codes, and the guard that turns
//! errors and panics into a code and a message.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

pub const OK: i32 = 0;

/// Why a call failed; the codes of plumb_rust.h.
#[derive(Debug)]
pub enum Failure {
    Invalid(String),
    Unsupported(String),
    Limit(String),
    Internal(String),
    Busy(String),
}

impl Failure {
    fn code(&self) -> i32 {
        match self {
            Failure::Invalid(_) => 1,
            Failure::Unsupported(_) => 2,
            Failure::Limit(_) => 3,
            Failure::Internal(_) => 4,
            Failure::Busy(_) => 5,
        }
    }

    pub fn into_message(self) -> String {
        match self {
            Failure::Invalid(text)
            | Failure::Unsupported(text)
            | Failure::Limit(text)
            | Failure::Internal(text)
            | Failure::Busy(text) => text,
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct View {
    data: *const u8,
    size: usize,
}

impl View {
    pub fn of(bytes: &[u8]) -> View {
        View { data: bytes.as_ptr(), size: bytes.len() }
    }

    /// # Safety
    /// The caller's memory must live for `'a` (the call).
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        slice(self.data, self.size)
    }

    /// # Safety
    /// As for `bytes`. `what` names the input in the error.
    pub unsafe fn text<'a>(self, what: &str) -> Result<&'a str, Failure> {
        std::str::from_utf8(self.bytes()).map_err(|error| {
            Failure::Invalid(format!("{what} is not valid UTF-8 at byte {}", error.valid_up_to()))
        })
    }
}

/// # Safety
/// `data` is null (then the slice is empty) or points at `size` values that live for `'a`.
pub unsafe fn slice<'a, T>(data: *const T, size: usize) -> &'a [T] {
    if data.is_null() || size == 0 {
        return &[];
    }
    std::slice::from_raw_parts(data, size)
}

/// A Vec handed to C++; freed by `plumb_buffer_free` or `plumb_ids_free`.
#[repr(C)]
pub struct Owned<T> {
    data: *mut T,
    size: usize,
    capacity: usize,
}

impl<T> Owned<T> {
    pub fn empty() -> Self {
        Owned { data: std::ptr::null_mut(), size: 0, capacity: 0 }
    }

    pub fn of(values: Vec<T>) -> Self {
        let mut values = std::mem::ManuallyDrop::new(values);
        Owned { data: values.as_mut_ptr(), size: values.len(), capacity: values.capacity() }
    }

    unsafe fn free(self) {
        if !self.data.is_null() {
            drop(Vec::from_raw_parts(self.data, self.size, self.capacity));
        }
    }
}

#[no_mangle]
pub unsafe extern "C" fn plumb_buffer_free(buffer: Owned<u8>) {
    buffer.free();
}

#[no_mangle]
pub unsafe extern "C" fn plumb_ids_free(ids: Owned<u32>) {
    ids.free();
}

/// Runs `body`; on failure or panic returns its code and puts the message in `*error`.
///
/// # Safety
/// `error` points at writable memory.
pub unsafe fn guard(error: *mut Owned<u8>, body: impl FnOnce() -> Result<(), Failure>) -> i32 {
    // The default hook would print source paths to stderr; the message goes to the caller instead.
    static QUIET: Once = Once::new();
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));

    error.write(Owned::empty());
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return OK,
        Ok(Err(failure)) => failure,
        Err(payload) => {
            let text = payload
                .downcast_ref::<&str>()
                .map(|text| text.to_string())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            Failure::Internal(format!("the text library failed: {text}"))
        }
    };
    let code = failure.code();
    error.write(Owned::of(failure.into_message().into_bytes()));
    code
}
