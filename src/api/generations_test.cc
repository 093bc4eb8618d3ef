// api/generations_test.cc
// A chat request from body to answer over the scripted generator: shapes, chunking, failures,
// clients that leave, limits. No sockets: the exchange is a fake.
#include "api/generations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

constexpr const char* kText =
    "na\xC3\xAFve \xED\x95\x9C\xEA\xB8\x80 \xF0\x9F\x98\x80 <b>\"x\"</b>\n";

// Every sample answers `text`, so many tokens an event.
FakeScript Say(std::string text, uint32_t chunk_tokens = 1) {
  return [text, chunk_tokens](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text), .chunk_tokens = chunk_tokens, .failure = {}};
  };
}

// Says `text`, then nothing more until it is cancelled.
FakeScript SayAndHang(std::string text) {
  return [text](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text, /*end=*/false), .chunk_tokens = 1, .failure = {}};
  };
}

json Error(const net::HttpResponse& response) { return json::parse(response.body).at("error"); }

TEST(Generations, WholeAnswerHasOpenAIsShape) {
  ServiceFixture fixture(Say(kText));
  const net::HttpResponse response = fixture.Ask(ChatBody({{"seed", -5}}));
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.Get("Content-Type"), "application/json");
  EXPECT_TRUE(response.headers.Get("X-Request-Id").has_value());
  const json answer = json::parse(response.body);
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "fake");
  EXPECT_EQ(answer["system_fingerprint"], "plumb-test");
  EXPECT_EQ(answer["plumb"]["seed"], -5);
  const json& choice = answer["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], kText);
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["logprobs"].is_null());
  const uint64_t prompt = fixture.generator.last_request().prompt.size();
  EXPECT_EQ(answer["usage"]["prompt_tokens"], prompt);
  EXPECT_EQ(answer["usage"]["completion_tokens"], std::string(kText).size() + 1);
  EXPECT_EQ(answer["usage"]["total_tokens"], prompt + std::string(kText).size() + 1);
  EXPECT_EQ(answer["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  EXPECT_EQ(answer["usage"]["prompt_cache_hit_tokens"], 0) << "DeepSeek's words for the same";
  EXPECT_EQ(answer["usage"]["prompt_cache_miss_tokens"], prompt);
}

TEST(Generations, PromptIsTheTemplatesTextAsTokens) {
  ServiceFixture fixture(Say("x"));
  fixture.Ask(ChatBody());
  std::vector<base::TokenId> expected = {kStartToken};
  for (const base::TokenId token : ByteTokens("user\nhi")) expected.push_back(token);
  for (const base::TokenId token : ByteTokens("\n", false)) expected.push_back(token);
  expected.push_back(kStartToken);
  for (const base::TokenId token : ByteTokens("assistant\n", false)) expected.push_back(token);
  EXPECT_EQ(fixture.generator.last_request().prompt, expected);
}

TEST(Generations, StreamUnderAnyChunkingIsTheWholeAnswer) {
  const std::string text = kText;
  for (uint32_t chunk = 0; chunk <= text.size() + 1; ++chunk) {
    ServiceFixture fixture(Say(text, chunk));
    const json options = {{"n", 2}, {"logprobs", true}, {"top_logprobs", 2}, {"seed", 3}};
    const json whole = json::parse(fixture.Ask(ChatBody(options)).body);
    json stream_options = options;
    stream_options["stream"] = true;
    stream_options["stream_options"] = {{"include_usage", true}};
    const net::HttpResponse response = fixture.Ask(ChatBody(stream_options));
    ASSERT_EQ(response.status, 200) << response.body;
    EXPECT_EQ(response.headers.Get("Content-Type"), "text/event-stream; charset=utf-8");
    const Streamed streamed = PutTogether(response.body, 2);
    EXPECT_TRUE(streamed.done);
    EXPECT_EQ(streamed.seed, 3);
    EXPECT_EQ(streamed.usage, whole["usage"]);
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(streamed.choices[i].content, text) << "chunk " << chunk;
      EXPECT_EQ(streamed.choices[i].content, whole["choices"][i]["message"]["content"]);
      EXPECT_EQ(streamed.choices[i].logprobs, whole["choices"][i]["logprobs"]["content"]);
      EXPECT_EQ(streamed.choices[i].finish_reason, whole["choices"][i]["finish_reason"]);
    }
  }
}

