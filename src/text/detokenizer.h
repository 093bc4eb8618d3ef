// text/detokenizer.h
// Tokens to text, one token at a time, in whole characters only: bytes of an unfinished UTF-8
// sequence wait for the next token. What has been returned is never taken back, and the
// concatenation does not depend on how the tokens were chunked.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace plumb::text {

// One per generated sequence; a value type that borrows the tokenizer. Thread: one at a time.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The characters that `token` completes; may be empty. A byte that can no longer become valid
  // UTF-8 comes out as U+FFFD (one per maximal invalid part, as the Unicode standard recommends).
  std::string Push(TokenId token);
  // The end: what still waited, as U+FFFD.
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  std::string waiting_;  // an incomplete, so far valid UTF-8 sequence; at most 3 bytes
};

}  // namespace plumb::text
