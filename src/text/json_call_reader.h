// text/json_call_reader.h
// One call of a tool that a model writes as JSON, {"name": "f", "arguments": {...}}, read while it
// arrives: the name is given out when it and its place are certain, the arguments byte by byte from
// then on. Members may come in any order. Read next: text/template_answer_parser.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_parser.h"
#include "text/json_scanner.h"

namespace plumb::text {

// A value type. Thread: one at a time. What it keeps is bounded by the answer.
class JsonCallReader {
 public:
  // `names`: the only ones that make a call; empty: every name of a tool does. Borrowed for this
  // object's life.
  explicit JsonCallReader(const std::vector<std::string>& names) : names_(&names) {}
  // Reads no object, but arguments alone, of the call with that name.
  JsonCallReader(const std::vector<std::string>& names, std::string name);

  enum class State : uint8_t {
    kReading,
    kWhole,  // the call has ended
    kBad,    // this is no call; or, once it has begun, its rest is no JSON
  };

  // Takes what belongs to the call from the front of `text`, and appends what is certain. Bytes
  // that are left over: the call has ended, or the first of them is what made it bad.
  size_t Read(std::string_view text, std::vector<AnswerDelta>& out);
  // The end of the answer. Arguments that wait for their end are given out as they are; where the
  // model ended the answer (`stopped`), a call without any has "{}".
  void Finish(bool stopped, std::vector<AnswerDelta>& out);

  State state() const { return state_; }
  // Its name has been given out: it is a call, whatever follows.
  bool begun() const { return begun_; }

 private:
  enum class Place : uint8_t { kBegin, kKeyOrEnd, kKey, kInKey, kColon, kValue, kInValue, kAfter };
  enum class Role : uint8_t { kName, kArguments, kOther };
  using Deltas = std::vector<AnswerDelta>;

  // Whether the byte belongs to the call.
  bool Step(char c, Deltas& out);
  bool StepValue(char c, Deltas& out);
  bool BeginValue(char c);
  void EndValue(Deltas& out);
  void Begin(Deltas& out);
  void Give(Deltas& out);  // arguments that have come, once the name is known
  bool Bad();

  const std::vector<std::string>* names_;
  State state_ = State::kReading;
  Place place_ = Place::kBegin;
  Role role_ = Role::kOther;
  bool only_arguments_ = false;
  bool begun_ = false;
  bool has_arguments_ = false;
  bool quoted_ = false;    // arguments written as a string that holds JSON; given out when whole
  std::string key_;        // the current one, as it is spelled between its quotes
  std::string value_;      // of the name, as it is spelled
  std::string name_;       // once known
  std::string arguments_;  // not given out
  JsonScanner scanner_;    // of the value
};

}  // namespace plumb::text