TEST(Generations, EachTokenHasItsLogprobOnceAlsoWhenItsTextIsHeldBack) {
  for (uint32_t chunk = 0; chunk <= 12; ++chunk) {
    ServiceFixture fixture(Say("ab\xF0\x9F\x98\x80 stop here", chunk));
    const json body = ChatBody({{"logprobs", true}, {"stop", " stop"}, {"stream", true}});
    const Streamed streamed = PutTogether(fixture.Ask(body).body, 1);
    const StreamedChoice& choice = streamed.choices[0];
    EXPECT_EQ(choice.content, "ab\xF0\x9F\x98\x80");
    EXPECT_EQ(choice.finish_reason, "stop");
    ASSERT_EQ(choice.logprobs.size(), 11u) << "chunk " << chunk;
    EXPECT_EQ(choice.logprobs[0]["token"], "a");
    EXPECT_EQ(choice.logprobs[0]["bytes"], json::array({'a'}));
    EXPECT_EQ(choice.logprobs[2]["token"], "\xEF\xBF\xBD");
    EXPECT_EQ(choice.logprobs[2]["bytes"], json::array({0xF0}));
    EXPECT_FLOAT_EQ(choice.logprobs[0]["logprob"], FakeGenerator::Logprob(base::TokenId{'a'}));
  }
}

TEST(Generations, EndTokenIsShownByNameWithoutBytes) {
  ServiceFixture fixture(Say("a"));
  const json answer = json::parse(fixture.Ask(ChatBody({{"logprobs", true}})).body);
  const json& entries = answer["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1]["token"], "<|im_end|>");
  EXPECT_TRUE(entries[1]["bytes"].is_null());
}

TEST(Generations, MaxTokensEndsWithLength) {
  ServiceFixture fixture(Say("abcdef"));
  const json answer = json::parse(fixture.Ask(ChatBody({{"max_tokens", 3}})).body);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "abc");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["completion_tokens"], 3);
}

TEST(Generations, WithoutMaxTokensTheContextIsTheBound) {
  ServiceFixture fixture(Say("x"));
  fixture.Ask(ChatBody());
  const engine::Request request = fixture.generator.last_request();
  EXPECT_EQ(request.sampling.tokens_max, kContextMax - request.prompt.size());
}

TEST(Generations, MissingSeedIsDrawnAndReported) {
  ServiceFixture fixture(Say("x"));
  const json answer = json::parse(fixture.Ask(ChatBody()).body);
  EXPECT_EQ(answer["plumb"]["seed"], fixture.generator.last_request().sampling.seed);
  const json again = json::parse(fixture.Ask(ChatBody()).body);
  EXPECT_NE(answer["plumb"]["seed"], again["plumb"]["seed"]);
  EXPECT_NE(answer["id"], again["id"]);
}

TEST(Generations, PromptBeyondTheContextIs400WithBothCounts) {
  ServiceFixture fixture(Say("x"));
  const std::string content(kContextMax, 'x');
  json body = ChatBody();
  body["messages"][0]["content"] = content;
  const net::HttpResponse response = fixture.Ask(body);
  EXPECT_EQ(response.status, 400);
  const json error = Error(response);
  EXPECT_EQ(error["code"], "context_length_exceeded");
  EXPECT_EQ(error["param"], "messages");
  const std::string message = error["message"];
  EXPECT_NE(message.find(std::to_string(kContextMax)), std::string::npos) << message;
  EXPECT_NE(message.find(std::to_string(kContextMax + 19)), std::string::npos) << message;
}

