// api/responses_writer_test.cc
// The same parts under every cut: the events put together are the whole answer, and the last event
// has it; every item is announced before it grows and closed before the next.
#include "api/responses_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/testing/byte_vocabulary.h"
#include "base/random.h"
#include "net/sse.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using text::AnswerDelta;
using Kind = AnswerDelta::Kind;

constexpr AnswerUsage kUsage{
    .prompt_tokens = 10, .completion_tokens = 40, .cached_tokens = 4, .reasoning_tokens = 7};

struct Recorded {
  std::vector<AnswerDelta> parts;
  SampleEnd end;
};

ResponsesPlan Plan() {
  ResponsesPlan plan;
  plan.echo = R"("store":true)";
  plan.store = true;
  plan.encrypted_reasoning = true;
  plan.tools.known = {{.told = "patch", .name = "patch", .tool_space = "", .custom = true},
                      {.told = "a__b", .name = "b", .tool_space = "a", .custom = false}};
  return plan;
}

AnswerHead Head() { return {.number = 0xABC, .model = "m", .created = 5, .seed = 7}; }

SampleEnd EndedByModel() {
  SampleEnd end;
  end.by_model = true;
  return end;
}

SampleEnd EndedByLength() {
  SampleEnd end;
  end.reason = engine::FinishReason::kLength;
  return end;
}

const std::vector<Recorded>& Answers() {
  static const std::vector<Recorded> answers = {
      {{{Kind::kContent, "Hello, 한글 😀!"}}, EndedByModel()},
      {{{Kind::kReasoning, "hm, \"x\"\n"}, {Kind::kContent, "é"}}, EndedByModel()},
      {{{Kind::kReasoning, "hm"},
        {Kind::kContent, "Look."},
        {Kind::kCallBegin, "a__b"},
        {Kind::kArguments, "{\"city\": \"R\xC3\xB6m\"}"},
        {Kind::kCallBegin, "patch"},
        {Kind::kArguments, R"({"input": "a\n\u00e9\ud83d\ude00\"b"})"},
        {Kind::kContent, "after"},
        {Kind::kCallBegin, "unknown"},
        {Kind::kArguments, "{}"}},
       EndedByModel()},
      {{{Kind::kCallBegin, "patch"}, {Kind::kArguments, "{\"other\": 1}"}}, EndedByModel()},
      {{{Kind::kCallBegin, "a__b"}, {Kind::kArguments, "{\"ci"}}, EndedByLength()},
      {{{Kind::kReasoning, "cut"}}, EndedByLength()},
      {{}, EndedByModel()},
      {{}, EndedByLength()},
  };
  return answers;
}

// A stream as a client puts it together again, with what every client relies on checked.
class Reassembled {
 public:
  explicit Reassembled(const std::string& stream) {
    net::SseParser parser(1 << 20);
    std::vector<net::SseEvent> events;
    CHECK(parser.Feed(stream, events).ok());
    for (const net::SseEvent& event : events) {
      const json data = json::parse(event.data);
      EXPECT_EQ(data["type"], event.event);
      EXPECT_EQ(data["sequence_number"], count_++);
      Take(data);
    }
  }

  json output() const {
    json out = json::array();
    for (const auto& [index, item] : items_) out.push_back(item);
    return out;
  }
  const json& last() const { return last_; }
  size_t count() const { return count_; }
  // The text of each item, joined from its deltas.
  const std::map<size_t, std::string>& texts() const { return texts_; }

 private:
  void Take(const json& data) {
    const std::string type = data["type"];
    last_ = data;
    if (type == "response.output_item.added") {
      EXPECT_FALSE(open_) << "an item within an item";
      open_ = true;
      EXPECT_EQ(data["output_index"], items_.size());
      EXPECT_EQ(data["item"]["status"], "in_progress");
      items_[data["output_index"]] = data["item"];
      texts_[data["output_index"]] = "";
    } else if (type == "response.output_item.done") {
      EXPECT_TRUE(open_);
      open_ = false;
      EXPECT_EQ(items_[data["output_index"]]["id"], data["item"]["id"]);
      items_[data["output_index"]] = data["item"];
    } else if (data.contains("item_id")) {
      EXPECT_TRUE(open_);
      EXPECT_EQ(items_[data["output_index"]]["id"], data["item_id"]);
      if (data.contains("delta")) texts_[data["output_index"]] += data["delta"];
      for (const char* whole : {"text", "arguments", "input"})
        EXPECT_EQ(data.value(whole, texts_[data["output_index"]]), texts_[data["output_index"]]);
    } else {
      EXPECT_FALSE(open_);
    }
  }

