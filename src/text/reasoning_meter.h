// text/reasoning_meter.h
// How many tokens of an answer are reasoning: those that begin before its end does, as far as they
// are behind <think>. A function of the tokens alone, so it does not matter how they come.
// Used for usage, and to hold reasoning to a budget (text/reasoning_budget.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "text/chat_format.h"

namespace plumb::text {

// A value type, cheap to copy. Borrows `ends`. Thread: one at a time.
class ReasoningMeter {
 public:
  // Where the answer begins, and what ends its reasoning (ChatPrompt); no ends: there is none.
  ReasoningMeter(AnswerStart start, bool may_think, std::span<const std::string> ends);

  // The next token, as the bytes that it stands for; not one that ends the answer.
  void Push(std::string_view bytes);

  // So far: a token that may belong to the end counts until it is known to.
  uint32_t tokens() const { return tokens_; }
  bool inside() const { return state_ == State::kInside; }

  static constexpr size_t kMarkBytesMax = 32;

 private:
  enum class State : uint8_t { kLead, kInside, kDone };

  void PushLead(std::string_view bytes);
  // Whether the bytes so far end with `mark`.
  bool EndsWith(std::string_view mark) const;

  std::span<const std::string> ends_;
  State state_;
  std::array<char, kMarkBytesMax> tail_ = {};  // the newest bytes, the latest last
  // Of each, how many tokens there are if reasoning ended before it.
  std::array<uint32_t, kMarkBytesMax> before_ = {};
  uint8_t tail_size_ = 0;
  uint32_t tokens_ = 0;
};

}  // namespace plumb::text