TEST(Generations, ALengthBeyondTheContextIsWhatTheContextLeaves) {
  ServiceFixture fixture(Say(std::string(kContextMax, 'x')));
  const std::pair<const char*, json> asked[] = {
      {"/v1/chat/completions", ChatBody({{"max_tokens", 2147483647}})},
      {"/v1/chat/completions", ChatBody({{"max_completion_tokens", 32000}, {"n", 2}})},
      {"/v1/completions", {{"model", "fake"}, {"prompt", "hi"}, {"max_tokens", 32000}}},
      {"/v1/completions", {{"model", "fake"}, {"prompt", {"a", "long"}}, {"max_tokens", 32000}}},
      {"/v1/responses", {{"model", "fake"}, {"input", "hi"}, {"max_output_tokens", 32000}}},
      {"/v1/messages",
       {{"model", "fake"},
        {"max_tokens", 32000},
        {"messages", {{{"role", "user"}, {"content", "hi"}}}}}}};
  for (const auto& [path, body] : asked) {
    FakeClient client;
    fixture.Send(client, net::HttpMethod::kPost, path, body.dump());
    EXPECT_EQ(client.Wait().status, 200) << path << " " << body << client.Wait().body;
    client.WaitGone();
    const engine::Request request = fixture.generator.last_request();
    EXPECT_EQ(request.sampling.tokens_max, kContextMax - request.prompt.size()) << path;
  }
}

TEST(Generations, UnknownModelIs404AndAliasesAreKnown) {
  ServiceFixture fixture(Say("x"));
  const net::HttpResponse response = fixture.Ask(ChatBody({{"model", "gpt-4"}}));
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(Error(response)["code"], "model_not_found");
  EXPECT_EQ(Error(response)["param"], "model");
  const json answer = json::parse(fixture.Ask(ChatBody({{"model", "alias/of-fake"}})).body);
  EXPECT_EQ(answer["model"], "alias/of-fake");
}

TEST(Generations, WholeAnswersBoundTheirLogprobs) {
  ServiceFixture fixture(Say("x"), {}, {.whole_logprobs_max = 100});
  const json body = ChatBody({{"logprobs", true}, {"max_tokens", 101}});
  EXPECT_EQ(Error(fixture.Ask(body))["param"], "logprobs");
  json streamed = body;
  streamed["stream"] = true;
  EXPECT_EQ(fixture.Ask(streamed).status, 200);
}

TEST(Generations, RefusalOfTheGeneratorKeepsItsRetryAfter) {
  ServiceFixture fixture(Say("x"));
  fixture.generator.Refuse(
      base::Status(base::Code::kOverloaded, "the queue is full").WithRetryAfterMs(2500));
  for (const bool stream : {false, true}) {
    const net::HttpResponse response = fixture.Ask(ChatBody({{"stream", stream}}));
    EXPECT_EQ(response.status, 503);
    EXPECT_EQ(response.headers.Get("Retry-After"), "3");
    EXPECT_EQ(Error(response)["type"], "server_error");
  }
}

TEST(Generations, FailureBeforeTheFirstTokenIsAnHttpStatus) {
  const FakeScript script = [](const engine::Request&, uint32_t) {
    return FakeAnswer{.failure = base::Status(base::Code::kDeadline, "too late")};
  };
  ServiceFixture fixture(script);
  for (const bool stream : {false, true}) {
    const net::HttpResponse response = fixture.Ask(ChatBody({{"stream", stream}}));
    EXPECT_EQ(response.status, 504);
    EXPECT_EQ(Error(response)["code"], "deadline_exceeded");
  }
}

