// api/chunking_test.cc
// An answer does not depend on the pieces in which its tokens came: recorded answers under every
// split of at most three cuts between tokens and under random splits between bytes, in every API,
// streamed and put together again, and whole. All must be what the answer in one piece is.
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
#include "api/testing/messages_stream.h"
#include "api/testing/recorded_answers.h"
#include "api/testing/service_fixture.h"
#include "base/random.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using testing::FakeClient;
using testing::RecordedAnswer;

constexpr uint64_t kSeed = 20261130;
constexpr uint32_t kRandomSplits = 10'000;  // in each API, over all answers
constexpr uint64_t kNumber = 77;

// One API: what it is asked, and what its answers come to.
struct Api {
  std::string_view name;
  json (*body)(const RecordedAnswer& answer);
  json (*of_whole)(const json& answer);
  json (*of_stream)(std::string_view body);
};

json Weather() { return {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}}; }
json Note() { return {{"type", "object"}, {"properties", {{"input", {{"type", "string"}}}}}}; }

json ChatBody(const RecordedAnswer& answer) {
  json body = {{"model", "fake"},
               {"max_tokens", answer.bytes_max},
               {"messages", {{{"role", "user"}, {"content", "go"}}}}};
  if (!answer.stop.empty()) body["stop"] = answer.stop;
  if (!answer.tools) return body;
  const auto tool = [](std::string_view name, const json& schema) -> json {
    return {{"type", "function"}, {"function", {{"name", name}, {"parameters", schema}}}};
  };
  body["tools"] = {tool("get_weather", Weather()), tool("note", Note())};
  return body;
}

json ChatOfWhole(const json& answer) {
  const json& choice = answer["choices"][0];
  const json& message = choice["message"];
  return {{"content", message["content"].is_null() ? json("") : message["content"]},
          {"reasoning", message.value("reasoning_content", "")},
          {"calls", message.value("tool_calls", json::array())},
          {"end", choice["finish_reason"]}};
}

json ChatOfStream(std::string_view body) {
  const testing::Streamed stream = testing::PutTogether(body, 1);
  CHECK(stream.done) << body;
  const testing::StreamedChoice& choice = stream.choices[0];
  return {{"content", choice.content},
          {"reasoning", choice.reasoning},
          {"calls", choice.tool_calls},
          {"end", choice.finish_reason}};
}

json CompletionBody(const RecordedAnswer& answer) {
  json body = {{"model", "fake"}, {"max_tokens", answer.bytes_max}, {"prompt", "go"}};
  if (!answer.stop.empty()) body["stop"] = answer.stop;
  return body;
}

json CompletionOfWhole(const json& answer) {
  const json& choice = answer["choices"][0];
  return {{"text", choice["text"]}, {"end", choice["finish_reason"]}};
}

json CompletionOfStream(std::string_view body) {
  std::string text;
  json end;
  for (const std::string& data : testing::StreamData(body)) {
    if (data == "[DONE]") continue;
    const json choice = json::parse(data)["choices"][0];
    CHECK(end.is_null()) << "a chunk after the end: " << data;
    text += choice["text"].get<std::string>();
    end = choice["finish_reason"];
  }
  return {{"text", text}, {"end", end}};
}

json ResponsesBody(const RecordedAnswer& answer) {
  json body = {{"model", "fake"},
               {"max_output_tokens", answer.bytes_max},
               {"store", false},
               {"input", "go"}};
  if (!answer.stop.empty()) body["stop"] = answer.stop;
  if (answer.tools) {
    body["tools"] = {{{"type", "function"}, {"name", "get_weather"}, {"parameters", Weather()}},
                     {{"type", "custom"}, {"name", "note"}}};
  }
  return body;
}

json Same(const json& answer) { return answer; }

// The last event's response; the deltas of each item must add up to what stands in it.
json ResponseOfStream(std::string_view body) {
  std::vector<std::string> texts;
  json response;
  for (const std::string& data : testing::StreamData(body)) {
    const json event = json::parse(data);
    const std::string type = event["type"];
    if (type.ends_with(".delta")) {
      texts.resize(std::max<size_t>(texts.size(), event["output_index"].get<size_t>() + 1));
      texts[event["output_index"]] += event["delta"].get<std::string>();
    } else if (type == "response.completed" || type == "response.incomplete") {
      response = event["response"];
    }
  }
  CHECK(!response.is_null()) << body;
  for (size_t i = 0; i < response["output"].size(); ++i) {
    const json& item = response["output"][i];
    std::string text;
    for (const json& part : item.value("content", json::array()))
      text += part["text"].get<std::string>();
    text += item.value("arguments", "") + item.value("input", "");
    CHECK(text == (i < texts.size() ? texts[i] : "")) << body;
  }
  return response;
}

