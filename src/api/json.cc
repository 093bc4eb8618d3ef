// api/json.cc
// Builds the tree by one recursive walk over simdjson's on-demand iterator. Why on-demand and not
// its DOM: the DOM refuses a whole document for one number out of range and cannot say which.
#include "api/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace plumb::api {

namespace {

namespace od = simdjson::ondemand;
using base::InvalidArgument;
using base::Result;
using base::Status;

constexpr size_t kNameShownMax = 64;  // bytes of a member name in a path
constexpr size_t kPathShownMax = 256;

// The longest prefix of whole characters within `size_max` bytes.
std::string_view CutText(std::string_view text, size_t size_max) {
  if (text.size() <= size_max) return text;
  size_t size = size_max;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size);
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// RFC 8259, section 6.
bool IsNumberLiteral(std::string_view s) {
  size_t i = 0;
  auto digits = [&] {
    const size_t first = i;
    while (i < s.size() && IsDigit(s[i])) ++i;
    return i > first;
  };
  if (i < s.size() && s[i] == '-') ++i;
  if (i < s.size() && s[i] == '0') {
    ++i;
  } else if (!digits()) {
    return false;
  }
  if (i < s.size() && s[i] == '.') {
    ++i;
    if (!digits()) return false;
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    ++i;
    if (i < s.size() && (s[i] == '+' || s[i] == '-')) ++i;
    if (!digits()) return false;
  }
  return i == s.size();
}

std::string_view TrimEnd(std::string_view s) {
  while (!s.empty() &&
         (s.back() == ' ' || s.back() == '\n' || s.back() == '\r' || s.back() == '\t'))
    s.remove_suffix(1);
  return s;
}

Status NotJson(std::string path, simdjson::error_code error) {
  if (error == simdjson::UTF8_ERROR)
    return InvalidArgument(std::move(path), "the body is not valid UTF-8");
  if (error == simdjson::EMPTY) return InvalidArgument(std::move(path), "the body is empty");
  const std::string where = path.empty() ? "" : fmt::format(" at {}", path);
  return InvalidArgument(std::move(path), fmt::format("the body is not valid JSON{}", where));
}

// One walk; `path_` follows the value being read, for error messages.
class Reader {
 public:
  explicit Reader(const JsonLimits& limits) : limits_(limits) {}

  Result<JsonValue> ReadObject(od::object object, uint32_t depth) {
    RETURN_IF_ERROR(Enter(depth));
    JsonValue out{.kind = JsonKind::kObject};
    const std::string path = path_;
    for (auto entry : object) {
      od::field field;
      if (auto error = std::move(entry).get(field)) return NotJson(path_, error);
      std::string_view name;
      if (auto error = field.unescaped_key().get(name)) return NotJson(path_, error);
      JsonMember member{.name = std::string(name), .value = {}};
      path_ = MemberPath(path, member.name);
      ASSIGN_OR_RETURN(member.value, ReadValue(field.value(), depth + 1));
      path_ = path;
      out.members.push_back(std::move(member));
    }
    RETURN_IF_ERROR(CheckNames(out));
    return out;
  }

