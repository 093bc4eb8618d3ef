// text/ordered_json.h
// JSON whose members keep their order, printed as Python prints it: what models were trained on is
// json.dumps(..., ensure_ascii=False). Texts are hostile: depth and values are bounded, and a name
// that occurs twice takes the last value in the first place, as Python's dict does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plumb::text {

// Reason of the error for JSON that is beyond a limit, and may be good otherwise.
constexpr std::string_view kJsonTooLarge = "json_too_large";

// A value type. Only the fields of its kind are set.
struct OrderedJson {
  enum class Kind : uint8_t { kNull, kFalse, kTrue, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text = {};  // kString: the characters; kNumber: as Python prints it
  std::vector<OrderedJson> items = {};
  std::vector<std::pair<std::string, OrderedJson>> members = {};

  // The member of that name, or null.
  OrderedJson* Find(std::string_view name);
  // In the place of a member of that name, else at the end.
  void Set(std::string_view name, OrderedJson value);

  static OrderedJson String(std::string_view text);
  static OrderedJson Bool(bool value);

  // kInvalidArgument, without a field: not JSON (numbers beyond a double's range are none), or
  // beyond a limit (reason kJsonTooLarge).
  static base::Result<OrderedJson> Parse(std::string_view json);

  static constexpr size_t kDepthMax = 64;
  static constexpr size_t kValuesMax = 1u << 18;
};

// As json.dumps(value, ensure_ascii=False): ", " and ": " between.
void AppendPythonJson(std::string& out, const OrderedJson& value);
// A JSON string, quotes and all, escaped as there.
void AppendPythonString(std::string& out, std::string_view text);
// What stands between the quotes; a text may be given in pieces.
void AppendPythonCharacters(std::string& out, std::string_view text);
// repr() of a finite float: "1e-07", "1e+16", "-0.0", "123456789.0".
std::string PythonFloat(double value);

}  // namespace plumb::text
