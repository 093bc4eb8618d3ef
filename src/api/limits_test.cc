// api/limits_test.cc
// Limits of a key as its caller meets them: how many requests pass, what headers say, and that
// every request is settled however it ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/testing/service_fixture.h"
#include "tenancy/local_limiter.h"

namespace plumb::api::testing {
namespace {

FakeScript Say(std::string text) {
  return [text](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text), .chunk_tokens = 1, .failure = {}};
  };
}

// Says `text`, then nothing more until it is cancelled.
FakeScript SayAndHang(std::string text) {
  return [text](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text, /*end=*/false), .chunk_tokens = 1, .failure = {}};
  };
}

using Keys = std::vector<tenancy::KeyLimits>;

// A service whose callers have limits, on a clock that stands still.
struct LimitedService {
  explicit LimitedService(Keys limits, FakeScript script = Say("ab"),
                          std::vector<std::string> keys = {}, GenerationOptions options = {})
      : limiter(limits, clock),
        fixture(std::move(script), std::move(keys), std::move(options), FixtureModel::kTemplate, {},
                {.limiter = &limiter, .clock = &clock}) {}

  uint64_t PromptTokens() { return fixture.generator.last_request().prompt.size(); }
  // What is left, as the next answer says.
  std::string Left(std::string_view what) {
    const auto response = fixture.Ask(ChatBody({{"max_tokens", 1}}));
    return std::string(response.headers.Get(fmt::format("x-ratelimit-remaining-{}", what)).value());
  }

  base::ManualClock clock;
  tenancy::LocalLimiter limiter;
  ServiceFixture fixture;
};

json Error(const net::HttpResponse& response) { return json::parse(response.body).at("error"); }

TEST(Limits, AHundredAtOnceWithRoomForFivePassFive) {
  LimitedService limited(Keys{{.requests_per_minute = 5}}, SayAndHang("x"));
  std::vector<std::unique_ptr<FakeClient>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<FakeClient>());
    limited.fixture.SendChat(*clients.back(), ChatBody());
  }
  limited.fixture.generator.WaitLive(5);
  int refused = 0;
  for (auto& client : clients) client->Leave();
  for (auto& client : clients) client->WaitGone();
  limited.fixture.WaitIdle();
  for (auto& client : clients)
    if (client->ended()) refused += client->Wait().status == 429;
  EXPECT_EQ(refused, 95);
}