TEST(Generations, FailureInMidStreamIsAnErrorEventAndTheOtherSamplesEnd) {
  const FakeScript script = [](const engine::Request&, uint32_t sample_index) {
    FakeAnswer answer{.tokens = ByteTokens("abc", false)};
    if (sample_index == 0) answer.failure = base::Internal("page 7 at 0x7fffdeadbeef is torn");
    return answer;
  };
  ServiceFixture fixture(script);
  const net::HttpResponse response = fixture.Ask(ChatBody({{"stream", true}, {"n", 2}}));
  EXPECT_EQ(response.status, 200);
  const std::vector<std::string> events = StreamData(response.body);
  const json last = json::parse(events.back());
  EXPECT_EQ(last["error"]["type"], "server_error");
  EXPECT_EQ(response.body.find("0x7fff"), std::string::npos) << "an inner message leaked";
  EXPECT_EQ(fixture.generator.live(), 0u);
  fixture.WaitIdle();
}

TEST(Generations, ClientThatLeavesCancelsAtOnceAndLeavesNothingBehind) {
  for (const bool stream : {false, true}) {
    ServiceFixture fixture(SayAndHang("abc"));
    FakeClient client;
    fixture.SendChat(client, ChatBody({{"stream", stream}, {"n", 3}}));
    fixture.generator.WaitLive(1);
    if (stream) client.WaitBytes(1);
    client.Leave();
    client.WaitGone();
    fixture.generator.WaitLive(0);
    EXPECT_GE(fixture.generator.cancels(), 1u);
    fixture.WaitIdle();
  }
}

TEST(Generations, ABurstComesBackToZero) {
  ServiceFixture fixture(Say("hello"));
  std::vector<FakeClient> clients(200);
  for (size_t i = 0; i < clients.size(); ++i) {
    fixture.SendChat(clients[i], ChatBody({{"stream", i % 2 == 0}}));
    if (i % 3 == 0) clients[i].Leave();
  }
  for (FakeClient& client : clients) client.WaitGone();
  fixture.WaitIdle();
  EXPECT_EQ(fixture.generator.live(), 0u);
}

TEST(Generations, RefusesWhatDoesNotFitAtTheDoor) {
  ServiceFixture fixture(SayAndHang("abc"), {}, {.live_max = 2});
  FakeClient clients[2];
  for (FakeClient& client : clients) fixture.SendChat(client, ChatBody());
  const net::HttpResponse response = fixture.Ask(ChatBody());
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.Get("Retry-After"), "2");
  for (FakeClient& client : clients) client.Leave();
  for (FakeClient& client : clients) client.WaitGone();
}

TEST(Generations, RefusesBodiesBeyondTheQueuesBytes) {
  ServiceFixture fixture(Say("x"), {}, {.queue_bytes_max = 10});
  EXPECT_EQ(fixture.Ask(ChatBody()).status, 503);
}

TEST(Generations, StopEndsWhatRunsWithAnError) {
  ServiceFixture fixture(SayAndHang("abc"));
  FakeClient whole;
  fixture.SendChat(whole, ChatBody());
  FakeClient streamed;
  fixture.SendChat(streamed, ChatBody({{"stream", true}}));
  fixture.generator.WaitLive(2);
  streamed.WaitBytes(1);
  fixture.service.Stop();
  EXPECT_EQ(whole.Wait().status, 503);
  EXPECT_EQ(json::parse(StreamData(streamed.Wait().body).back())["error"]["code"],
            "server_stopping");
  EXPECT_EQ(fixture.Ask(ChatBody()).status, 503) << "a stopped service refuses";
}

TEST(Generations, DeadlineIsTheServersUnlessTheCallersIsShorter) {
  ServiceFixture fixture(Say("x"));
  const base::Instant before = fixture.clock.Now();
  fixture.Ask(ChatBody());
  EXPECT_GE(fixture.generator.last_request().deadline, before + base::Seconds(600));
  fixture.Ask(ChatBody({{"deadline_ms", 1000}}));
  EXPECT_LT(fixture.generator.last_request().deadline, fixture.clock.Now() + base::Seconds(2));
}

}  // namespace
}  // namespace plumb::api::testing
