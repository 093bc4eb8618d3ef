// model/hf_json.cc
// The depth is checked on the text, before the parser builds anything.
#include "model/hf_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;
using nlohmann::json;

// Deepest nesting of a text, if it is JSON. Strings are skipped.
uint32_t Depth(std::string_view text) {
  uint32_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') deepest = std::max(deepest, ++depth);
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return deepest;
}

// "3, at \"eps\": N": the line of the `count`th byte, and what the line says up to it, on which the
// parser stumbled.
std::string Place(std::string_view text, size_t count) {
  constexpr size_t kShownMax = 60;
  const std::string_view before = text.substr(0, count);
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 == 0
  std::string_view line = before.substr(std::min(line_begin, before.size()));
  line.remove_prefix(line.size() - std::min(line.size(), kShownMax));
  std::string shown(line.substr(std::min(line.find_first_not_of(" \t\r"), line.size())));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  const auto number = 1 + std::count(before.begin(), before.end(), '\n');
  return shown.empty() ? fmt::format("{}", number) : fmt::format("{}, at {}", number, shown);
}

}  // namespace

Result<json> ParseHfJson(std::string_view text, std::string_view file) {
  if (Depth(text) > kHfJsonDepthMax) {
    return Corrupt(fmt::format("{}: nested deeper than {}", file, kHfJsonDepthMax));
  }
  try {
    json parsed = json::parse(text);
    if (!parsed.is_object()) return Corrupt(fmt::format("{}: not a JSON object", file));
    return parsed;
  } catch (const json::parse_error& error) {
    return Corrupt(fmt::format("{}: not JSON in line {}", file, Place(text, error.byte)));
  } catch (const json::exception&) {  // a number beyond any double
    return Corrupt(fmt::format("{}: holds a number that is too large", file));
  }
}

std::string HfObject::Name(const char* key) const { return fmt::format("{}: {}", file_, key); }

Status HfObject::Missing(const char* key) const {
  return Corrupt(fmt::format("{} is missing", Name(key))).WithField(Name(key));
}
Status HfObject::Wrong(const char* key, std::string_view wanted) const {
  return Corrupt(fmt::format("{} is not {}", Name(key), wanted)).WithField(Name(key));
}
Status HfObject::Refused(const char* key, std::string_view message) const {
  return base::Unsupported(fmt::format("{} {}", Name(key), message)).WithField(Name(key));
}

const json* HfObject::Find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

Result<std::optional<uint64_t>> HfObject::Unsigned(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  if (!value->is_number_unsigned()) return Wrong(key, "an integer >= 0");
  return std::optional(value->get<uint64_t>());
}
Result<std::optional<double>> HfObject::Number(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return Wrong(key, "a number");
  return std::optional(value->get<double>());
}
Result<std::optional<bool>> HfObject::Bool(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return Wrong(key, "true or false");
  return std::optional(value->get<bool>());
}
Result<std::optional<std::string>> HfObject::Text(const char* key) const {
  const json* value = Find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return Wrong(key, "text");
  return std::optional(value->get<std::string>());
}

Result<uint64_t> HfObject::RequiredUnsigned(const char* key) const {
  ASSIGN_OR_RETURN(const std::optional<uint64_t> value, Unsigned(key));
  if (value) return *value;
  return Missing(key);
}

}  // namespace plumb::model
