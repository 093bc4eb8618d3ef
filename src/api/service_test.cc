// api/service_test.cc
// Routes, methods, keys, request ids, draining and what is counted, over the scripted generator.
#include "api/service.h"

#include <gtest/gtest.h>

#include <string>

#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

using net::HttpMethod;

constexpr const char* kKey = "key-of-at-least-eight";

FakeScript SayHello() {
  return [](const engine::Request&, uint32_t) { return FakeAnswer{.tokens = ByteTokens("hello")}; };
}

net::HttpHeaders Bearer(const std::string& key) {
  return {{"Authorization", "Bearer " + key}, {"Content-Type", "application/json"}};
}

const net::HttpHeaders kJsonType = {{"Content-Type", "application/json"}};

net::HttpResponse Send(ServiceFixture& fixture, HttpMethod method, const std::string& path,
                       const std::string& body = "", net::HttpHeaders headers = kJsonType) {
  FakeClient client;
  fixture.Send(client, method, path, body, std::move(headers));
  return client.Wait();
}

TEST(Service, RoutesByExactPathAndMethod) {
  ServiceFixture fixture(SayHello());
  EXPECT_EQ(fixture.Get("/health").status, 200);
  EXPECT_EQ(fixture.Get("/ready").status, 200);
  EXPECT_EQ(fixture.Get("/metrics").status, 200);
  EXPECT_EQ(fixture.Get("/v1/models").status, 200);
  for (const char* path : {"/console", "/v1", "/v1/", "/health/", "//health", "/Health", "/v1/chat",
                           "*", "/v1/models/", "/v1/chat/completions/", "/v1//chat/completions"}) {
    const net::HttpResponse response = fixture.Get(path);
    EXPECT_EQ(response.status, 404) << path;
    const json error = json::parse(response.body).at("error");
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_TRUE(error["param"].is_null());
  }
}

TEST(Service, WrongMethodIs405WithAllow) {
  ServiceFixture fixture(SayHello());
  const net::HttpResponse get = fixture.Get("/v1/chat/completions");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.headers.Get("Allow"), "POST");
  const net::HttpResponse remove = Send(fixture, HttpMethod::kDelete, "/v1/models/fake");
  EXPECT_EQ(remove.status, 405);
  EXPECT_EQ(remove.headers.Get("Allow"), "GET, HEAD");
  EXPECT_EQ(json::parse(remove.body)["error"]["type"], "invalid_request_error");
  EXPECT_EQ(Send(fixture, HttpMethod::kHead, "/v1/chat/completions").status, 405);
}

TEST(Service, TakesHeadWhereItTakesGet) {
  ServiceFixture fixture(SayHello(), {kKey});
  EXPECT_EQ(Send(fixture, HttpMethod::kHead, "/health").status, 200);
  EXPECT_EQ(Send(fixture, HttpMethod::kHead, "/v1/models").status, 401) << "a key all the same";
  for (const char* path : {"/v1/models", "/v1/models/fake", "/metrics"}) {
    EXPECT_EQ(Send(fixture, HttpMethod::kHead, path, "", Bearer(kKey)).status, 200) << path;
  }
}

TEST(Service, ListsTheModelUnderEachName) {
  ServiceFixture fixture(SayHello());
  const json list = json::parse(fixture.Get("/v1/models").body);
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0]["id"], "fake");
  EXPECT_EQ(list["data"][0]["object"], "model");
  EXPECT_EQ(json::parse(fixture.Get("/v1/models/alias/of-fake").body)["id"], "alias/of-fake");
  const net::HttpResponse missing = fixture.Get("/v1/models/gpt-4");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(json::parse(missing.body)["error"]["code"], "model_not_found");
}

TEST(Service, EachKeyIsATenantThatSharesNoComputedPages) {
  const std::string body =
      R"({"model": "fake", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9})";
  const std::string other = "another-key-of-eight";
  ServiceFixture fixture(SayHello(), {kKey, other});
  const auto isolation = [&](const net::HttpHeaders& headers) {
    EXPECT_EQ(Send(fixture, HttpMethod::kPost, "/v1/chat/completions", body, headers).status, 200);
    return fixture.generator.last_request().isolation;
  };
  const base::Hash256 first = isolation(Bearer(kKey));
  EXPECT_NE(first, isolation(Bearer(other)));
  // The key decides, not how the scheme is written or what else the caller sends.
  EXPECT_EQ(first, isolation({{"Authorization", std::string("bearer ") + kKey},
                              {"Content-Type", "application/json"},
                              {"X-Request-Id", "mine"}}));
  EXPECT_NE(first, base::Hash256());
  // Without keys everybody is one tenant, whatever is sent.
  ServiceFixture open(SayHello());
  EXPECT_EQ(Send(open, HttpMethod::kPost, "/v1/chat/completions", body, Bearer(kKey)).status, 200);
  EXPECT_EQ(open.generator.last_request().isolation, base::Hash256());
}