  std::map<size_t, json> items_;
  std::map<size_t, std::string> texts_;
  json last_;
  size_t count_ = 0;
  bool open_ = false;
};

struct Fixture {
  std::unique_ptr<ResponsesWriter> Writer(AnswerHead head = Head()) {
    auto writer = std::make_unique<ResponsesWriter>(std::move(head), Plan(), *tokenizer, store);
    writer->Begin("print");
    return writer;
  }
  std::string Stream(const std::vector<AnswerDelta>& parts, const SampleEnd& end) {
    const auto writer = Writer();
    std::string out;
    writer->StartStream(out);
    for (const AnswerDelta& part : parts) writer->Part(0, part, {}, out);
    writer->EndSample(0, end, out);
    writer->EndStream(kUsage, out);
    return out;
  }
  json Whole(const Recorded& recorded) {
    const SampleAnswer answer{.parts = recorded.parts, .logprobs = {}, .end = recorded.end};
    return json::parse(Writer()->Whole(std::span(&answer, 1), kUsage));
  }
  void ExpectWhole(const Recorded& recorded, const std::vector<AnswerDelta>& parts) {
    const json whole = Whole(recorded);
    const Reassembled stream(Stream(parts, recorded.end));
    EXPECT_EQ(stream.output(), whole["output"]);
    EXPECT_EQ(stream.last()["response"], whole);
    const bool cut = recorded.end.reason == engine::FinishReason::kLength;
    EXPECT_EQ(stream.last()["type"], cut ? "response.incomplete" : "response.completed");
    EXPECT_EQ(whole["status"], cut ? "incomplete" : "completed");
  }

  std::unique_ptr<text::Tokenizer> tokenizer = testing::MakeByteTokenizer();
  ResponsesStore store;
};

// Cuts a part's text in two at a character, and everything else stays.
std::vector<std::vector<AnswerDelta>> EveryCut(const std::vector<AnswerDelta>& parts) {
  std::vector<std::vector<AnswerDelta>> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == Kind::kCallBegin) continue;
    for (size_t at = 0; at <= parts[i].text.size(); ++at) {
      const bool inside = at < parts[i].text.size() && (parts[i].text[at] & 0xC0) == 0x80;
      if (inside) continue;
      std::vector<AnswerDelta> cut = parts;
      cut[i].text.resize(at);
      cut.insert(cut.begin() + static_cast<ptrdiff_t>(i) + 1,
                 {parts[i].kind, parts[i].text.substr(at)});
      out.push_back(std::move(cut));
    }
  }
  return out;
}

TEST(ResponsesWriter, AStreamIsTheWholeAnswer) {
  Fixture fixture;
  for (const Recorded& recorded : Answers()) fixture.ExpectWhole(recorded, recorded.parts);
}

TEST(ResponsesWriter, HoweverItsPartsAreCut) {
  Fixture fixture;
  for (const Recorded& recorded : Answers()) {
    for (const auto& once : EveryCut(recorded.parts)) {
      fixture.ExpectWhole(recorded, once);
      if (recorded.parts.size() > 2) continue;
      for (const auto& twice : EveryCut(once)) fixture.ExpectWhole(recorded, twice);
    }
  }
}

TEST(ResponsesWriter, UnderRandomCutsWithEmptyPartsBetween) {
  Fixture fixture;
  base::Rng rng(3);
  for (int i = 0; i < 2'000; ++i) {
    const Recorded& recorded = Answers()[rng.Below(Answers().size())];
    std::vector<AnswerDelta> parts = recorded.parts;
    for (uint64_t n = rng.Below(6); n > 0; --n) {
      const auto cuts = EveryCut(parts);
      if (!cuts.empty()) parts = cuts[rng.Below(cuts.size())];
    }
    // What the sink says of tokens whose text is still held back.
    const auto at = static_cast<ptrdiff_t>(rng.Below(parts.size() + 1));
    parts.insert(parts.begin() + at, {Kind::kContent, ""});
    fixture.ExpectWhole(recorded, parts);
  }
}

