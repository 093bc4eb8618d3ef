// cli/answer_printer.cc
// What begins and ends the parts of an answer on a terminal; behind cli/answer_printer.h.
#include "cli/answer_printer.h"

#include "cli/terminal_text.h"

namespace plumb::cli {

using Kind = text::AnswerDelta::Kind;

namespace {

constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

}  // namespace

std::string AnswerPrinter::EndPart() {
  std::string out;
  if (part_ == Part::kReasoning) out = terminal_ ? std::string(kPlain) + "\n\n" : "\n</think>\n";
  if (part_ == Part::kCall) out = ")]\n";
  part_ = Part::kNone;
  return out;
}

std::string AnswerPrinter::Show(const text::AnswerDelta& delta) {
  const std::string text = terminal_ ? TerminalText(delta.text) : delta.text;
  if (delta.kind == Kind::kArguments) return text;
  std::string out;
  if (delta.kind == Kind::kCallBegin) {
    const bool line_open = part_ == Part::kContent;
    out = EndPart() + (line_open ? "\n" : "");
    part_ = Part::kCall;
    return out + "[calls " + text + "(";
  }
  const Part part = delta.kind == Kind::kReasoning ? Part::kReasoning : Part::kContent;
  if (part_ != part) {
    out = EndPart();
    if (part == Part::kReasoning) out += terminal_ ? kDim : "<think>\n";
    part_ = part;
  }
  return out + text;
}

std::string AnswerPrinter::End() { return EndPart(); }

void AnswerText::Add(const text::AnswerDelta& delta) {
  switch (delta.kind) {
    case Kind::kReasoning:
      reasoning += delta.text;
      return;
    case Kind::kContent:
      content += delta.text;
      return;
    case Kind::kCallBegin:
      calls.push_back({.name = delta.text});
      return;
    case Kind::kArguments:
      if (!calls.empty()) calls.back().arguments += delta.text;
      return;
  }
}

}  // namespace plumb::cli
