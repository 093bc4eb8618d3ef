// cli/generate_line_test.cc
// What a line may ask for, by which name it is refused, and the requests it becomes.
#include "cli/generate_line.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "api/testing/byte_vocabulary.h"
#include "cli/generate_output.h"

namespace plumb::cli {
namespace {

TEST(ParseLine, NamesWhatIsWrong) {
  const struct {
    const char* line;
    const char* field;
  } kCases[] = {
      {"not json", ""},
      {"[1]", ""},
      {"{}", "messages"},
      {R"({"prompt": "x", "messages": [{"role": "user", "content": "y"}]})", "messages"},
      {R"({"messages": []})", "messages"},
      {R"({"prompt": "x", "n": 17})", "n"},
      {R"({"prompt": "x", "n": 3, "best_of": 2})", "best_of"},
      {R"({"prompt": "x", "best_of": 17})", "best_of"},
      {R"({"messages": [{"role": "user", "content": "y"}], "echo": true})", "echo"},
      {R"({"prompt": "x", "echo": 1})", "echo"},
      {R"({"prompt": "x", "prompt_logprobs": 3})", "prompt_logprobs"},
      {R"({"prompt": [1, "2"]})", "prompt[1]"},
      {R"({"prompt": [4294967296]})", "prompt[0]"},
      {R"({"prompt": [-1]})", "prompt[0]"},
      {R"({"prompt": "x", "stream": true})", "stream"},
      {R"({"prompt": "x", "deadline_ms": 5})", "deadline_ms"},
      {R"({"prompt": "x", "id": [1]})", "id"},
      {R"({"prompt": "x", "temperatur": 1})", "temperatur"},
      {R"({"prompt": "x", "seed": 1e30})", "seed"},
      {R"({"prompt": "x", "max_tokens": 0})", "max_tokens"},
  };
  for (const auto& test : kCases) {
    const auto line = ParseLine(test.line, 0, {});
    EXPECT_EQ(line.status().code(), base::Code::kInvalidArgument) << test.line;
    EXPECT_EQ(line.status().field(), test.field) << test.line;
  }
}

TEST(ParseLine, TellsTheIdOfARefusedLine) {
  std::string id;
  EXPECT_FALSE(ParseLine(R"({"id": "q7", "prompt": "x", "temperature": 9})", 0, {}, &id).ok());
  EXPECT_EQ(id, "\"q7\"");
}

TEST(BuildRequests, KeepsPromptAndAnswerWithinTheContext) {
  const auto tokenizer = api::testing::MakeByteTokenizer();
  const auto chat_format = api::testing::MakeChatFormat(*tokenizer);
  const LineModel model{*chat_format, *tokenizer, 20};
  const auto build = [&](const char* text, uint32_t standard) {
    const auto line = ParseLine(text, 0, {});
    auto requests = BuildRequests(line.value(), {.seed = 0, .tokens_max = standard}, model);
    if (!requests.ok()) return base::Result<engine::Request>(requests.status());
    return base::Result<engine::Request>(requests->front());
  };
  const auto size = static_cast<uint32_t>(build(R"({"prompt": "0123456789"})", 0)->prompt.size());
  EXPECT_EQ(build(R"({"prompt": "0123456789"})", 0)->sampling.tokens_max, 20 - size);
  EXPECT_EQ(build(R"({"prompt": "0123456789"})", 3)->sampling.tokens_max, 3u);
  EXPECT_EQ(build(R"({"prompt": "0123456789", "max_tokens": 2})", 3)->sampling.tokens_max, 2u);
  EXPECT_EQ(build(R"({"prompt": "0123456789"})", 300)->sampling.tokens_max, 20 - size);
  EXPECT_EQ(build(R"({"prompt": "0123456789", "max_tokens": 11})", 0).status().reason(),
            "context_length_exceeded");
  EXPECT_EQ(build(R"({"prompt": "01234567890123456789"})", 0).status().reason(),
            "context_length_exceeded");
}

TEST(BuildRequests, TakesTokenIdsAsTheyAre) {
  const auto tokenizer = api::testing::MakeByteTokenizer();
  const auto chat_format = api::testing::MakeChatFormat(*tokenizer);
  const LineModel model{*chat_format, *tokenizer, 20};
  const LineDefaults defaults{.vocabulary_size = tokenizer->size()};
  const auto line = ParseLine(R"({"prompt": [65, 257, 0]})", 0, defaults);
  ASSERT_TRUE(line.ok()) << line.status().ToString();
  const auto requests = BuildRequests(*line, defaults, model);
  ASSERT_TRUE(requests.ok()) << requests.status().ToString();
  EXPECT_EQ(requests->front().prompt,
            (std::vector<base::TokenId>{base::TokenId{65}, base::TokenId{257}, base::TokenId{0}}));
  EXPECT_EQ(ParseLine(R"({"prompt": [258]})", 0, defaults).status().field(), "prompt[0]");
  const auto none = ParseLine(R"({"prompt": []})", 0, defaults);
  EXPECT_EQ(BuildRequests(*none, defaults, model).status().field(), "prompt");
}

TEST(BuildRequests, ManySamplesBecomeRequestsWithSeedsOfTheirOwn) {
  const auto tokenizer = api::testing::MakeByteTokenizer();
  const auto chat_format = api::testing::MakeChatFormat(*tokenizer);
  const LineModel model{*chat_format, *tokenizer, 20};
  const LineDefaults defaults{.seed = 3, .kind = LineKind::kRollout, .samples = 37};
  const auto line = ParseLine(R"({"prompt": "x"})", 5, defaults);
  const auto requests = BuildRequests(line.value(), defaults, model);
  ASSERT_TRUE(requests.ok()) << requests.status().ToString();
  ASSERT_EQ(requests->size(), 3u);
  std::set<uint64_t> seeds;
  uint32_t samples = 0;
  for (const engine::Request& request : *requests) {
    seeds.insert(request.sampling.seed);
    samples += request.samples;
    EXPECT_TRUE(request.sampling.logprobs);
    EXPECT_EQ(request.priority, engine::Priority::kBatch);
  }
  EXPECT_EQ(samples, 37u);
  EXPECT_EQ(seeds.size(), 3u);
  const LineDefaults one{.seed = 3};
  EXPECT_EQ(ParseLine(R"({"prompt": "x"})", 5, one)->chat.sampling.seed,
            requests->front().sampling.seed)
      << "the first sixteen are those that generate gives with n = 16";
  EXPECT_EQ(BuildRequests(line.value(), defaults, model)->back().sampling.seed,
            requests->back().sampling.seed);
}

TEST(BuildRequests, BoundsWhatALineOfAnswersMayHold) {
  const auto tokenizer = api::testing::MakeByteTokenizer();
  const auto chat_format = api::testing::MakeChatFormat(*tokenizer);
  const LineModel model{*chat_format, *tokenizer, 1u << 20};
  const LineDefaults defaults{.kind = LineKind::kRollout};
  const auto build = [&](const char* text) {
    return BuildRequests(ParseLine(text, 0, defaults).value(), defaults, model).status();
  };
  EXPECT_TRUE(build(R"({"prompt": "x", "n": 1024, "max_tokens": 1000})").ok());
  EXPECT_EQ(build(R"({"prompt": "x", "n": 1024, "max_tokens": 3000})").field(), "max_tokens");
}

TEST(LineKey, DependsOnLineAndSettingsAndWhereOneEnds) {
  EXPECT_EQ(LineKey("a", "b"), LineKey("a", "b"));
  EXPECT_EQ(LineKey("a", "b").size(), 16u);
  EXPECT_NE(LineKey("a", "b"), LineKey("a", "c"));
  EXPECT_NE(LineKey("ab", "c"), LineKey("a", "bc"));
}

}  // namespace
}  // namespace plumb::cli
