// tests/wire/talk.cc
// See talk.h.
#include "talk.h"

namespace plumb::wire {

using nlohmann::json;

std::vector<TalkLine> ReadTalk(std::string_view text) {
  std::vector<TalkLine> lines;
  int number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    ++number;
    if (line.starts_with("  ") && !lines.empty()) {
      lines.back().rest += '\n';
      lines.back().rest += line.substr(2);
      continue;
    }
    if (line.empty() || line.starts_with("#")) continue;
    const size_t space = line.find(' ');
    const bool alone = space == line.npos;
    lines.push_back({number, std::string(line.substr(0, space)),
                     alone ? std::string() : std::string(line.substr(space + 1))});
  }
  return lines;
}

namespace {

// A word that stands for values; nothing: `expected` is none.
std::optional<bool> Placeholder(const json& expected, const json& got) {
  if (expected == "<any>") return true;
  if (expected == "<string>") return got.is_string() && !got.get_ref<const std::string&>().empty();
  if (expected == "<integer>") return got.is_number_integer();
  return std::nullopt;
}

std::optional<std::string> MismatchOfObjects(const json& expected, const json& got, Members members,
                                             const std::string& path) {
  for (const auto& [name, value] : expected.items()) {
    const bool there = got.contains(name);
    if (value == "<absent>") {
      if (there) return path + "." + name + " should not be there: " + got[name].dump();
      continue;
    }
    if (!there) return path + "." + name + " is missing";
    if (auto why = Mismatch(value, got[name], members, path + "." + name)) return why;
  }
  if (members == Members::kSome) return std::nullopt;
  for (const auto& [name, value] : got.items()) {
    if (!expected.contains(name)) return path + "." + name + " is not expected: " + value.dump();
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Mismatch(const json& expected, const json& got, Members members,
                                    const std::string& path) {
  const std::optional<bool> fits = Placeholder(expected, got);
  if (fits.value_or(expected == got)) return std::nullopt;
  if (!fits && expected.is_object() && got.is_object())
    return MismatchOfObjects(expected, got, members, path);
  if (!fits && expected.is_array() && got.is_array()) {
    if (expected.size() != got.size()) {
      return path + " has " + std::to_string(got.size()) + " entries instead of " +
             std::to_string(expected.size()) + ": " + got.dump();
    }
    for (size_t i = 0; i < expected.size(); ++i)
      if (auto why = Mismatch(expected[i], got[i], members, path + "[" + std::to_string(i) + "]"))
        return why;
    return std::nullopt;
  }
  return path + " is " + got.dump() + " instead of " + expected.dump();
}

}  // namespace plumb::wire