TEST(Service, WithKeysEverythingButHealthAndReadyNeedsOne) {
  ServiceFixture fixture(SayHello(), {kKey});
  EXPECT_EQ(fixture.Get("/health").status, 200);
  EXPECT_EQ(fixture.Get("/ready").status, 200);
  for (const char* path : {"/v1/models", "/v1/models/fake", "/metrics"}) {
    for (const net::HttpHeaders& headers : {net::HttpHeaders{}, Bearer("wrong-key-of-some-length"),
                                            net::HttpHeaders{{"Authorization", kKey}}}) {
      const net::HttpResponse response = fixture.Get(path, headers);
      EXPECT_EQ(response.status, 401) << path;
      EXPECT_EQ(json::parse(response.body)["error"]["type"], "authentication_error");
      EXPECT_EQ(response.headers.Get("WWW-Authenticate"), "Bearer");
    }
    EXPECT_EQ(fixture.Get(path, Bearer(kKey)).status, 200) << path;
  }
  const std::string body = ChatBody().dump();
  EXPECT_EQ(Send(fixture, HttpMethod::kPost, "/v1/chat/completions", body).status, 401);
  EXPECT_EQ(Send(fixture, HttpMethod::kPost, "/v1/chat/completions", body, Bearer(kKey)).status,
            200);
  EXPECT_EQ(fixture.generator.live(), 0u);
}

TEST(Service, ReadySaysWhyNotAndHealthStaysGreen) {
  ServiceFixture fixture(SayHello());
  fixture.ready = base::Status(base::Code::kUnavailable, "the engine makes no progress");
  const net::HttpResponse stuck = fixture.Get("/ready");
  EXPECT_EQ(stuck.status, 503);
  EXPECT_TRUE(stuck.headers.Get("Retry-After").has_value());
  EXPECT_EQ(json::parse(stuck.body)["reason"], "the engine makes no progress");
  fixture.ready = base::Internal("thread 0x1234 died in /srv/plumb");
  EXPECT_EQ(fixture.Get("/ready").body.find("0x1234"), std::string::npos);
  EXPECT_EQ(fixture.Get("/health").status, 200);
}

TEST(Service, DrainingRefusesNewAndFinishesOld) {
  const FakeScript hang = [](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens("hel", false)};
  };
  ServiceFixture fixture(hang);
  FakeClient old;
  fixture.SendChat(old, ChatBody({{"stream", true}}));
  old.WaitBytes(1);
  fixture.service.BeginDrain();
  const net::HttpResponse refused = fixture.Ask(ChatBody());
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers.Get("Retry-After"), "5");
  EXPECT_EQ(json::parse(refused.body)["error"]["code"], "server_stopping");
  EXPECT_EQ(fixture.Get("/ready").status, 503);
  EXPECT_EQ(fixture.Get("/health").status, 200);
  EXPECT_EQ(fixture.service.live_requests(), 1u) << "the running stream goes on";
  old.Leave();
  old.WaitGone();
}

