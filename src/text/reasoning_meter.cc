// text/reasoning_meter.cc: the newest bytes are kept, and looked at for marks; behind
// text/reasoning_meter.h.
#include "text/reasoning_meter.h"

#include <algorithm>

#include "base/check.h"
#include "text/tool_syntax.h"

namespace plumb::text {

ReasoningMeter::ReasoningMeter(AnswerStart start, bool may_think, std::span<const std::string> ends)
    : ends_(ends),
      state_(ends.empty()                       ? State::kDone
             : start == AnswerStart::kReasoning ? State::kInside
             : may_think                        ? State::kLead
                                                : State::kDone) {
  for (const std::string& end : ends) CHECK(end.size() <= kMarkBytesMax) << end;
}

void ReasoningMeter::Push(std::string_view bytes) {
  if (state_ == State::kLead) return PushLead(bytes);
  if (state_ == State::kDone) return;
  uint32_t before = tokens_++;
  for (const char c : bytes) {
    if (tail_size_ == kMarkBytesMax) {
      std::shift_left(tail_.begin(), tail_.end(), 1);
      std::shift_left(before_.begin(), before_.end(), 1);
      --tail_size_;
    }
    before_[tail_size_] = before;
    tail_[tail_size_++] = c;
    before = tokens_;  // the token has a byte that is reasoning
    for (const std::string& end : ends_) {
      if (!EndsWith(end)) continue;
      tokens_ = before_[tail_size_ - end.size()];
      state_ = State::kDone;
      return;
    }
  }
}

// White space, then <think>; anything else means that there is no reasoning.
void ReasoningMeter::PushLead(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool space = std::string_view(" \t\r\n").find(bytes[i]) != std::string_view::npos;
    if (tail_size_ == 0 && space) continue;
    if (bytes[i] != kReasoningBegin[tail_size_]) {
      state_ = State::kDone;
      return;
    }
    tail_[tail_size_++] = bytes[i];
    if (tail_size_ < kReasoningBegin.size()) continue;
    tail_size_ = 0;
    state_ = State::kInside;
    const std::string_view rest = bytes.substr(i + 1);
    if (!rest.empty()) Push(rest);
    return;
  }
}

bool ReasoningMeter::EndsWith(std::string_view mark) const {
  return std::string_view(tail_.data(), tail_size_).ends_with(mark);
}

}  // namespace plumb::text
