// api/idempotency_test.cc
// The store alone: what is given again, what is refused, what is dropped when it is full; and a
// service whose callers send keys.
#include "api/idempotency.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

base::Hash256 Id(uint8_t number) {
  base::Hash256 id;
  id.bytes[0] = number;
  return id;
}

// A caller asks the question under the id.
IdempotentRequest Asked(uint8_t id, uint8_t question = 0, uint8_t caller = 0, uint64_t number = 0) {
  return {.caller = Id(caller), .id = Id(id), .question = Id(question), .number = number};
}

// Keeps `body` under the id.
void KeepAnswer(IdempotencyStore& store, uint8_t id, std::string_view body, uint8_t caller = 0) {
  auto claim = store.Ask(Asked(id, 0, caller));
  ASSERT_TRUE(claim.ok() && claim->copy != nullptr);
  claim->copy->Append(body);
  claim->copy->Keep("application/json");
}

bool IsKept(IdempotencyStore& store, uint8_t id) {
  auto claim = store.Ask(Asked(id));
  return claim.ok() && claim->answer.has_value();
}

TEST(IdempotencyKey, IsVisibleAsciiOfBoundedLength) {
  EXPECT_EQ(*IdempotencyKeyOf({}), std::nullopt);
  EXPECT_EQ(*IdempotencyKeyOf({{"idempotency-key", "\"8e03978e\""}}), "\"8e03978e\"");
  EXPECT_TRUE(IdempotencyKeyOf({{"Idempotency-Key", std::string(255, 'k')}}).ok());
  for (const std::string& bad : {std::string(), std::string("a b"), std::string("\xc3\xa4"),
                                 std::string(256, 'k'), std::string("a\0b", 3)}) {
    const auto key = IdempotencyKeyOf({{"Idempotency-Key", bad}});
    EXPECT_EQ(key.status().field(), "Idempotency-Key") << bad;
  }
}

TEST(IdempotencyStore, GivesTheFirstAnswerAgain) {
  base::ManualClock clock;
  IdempotencyStore store({}, clock);
  KeepAnswer(store, 1, "{\"x\":1}");
  for (int i = 0; i < 2; ++i) {
    auto claim = store.Ask(Asked(1));
    ASSERT_TRUE(claim.ok() && claim->answer);
    EXPECT_EQ(claim->answer->status, 200);
    EXPECT_EQ(claim->answer->body, "{\"x\":1}");
    EXPECT_EQ(claim->answer->headers.Get("Content-Type"), "application/json");
    EXPECT_EQ(claim->answer->headers.Get("Idempotent-Replayed"), "true");
  }
  EXPECT_EQ(store.bytes(), 7u);
}

TEST(IdempotencyStore, RefusesAnotherQuestionAndWhatIsRunning) {
  base::ManualClock clock;
  IdempotencyStore store({}, clock);
  {
    const auto first = store.Ask(Asked(1));
    ASSERT_TRUE(first.ok());
    const auto running = store.Ask(Asked(1));
    EXPECT_EQ(running.status().reason(), "idempotency_key_in_use");
    EXPECT_GT(running.status().retry_after_ms(), 0u);
    EXPECT_EQ(store.Ask(Asked(1, 9)).status().reason(), "idempotency_key_reused");
  }
  EXPECT_EQ(store.keys(), 0u) << "it failed, so its key is free again";
  KeepAnswer(store, 1, "x");
  EXPECT_EQ(store.Ask(Asked(1, 9)).status().reason(), "idempotency_key_reused");
}

TEST(IdempotencyStore, ForgetsAfterItsTime) {
  base::ManualClock clock;
  IdempotencyStore store({.age_max = base::Seconds(60)}, clock);
  KeepAnswer(store, 1, "x");
  clock.Advance(base::Seconds(60));
  EXPECT_TRUE(IsKept(store, 1));
  clock.Advance({1});
  EXPECT_FALSE(IsKept(store, 1));
}

