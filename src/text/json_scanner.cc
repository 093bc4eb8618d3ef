// text/json_scanner.cc
// A stack of closing brackets; behind text/json_scanner.h.
#include "text/json_scanner.h"

#include <string_view>

namespace plumb::text {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool IsScalar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

}  // namespace

JsonScanner::Place JsonScanner::Push(char c) {
  switch (state_) {
    case State::kBegin:
      if (c == '"' || c == '{' || c == '[') return Open(c);
      if (!IsScalar(c)) return Place::kBad;
      state_ = State::kScalar;
      return Place::kInside;
    case State::kScalar:
      return IsScalar(c) ? Place::kInside : Place::kPast;
    case State::kString:
      // JSON has no control characters in strings; models write them, and readers cope.
      if (c == '\\') state_ = State::kEscape;
      if (c != '"') return Place::kInside;
      state_ = State::kNested;
      return closers_.empty() ? Place::kLast : Place::kInside;
    case State::kEscape:
      state_ = State::kString;
      return Place::kInside;
    case State::kNested:
      if (c == '"' || c == '{' || c == '[') return Open(c);
      if (c == '}' || c == ']') return Close(c);
      return IsScalar(c) || IsSpace(c) || c == ',' || c == ':' ? Place::kInside : Place::kBad;
  }
  return Place::kBad;
}

JsonScanner::Place JsonScanner::Open(char c) {
  if (c == '"') {
    state_ = State::kString;
    return Place::kInside;
  }
  if (closers_.size() == kDepthMax) return Place::kBad;
  closers_ += c == '{' ? '}' : ']';
  state_ = State::kNested;
  return Place::kInside;
}

JsonScanner::Place JsonScanner::Close(char c) {
  if (closers_.back() != c) return Place::kBad;
  closers_.pop_back();
  return closers_.empty() ? Place::kLast : Place::kInside;
}

}  // namespace plumb::text
