// text/answer_parser.h
// The text of an answer, taken apart while it arrives: reasoning, content, calls of tools. What
// comes out, joined, is a function of the text so far and not of the pieces it came in; nothing is
// taken back. Read next: text/deepseek_v41_parser.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::text {

struct AnswerDelta {
  enum class Kind : uint8_t {
    kReasoning,
    kContent,
    kCallBegin,  // text: the tool's name, whole
    kArguments,  // text: more of the JSON of the call that began last
  };
  Kind kind;
  std::string text;

  bool operator==(const AnswerDelta&) const = default;
};

// Appends, joining what is one text.
inline void AppendDelta(std::vector<AnswerDelta>& out, AnswerDelta::Kind kind,
                        std::string_view text) {
  const bool joins =
      kind != AnswerDelta::Kind::kCallBegin && !out.empty() && out.back().kind == kind;
  if (joins) {
    out.back().text += text;
  } else {
    out.push_back({kind, std::string(text)});
  }
}

// One per generated sequence. Thread: one at a time.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;

  // More text; appends what is certain now. Held back is only what may still become markup.
  virtual void Push(std::string_view text, std::vector<AnswerDelta>& out) = 0;
  // The end. `stopped`: the model ended its answer, so what it left open is closed; else it was cut
  // off and stays as it came.
  virtual void Finish(bool stopped, std::vector<AnswerDelta>& out) = 0;
};

// All text is content.
class PlainAnswerParser final : public AnswerParser {
 public:
  void Push(std::string_view text, std::vector<AnswerDelta>& out) override {
    if (!text.empty()) AppendDelta(out, AnswerDelta::Kind::kContent, text);
  }
  void Finish(bool, std::vector<AnswerDelta>&) override {}
};

}  // namespace plumb::text
