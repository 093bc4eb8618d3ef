// tests/fuzz/deepseek_answer_fuzz.cc
// Any bytes as an answer of DeepSeek-V4.1, in pieces: what comes out does not depend on them. The
// first byte says where the answer begins and whether there are tools, the second how long the
// pieces are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/deepseek_v41_parser.h"

namespace {

using plumb::text::AnswerDelta;
using plumb::text::AnswerStart;

struct Answer {
  plumb::text::DeepseekV41Answer how;
  bool stopped;
  std::string_view text;
};

std::vector<AnswerDelta> Parse(const Answer& answer, size_t piece) {
  plumb::text::DeepseekV41Parser parser(answer.how);
  std::vector<AnswerDelta> deltas;
  for (size_t place = 0; place < answer.text.size(); place += piece) {
    std::vector<AnswerDelta> some;
    parser.Push(answer.text.substr(place, piece), some);
    for (AnswerDelta& delta : some) plumb::text::AppendDelta(deltas, delta.kind, delta.text);
  }
  std::vector<AnswerDelta> last;
  parser.Finish(answer.stopped, last);
  for (AnswerDelta& delta : last) plumb::text::AppendDelta(deltas, delta.kind, delta.text);
  return deltas;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Answer answer{
      .how = {.start = static_cast<AnswerStart>(data[0] % 3),
              .continues = (data[0] & 8) != 0,
              .calls = (data[0] & 4) != 0 || data[0] % 3 == 2,
              .one_call = (data[0] & 32) != 0,
              .must_call = (data[0] & 64) != 0},
      .stopped = (data[0] & 16) != 0,
      .text = {reinterpret_cast<const char*>(data) + 2, size - 2},
  };
  const auto whole = Parse(answer, std::max<size_t>(answer.text.size(), 1));
  CHECK(Parse(answer, 1) == whole);
  CHECK(Parse(answer, 1 + data[1]) == whole);
  return 0;
}
