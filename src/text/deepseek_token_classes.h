// text/deepseek_token_classes.h
// Classes of token ids for the n-gram tables of DeepSeek-V4.1 (Engram): ids whose texts differ in
// case, accents, compatibility forms or white space alone are one class. Not in a checkpoint: made
// of its tokenizer.json, by the normalisers of crate tokenizers (rust/src/token_classes.rs).
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace plumb::text {

// [tokenizer.size()], classes numbered in the order in which they are first seen. kUnsupported: a
// tokenizer that was not built from a tokenizer.json. Takes about a second for 129,280 entries.
base::Result<std::vector<uint32_t>> DeepseekTokenClasses(const Tokenizer& tokenizer);

}  // namespace plumb::text
