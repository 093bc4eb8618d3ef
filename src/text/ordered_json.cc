// text/ordered_json.cc: a tree built by nlohmann's event parser, which does not recurse, and the
// printing of Python's json and float.__repr__; behind text/ordered_json.h.
#include "text/ordered_json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace plumb::text {
namespace {

using Kind = OrderedJson::Kind;

// Builds the tree. Returning false stops the parser.
class TreeBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Add({.kind = Kind::kNull}); }
  bool boolean(bool value) override { return Add(OrderedJson::Bool(value)); }
  bool number_integer(number_integer_t value) override {
    return AddNumber(fmt::format("{}", value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return AddNumber(fmt::format("{}", value));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return AddNumber(PythonFloat(value));
  }
  bool string(string_t& value) override { return Add(OrderedJson::String(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return Open(Kind::kObject); }
  bool start_array(std::size_t) override { return Open(Kind::kArray); }
  bool key(string_t& name) override {
    open_.back().name = name;
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  bool beyond_limits() const { return beyond_limits_; }
  OrderedJson Take() { return std::move(root_); }

 private:
  struct Level {
    OrderedJson value;
    std::string name = {};                                // of the member that comes next
    std::unordered_map<std::string, size_t> places = {};  // of members
  };

  bool AddNumber(std::string text) {
    OrderedJson value{.kind = Kind::kNumber};
    value.text = std::move(text);
    return Add(std::move(value));
  }

  bool Count() {
    beyond_limits_ = beyond_limits_ || ++values_ > OrderedJson::kValuesMax;
    return !beyond_limits_;
  }

  bool Add(OrderedJson value) { return Count() && Put(std::move(value)); }

  bool Put(OrderedJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Level& level = open_.back();
    if (level.value.kind == Kind::kArray) {
      level.value.items.push_back(std::move(value));
      return true;
    }
    const auto [place, fresh] = level.places.emplace(level.name, level.value.members.size());
    if (fresh) {
      level.value.members.emplace_back(level.name, std::move(value));
    } else {
      level.value.members[place->second].second = std::move(value);
    }
    return true;
  }

  bool Open(Kind kind) {
    beyond_limits_ = beyond_limits_ || open_.size() >= OrderedJson::kDepthMax;
    if (!Count()) return false;
    open_.push_back({.value = {.kind = kind}});
    return true;
  }

  bool Close() {
    OrderedJson value = std::move(open_.back().value);
    open_.pop_back();
    return Put(std::move(value));
  }

  OrderedJson root_;
  std::vector<Level> open_;
  size_t values_ = 0;
  bool beyond_limits_ = false;
};

// How many bytes stand before the first that must be escaped: eight at a time, as texts are long
// and most of it is plain.
size_t PlainBytes(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  const auto has_zero = [](uint64_t word) { return ((word - kOnes) & ~word & kTops) != 0; };
  size_t place = 0;
  for (; place + sizeof(uint64_t) <= text.size(); place += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, text.data() + place, sizeof word);
    const bool has_control = ((word - kOnes * 0x20) & ~word & kTops) != 0;
    if (has_control || has_zero(word ^ (kOnes * '"')) || has_zero(word ^ (kOnes * '\\'))) break;
  }
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  while (place < text.size() && is_plain(text[place])) ++place;
  return place;
}

}  // namespace

OrderedJson* OrderedJson::Find(std::string_view name) {
  for (auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

void OrderedJson::Set(std::string_view name, OrderedJson value) {
  OrderedJson* place = Find(name);
  if (place == nullptr) {
    members.emplace_back(name, std::move(value));
  } else {
    *place = std::move(value);
  }
}

OrderedJson OrderedJson::String(std::string_view text) {
  OrderedJson value{.kind = Kind::kString};
  value.text = text;
  return value;
}

OrderedJson OrderedJson::Bool(bool value) { return {.kind = value ? Kind::kTrue : Kind::kFalse}; }

base::Result<OrderedJson> OrderedJson::Parse(std::string_view json) {
  TreeBuilder builder;
  const bool good = nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  if (builder.beyond_limits()) {
    return base::InvalidArgument("", fmt::format("JSON with more than {} values or deeper than {}",
                                                 kValuesMax, kDepthMax))
        .WithReason(std::string(kJsonTooLarge));
  }
  if (!good) return base::InvalidArgument("", "not JSON");
  return builder.Take();
}

// The shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
std::string PythonFloat(double value) {
  char digits[32];
  const auto scientific =
      std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::scientific);
  const std::string_view text(digits, static_cast<size_t>(scientific.ptr - digits));
  const size_t e = text.find('e');
  int exponent = 0;
  const size_t sign = e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + sign, text.data() + text.size(), exponent);
  if (value != 0 && (exponent < -4 || exponent >= 16)) {
    return fmt::format("{}e{}{:02}", text.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  // Long enough for 1e-4 with 17 digits and for 1e15 with a sign.
  char plain[48];
  const auto fixed =
      std::to_chars(std::begin(plain), std::end(plain), value, std::chars_format::fixed);
  std::string out(plain, fixed.ptr);
  if (out.find('.') == out.npos) out += ".0";
  return out;
}

void AppendPythonCharacters(std::string& out, std::string_view text) {
  constexpr std::string_view kPlain = "\"\\\n\r\t\b\f";
  constexpr std::string_view kEscaped = "\"\\nrtbf";
  for (;;) {
    const size_t plain = PlainBytes(text);
    out += text.substr(0, plain);
    if (plain == text.size()) return;
    const char c = text[plain];
    if (const size_t index = kPlain.find(c); index != kPlain.npos) {
      (out += '\\') += kEscaped[index];
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    }
    text.remove_prefix(plain + 1);
  }
}

void AppendPythonString(std::string& out, std::string_view text) {
  out += '"';
  AppendPythonCharacters(out, text);
  out += '"';
}

// Recursion is bounded by kDepthMax.
void AppendPythonJson(std::string& out, const OrderedJson& value) {
  switch (value.kind) {
    case Kind::kNull:
      out += "null";
      return;
    case Kind::kFalse:
      out += "false";
      return;
    case Kind::kTrue:
      out += "true";
      return;
    case Kind::kNumber:
      out += value.text;
      return;
    case Kind::kString:
      AppendPythonString(out, value.text);
      return;
    case Kind::kArray:
      out += '[';
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (i > 0) out += ", ";
        AppendPythonJson(out, value.items[i]);
      }
      out += ']';
      return;
    case Kind::kObject:
      out += '{';
      for (size_t i = 0; i < value.members.size(); ++i) {
        if (i > 0) out += ", ";
        AppendPythonString(out, value.members[i].first);
        out += ": ";
        AppendPythonJson(out, value.members[i].second);
      }
      out += '}';
      return;
  }
}

}  // namespace plumb::text
