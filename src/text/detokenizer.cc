// text/detokenizer.cc: bytes wait in order and leave as text/utf8.h decides. Between two tokens
// only the beginning of one character waits.
#include "text/detokenizer.h"

#include "text/utf8.h"

namespace plumb::text {

std::string Detokenizer::Push(TokenId token) {
  waiting_ += tokenizer_->TokenBytes(token);
  return TakeUtf8(waiting_);
}

std::string Detokenizer::Finish() {
  // What waits is the valid beginning of one character: one maximal invalid part.
  if (waiting_.empty()) return std::string();
  waiting_.clear();
  return std::string(kReplacement);
}

}  // namespace plumb::text
