// text/json_call_reader.cc: the members of one object, a byte at a time; behind
// text/json_call_reader.h.
#include "text/json_call_reader.h"

#include <algorithm>
#include <utility>

#include "text/deepseek_v41_tools.h"
#include "text/ordered_json.h"

namespace plumb::text {
namespace {

using Kind = AnswerDelta::Kind;

constexpr size_t kKeyBytesMax = 64;
constexpr size_t kNameBytesMax = 6 * 64 + 2;  // every character as \uXXXX, and the quotes

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// What a JSON string, quotes and all, spells; as it is where it is none.
std::string Spelled(const std::string& json) {
  auto parsed = OrderedJson::Parse(json);
  return parsed.ok() ? std::move(parsed->text) : json;
}

}  // namespace

JsonCallReader::JsonCallReader(const std::vector<std::string>& names, std::string name)
    : names_(&names), place_(Place::kValue), role_(Role::kArguments), only_arguments_(true) {
  name_ = std::move(name);
}

size_t JsonCallReader::Read(std::string_view text, Deltas& out) {
  size_t taken = 0;
  while (taken < text.size() && state_ == State::kReading && Step(text[taken], out)) ++taken;
  if (begun_) Give(out);
  return taken;
}

bool JsonCallReader::Bad() {
  state_ = State::kBad;
  return false;
}

bool JsonCallReader::Step(char c, Deltas& out) {
  if (place_ == Place::kInKey) {
    if (c == '"') {
      const std::string key = Spelled('"' + key_ + '"');
      role_ = key == "name"                               ? Role::kName
              : key == "arguments" || key == "parameters" ? Role::kArguments
                                                          : Role::kOther;
      place_ = Place::kColon;
      return true;
    }
    key_ += c;
    return key_.size() <= kKeyBytesMax || Bad();
  }
  if (place_ == Place::kInValue) return StepValue(c, out);
  if (IsSpace(c)) return true;
  switch (place_) {
    case Place::kBegin:
      place_ = Place::kKeyOrEnd;
      return c == '{' || Bad();
    case Place::kKeyOrEnd:
    case Place::kKey:
      key_.clear();
      if (c != '"') return Bad();  // an object without a name is no call
      place_ = Place::kInKey;
      return true;
    case Place::kColon:
      place_ = Place::kValue;
      return c == ':' || Bad();
    case Place::kValue:
      if (!BeginValue(c)) return Bad();
      place_ = Place::kInValue;
      return StepValue(c, out);
    default:  // kAfter
      if (c == ',') {
        place_ = Place::kKey;
        return true;
      }
      if (c != '}' || !begun_) return Bad();
      if (!has_arguments_) AppendDelta(out, Kind::kArguments, "{}");
      state_ = State::kWhole;
      return true;
  }
}

bool JsonCallReader::BeginValue(char c) {
  scanner_ = JsonScanner();
  value_.clear();
  if (role_ == Role::kName) return c == '"' && !begun_;
  if (role_ != Role::kArguments) return true;
  if (has_arguments_) return false;
  if (c != '{' && c != '"') role_ = Role::kOther;  // null, say: there are none
  if (role_ == Role::kOther) return c == 'n';
  quoted_ = c == '"';
  has_arguments_ = true;
  return true;
}

bool JsonCallReader::StepValue(char c, Deltas& out) {
  if (only_arguments_ && !begun_) Begin(out);
  const JsonScanner::Place place = scanner_.Push(c);
  if (place == JsonScanner::Place::kBad) return Bad();
  if (place == JsonScanner::Place::kPast) {
    EndValue(out);
    return state_ == State::kReading && Step(c, out);
  }
  if (role_ == Role::kName) value_ += c;
  if (value_.size() > kNameBytesMax) return Bad();
  if (role_ == Role::kArguments) arguments_ += c;
  if (place == JsonScanner::Place::kLast) {
    EndValue(out);
    if (state_ == State::kBad) return false;
  }
  return true;
}

void JsonCallReader::EndValue(Deltas& out) {
  place_ = Place::kAfter;
  if (role_ == Role::kName) {
    name_ = Spelled(value_);
    const bool known = names_->empty() || std::ranges::find(*names_, name_) != names_->end();
    if (known && IsToolName(name_)) {
      Begin(out);
    } else {
      state_ = State::kBad;
    }
  }
  if (role_ == Role::kArguments && quoted_) {
    arguments_ = Spelled(arguments_);
    quoted_ = false;
  }
  if (only_arguments_) {
    if (!has_arguments_) AppendDelta(out, Kind::kArguments, "{}");
    state_ = State::kWhole;
  }
}

void JsonCallReader::Begin(Deltas& out) {
  AppendDelta(out, Kind::kCallBegin, name_);
  begun_ = true;
}

void JsonCallReader::Give(Deltas& out) {
  if (quoted_ || arguments_.empty()) return;
  AppendDelta(out, Kind::kArguments, arguments_);
  arguments_.clear();
}

void JsonCallReader::Finish(bool stopped, Deltas& out) {
  if (!begun_ || state_ == State::kWhole) return;
  quoted_ = false;
  Give(out);
  if (stopped && !has_arguments_) AppendDelta(out, Kind::kArguments, "{}");
}

}  // namespace plumb::text