TEST(ResponsesWriter, CallsAreWhatTheirToolsAre) {
  Fixture fixture;
  const json output = fixture.Whole(Answers()[2])["output"];
  ASSERT_EQ(output.size(), 6u);
  EXPECT_EQ(output[0]["type"], "reasoning");
  EXPECT_EQ(output[0]["encrypted_content"], "plumb.open.1:hm");
  EXPECT_EQ(output[2]["type"], "function_call");
  EXPECT_EQ(output[2]["name"], "b");
  EXPECT_EQ(output[2]["namespace"], "a");
  EXPECT_EQ(output[3]["type"], "custom_tool_call");
  EXPECT_EQ(output[3]["input"], "a\n\xC3\xA9\xF0\x9F\x98\x80\"b");
  EXPECT_EQ(output[4]["content"][0]["text"], "after");
  EXPECT_EQ(output[5]["name"], "unknown");
  EXPECT_EQ(output[5]["arguments"], "{}");
}

TEST(ResponsesWriter, WhatWasCutOffIsIncomplete) {
  Fixture fixture;
  const json call = fixture.Whole(Answers()[4]);
  EXPECT_EQ(call["output"][0]["status"], "incomplete");
  EXPECT_EQ(call["incomplete_details"]["reason"], "max_output_tokens");
  const json reasoning = fixture.Whole(Answers()[5]);
  ASSERT_EQ(reasoning["output"].size(), 1u);
  EXPECT_EQ(reasoning["usage"]["output_tokens_details"]["reasoning_tokens"], 7);
}

TEST(ResponsesWriter, ACallThatACallersStopStringEndedIsIncomplete) {
  Fixture fixture;
  Recorded recorded{{{Kind::kCallBegin, "a__b"}, {Kind::kArguments, "{\"x\""}}, {}};
  recorded.end.stop = "x";
  const json whole = fixture.Whole(recorded);
  EXPECT_EQ(whole["status"], "completed");
  EXPECT_EQ(whole["output"][0]["status"], "incomplete");
}

TEST(ResponsesWriter, KeepsWhatItGave) {
  Fixture fixture;
  const json whole = fixture.Whole(Answers()[2]);
  const auto kept = fixture.store.Find({}, whole["id"]);
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(json::parse(kept->json), whole);
  ASSERT_EQ(kept->output.size(), 6u);
  EXPECT_EQ(kept->output[3]->text, "a\n\xC3\xA9\xF0\x9F\x98\x80\"b");
}

TEST(ResponsesWriter, LogprobsStandWithTheTextHoweverTheyCome) {
  Fixture fixture;
  AnswerHead head = Head();
  head.logprobs = true;
  const auto entry = [](char c) {
    return engine::TokenLogprob{
        .token = base::TokenId{static_cast<uint8_t>(c)}, .logprob = -1.0f, .top = {}};
  };
  const std::vector<engine::TokenLogprob> all = {entry('t'), entry('a'), entry('b'), entry('$')};
  const SampleAnswer answer{.parts = {{Kind::kReasoning, "t"}, {Kind::kContent, "ab"}},
                            .logprobs = all,
                            .end = EndedByModel()};
  const json whole = json::parse(fixture.Writer(head)->Whole(std::span(&answer, 1), kUsage));
  EXPECT_EQ(whole["output"][1]["content"][0]["logprobs"].size(), 4u);

  const auto writer = fixture.Writer(head);
  std::string out;
  writer->StartStream(out);
  const std::span<const engine::TokenLogprob> logprobs = all;
  writer->Part(0, {Kind::kReasoning, "t"}, logprobs.subspan(0, 1), out);
  writer->Part(0, {Kind::kContent, "a"}, logprobs.subspan(1, 1), out);
  writer->Part(0, {Kind::kContent, "b"}, logprobs.subspan(2, 1), out);
  writer->Part(0, {Kind::kContent, ""}, logprobs.subspan(3, 1), out);
  writer->EndSample(0, EndedByModel(), out);
  writer->EndStream(kUsage, out);
  EXPECT_EQ(Reassembled(out).last()["response"], whole);
}

TEST(ResponsesWriter, AFailureIsTheLastEventAndTellsWhatThereWas) {
  Fixture fixture;
  const auto writer = fixture.Writer();
  std::string out;
  writer->StartStream(out);
  writer->Part(0, {Kind::kContent, "abc"}, {}, out);
  ApiError error;
  error.message = "late";
  error.code = "server_error";
  writer->Fail(error, out);
  net::SseParser parser(1 << 20);
  std::vector<net::SseEvent> events;
  ASSERT_TRUE(parser.Feed(out, events).ok());
  const json last = json::parse(events.back().data);
  EXPECT_EQ(last["type"], "response.failed");
  EXPECT_EQ(last["response"]["error"]["code"], "server_error");
  EXPECT_EQ(last["response"]["output"][0]["status"], "incomplete");
  EXPECT_EQ(fixture.store.answers(), 0u);
}

}  // namespace
}  // namespace plumb::api
