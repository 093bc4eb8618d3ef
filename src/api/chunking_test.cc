// api/chunking_test.cc
// An answer does not depend on the pieces in which its tokens came: recorded answers of every
// syntax of calls, under every split of at most three cuts between tokens and under random splits
// between bytes, in every API, streamed and put together again, and whole. All must be what the
// answer in one piece is.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_sink.h"
#include "api/chat_prompt.h"
#include "api/testing/answer_apis.h"
#include "api/testing/recorded_answers.h"
#include "api/testing/scripted_server.h"
#include "api/testing/service_fixture.h"
#include "base/random.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using testing::AnswerApi;
using testing::FakeClient;
using testing::RecordedAnswer;

constexpr uint64_t kSeed = 20261130;
constexpr uint32_t kRandomSplits = 10'000;  // in each API and of each model, over its answers
constexpr uint64_t kNumber = 77;

// The path of a request from its body to its answer, on one thread.
class Player {
 public:
  Player(std::string_view api, std::string_view model)
      : model_(model == "deepseek" ? testing::DeepseekModel() : testing::ToolModel(model)),
        dialect_(Make(api)) {}

  // The answer's body when the tokens come in chunks of these sizes.
  std::string Play(const std::string& body, const RecordedAnswer& answer,
                   std::vector<uint32_t> chunks) {
    auto read = dialect_->Read(body, {}).value();
    GenerationRequest& request = read.request;
    text::ChatPrompt prompt = PromptOf(body, request);
    AnswerPlan plan{.writer = read.writer({.number = kNumber, .model = request.model},
                                          {ReadPrompt{prompt.tokens}}),
                    .stream = request.stream,
                    .fingerprints = &fingerprints_,
                    .parsers = {},
                    .prompt_stops = prompt.stops};
    plan.parsers.push_back(request.prompts.empty() ? format_.NewParser(prompt)
                                                   : std::make_unique<text::PlainAnswerParser>());
    engine::Request built{};
    CHECK(ApplyPrompt(request, std::move(prompt), nullptr, built).ok());
    built.sampling.tokens_max = request.tokens_max.value();
    built.samples = 1;
    answer_ = {.tokens = BytesOf(answer), .chunk_tokens = 0, .chunks = std::move(chunks)};
    FakeClient client;
    auto sink =
        std::make_unique<AnswerSink>(engine::RequestId{}, "test", *dialect_, client.MakeExchange(),
                                     generator_, clock_, [](const AnswerSink::Summary&) {});
    sink->Begin(std::move(plan));
    CHECK(generator_.Submit(std::move(built), sink->prompt(0)).ok());
    while (generator_.Step()) {
    }
    sink.reset();
    return client.Wait().body;
  }

  static std::vector<base::TokenId> BytesOf(const RecordedAnswer& answer) {
    std::string text;
    for (const std::string_view token : answer.tokens) text += token;
    return testing::ByteTokens(text);
  }

 private:
  const text::ChatPrompt& PromptOf(const std::string& body, const GenerationRequest& request) {
    const auto [place, added] = prompts_.try_emplace(body);
    text::ChatPrompt& prompt = place->second;
    if (!added) return prompt;
    if (request.prompts.empty()) {
      prompt = format_.Encode(request.input, testing::kContextMax).value();
    } else {
      prompt.tokens = testing::ByteTokens(request.prompts[0].text, /*end=*/false);
    }
    return prompt;
  }

  std::unique_ptr<Dialect> Make(std::string_view api) {
    const RequestLimits limits{.vocabulary_size = tokenizer_.size(),
                               .abilities = format_.abilities()};
    if (api == "chat") return std::make_unique<ChatDialect>(limits, tokenizer_);
    if (api == "completions") return std::make_unique<CompletionDialect>(limits, tokenizer_);
    if (api == "messages") return std::make_unique<MessagesDialect>(limits, MessagesUse::kAnswer);
    CHECK(api == "responses") << api;
    return std::make_unique<ResponsesDialect>(limits, tokenizer_, store_);
  }

  const testing::ScriptedModel model_;
  const text::Tokenizer& tokenizer_ = *model_.tokenizer;
  const text::ChatFormat& format_ = *model_.chat_format;
  ResponsesStore store_;
  const std::unique_ptr<Dialect> dialect_;
  const Fingerprints fingerprints_{"plumb-test"};
  const base::SystemClock clock_;
  std::map<std::string, text::ChatPrompt> prompts_;  // by body
  testing::FakeAnswer answer_;
  testing::FakeGenerator generator_{tokenizer_,
                                    [this](const engine::Request&, uint32_t) { return answer_; }};
};

// One recorded answer in one API: what it comes to in one piece, and whether it does in others.
class Case {
 public:
  Case(const AnswerApi& api, const RecordedAnswer& answer, Player& player)
      : api_(api), answer_(answer), player_(player) {
    json body = api.body(answer);
    whole_body_ = body.dump();
    body["stream"] = true;
    stream_body_ = body.dump();
    expected_whole_ = player.Play(whole_body_, answer, {});
    expected_ = api.of_whole(json::parse(expected_whole_));
  }
  const json& expected() const { return expected_; }