json MessagesBody(const RecordedAnswer& answer) {
  json body = {{"model", "fake"},
               {"max_tokens", answer.bytes_max},
               {"thinking", {{"type", "adaptive"}}},
               {"messages", {{{"role", "user"}, {"content", "go"}}}}};
  if (!answer.stop.empty()) body["stop_sequences"] = {answer.stop};
  if (answer.tools) {
    body["tools"] = {{{"name", "get_weather"}, {"input_schema", Weather()}},
                     {{"name", "note"}, {"input_schema", Note()}}};
  }
  return body;
}

constexpr Api kApis[] = {
    {"chat", ChatBody, ChatOfWhole, ChatOfStream},
    {"completions", CompletionBody, CompletionOfWhole, CompletionOfStream},
    {"responses", ResponsesBody, Same, ResponseOfStream},
    {"messages", MessagesBody, Same, testing::MessageOfStream},
};

// The path of a request from its body to its answer, on one thread.
class Player {
 public:
  explicit Player(std::string_view api) : dialect_(Make(api)) {}

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
    plan.parsers.push_back(request.prompts.empty() ? format_->NewParser(prompt)
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
      prompt = format_->Encode(request.input, testing::kContextMax).value();
    } else {
      prompt.tokens = testing::ByteTokens(request.prompts[0].text, /*end=*/false);
    }
    return prompt;
  }

  std::unique_ptr<Dialect> Make(std::string_view api) {
    const RequestLimits limits{.vocabulary_size = tokenizer_->size(),
                               .abilities = format_->abilities()};
    if (api == "chat") return std::make_unique<ChatDialect>(limits, *tokenizer_);
    if (api == "completions") return std::make_unique<CompletionDialect>(limits, *tokenizer_);
    if (api == "messages") return std::make_unique<MessagesDialect>(limits, MessagesUse::kAnswer);
    CHECK(api == "responses") << api;
    return std::make_unique<ResponsesDialect>(limits, *tokenizer_, store_);
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = testing::MakeDeepseekTokenizer();
  const std::unique_ptr<text::ChatFormat> format_ = testing::MakeDeepseekFormat(*tokenizer_);
  ResponsesStore store_;
  const std::unique_ptr<Dialect> dialect_;
  const Fingerprints fingerprints_{"plumb-test"};
  const base::SystemClock clock_;
  std::map<std::string, text::ChatPrompt> prompts_;  // by body
  testing::FakeAnswer answer_;
  testing::FakeGenerator generator_{*tokenizer_,
                                    [this](const engine::Request&, uint32_t) { return answer_; }};
};

// One recorded answer in one API: what it comes to in one piece, and whether it does in others.
class Case {
 public:
  Case(const Api& api, const RecordedAnswer& answer, Player& player)
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
  const Api& api_;
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

class Chunking : public ::testing::TestWithParam<Api> {};

TEST_P(Chunking, NoSplitOfAtMostThreeCutsChangesAnAnswer) {
  Player player(GetParam().name);
  for (const RecordedAnswer& answer : testing::RecordedAnswers()) {
    Case one(GetParam(), answer, player);
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
  Player player(GetParam().name);
  base::Rng rng(kSeed);
  const auto& answers = testing::RecordedAnswers();
  std::vector<Case> cases;
  for (const RecordedAnswer& answer : answers) cases.emplace_back(GetParam(), answer, player);
  for (uint32_t i = 0; i < kRandomSplits && !HasFailure(); ++i) {
    const size_t chosen = i % cases.size();
    const auto bytes = static_cast<uint32_t>(Player::BytesOf(answers[chosen]).size());
    const uint64_t rarity = 1 + rng.Below(32);  // from a cut at every byte to hardly one
    std::vector<uint32_t> cuts;
    for (uint32_t at = 1; at < bytes; ++at)
      if (rng.Below(rarity) == 0) cuts.push_back(at);
    cases[chosen].Check(ChunksOf(cuts));
  }
}

// That the answers are what they are recorded for, and not nothing in every API.
TEST_P(Chunking, AnswersHoldWhatTheyAreFor) {
  Player player(GetParam().name);
  for (const RecordedAnswer& answer : testing::RecordedAnswers()) {
    const Case one(GetParam(), answer, player);
    const std::string shown = one.expected().dump();
    EXPECT_NE(shown.find(answer.holds), shown.npos) << answer.name << ": " << shown;
    const bool chat = std::string_view(GetParam().name) != "completions";  // that reads no markup
    EXPECT_TRUE(!chat || shown.find(answer.lacks) == shown.npos) << answer.name << ": " << shown;
    EXPECT_EQ(shown.find("\xEF\xBF\xBD"), shown.npos) << answer.name << ": " << shown;
  }
}

INSTANTIATE_TEST_SUITE_P(Apis, Chunking, ::testing::ValuesIn(kApis),
                         [](const auto& api) { return std::string(api.param.name); });

}  // namespace
}  // namespace plumb::api