TEST(Service, BodyMustBeDeclaredAsJson) {
  ServiceFixture fixture(SayHello());
  const std::string body = ChatBody().dump();
  for (const char* type :
       {"text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    const net::HttpHeaders headers = {{"Content-Type", type}};
    EXPECT_EQ(Send(fixture, HttpMethod::kPost, "/v1/chat/completions", body, headers).status, 415);
  }
  EXPECT_EQ(Send(fixture, HttpMethod::kPost, "/v1/chat/completions", body, {}).status, 415);
  const net::HttpHeaders utf8 = {{"Content-Type", "Application/JSON ; charset=utf-8"}};
  EXPECT_EQ(Send(fixture, HttpMethod::kPost, "/v1/chat/completions", body, utf8).status, 200);
}

TEST(Service, AnAnswerThatItsCallerCancelsIsNoFaultOfTheServers) {
  for (const bool removed : {false, true}) {
    ServiceFixture fixture([](const engine::Request&, uint32_t) {
      return FakeAnswer{.tokens = ByteTokens("hel", false)};
    });
    const json asked = {{"model", "fake"}, {"input", "hi"}, {"background", true}};
    FakeClient client;  // its exchange is kept until the answer has ended
    fixture.Send(client, HttpMethod::kPost, "/v1/responses", asked.dump(), kJsonType);
    const net::HttpResponse queued = client.Wait();
    ASSERT_EQ(queued.status, 200) << queued.body;
    const std::string path = "/v1/responses/" + json::parse(queued.body)["id"].get<std::string>();
    const net::HttpResponse ended = removed ? Send(fixture, HttpMethod::kDelete, path)
                                            : Send(fixture, HttpMethod::kPost, path + "/cancel");
    EXPECT_EQ(ended.status, 200) << ended.body;
    fixture.WaitIdle();
    EXPECT_EQ(fixture.metrics.api.requests.At("/v1/responses", "499").value(), 1u);
    EXPECT_EQ(fixture.metrics.api.requests.At("/v1/responses", "503").value(), 0u);
  }
}

TEST(Service, WhatTheServersEndCutsOffIs503) {
  ServiceFixture fixture([](const engine::Request&, uint32_t) {
    return FakeAnswer{.tokens = ByteTokens("hel", false)};
  });
  const json asked = {{"model", "fake"}, {"input", "hi"}, {"background", true}};
  FakeClient client;  // as above
  fixture.Send(client, HttpMethod::kPost, "/v1/responses", asked.dump(), kJsonType);
  ASSERT_EQ(client.Wait().status, 200);
  fixture.service.Stop();
  EXPECT_EQ(fixture.metrics.api.requests.At("/v1/responses", "503").value(), 1u);
  EXPECT_EQ(fixture.metrics.api.requests.At("/v1/responses", "499").value(), 0u);
}

TEST(Service, RequestIdIsTheClientsWhenItIsHarmless) {
  ServiceFixture fixture(SayHello());
  EXPECT_EQ(fixture.Get("/health", {{"X-Request-Id", "abc-1.2_3"}}).headers.Get("X-Request-Id"),
            "abc-1.2_3");
  for (const std::string& bad : {std::string("a b"), std::string("a\r\nb"), std::string(""),
                                 std::string(129, 'a'), std::string("\xC3\xA9")}) {
    const net::HttpResponse response = fixture.Get("/health", {{"X-Request-Id", bad}});
    const auto id = response.headers.Get("X-Request-Id");
    ASSERT_TRUE(id.has_value());
    EXPECT_NE(*id, bad);
    EXPECT_TRUE(id->starts_with("req-"));
  }
}

TEST(Service, RefusalsOfTheTransportSpeakTheDialect) {
  ServiceFixture fixture(SayHello());
  const net::HttpResponse response =
      fixture.service.FormatRefusal({.status = 413, .message = "the body is larger than 8 bytes"});
  EXPECT_EQ(response.status, 413);
  fixture.service.BeginDrain();
  const net::HttpResponse draining =
      fixture.service.FormatRefusal({.status = 503, .message = "shutting down"});
  EXPECT_EQ(json::parse(draining.body)["error"]["code"], "server_stopping");
  EXPECT_EQ(draining.headers.Get("Retry-After"), "5");
  EXPECT_EQ(json::parse(response.body)["error"]["type"], "invalid_request_error");
}

TEST(Service, CountsAnswersByRouteAndStatus) {
  ServiceFixture fixture(SayHello());
  fixture.Ask(ChatBody());
  fixture.Ask(ChatBody({{"temperature", 9}}));
  fixture.Get("/nowhere/with/secrets");
  const std::string text = fixture.Get("/metrics").body;
  EXPECT_NE(text.find("plumb_http_requests_total"), std::string::npos);
  EXPECT_NE(text.find("/v1/chat/completions"), std::string::npos);
  EXPECT_EQ(text.find("secrets"), std::string::npos);
  EXPECT_EQ(fixture.metrics.api.requests.At("/v1/chat/completions", "200").value(), 1u);
  EXPECT_EQ(fixture.metrics.api.requests.At("/v1/chat/completions", "400").value(), 1u);
}

TEST(Service, ShowsWhatTheTokenCacheSaved) {
  ServiceFixture fixture(SayHello());
  const std::string text(100, 'a');
  const json message = {{"role", "user"}, {"content", text}};
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(fixture.Ask(ChatBody({{"messages", {message}}})).status, 200);
  EXPECT_NE(fixture.Get("/metrics").body.find("plumb_token_cache_hit_bytes_total"),
            std::string::npos);
  const telemetry::ApiMetrics& metrics = fixture.metrics.api;
  EXPECT_GE(metrics.token_cache_hit_bytes.value(), text.size());
  EXPECT_GE(metrics.token_cache_miss_bytes.value(), text.size());
  EXPECT_GT(metrics.token_cache_bytes.value(), 0);
  EXPECT_GT(metrics.token_cache_entries.value(), 0);
}

}  // namespace
}  // namespace plumb::api::testing
