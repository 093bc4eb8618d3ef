// api/json_writer.h
// Appends JSON to a string, without a tree in between: token events are written on the generator's
// thread and must cost little. Commas are placed by the writer; nesting is the caller's to balance.
// Text that is not UTF-8 comes out with U+FFFD in place of what is not, so the result is always
// valid JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json.h"

namespace plumb::api {

// Borrows the string it appends to. Thread: one at a time.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& BeginObject() { return Open('{'); }
  JsonWriter& EndObject() { return Close('}'); }
  JsonWriter& BeginArray() { return Open('['); }
  JsonWriter& EndArray() { return Close(']'); }
  JsonWriter& Key(std::string_view name);

  JsonWriter& String(std::string_view text);
  JsonWriter& StringOrNull(std::string_view text) { return text.empty() ? Null() : String(text); }
  JsonWriter& Int(int64_t value);
  JsonWriter& Uint(uint64_t value);
  // Shortest digits that read back equal; not finite = null.
  JsonWriter& Float(float value);
  JsonWriter& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonWriter& Null() { return Raw("null"); }
  // A value that is already JSON.
  JsonWriter& Raw(std::string_view json);

 private:
  JsonWriter& Open(char bracket);
  JsonWriter& Close(char bracket);
  void Separate();

  std::string& out_;
  bool comma_ = false;  // a value stands before: the next one needs a comma
};

// The string with quotes and escapes.
void AppendJsonString(std::string& out, std::string_view text);

// A tree that was read, numbers as they were written.
void AppendJson(std::string& out, const JsonValue& value);

}  // namespace plumb::api
