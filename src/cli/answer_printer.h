// cli/answer_printer.h
// An answer as it comes, for people: reasoning dimmed, then the content, then each call of a tool
// on a line of its own. Text only; where it goes is its caller's business.
#pragma once

#include <string>
#include <vector>

#include "text/answer_parser.h"
#include "text/chat_input.h"

namespace plumb::cli {

// One per answer. A value type.
class AnswerPrinter {
 public:
  // `terminal`: dim what was thought and disarm control characters; else it stands between
  // "<think>" and "</think>", and all text goes out as it is.
  explicit AnswerPrinter(bool terminal) : terminal_(terminal) {}

  // What to print for it.
  std::string Show(const text::AnswerDelta& delta);
  // What to print at the end of the answer.
  std::string End();

 private:
  std::string EndPart();

  enum class Part { kNone, kReasoning, kContent, kCall };
  const bool terminal_;
  Part part_ = Part::kNone;
};

// What an answer adds up to.
struct AnswerText {
  std::string reasoning = {};
  std::string content = {};
  std::vector<text::ToolCall> calls = {};  // without ids

  void Add(const text::AnswerDelta& delta);
  bool empty() const { return reasoning.empty() && content.empty() && calls.empty(); }
};

}  // namespace plumb::cli
