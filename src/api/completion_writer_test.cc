// api/completion_writer_test.cc
// Texts and columns: streamed as whole, however parts are cut and whenever the prompt's
// log-probabilities come.
#include "api/completion_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/testing/byte_vocabulary.h"
#include "net/sse.h"

namespace plumb::api {
namespace {

using engine::TokenLogprob;
using nlohmann::json;
using testing::ByteTokens;

constexpr AnswerUsage kUsage{.prompt_tokens = 6, .completion_tokens = 9, .cached_tokens = 0};
const std::string kPrompt = "Grüß";
const std::string kAnswer = "né 한!";

class CompletionWriterTest : public ::testing::Test {
 protected:
  static std::vector<TokenLogprob> Logprobs(const std::string& text, size_t from) {
    std::vector<TokenLogprob> out;
    const auto tokens = ByteTokens(text, /*end=*/false);
    for (size_t i = from; i < tokens.size(); ++i)
      out.push_back({tokens[i], -0.5f * static_cast<float>(i), {}});
    return out;
  }

  CompletionWriter Writer(CompletionShape shape) {
    std::vector<EchoedPrompt> prompts = {{kPrompt, ByteTokens(kPrompt, /*end=*/false)}};
    CompletionWriter writer({.number = 5, .model = "m", .created = 0, .seed = 9}, shape,
                            std::move(prompts), *tokenizer_);
    writer.Begin("fp");
    return writer;
  }

  json Whole(CompletionShape shape) {
    CompletionWriter writer = Writer(shape);
    writer.PromptLogprobs(0, Logprobs(kPrompt, 1));
    const SampleAnswer answer{.parts = {{text::AnswerDelta::Kind::kContent, kAnswer}},
                              .logprobs = Logprobs(kAnswer, 0),
                              .end = End()};
    const std::vector<SampleAnswer> answers(shape.samples, answer);
    return json::parse(writer.Whole(answers, kUsage));
  }

  static SampleEnd End() {
    return {.reason = engine::FinishReason::kStop, .by_model = true, .stop = {}};
  }

  // A stream of one byte's token an event; the text comes with the tokens that complete it. The
  // prompt's log-probabilities come before event `known_at`.
  std::string Stream(CompletionShape shape, size_t known_at) {
    CompletionWriter writer = Writer(shape);
    std::string out;
    writer.StartStream(out);
    text::Detokenizer detokenizer(*tokenizer_);
    const auto logprobs = Logprobs(kAnswer, 0);
    const auto prompt = Logprobs(kPrompt, 1);
    for (size_t i = 0; i <= logprobs.size(); ++i) {
      if (i == known_at) {  // in two pieces
        writer.PromptLogprobs(0, std::span(prompt).first(2));
        writer.PromptLogprobs(0, std::span(prompt).subspan(2));
      }
      if (i == logprobs.size()) break;
      const std::string text = detokenizer.Push(logprobs[i].token);
      for (uint32_t sample = 0; sample < shape.samples; ++sample) {
        writer.Part(sample, {text::AnswerDelta::Kind::kContent, text},
                    std::span(logprobs).subspan(i, 1), out);
      }
    }
    for (uint32_t sample = 0; sample < shape.samples; ++sample)
      writer.EndSample(sample, End(), out);
    writer.EndStream(kUsage, out);
    return out;
  }