  void Check(const std::vector<uint32_t>& chunks) {
    const std::string whole = player_.Play(whole_body_, answer_, chunks);
    const json joined = api_.of_stream(player_.Play(stream_body_, answer_, chunks));
    if (whole == expected_whole_ && joined == expected_) return;
    std::string sizes;
    for (const uint32_t chunk : chunks) sizes += " " + std::to_string(chunk);
    ADD_FAILURE() << api_.name << ", " << answer_.name << ", chunks of bytes:" << sizes
                  << "\nin one piece " << expected_whole_ << "\nwhole " << whole << "\nstreamed "
                  << joined;
  }

 private:
  const AnswerApi& api_;
  const RecordedAnswer& answer_;
  Player& player_;
  std::string whole_body_;
  std::string stream_body_;
  std::string expected_whole_;  // to the byte
  json expected_;
};

// Chunks that end at these places, which rise; what is left comes in one.
std::vector<uint32_t> ChunksOf(const std::vector<uint32_t>& cuts) {
  std::vector<uint32_t> chunks(cuts.size());
  std::adjacent_difference(cuts.begin(), cuts.end(), chunks.begin());
  return chunks;
}

// Places between tokens, as counts of bytes before; the last is before the end token.
std::vector<uint32_t> EndsOf(const RecordedAnswer& answer) {
  std::vector<uint32_t> ends;
  uint32_t bytes = 0;
  for (const std::string_view token : answer.tokens)
    ends.push_back(bytes += static_cast<uint32_t>(token.size()));
  return ends;
}

using Param = std::tuple<AnswerApi, std::string_view>;  // and a model

class Chunking : public ::testing::TestWithParam<Param> {
 protected:
  const AnswerApi& api() const { return std::get<0>(GetParam()); }
  const std::vector<RecordedAnswer> answers_ =
      testing::RecordedAnswers(std::get<std::string_view>(GetParam()));
  Player player_{api().name, std::get<std::string_view>(GetParam())};
};

TEST_P(Chunking, NoSplitOfAtMostThreeCutsChangesAnAnswer) {
  for (const RecordedAnswer& answer : answers_) {
    Case one(api(), answer, player_);
    one.Check({});
    const std::vector<uint32_t> ends = EndsOf(answer);
    for (size_t a = 0; a < ends.size() && !HasFailure(); ++a) {
      one.Check(ChunksOf({ends[a]}));
      for (size_t b = a + 1; b < ends.size(); ++b) {
        one.Check(ChunksOf({ends[a], ends[b]}));
        for (size_t c = b + 1; c < ends.size(); ++c)
          one.Check(ChunksOf({ends[a], ends[b], ends[c]}));
      }
    }
  }
}

TEST_P(Chunking, NoRandomSplitChangesAnAnswer) {
  RecordProperty("seed", std::to_string(kSeed));
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  base::Rng rng(kSeed);
  std::vector<Case> cases;
  for (const RecordedAnswer& answer : answers_) cases.emplace_back(api(), answer, player_);
  for (uint32_t i = 0; i < kRandomSplits && !HasFailure(); ++i) {
    const size_t chosen = i % cases.size();
    const auto bytes = static_cast<uint32_t>(Player::BytesOf(answers_[chosen]).size());
    const uint64_t rarity = 1 + rng.Below(32);  // from a cut at every byte to hardly one
    std::vector<uint32_t> cuts;
    for (uint32_t at = 1; at < bytes; ++at)
      if (rng.Below(rarity) == 0) cuts.push_back(at);
    cases[chosen].Check(ChunksOf(cuts));
  }
}

// That the answers are what they are recorded for, and not nothing in every API.
TEST_P(Chunking, AnswersHoldWhatTheyAreFor) {
  for (const RecordedAnswer& answer : answers_) {
    const Case one(api(), answer, player_);
    const std::string shown = one.expected().dump();
    EXPECT_NE(shown.find(answer.holds), shown.npos) << answer.name << ": " << shown;
    const bool chat = api().name != "completions";  // that reads no markup
    EXPECT_TRUE(!chat || shown.find(answer.lacks) == shown.npos) << answer.name << ": " << shown;
    EXPECT_EQ(shown.find("\xEF\xBF\xBD"), shown.npos) << answer.name << ": " << shown;
  }
}

std::string NameOf(const ::testing::TestParamInfo<Param>& info) {
  std::string name(std::get<std::string_view>(info.param));
  std::ranges::replace(name, '-', '_');
  return name + "_" + std::string(std::get<0>(info.param).name);
}

INSTANTIATE_TEST_SUITE_P(Apis, Chunking,
                         ::testing::Combine(::testing::ValuesIn(testing::kAnswerApis),
                                            ::testing::Values("deepseek", "hermes", "llama",
                                                              "mistral", "mistral-named",
                                                              "thinking")),
                         NameOf);

}  // namespace
}  // namespace plumb::api
