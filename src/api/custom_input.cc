// api/custom_input.cc
// See custom_input.h. Escapes are those of RFC 8259 section 7; what is none stays as it stands, and
// half of a surrogate pair is U+FFFD.
#include "api/custom_input.h"

#include "net/http.h"
#include "text/utf8.h"

namespace plumb::api {

namespace {

constexpr std::string_view kName = "\"input\"";
constexpr size_t kUnitEscapeBytes = 6;  // \uXXXX

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsHigh(uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLow(uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

void AppendUtf8(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// The character that \c stands for; 0: none.
char Unescaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case '"':
    case '\\':
    case '/':
      return c;
    default:
      return 0;
  }
}

}  // namespace

void CustomInput::Push(std::string_view arguments, std::string& out) {
  for (size_t i = 0; i < arguments.size() && place_ != Place::kAfter; ++i) {
    if (place_ == Place::kOther) {
      out += arguments.substr(i);
      return;
    }
    place_ == Place::kText ? PushText(arguments[i], out) : PushHead(arguments[i], out);
  }
}

void CustomInput::PushHead(char c, std::string& out) {
  head_ += c;
  const bool in_name = place_ == Place::kName && name_size_ > 0;
  if (IsSpace(c) && !in_name) return;
  if (place_ == Place::kBrace && c == '{') {
    place_ = Place::kName;
  } else if (place_ == Place::kName && c == '}' && !in_name) {
    place_ = Place::kAfter;  // no arguments: no input
    head_.clear();
  } else if (place_ == Place::kName && c == kName[name_size_]) {
    if (++name_size_ == kName.size()) place_ = Place::kColon;
  } else if (place_ == Place::kColon && c == ':') {
    place_ = Place::kQuote;
  } else if (place_ == Place::kQuote && c == '"') {
    place_ = Place::kText;
    head_.clear();
  } else {
    place_ = Place::kOther;
    out += head_;
    head_.clear();
  }
}

void CustomInput::PushText(char c, std::string& out) {
  if (!escape_.empty()) {
    escape_ += c;
    const bool unit = escape_[1] == 'u';
    const bool digit = escape_.size() == 2 || net::HexDigit(c) >= 0;
    if (!unit || !digit || escape_.size() == kUnitEscapeBytes) TakeEscape(out);
    return;
  }
  if (c == '\\') {
    escape_ = c;
    return;
  }
  DropHalf(out);
  if (c == '"') {
    place_ = Place::kAfter;
  } else {
    out += c;
  }
}

void CustomInput::TakeEscape(std::string& out) {
  const std::string escape = std::move(escape_);
  escape_.clear();
  if (escape.size() == kUnitEscapeBytes && net::HexDigit(escape.back()) >= 0) {
    uint32_t unit = 0;
    for (const char c : escape.substr(2))
      unit = unit * 16 + static_cast<uint32_t>(net::HexDigit(c));
    return TakeUnit(unit, out);
  }
  DropHalf(out);
  const char plain = Unescaped(escape[1]);
  if (plain != 0) {
    out += plain;
    return;
  }
  // No escape: the characters themselves. The last of "\u12" may be anything, so it is read again.
  out += escape.substr(0, escape.size() - 1);
  PushText(escape.back(), out);
}

void CustomInput::TakeUnit(uint32_t unit, std::string& out) {
  if (high_ != 0 && IsLow(unit)) {
    AppendUtf8(0x10000 + ((high_ - 0xD800) << 10) + (unit - 0xDC00), out);
    high_ = 0;
    return;
  }
  DropHalf(out);
  if (IsHigh(unit)) {
    high_ = unit;
  } else if (IsLow(unit)) {
    out += text::kReplacement;
  } else {
    AppendUtf8(unit, out);
  }
}

void CustomInput::DropHalf(std::string& out) {
  if (high_ != 0) out += text::kReplacement;
  high_ = 0;
}

void CustomInput::Finish(std::string& out) {
  out += head_;
  head_.clear();
  place_ = Place::kAfter;
}

}  // namespace plumb::api
