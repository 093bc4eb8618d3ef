// text/control_mask.cc: finding spellings, and cutting the rendered prompt at their marks.
// A prompt without marks is encoded in one piece, exactly as if this file did not exist.
#include "text/control_mask.h"

#include <charconv>

namespace plumb::text {

std::string_view ControlMask::Mask(std::string_view text) {
  Tokenizer::Spelling control = tokenizer_.FindControl(text, 0);
  size_t mark = text.find(kMark);
  if (control.size == 0 && mark == text.npos) return text;
  std::string& masked = masked_.emplace_back();
  size_t copied = 0;
  while (control.size > 0 || mark != text.npos) {
    const bool is_mark = mark <= control.place;
    const size_t place = is_mark ? mark : control.place;
    const size_t end = place + (is_mark ? kMark.size() : control.size);
    masked += text.substr(copied, place - copied);
    masked += std::string(kMark) + std::to_string(spellings_.size()) + std::string(kMark);
    spellings_.emplace_back(text.substr(place, end - place));
    copied = end;
    if (control.size > 0 && control.place < end) control = tokenizer_.FindControl(text, end);
    if (mark != text.npos && mark < end) mark = text.find(kMark, end);
  }
  masked += text.substr(copied);
  return masked;
}

bool ControlMask::Next(std::string_view& prompt, Cut& cut) const {
  const size_t begin = spellings_.empty() ? prompt.npos : prompt.find(kMark);
  cut = {prompt.substr(0, begin), ""};
  if (begin == prompt.npos) return false;
  const std::string_view inner = prompt.substr(begin + kMark.size());
  const size_t end = inner.find(kMark);
  size_t index = spellings_.size();
  if (end != inner.npos) std::from_chars(inner.data(), inner.data() + end, index);
  // A template that cuts texts may cut a mark: what is left of it is dropped.
  const bool whole = index < spellings_.size();
  if (whole) cut.spelling = spellings_[index];
  prompt = whole ? inner.substr(end + kMark.size()) : inner;
  return true;
}

std::string ControlMask::Unmask(std::string prompt) const {
  if (spellings_.empty()) return prompt;
  std::string text;
  std::string_view rest = prompt;
  Cut cut;
  for (bool more = true; more;) {
    more = Next(rest, cut);
    text.append(cut.before).append(cut.spelling);
  }
  return text;
}

base::Result<std::vector<TokenId>> ControlMask::Encode(std::string_view prompt,
                                                       const TokenScope& scope) const {
  if (spellings_.empty()) return EncodeIn(scope, tokenizer_, prompt, ControlTokens::kParse);
  std::vector<TokenId> tokens;
  const auto append = [&](std::string_view text, ControlTokens control) -> base::Status {
    if (text.empty()) return base::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<TokenId> piece, EncodeIn(scope, tokenizer_, text, control));
    tokens.insert(tokens.end(), piece.begin(), piece.end());
    return base::OkStatus();
  };
  Cut cut;
  bool more = true;
  while (more) {
    more = Next(prompt, cut);
    RETURN_IF_ERROR(append(cut.before, ControlTokens::kParse));
    RETURN_IF_ERROR(append(cut.spelling, ControlTokens::kAsText));
  }
  return tokens;
}

}  // namespace plumb::text