TEST(IdempotencyStore, DropsTheOldestWhenItIsFull) {
  base::ManualClock clock;
  constexpr uint64_t kBytes = 64u << 10;
  IdempotencyStore by_bytes({.bytes_max = kBytes}, clock);
  const std::string body(20'000, 'x');
  for (uint8_t id = 1; id <= 5; ++id) {
    KeepAnswer(by_bytes, id, body);
    EXPECT_LE(by_bytes.bytes(), kBytes);
  }
  EXPECT_FALSE(IsKept(by_bytes, 2));
  EXPECT_TRUE(IsKept(by_bytes, 3));
  EXPECT_EQ(by_bytes.bytes(), 3 * body.size());

  IdempotencyStore by_keys({.keys_max = 2}, clock);
  for (uint8_t id = 1; id <= 3; ++id) KeepAnswer(by_keys, id, "x");
  EXPECT_EQ(by_keys.keys(), 2u);
  EXPECT_TRUE(IsKept(by_keys, 3));
  const auto running = by_keys.Ask(Asked(4));
  const auto another = by_keys.Ask(Asked(5));
  EXPECT_EQ(by_keys.Ask(Asked(6)).status().code(), base::Code::kOverloaded);
}

TEST(IdempotencyStore, ACallerCannotPushOutAnothers) {
  base::ManualClock clock;
  IdempotencyStore by_keys({.keys_max = 4, .caller_keys_max = 2}, clock);
  KeepAnswer(by_keys, 1, "x", /*caller=*/1);
  for (uint8_t id = 2; id <= 9; ++id) KeepAnswer(by_keys, id, "x", /*caller=*/2);
  EXPECT_EQ(by_keys.keys(), 3u);
  EXPECT_TRUE(IsKept(by_keys, 1));
  EXPECT_FALSE(IsKept(by_keys, 7));
  EXPECT_TRUE(IsKept(by_keys, 8));
  const auto running = by_keys.Ask(Asked(10, 0, /*caller=*/3));
  const auto another = by_keys.Ask(Asked(11, 0, /*caller=*/3));
  ASSERT_TRUE(running.ok() && another.ok());
  EXPECT_EQ(by_keys.Ask(Asked(12, 0, 3)).status().code(), base::Code::kQuotaExceeded);

  constexpr uint64_t kBytes = 64u << 10;
  IdempotencyStore by_bytes({.bytes_max = 2 * kBytes, .caller_bytes_max = kBytes}, clock);
  const std::string body(20'000, 'x');
  KeepAnswer(by_bytes, 1, body, /*caller=*/1);
  for (uint8_t id = 2; id <= 9; ++id) KeepAnswer(by_bytes, id, body, /*caller=*/2);
  EXPECT_TRUE(IsKept(by_bytes, 1));
  EXPECT_TRUE(IsKept(by_bytes, 9));
  EXPECT_EQ(by_bytes.bytes(), 4 * body.size());
  KeepAnswer(by_bytes, 10, std::string(kBytes + 1, 'x'), /*caller=*/3);
  EXPECT_FALSE(IsKept(by_bytes, 10)) << "more than a share";
  EXPECT_TRUE(IsKept(by_bytes, 1)) << "and nobody else's went for it";
}

TEST(IdempotencyStore, DropsTheOldestOfAllWhenSharesFillIt) {
  base::ManualClock clock;
  IdempotencyStore store({.keys_max = 3, .caller_keys_max = 2}, clock);
  for (uint8_t id = 1; id <= 4; ++id) KeepAnswer(store, id, "x", /*caller=*/id);
  EXPECT_EQ(store.keys(), 3u);
  EXPECT_TRUE(IsKept(store, 2));
  EXPECT_FALSE(IsKept(store, 1));
}

TEST(IdempotencyStore, DoesNotKeepWhatIsTooLarge) {
  base::ManualClock clock;
  IdempotencyStore store({.answer_bytes_max = 10}, clock);
  KeepAnswer(store, 1, "0123456789");
  KeepAnswer(store, 2, "0123456789a");
  EXPECT_TRUE(IsKept(store, 1));
  EXPECT_FALSE(IsKept(store, 2));
  EXPECT_EQ(store.bytes(), 10u);
  IdempotencyStore nothing({.bytes_max = 0}, clock);
  KeepAnswer(nothing, 1, "x");
  EXPECT_FALSE(IsKept(nothing, 1));
  EXPECT_EQ(nothing.bytes(), 0u);
}

TEST(IdempotencyStore, ForgetsWhatItIsTold) {
  base::ManualClock clock;
  IdempotencyStore store({.keys_max = 4, .caller_keys_max = 2}, clock);
  KeepAnswer(store, 1, "one", /*caller=*/1);
  KeepAnswer(store, 2, "two", /*caller=*/1);
  KeepAnswer(store, 3, "three", /*caller=*/2);
  store.Forget({Id(2)});
  store.Forget({Id(9)});
  EXPECT_FALSE(IsKept(store, 2));
  EXPECT_TRUE(IsKept(store, 1));
  EXPECT_EQ(store.bytes(), 8u);
  // Nothing of it is left in the order in which room is made.
  KeepAnswer(store, 4, "four", /*caller=*/1);
  KeepAnswer(store, 5, "five", /*caller=*/1);
  EXPECT_FALSE(IsKept(store, 1));
  EXPECT_TRUE(IsKept(store, 3));
  EXPECT_TRUE(IsKept(store, 4));
  for (const uint8_t id : {3, 4, 5}) store.Forget({Id(id)});
  EXPECT_EQ(store.keys(), 0u);
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(IdempotencyStore, ForgetsOneAnswerAndNotTheNextUnderTheSameKey) {
  base::ManualClock clock;
  IdempotencyStore store({.age_max = base::Seconds(60)}, clock);
  const auto keep = [&](uint64_t number) {
    auto claim = store.Ask(Asked(1, 0, 0, number));
    ASSERT_TRUE(claim.ok() && claim->copy != nullptr);
    claim->copy->Append("x");
    store.Forget({Id(1), number + 7});  // another's, while it is written
    claim->copy->Keep("application/json");
  };
  keep(1);
  clock.Advance(base::Seconds(61));
  keep(2);
  store.Forget({Id(1), 1});
  EXPECT_TRUE(IsKept(store, 1));
  store.Forget({Id(1), 2});
  EXPECT_FALSE(IsKept(store, 1));
}

TEST(IdempotencyStore, DoesNotKeepWhatWasForgottenWhileItWasWritten) {
  base::ManualClock clock;
  IdempotencyStore store({}, clock);
  auto claim = store.Ask(Asked(1));
  ASSERT_TRUE(claim.ok() && claim->copy != nullptr);
  claim->copy->Append("deleted");
  store.Forget({Id(1)});
  EXPECT_EQ(store.Ask(Asked(1)).status().reason(), "idempotency_key_in_use");
  claim->copy->Keep("application/json");
  EXPECT_EQ(store.keys(), 0u);
  EXPECT_EQ(store.bytes(), 0u);
  EXPECT_FALSE(IsKept(store, 1));
}

// ---- in a service ----

FakeScript Say(std::string text) {
  return [text](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens(text), .chunk_tokens = 1, .failure = {}};
  };
}

struct Answered {
  net::HttpResponse response;
  bool again = false;
};

Answered AskWithKey(ServiceFixture& fixture, const json& body, const std::string& key,
                    const char* path = "/v1/chat/completions",
                    const std::string& credential = "Bearer none-needed") {
  FakeClient client;
  fixture.Send(client, net::HttpMethod::kPost, path, body.dump(),
               {{"Content-Type", "application/json"},
                {"Authorization", credential},
                {"Idempotency-Key", key}});
  Answered answered{.response = client.Wait()};
  answered.again = answered.response.headers.Get("Idempotent-Replayed") == "true";
  return answered;
}

json Error(const net::HttpResponse& response) { return json::parse(response.body).at("error"); }

TEST(Idempotency, WholeAndStreamedAnswersComeAgain) {
  ServiceFixture fixture(Say("hello"));
  for (const bool stream : {false, true}) {
    const json body = ChatBody({{"stream", stream}});
    const std::string key = stream ? "streamed" : "whole";
    const Answered first = AskWithKey(fixture, body, key);
    ASSERT_EQ(first.response.status, 200);
    EXPECT_FALSE(first.again);
    const Answered second = AskWithKey(fixture, body, key);
    EXPECT_TRUE(second.again);
    EXPECT_EQ(second.response.body, first.response.body);
    EXPECT_EQ(second.response.headers.Get("Content-Type"),
              first.response.headers.Get("Content-Type"));
    EXPECT_NE(second.response.headers.Get("X-Request-Id"),
              first.response.headers.Get("X-Request-Id"));
  }
}

TEST(Idempotency, AnotherBodyOrEndpointIs422) {
  ServiceFixture fixture(Say("hello"));
  ASSERT_EQ(AskWithKey(fixture, ChatBody(), "k").response.status, 200);
  const Answered other = AskWithKey(fixture, ChatBody({{"seed", 1}}), "k");
  EXPECT_EQ(other.response.status, 422);
  EXPECT_EQ(Error(other.response)["code"], "idempotency_key_reused");
  EXPECT_EQ(Error(other.response)["param"], "Idempotency-Key");
  const json completion = {{"model", "fake"}, {"prompt", "x"}};
  EXPECT_EQ(AskWithKey(fixture, completion, "k", "/v1/completions").response.status, 422);
}

TEST(Idempotency, WhileItIsAnsweredItIs409) {
  ServiceFixture fixture([](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = {}, .chunk_tokens = 1, .failure = {}};  // hangs
  });
  FakeClient client;
  fixture.Send(client, net::HttpMethod::kPost, "/v1/chat/completions", ChatBody().dump(),
               {{"Content-Type", "application/json"}, {"Idempotency-Key", "k"}});
  fixture.generator.WaitLive(1);
  const Answered second = AskWithKey(fixture, ChatBody(), "k");
  EXPECT_EQ(second.response.status, 409);
  EXPECT_EQ(Error(second.response)["code"], "idempotency_key_in_use");
  EXPECT_EQ(second.response.headers.Get("Retry-After"), "1");
  client.Leave();
  client.WaitGone();
}

TEST(Idempotency, WhatFailsMayBeTriedAgainWithTheSameKey) {
  ServiceFixture fixture(Say("hello"));
  fixture.generator.Refuse(base::Status(base::Code::kOverloaded, "full"));
  for (const bool stream : {false, true}) {
    const json body = ChatBody({{"stream", stream}});
    EXPECT_EQ(AskWithKey(fixture, body, "k").response.status, 503);
  }
  fixture.generator.Refuse(base::OkStatus());
  const Answered answered = AskWithKey(fixture, ChatBody(), "k");
  EXPECT_EQ(answered.response.status, 200);
  EXPECT_FALSE(answered.again);
}

TEST(Idempotency, CallersDoNotShareKeys) {
  ServiceFixture fixture(Say("hello"), {"first-key", "second-key"});
  const char* path = "/v1/chat/completions";
  EXPECT_EQ(AskWithKey(fixture, ChatBody(), "k", path, "Bearer first-key").response.status, 200);
  const Answered other =
      AskWithKey(fixture, ChatBody({{"seed", 1}}), "k", path, "Bearer second-key");
  EXPECT_EQ(other.response.status, 200) << "neither the first's answer nor its 422";
  EXPECT_FALSE(other.again);
}

TEST(Idempotency, TheSeedIsTheKeysThoughTheAnswerIsGone) {
  GenerationOptions options;
  options.idempotency.bytes_max = 0;
  ServiceFixture fixture(Say("hello"), {}, options);
  const auto seed = [&](const char* key) {
    const Answered answered = AskWithKey(fixture, ChatBody(), key);
    EXPECT_FALSE(answered.again);
    return json::parse(answered.response.body)["plumb"]["seed"].get<int64_t>();
  };
  const int64_t first = seed("k");
  EXPECT_EQ(seed("k"), first);
  EXPECT_NE(seed("other"), first);
  EXPECT_GE(first, 0);
  EXPECT_LT(first, int64_t{1} << 53);
}

TEST(Idempotency, ABadKeyIs400) {
  ServiceFixture fixture(Say("hello"));
  const Answered answered = AskWithKey(fixture, ChatBody(), "a b");
  EXPECT_EQ(answered.response.status, 400);
  EXPECT_EQ(Error(answered.response)["param"], "Idempotency-Key");
}

}  // namespace
}  // namespace plumb::api::testing