TEST(Limits, HeadersAreOnAnswersAndRefusalsAlike) {
  LimitedService limited(Keys{{.requests_per_minute = 2, .tokens_per_minute = 600}});
  const net::HttpResponse first = limited.fixture.Ask(ChatBody({{"max_tokens", 100}}));
  ASSERT_EQ(first.status, 200);
  EXPECT_EQ(first.headers.Get("x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(first.headers.Get("x-ratelimit-remaining-requests"), "1");
  EXPECT_EQ(first.headers.Get("x-ratelimit-reset-requests"), "30s");
  EXPECT_EQ(first.headers.Get("x-ratelimit-limit-tokens"), "600");
  const uint64_t reserved = limited.PromptTokens() + 100;
  EXPECT_EQ(first.headers.Get("x-ratelimit-remaining-tokens"), std::to_string(600 - reserved));
  EXPECT_FALSE(first.headers.Get("x-ratelimit-limit-concurrent").has_value());

  limited.fixture.Ask(ChatBody({{"max_tokens", 1}}));
  const net::HttpResponse refused = limited.fixture.Ask(ChatBody());
  ASSERT_EQ(refused.status, 429) << refused.body;
  EXPECT_EQ(refused.headers.Get("x-ratelimit-remaining-requests"), "0");
  EXPECT_EQ(refused.headers.Get("Retry-After"), "30");
  EXPECT_TRUE(refused.headers.Get("X-Request-Id").has_value());
  EXPECT_EQ(Error(refused)["type"], "rate_limit_error");
  EXPECT_EQ(Error(refused)["code"], "rate_limit_exceeded");

  limited.clock.Advance(base::Seconds(30));
  EXPECT_EQ(limited.fixture.Ask(ChatBody({{"max_tokens", 1}})).status, 200);
}

TEST(Limits, AnAnswerCostsWhatItUsedOnceItHasEnded) {
  LimitedService limited(Keys{{.tokens_per_minute = 4000}});
  ASSERT_EQ(limited.fixture.Ask(ChatBody({{"max_tokens", 1000}})).status, 200);
  const uint64_t prompt = limited.PromptTokens();
  const uint64_t used = prompt + 3;  // "ab" and the end token
  EXPECT_EQ(limited.Left("tokens"), std::to_string(4000 - used - (prompt + 1)));
}

TEST(Limits, EveryEndIsSettled) {
  struct Case {
    const char* name;
    FakeScript script;
    bool stream;
    bool leave;
  };
  const auto fail = [](const engine::Request&, uint32_t) {
    return FakeAnswer{
        .tokens = ByteTokens("ab", false), .chunk_tokens = 1, .failure = base::Internal("broken")};
  };
  const Case cases[] = {
      {"whole", Say("ab"), false, false},
      {"streamed", Say("ab"), true, false},
      {"whole, failed", fail, false, false},
      {"streamed, failed", fail, true, false},
      {"whole, left", SayAndHang("a"), false, true},
      {"streamed, left", SayAndHang("a"), true, true},
  };
  for (const Case& one : cases) {
    LimitedService limited(Keys{{.tokens_per_minute = 1000, .concurrent_requests = 1}}, one.script);
    FakeClient client;
    limited.fixture.SendChat(client, ChatBody({{"max_tokens", 100}, {"stream", one.stream}}));
    if (one.leave) {
      limited.fixture.generator.WaitLive(1);
      if (one.stream) client.WaitBytes(1);
      client.Leave();
    } else {
      client.Wait();
    }
    client.WaitGone();
    limited.fixture.WaitIdle();
    tenancy::Reservation held;
    const auto decision = limited.limiter.Enter(held);
    EXPECT_TRUE(decision.status.ok()) << one.name << ": its place is free again";
    EXPECT_GE(decision.report.tokens.remaining, 1000 - limited.PromptTokens() - 3) << one.name;
    const bool begun = !one.leave || one.stream;  // else nobody knows
    if (begun) {
      EXPECT_LT(decision.report.tokens.remaining, 1000u) << one.name << ": what was used is gone";
    }
    limited.limiter.Settle(held, {});
  }
}

TEST(Limits, WhoLeavesBeforeItsTurnHasUsedNothing) {
  LimitedService limited(Keys{{.tokens_per_minute = 1000}}, SayAndHang(""));
  FakeClient client;
  limited.fixture.SendChat(client, ChatBody({{"max_tokens", 100}}));
  limited.fixture.generator.WaitLive(1);
  client.Leave();
  client.WaitGone();
  limited.fixture.WaitIdle();
  tenancy::Reservation held;
  EXPECT_EQ(limited.limiter.Enter(held).report.tokens.remaining, 1000u);
}

// The place is free before the client can know that its answer is complete.
TEST(Limits, OneAtATimeIsNeverRefusedToWhoeverWaits) {
  LimitedService limited(Keys{{.concurrent_requests = 1}});
  for (int i = 0; i < 200; ++i) {
    FakeClient client;
    limited.fixture.SendChat(client, ChatBody({{"stream", i % 2 == 0}}));
    ASSERT_EQ(client.Wait().status, 200) << i;
  }
}

TEST(Limits, WhatIsRefusedForOtherReasonsCosts) {
  LimitedService limited(Keys{{.requests_per_minute = 3, .tokens_per_minute = 900}});
  EXPECT_EQ(limited.fixture.Ask(ChatBody({{"temperature", 9}})).status, 400);
  EXPECT_EQ(limited.Left("requests"), "1") << "a bad request is a request";
  limited.fixture.generator.Refuse(base::Status(base::Code::kOverloaded, "full"));
  EXPECT_EQ(limited.fixture.Ask(ChatBody({{"max_tokens", 1}})).status, 503);
  limited.fixture.generator.Refuse(base::OkStatus());
  EXPECT_EQ(limited.Left("requests"), "0") << "the server's lack of room is not the caller's";
}

TEST(Limits, APromptThatNeverFitsIs400AndSaysWhy) {
  LimitedService limited(Keys{{.tokens_per_minute = 200}});
  json body = ChatBody({{"max_tokens", 1}});
  body["messages"][0]["content"] = std::string(200, 'x');
  const net::HttpResponse response = limited.fixture.Ask(body);
  ASSERT_EQ(response.status, 400);
  EXPECT_EQ(Error(response)["code"], "rate_limit_too_small");
  EXPECT_EQ(Error(response)["param"], "messages");
  EXPECT_FALSE(response.headers.Get("Retry-After").has_value());
  body["messages"][0]["content"] = std::string(170, 'x');
  EXPECT_EQ(limited.fixture.Ask(body).status, 200);
  body["n"] = 16;
  EXPECT_EQ(limited.fixture.Ask(body).status, 400) << "no room for a token of each";
}

// However long it may be, given or not, it has what its key's tokens of a minute leave.
TEST(Limits, AnAnswerGoesAsFarAsItsKeysTokens) {
  for (const json& length : {json(), json(500), json(32000)}) {
    LimitedService limited(Keys{{.tokens_per_minute = 200}}, Say(std::string(500, 'x')));
    const net::HttpResponse response = limited.fixture.Ask(ChatBody({{"max_tokens", length}}));
    ASSERT_EQ(response.status, 200) << response.body;
    const json answer = json::parse(response.body);
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(answer["usage"]["total_tokens"], 200);
    EXPECT_EQ(limited.fixture.Ask(ChatBody({{"max_tokens", 1}})).status, 429);
  }
}

// The key's limit is not the context's end, and is not called so.
TEST(Limits, MessagesSayMaxTokensWhereTheKeysTokensEnd) {
  LimitedService limited(Keys{{.tokens_per_minute = 200}}, Say(std::string(500, 'x')));
  const json body = {{"model", "fake"},
                     {"max_tokens", 32000},
                     {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  FakeClient client;
  limited.fixture.Send(client, net::HttpMethod::kPost, "/v1/messages", body.dump());
  EXPECT_EQ(json::parse(client.Wait().body)["stop_reason"], "max_tokens");
}

TEST(Limits, KeysHaveLimitsOfTheirOwn) {
  LimitedService limited(Keys{{.requests_per_minute = 1}, {}}, Say("ab"),
                         {"first-key", "second-key"});
  const auto ask = [&](const char* key) {
    FakeClient client;
    limited.fixture.Send(client, net::HttpMethod::kPost, "/v1/chat/completions", ChatBody().dump(),
                         {{"Content-Type", "application/json"}, {"x-api-key", key}});
    return client.Wait().status;
  };
  EXPECT_EQ(ask("first-key"), 200);
  EXPECT_EQ(ask("first-key"), 429);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("second-key"), 200);
}

TEST(Limits, AnthropicsClientsAreToldInTheirWords) {
  LimitedService limited(Keys{{.requests_per_minute = 1}});
  const json body = {
      {"model", "fake"}, {"max_tokens", 5}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  FakeClient client;
  limited.fixture.Send(client, net::HttpMethod::kPost, "/v1/messages", body.dump());
  EXPECT_EQ(client.Wait().headers.Get("anthropic-ratelimit-requests-remaining"), "0");
  FakeClient second;
  limited.fixture.Send(second, net::HttpMethod::kPost, "/v1/messages", body.dump());
  const net::HttpResponse& refused = second.Wait();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.Get("anthropic-ratelimit-requests-limit"), "1");
  EXPECT_EQ(refused.headers.Get("Retry-After"), "60");
  EXPECT_EQ(Error(refused)["type"], "rate_limit_error");
}

}  // namespace
}  // namespace plumb::api::testing
