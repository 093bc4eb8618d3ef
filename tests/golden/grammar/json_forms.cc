// tests/golden/grammar/json_forms.cc: each value has its texts, a container one for each way to
// choose among its children's.
#include "json_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plumb::golden {

using nlohmann::ordered_json;

namespace {

struct Style {
  std::string comma, colon;
  Numbers numbers;
  size_t count_max;
};

std::string NumberText(const ordered_json& value, Numbers numbers) {
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  const bool whole = std::isfinite(number) && std::trunc(number) == number;
  return whole && numbers == Numbers::kWhole ? fmt::format("{:.0f}", number) : value.dump();
}

std::vector<std::string> TextsOf(const ordered_json& value, const Style& style);

// Every way to put one text of each part into a row, with commas between.
std::vector<std::string> Rows(const std::vector<std::vector<std::string>>& parts,
                              const Style& style) {
  std::vector<std::string> rows = {""};
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<std::string> longer;
    for (const std::string& row : rows) {
      for (const std::string& text : parts[i]) {
        if (longer.size() >= style.count_max) break;
        longer.push_back(row + (i > 0 ? style.comma : "") + text);
      }
    }
    rows = std::move(longer);
  }
  return rows;
}

std::vector<std::string> ObjectTexts(const ordered_json& value, const Style& style) {
  std::vector<std::vector<std::string>> members;
  for (const auto& [name, member] : value.items()) {
    members.emplace_back();
    for (const std::string& text : TextsOf(member, style))
      members.back().push_back(ordered_json(name).dump() + style.colon + text);
  }
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), 0u);
  std::vector<std::string> texts;
  do {
    std::vector<std::vector<std::string>> ordered;
    for (const size_t index : order) ordered.push_back(members[index]);
    for (const std::string& row : Rows(ordered, style)) texts.push_back("{" + row + "}");
  } while (texts.size() < style.count_max && std::next_permutation(order.begin(), order.end()));
  return texts;
}

std::vector<std::string> TextsOf(const ordered_json& value, const Style& style) {
  if (value.is_number()) return {NumberText(value, style.numbers)};
  if (value.is_object()) return ObjectTexts(value, style);
  if (!value.is_array()) return {value.dump()};
  std::vector<std::vector<std::string>> items;
  for (const ordered_json& item : value) items.push_back(TextsOf(item, style));
  std::vector<std::string> texts;
  for (const std::string& row : Rows(items, style)) texts.push_back("[" + row + "]");
  return texts;
}

bool WritableText(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7F) ||
           std::string_view("\b\f\n\r\t").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::vector<std::string> Forms(const ordered_json& value, Spacing spacing, Numbers numbers,
                               size_t count_max) {
  const bool spaced = spacing == Spacing::kSpaced;
  return TextsOf(value, {spaced ? ", " : ",", spaced ? ": " : ":", numbers, count_max});
}

bool Writable(const ordered_json& value) {
  if (value.is_string()) return WritableText(value.get<std::string>());
  for (const auto& [name, member] : value.items()) {
    if (value.is_object() && !WritableText(name)) return false;
    if (value.is_structured() && !Writable(member)) return false;
  }
  return true;
}

}  // namespace plumb::golden
