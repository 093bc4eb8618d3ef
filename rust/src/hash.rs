//! BLAKE3-256 for C++ (`plumb_blake3` of plumb_rust.h): one call over several borrowed parts, so
//! that a caller need not join them first.

use crate::abi::{slice, View};

/// # Safety
/// `parts` points at `count` views that live for the call; `out` at 32 writable bytes.
#[no_mangle]
pub unsafe extern "C" fn plumb_blake3(parts: *const View, count: usize, out: *mut u8) {
    let mut hasher = blake3::Hasher::new();
    for part in slice(parts, count) {
        hasher.update(part.bytes());
    }
    out.copy_from_nonoverlapping(hasher.finalize().as_bytes().as_ptr(), blake3::OUT_LEN);
}
