// text/template_answer_parser.h
// Answers of models that are talked to by a chat template, taken apart: perhaps reasoning between
// <think> and </think>, then content, with calls in one of the syntaxes of text/tool_syntax.h. What
// turns out to be no call is content, as it was written: nothing is lost and nothing fails. Rules:
// docs/tools.md. Read next: text/answer_parser.h, text/json_call_reader.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/answer_parser.h"
#include "text/chat_format.h"
#include "text/json_call_reader.h"
#include "text/newline_trim.h"
#include "text/tool_syntax.h"

namespace plumb::text {

// How such an answer is to be read. A value type.
struct TemplateAnswer {
  AnswerStart start = AnswerStart::kContent;
  bool may_think = false;           // the answer may begin with <think>
  std::optional<CallSyntax> calls;  // tools are declared; nothing: their markup is text
  bool one_call = false;            // what follows the first call is left out
  bool must_call = false;           // behind the reasoning there is nothing but calls
  std::vector<std::string> names;   // of the tools, where only these make a call (kLlama)
};

// A value type. Thread: one at a time. What it keeps is bounded by the answer.
class TemplateAnswerParser final : public AnswerParser {
 public:
  explicit TemplateAnswerParser(TemplateAnswer how);
  TemplateAnswerParser(const TemplateAnswerParser&) = delete;
  TemplateAnswerParser& operator=(const TemplateAnswerParser&) = delete;

  void Push(std::string_view text, std::vector<AnswerDelta>& out) override;
  void Finish(bool stopped, std::vector<AnswerDelta>& out) override;

 private:
  enum class State : uint8_t {
    kLead,  // before anything: whether it is reasoning, or a call, is open
    kReasoning,
    kContent,
    kName,     // behind [TOOL_CALLS]: a name, an object or a list comes
    kCall,     // in reader_
    kBetween,  // behind a call
    kSkip,     // in the rest of a call that stopped being JSON
    kDone,     // what follows is left out
  };
  using Deltas = std::vector<AnswerDelta>;

  // One step over held_; false: nothing more is certain.
  bool Step(Deltas& out);
  bool StepLead();
  bool StepText(Deltas& out);
  bool StepName(Deltas& out);
  bool StepCall(Deltas& out);
  bool StepBetween(Deltas& out);
  bool StepSkip();

  void BeginReader(size_t bytes, std::optional<std::string> name = {});
  void EndCall();
  void NoCall(Deltas& out);  // tried_ was none
  void EmitText(std::string_view text, Deltas& out);
  bool Is(CallSyntax syntax) const { return how_.calls == syntax; }

  const TemplateAnswer how_;
  State state_;
  std::string held_;   // not yet decided
  std::string tried_;  // since the mark of a call that has not begun: content, if it is none
  std::optional<JsonCallReader> reader_;
  bool list_ = false;      // within [ ... ] of kMistral
  bool tag_open_ = false;  // </tool_call> has not come
  NewlineTrim trim_;       // of the text that it is in
};

}  // namespace plumb::text