  // The choices of a stream as a whole answer has them.
  static json Joined(const std::string& stream) {
    net::SseParser parser(1 << 20);
    std::vector<net::SseEvent> events;
    EXPECT_TRUE(parser.Feed(stream, events).ok());
    EXPECT_EQ(events.back().data, "[DONE]");
    json choices = json::array();
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const json event = json::parse(events[i].data);
      for (const json& piece : event["choices"]) {
        const size_t index = piece["index"];
        while (choices.size() <= index) {
          choices.push_back({{"text", ""},
                             {"index", choices.size()},
                             {"logprobs", nullptr},
                             {"finish_reason", nullptr}});
        }
        json& choice = choices[index];
        EXPECT_TRUE(choice["finish_reason"].is_null()) << "a piece after the end";
        choice["text"] = choice["text"].get<std::string>() + piece["text"].get<std::string>();
        choice["finish_reason"] = piece["finish_reason"];
        if (piece["logprobs"].is_null()) continue;
        if (choice["logprobs"].is_null()) choice["logprobs"] = json::object();
        for (const auto& [name, column] : piece["logprobs"].items())
          for (const json& entry : column) choice["logprobs"][name].push_back(entry);
      }
    }
    return choices;
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
};

TEST_F(CompletionWriterTest, StreamedIsWholeWheneverThePromptIsKnown) {
  for (const bool logprobs : {false, true}) {
    for (const bool echo : {false, true}) {
      const CompletionShape shape{.choices = 2, .samples = 2, .logprobs = logprobs, .echo = echo};
      const json whole = Whole(shape)["choices"];
      for (size_t known_at = 0; known_at <= Logprobs(kAnswer, 0).size(); ++known_at)
        EXPECT_EQ(Joined(Stream(shape, known_at)), whole) << known_at;
    }
  }
}

TEST_F(CompletionWriterTest, OffsetsCountCharactersOfTheText) {
  const json echoed = Whole({.logprobs = true, .echo = true})["choices"][0];
  EXPECT_EQ(echoed["text"], kPrompt + kAnswer);
  // G r ü ü ß ß n é é " " 한 한 한 !
  EXPECT_EQ(echoed["logprobs"]["text_offset"], json({0, 1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 7, 7, 8}));
  const json alone = Whole({.logprobs = true})["choices"][0];
  EXPECT_EQ(alone["logprobs"]["text_offset"], json({0, 1, 1, 2, 3, 3, 3, 4}));
}

TEST_F(CompletionWriterTest, WhatWasGeneratedForAnEmptyAnswerIsDropped) {
  const CompletionShape shape{.logprobs = true, .echo = true, .empty = true};
  const json whole = Whole(shape);
  EXPECT_EQ(whole["choices"][0]["text"], kPrompt);
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(whole["choices"][0]["logprobs"]["tokens"].size(), kPrompt.size());
  EXPECT_EQ(whole["usage"]["completion_tokens"], 0);
  EXPECT_EQ(Joined(Stream(shape, 0)), whole["choices"]);
}

TEST_F(CompletionWriterTest, TheLikeliestOfSeveralComeFirst) {
  CompletionWriter writer = Writer({.choices = 2, .samples = 3});
  std::vector<SampleAnswer> answers(3);
  const float logprobs[] = {-3.0f, -1.0f, -1.0f};
  for (size_t i = 0; i < answers.size(); ++i) {
    answers[i].parts = {{text::AnswerDelta::Kind::kContent, std::to_string(i)}};
    answers[i].logprobs.assign(i + 1, {base::TokenId{0}, logprobs[i], {}});
  }
  const json whole = json::parse(writer.Whole(answers, kUsage));
  ASSERT_EQ(whole["choices"].size(), 2u);
  EXPECT_EQ(whole["choices"][0]["text"], "1");  // of equals the first
  EXPECT_EQ(whole["choices"][1]["text"], "2");
  EXPECT_EQ(whole["choices"][1]["index"], 1);
}

TEST_F(CompletionWriterTest, AlternativesOfOneTextStandOnce) {
  LegacyLogprobs columns(*tokenizer_);
  const base::TokenId a{'a'};
  columns.Add({a, -2.0f, {{a, -1.0f}, {base::TokenId{'b'}, -1.5f}, {a, -9.0f}}}, 0);
  EXPECT_EQ(json::parse(columns.Json())["top_logprobs"], json({{{"a", -1.0}, {"b", -1.5}}}));
}

TEST_F(CompletionWriterTest, TokensThatTheTextDoesNotShowHaveNoWidth) {
  const std::vector<base::TokenId> tokens = {testing::kStartToken, base::TokenId{'a'},
                                             base::TokenId{'b'}};
  EXPECT_EQ(PromptOffsets(tokens, "ab", *tokenizer_), (std::vector<uint64_t>{0, 0, 1}));
  EXPECT_EQ(PromptOffsets(tokens, "<|im_start|>ab", *tokenizer_),
            (std::vector<uint64_t>{0, 12, 13}));
}

}  // namespace
}  // namespace plumb::api
