// tests/fuzz/template_answer_fuzz.cc
// Any bytes as an answer of a model with a chat template, in pieces: what comes out does not depend
// on them. The first byte says how calls are written and where the answer begins, the second how
// long the pieces are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/template_answer_parser.h"

namespace {

using plumb::text::AnswerDelta;
using plumb::text::AnswerStart;
using plumb::text::CallSyntax;

std::vector<AnswerDelta> Parse(const plumb::text::TemplateAnswer& how, bool stopped,
                               std::string_view text, size_t piece) {
  plumb::text::TemplateAnswerParser parser(how);
  std::vector<AnswerDelta> deltas;
  const auto collect = [&deltas](const std::vector<AnswerDelta>& some) {
    for (const AnswerDelta& delta : some) {
      const bool in_call = delta.kind == AnswerDelta::Kind::kArguments;
      CHECK(!in_call ||
            std::ranges::count(deltas, AnswerDelta::Kind::kCallBegin, &AnswerDelta::kind) > 0);
      plumb::text::AppendDelta(deltas, delta.kind, delta.text);
    }
  };
  for (size_t place = 0; place < text.size(); place += piece) {
    std::vector<AnswerDelta> some;
    parser.Push(text.substr(place, piece), some);
    collect(some);
  }
  std::vector<AnswerDelta> last;
  parser.Finish(stopped, last);
  collect(last);
  return deltas;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  constexpr CallSyntax kSyntaxes[] = {CallSyntax::kHermes, CallSyntax::kLlama, CallSyntax::kMistral,
                                      CallSyntax::kMistralNamed};
  plumb::text::TemplateAnswer how{
      .start = (data[0] & 8) != 0 ? AnswerStart::kReasoning : AnswerStart::kContent,
      .may_think = (data[0] & 24) == 16,
  };
  if ((data[0] & 4) == 0) how.calls = kSyntaxes[data[0] & 3];
  how.one_call = (data[0] & 32) != 0;
  how.must_call = how.calls && (data[0] & 64) != 0;
  const bool stopped = (data[0] & 128) == 0;
  if (how.calls == CallSyntax::kLlama) how.names = {"f"};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = Parse(how, stopped, text, std::max<size_t>(text.size(), 1));
  CHECK(Parse(how, stopped, text, 1) == whole);
  CHECK(Parse(how, stopped, text, 1 + data[1]) == whole);
  return 0;
}
