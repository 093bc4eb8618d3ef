//! The Rust side of plumb, behind the C ABI of include/plumb_rust.h: what good crates do and C++
//! has no equal for. Tokenizers here; every function that C++ calls goes through `abi::guard`. Read
//! in this order: abi, tokenizer_abi, vocabulary (which tokenizer), pretokenizer, the models
//! (byte_level, spm, wordpiece), tokenizer_json; then template and template_abi; hash (BLAKE3).

mod abi;
mod added_tokens;
mod byte_level;
mod calendar;
mod hash;
mod pretokenizer;
mod spm;
mod template;
mod template_abi;
mod template_keep;
mod template_source;
mod tojson;
mod tokenizer;
mod tokenizer_abi;
mod tokenizer_json;
mod vocabulary;
mod wordpiece;