 private:
  Result<JsonValue> ReadValue(od::value value, uint32_t depth) {
    RETURN_IF_ERROR(CountNode());
    od::json_type type;
    if (auto error = value.type().get(type)) return NotJson(path_, error);
    switch (type) {
      case od::json_type::object: {
        od::object object;
        if (auto error = value.get_object().get(object)) return NotJson(path_, error);
        return ReadObject(object, depth);
      }
      case od::json_type::array: {
        od::array array;
        if (auto error = value.get_array().get(array)) return NotJson(path_, error);
        return ReadArray(array, depth);
      }
      case od::json_type::string: {
        std::string_view text;
        if (auto error = value.get_string().get(text)) return NotJson(path_, error);
        return JsonValue{.kind = JsonKind::kString, .text = std::string(text)};
      }
      case od::json_type::boolean: {
        bool boolean = false;
        if (auto error = value.get_bool().get(boolean)) return NotJson(path_, error);
        return JsonValue{.kind = JsonKind::kBool, .boolean = boolean};
      }
      case od::json_type::number: {
        const std::string_view literal = TrimEnd(value.raw_json_token());
        if (!IsNumberLiteral(literal)) return NotJson(path_, simdjson::NUMBER_ERROR);
        return JsonValue{.kind = JsonKind::kNumber, .text = std::string(literal)};
      }
      case od::json_type::null:
        if (TrimEnd(value.raw_json_token()) != "null")
          return NotJson(path_, simdjson::N_ATOM_ERROR);
        return JsonValue{};
    }
    return NotJson(path_, simdjson::TAPE_ERROR);
  }

  Result<JsonValue> ReadArray(od::array array, uint32_t depth) {
    RETURN_IF_ERROR(Enter(depth));
    JsonValue out{.kind = JsonKind::kArray};
    const std::string path = path_;
    for (auto entry : array) {
      od::value value;
      if (auto error = std::move(entry).get(value)) return NotJson(path_, error);
      path_ = IndexPath(path, out.items.size());
      ASSIGN_OR_RETURN(JsonValue item, ReadValue(value, depth + 1));
      path_ = path;
      out.items.push_back(std::move(item));
    }
    return out;
  }

  Status Enter(uint32_t depth) const {
    if (depth < limits_.depth_max) return base::OkStatus();
    return InvalidArgument(path_, fmt::format("JSON is nested deeper than {}", limits_.depth_max));
  }

  Status CountNode() {
    if (++nodes_ <= limits_.nodes_max) return base::OkStatus();
    return InvalidArgument(path_, fmt::format("JSON has more than {} values", limits_.nodes_max));
  }

  Status CheckNames(const JsonValue& object) const {
    std::vector<std::string_view> names;
    names.reserve(object.members.size());
    for (const JsonMember& member : object.members) names.push_back(member.name);
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return base::OkStatus();
    return InvalidArgument(MemberPath(path_, *twice), "this name stands twice in the same object");
  }

  const JsonLimits& limits_;
  uint32_t nodes_ = 1;
  std::string path_;
};

}  // namespace

std::string_view JsonKindName(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "a boolean";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      return "an object";
  }
  return "nothing";
}

const JsonValue* JsonValue::Find(std::string_view name) const {
  for (const JsonMember& member : members)
    if (member.name == name) return &member.value;
  return nullptr;
}

std::string IndexPath(std::string_view path, size_t index) {
  return fmt::format("{}[{}]", CutText(path, kPathShownMax), index);
}

std::string MemberPath(std::string_view path, std::string_view name) {
  const std::string_view shown = CutText(name, kNameShownMax);
  if (path.empty()) return std::string(shown);
  return fmt::format("{}.{}", CutText(path, kPathShownMax), shown);
}

Result<JsonValue> ParseJson(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes_max) {
    return InvalidArgument("", fmt::format("the body has {} bytes; at most {} are taken",
                                           text.size(), limits.bytes_max))
        .WithReason("request_too_large");
  }
  od::parser parser;
  const simdjson::padded_string padded(text);
  od::document document;
  if (auto error = parser.iterate(padded).get(document)) return NotJson("", error);
  od::json_type type;
  if (auto error = document.type().get(type)) return NotJson("", error);
  if (type != od::json_type::object) return InvalidArgument("", "the body must be a JSON object");
  od::object object;
  if (auto error = document.get_object().get(object)) return NotJson("", error);
  Reader reader(limits);
  ASSIGN_OR_RETURN(JsonValue value, reader.ReadObject(object, 0));
  if (document.current_location().error() != simdjson::OUT_OF_BOUNDS)
    return InvalidArgument("", "characters follow the JSON object");
  return value;
}

}  // namespace plumb::api
