// api/messages_writer_test.cc
// Blocks of an answer: streamed as whole, however their parts are cut.
#include "api/messages_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "api/testing/messages_stream.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using text::AnswerDelta;
using Kind = AnswerDelta::Kind;

const std::vector<AnswerDelta> kParts = {
    {Kind::kReasoning, "I should look. 한"},
    {Kind::kContent, "One moment 😀."},
    {Kind::kCallBegin, "get_weather"},
    {Kind::kArguments, R"({"city": "Rome", "n": 2})"},
    {Kind::kCallBegin, "get_time"},
    {Kind::kArguments, "{}"},
    {Kind::kContent, "Wait."},
};

MessagesWriter Writer(MessagesShape shape, bool context_ends = false) {
  const AnswerHead head{
      .number = 5, .model = "m", .created = 0, .seed = 9, .context_ends = context_ends};
  MessagesWriter writer(head, shape);
  writer.Begin("fp");
  return writer;
}

constexpr AnswerUsage kUsage{.prompt_tokens = 30, .completion_tokens = 12, .cached_tokens = 20};

json WholeOf(std::span<const AnswerDelta> parts, const SampleEnd& end, MessagesShape shape,
             bool context_ends = false) {
  SampleAnswer answer{.parts = {parts.begin(), parts.end()}, .logprobs = {}, .end = end};
  return json::parse(Writer(shape, context_ends).Whole({&answer, 1}, kUsage));
}

json StreamedOf(std::span<const AnswerDelta> parts, const SampleEnd& end, MessagesShape shape,
                bool context_ends = false) {
  MessagesWriter writer = Writer(shape, context_ends);
  std::string out;
  writer.StartStream(out);
  for (const AnswerDelta& part : parts) writer.Part(0, part, {}, out);
  writer.EndSample(0, end, out);
  writer.EndStream(kUsage, out);
  return testing::MessageOfStream(out);
}

SampleEnd End(engine::FinishReason reason = engine::FinishReason::kStop) {
  return {.reason = reason, .by_model = true, .stop = {}, .completion_tokens = 12};
}

TEST(MessagesWriter, StreamedIsWhole) {
  for (const bool shown : {true, false}) {
    const MessagesShape shape{.prompt_tokens = 30, .show_thinking = shown};
    EXPECT_EQ(StreamedOf(kParts, End(), shape), WholeOf(kParts, End(), shape));
  }
}

// Every way to cut a part in two, empty halves included, and every byte on its own: bytes of one
// character stay together, as an AnswerParser keeps them.
TEST(MessagesWriter, DoesNotDependOnCuts) {
  const MessagesShape shape{.prompt_tokens = 30};
  const json whole = WholeOf(kParts, End(), shape);
  std::vector<AnswerDelta> single;
  for (size_t cut_part = 0; cut_part < kParts.size(); ++cut_part) {
    const AnswerDelta& part = kParts[cut_part];
    if (part.kind == Kind::kCallBegin) {
      single.push_back(part);
      continue;
    }
    size_t begin = 0;
    for (size_t cut = 0; cut <= part.text.size(); ++cut) {
      const bool inside = cut < part.text.size() && (part.text[cut] & 0xC0) == 0x80;
      if (inside) continue;
      std::vector<AnswerDelta> parts(kParts.begin(), kParts.end());
      parts[cut_part].text = part.text.substr(cut);
      const AnswerDelta front{part.kind, part.text.substr(0, cut)};
      parts.insert(parts.begin() + static_cast<ptrdiff_t>(cut_part), front);
      EXPECT_EQ(StreamedOf(parts, End(), shape), whole) << cut_part << " " << cut;
      EXPECT_EQ(WholeOf(parts, End(), shape), whole) << cut_part << " " << cut;
      if (cut > begin) single.push_back({part.kind, part.text.substr(begin, cut - begin)});
      begin = cut;
    }
  }
  EXPECT_EQ(StreamedOf(single, End(), shape), whole);
}

