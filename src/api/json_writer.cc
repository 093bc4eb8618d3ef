// api/json_writer.cc
// See json_writer.h. The escapes are those of RFC 8259 section 7; U+2028 and U+2029 go out as they
// are, which JSON allows.
#include "api/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "text/utf8.h"

namespace plumb::api {

namespace {

// Bytes that stand for themselves inside a JSON string.
bool IsPlain(unsigned char c) { return c >= 0x20 && c < 0x80 && c != '"' && c != '\\'; }

void AppendEscape(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
  }
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view characters) {
  out += '"';
  size_t i = 0;
  while (i < characters.size()) {
    size_t plain = i;
    while (plain < characters.size() && IsPlain(static_cast<unsigned char>(characters[plain])))
      ++plain;
    out.append(characters, i, plain - i);
    i = plain;
    if (i == characters.size()) break;
    const auto c = static_cast<unsigned char>(characters[i]);
    if (c < 0x80) {
      AppendEscape(out, c);
      ++i;
    } else {
      const text::Utf8Prefix prefix = text::ReadUtf8(characters.substr(i));
      const bool whole = prefix.kind == text::Utf8Prefix::Kind::kCharacter;
      out += whole ? characters.substr(i, prefix.size) : text::kReplacement;
      i += prefix.size;
    }
  }
  out += '"';
}

void JsonWriter::Separate() {
  if (comma_) out_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::Open(char bracket) {
  Separate();
  out_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::Close(char bracket) {
  out_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view name) {
  Separate();
  AppendJsonString(out_, name);
  out_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::String(std::string_view text) {
  Separate();
  AppendJsonString(out_, text);
  return *this;
}

JsonWriter& JsonWriter::Int(int64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Uint(uint64_t value) {
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Float(float value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  fmt::format_to(std::back_inserter(out_), "{}", value);
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  out_ += json;
  return *this;
}

namespace {

// As deep as what ParseJson takes.
void Write(JsonWriter& json, const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kNull:
      json.Null();
      return;
    case JsonKind::kBool:
      json.Bool(value.boolean);
      return;
    case JsonKind::kNumber:
      json.Raw(value.text);
      return;
    case JsonKind::kString:
      json.String(value.text);
      return;
    case JsonKind::kArray:
      json.BeginArray();
      for (const JsonValue& item : value.items) Write(json, item);
      json.EndArray();
      return;
    case JsonKind::kObject:
      json.BeginObject();
      for (const JsonMember& member : value.members) Write(json.Key(member.name), member.value);
      json.EndObject();
      return;
  }
}

}  // namespace

void AppendJson(std::string& out, const JsonValue& value) {
  JsonWriter json(out);
  Write(json, value);
}

}  // namespace plumb::api
