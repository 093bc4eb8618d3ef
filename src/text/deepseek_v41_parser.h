// text/deepseek_v41_parser.h
// Answers of DeepSeek-V4.1, taken apart: "reasoning</think>content", then perhaps a block
//   <｜DSML｜ calls> <｜DSML｜ invoke name="f"> <｜DSML｜ parameter name="k" string="true">v...
// The official rules and where this parser is more tolerant are in docs/deepseek_v41_chat.md.
// Read next: text/answer_parser.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_parser.h"
#include "text/chat_format.h"
#include "text/newline_trim.h"

namespace plumb::text {

// How such an answer is to be read. A value type.
struct DeepseekV41Answer {
  AnswerStart start = AnswerStart::kContent;
  bool continues = false;  // it goes on with a text, whose beginning is not here
  bool calls = false;      // tools are declared; else their markup is text like all other
  bool one_call = false;   // what follows the first call, however it ended, is left out
  bool must_call = false;  // behind the reasoning there is nothing but calls
};

// A value type. Thread: one at a time. What it keeps is bounded by the answer.
class DeepseekV41Parser final : public AnswerParser {
 public:
  explicit DeepseekV41Parser(const DeepseekV41Answer& how);

  void Push(std::string_view text, std::vector<AnswerDelta>& out) override;
  void Finish(bool stopped, std::vector<AnswerDelta>& out) override;

  // What a piece of markup says. Only for this file and its implementation.
  enum class Tag : uint8_t {
    kThinkEnd,
    kCallsBegin,
    kCallsEnd,
    kInvokeBegin,  // up to the quote before the name
    kInvokeEnd,
    kParameterBegin,  // likewise
    kParameterEnd,
  };

 private:
  enum class State : uint8_t {
    kReasoning,
    kContent,
    kCalls,    // between invokes
    kInvoke,   // between parameters
    kString,   // in the value of one
    kRaw,      // likewise; it is JSON
    kUntyped,  // likewise; whether it is JSON is known at its end
    kDone,     // behind the calls
  };
  using Deltas = std::vector<AnswerDelta>;

  // One step over held_; false: nothing more is certain.
  bool Step(Deltas& out);
  bool StepText(Deltas& out);
  bool StepMarkup(Deltas& out);
  bool StepValue(Deltas& out);
  bool BeginCall(size_t prefix, Deltas& out);
  bool BeginParameter(size_t prefix, Deltas& out);

  void EmitText(std::string_view text, Deltas& out);
  void EmitValue(std::string_view text, Deltas& out);
  void EndValue(bool whole, Deltas& out);
  void EndCall(Deltas& out);
  // The text between the quotes of a tag, of which `prefix` bytes of held_ are before it; false:
  // its end has not come.
  bool TakeQuoted(size_t prefix, std::string& text);

  const DeepseekV41Answer how_;
  State state_;
  std::string held_;    // not yet decided
  size_t scanned_ = 0;  // bytes of held_ in which the end of a tag has been looked for
  NewlineTrim trim_;    // of the text that it is in
  bool stray_ = false;  // text that is no markup, among markup
  bool first_ = true;   // no parameter of this call yet
  std::string untyped_;
};

}  // namespace plumb::text
