// base/token_id.h: the id of an entry of a model's vocabulary, shared by text, kvcache and engine.
// A type of its own, so that an id is never taken for a count or a position.
#pragma once

#include <cstdint>

namespace plumb::base {

// An index below the vocabulary size of the model at hand; whoever takes one from outside checks
// it.
enum class TokenId : uint32_t {};

constexpr uint32_t Index(TokenId id) { return static_cast<uint32_t>(id); }

}  // namespace plumb::base