TEST(MessagesWriter, SaysWhyItEnded) {
  const AnswerDelta text{Kind::kContent, "a"};
  const AnswerDelta call{Kind::kCallBegin, "f"};
  const MessagesShape shape{.prompt_tokens = 30};
  const auto reason = [&](const AnswerDelta& part, const SampleEnd& end, bool context_ends) {
    const json message = StreamedOf({&part, 1}, end, shape, context_ends);
    EXPECT_EQ(message, WholeOf({&part, 1}, end, shape, context_ends));
    return message["stop_reason"].get<std::string>();
  };
  const SampleEnd cut = End(engine::FinishReason::kLength);
  EXPECT_EQ(reason(text, End(), false), "end_turn");
  EXPECT_EQ(reason(text, End(), true), "end_turn");
  EXPECT_EQ(reason(call, End(), true), "tool_use");
  EXPECT_EQ(reason(call, cut, false), "max_tokens");
  EXPECT_EQ(reason(text, cut, true), "model_context_window_exceeded");
  SampleEnd stopped = End();
  stopped.by_model = false;
  stopped.stop = "x";
  EXPECT_EQ(reason(call, stopped, true), "stop_sequence");
}

TEST(MessagesWriter, CountsWhatWasCachedApart) {
  const json usage = WholeOf(kParts, End(), {.prompt_tokens = 30})["usage"];
  EXPECT_EQ(usage["input_tokens"], 10);
  EXPECT_EQ(usage["cache_read_input_tokens"], 20);
  EXPECT_EQ(usage["cache_creation_input_tokens"], 0);
  EXPECT_EQ(usage["output_tokens"], 12);
}

TEST(MessagesWriter, CountsWhatWasStoredByItsTime) {
  const SampleAnswer answer{.parts = kParts, .logprobs = {}, .end = End()};
  AnswerUsage stored = kUsage;
  stored.stored_tokens = {6, 3};
  for (const bool hour_first : {true, false}) {
    const MessagesShape shape{.prompt_tokens = 30, .hour_first = hour_first};
    const json usage = json::parse(Writer(shape).Whole({&answer, 1}, stored))["usage"];
    EXPECT_EQ(usage["input_tokens"], 1);
    EXPECT_EQ(usage["cache_creation_input_tokens"], 9);
    EXPECT_EQ(usage["cache_creation"]["ephemeral_1h_input_tokens"], hour_first ? 6 : 0);
    EXPECT_EQ(usage["cache_creation"]["ephemeral_5m_input_tokens"], hour_first ? 3 : 9);
    EXPECT_EQ(usage["cache_read_input_tokens"], 20);
  }
}

TEST(MessagesWriter, GivesAnObjectForArgumentsThatAreNone) {
  struct Case {
    std::string arguments;
    json input;
  };
  for (const Case& c :
       {Case{"", json::object()}, Case{"{", json::object()}, Case{R"({"a": 1)", json::object()},
        Case{R"({"a": 1, "b": "x, y)", {{"a", 1}}},
        Case{R"({"a": {"x": 1, "y": [1, 2)", json::object()},
        Case{R"({"a": "\",", "b": [1, 2], "c": tru)", {{"a", "\","}, {"b", {1, 2}}}},
        Case{"[1, 2]", json::object()}, Case{"nonsense, all", json::object()},
        Case{R"({"a": 1} more)", json::object()}, Case{R"({"a": oops})", json::object()},
        Case{R"({"a": 1, "a": 2})", {{"a", 1}}}}) {
    const AnswerDelta parts[] = {{Kind::kCallBegin, "f"}, {Kind::kArguments, c.arguments}};
    EXPECT_EQ(WholeOf(parts, End(), {})["content"][0]["input"], c.input) << c.arguments;
  }
}

}  // namespace
}  // namespace plumb::api
