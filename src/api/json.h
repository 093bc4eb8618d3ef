// api/json.h
// Reads untrusted JSON into a small tree, over simdjson. Stricter than JSON asks: duplicate keys
// are refused (two readers that pick different ones are a hole), as are depth and node counts above
// the limits. Numbers stay as written, so that the reader of a field decides its range and no digit
// is lost on the way. Every error names the path of the value at fault. Read next:
// api/json_fields.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plumb::api {

enum class JsonKind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

// "a string", "an array": for messages to people.
std::string_view JsonKindName(JsonKind kind);

struct JsonMember;

// A value type. Only the fields of its kind are set.
struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  bool boolean = false;
  std::string text;              // kString: the characters, UTF-8; kNumber: the literal as written
  std::vector<JsonValue> items;  // kArray
  std::vector<JsonMember> members;  // kObject, in the order of the text, no name twice

  bool is_null() const { return kind == JsonKind::kNull; }
  // The member of that name, or nullptr.
  const JsonValue* Find(std::string_view name) const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

struct JsonLimits {
  uint64_t bytes_max = 8u << 20;
  uint32_t depth_max = 64;        // arrays and objects inside each other
  uint32_t nodes_max = 1u << 18;  // values of every kind, since a two-byte "[]" costs far more here
};

// kInvalidArgument with the path as field (empty for the whole text): not UTF-8, not JSON, trailing
// characters, a name twice, or beyond a limit (reason "request_too_large" when too long).
base::Result<JsonValue> ParseJson(std::string_view text, const JsonLimits& limits = {});

// "messages", 3 -> "messages[3]"; "stream_options", "include_usage" ->
// "stream_options.include_usage". Names are cut, so that a hostile one cannot flood the answer.
std::string IndexPath(std::string_view path, size_t index);
std::string MemberPath(std::string_view path, std::string_view name);

}  // namespace plumb::api
