// api/service_admission_test.cc
// What a service says of a header before the body comes: the same as of the whole request.
#include <gtest/gtest.h>

#include <string>

#include "api/service.h"
#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

using net::HttpMethod;

constexpr const char* kKey = "key-of-at-least-eight";
constexpr const char* kOtherKey = "another-key-of-some-length";

FakeScript SayHello() {
  return [](const engine::Request&, uint32_t) { return FakeAnswer{.tokens = ByteTokens("hello")}; };
}

net::HttpHeaders WithKey(net::HttpHeaders headers, const char* key = kKey) {
  headers.Add("Authorization", std::string("Bearer ") + key);
  return headers;
}

net::HttpRequest Head(HttpMethod method, std::string path, net::HttpHeaders headers) {
  return {.method = method,
          .path = std::move(path),
          .query = "",
          .headers = std::move(headers),
          .body = "",
          .peer = ""};
}

TEST(ServiceAdmission, RefusesWhatTheWholeRequestWouldBeRefusedFor) {
  const net::HttpHeaders json_type = {{"Content-Type", "application/json"}};
  struct Case {
    HttpMethod method;
    const char* path;
    net::HttpHeaders headers;
    int status;
  };
  const Case cases[] = {
      {HttpMethod::kPost, "/v1/chat/completions", json_type, 401},
      {HttpMethod::kPost, "/v1/files", json_type, 401},
      {HttpMethod::kPost, "/v1/messages", WithKey(json_type, "no-such-key-here"), 401},
      {HttpMethod::kPost, "/v1/nothing", WithKey(json_type), 404},
      {HttpMethod::kPost, "/v1/files", WithKey(json_type), 404},
      {HttpMethod::kPut, "/v1/chat/completions", WithKey(json_type), 405},
      {HttpMethod::kPost, "/v1/chat/completions", WithKey({{"Content-Type", "text/plain"}}), 415},
      {HttpMethod::kPost, "/v1/chat/completions",
       WithKey({{"Content-Type", "application/json"}, {"Content-Encoding", "gzip"}}), 415},
      {HttpMethod::kDelete, "/v1/responses/resp_1",
       WithKey({{"Host", "h"}, {"Origin", "http://evil.example"}}), 403},
  };
  for (const Case& refused : cases) {
    ServiceFixture fixture(SayHello(), {kKey});
    auto admission = fixture.service.Admit(Head(refused.method, refused.path, refused.headers));
    ASSERT_TRUE(admission.answer.has_value()) << refused.path;
    EXPECT_EQ(admission.answer->status, refused.status) << refused.path;
    EXPECT_TRUE(admission.answer->headers.Get("X-Request-Id").has_value());
    FakeClient client;
    fixture.Send(client, refused.method, refused.path, "{}", refused.headers);
    const net::HttpResponse whole = client.Wait();
    EXPECT_EQ(whole.status, refused.status) << refused.path;
    const json early = json::parse(admission.answer->body);
    const json late = json::parse(whole.body);
    EXPECT_EQ(early["error"]["message"], late["error"]["message"]) << refused.path;
  }
}

TEST(ServiceAdmission, CountsWhatItRefuses) {
  ServiceFixture fixture(SayHello(), {kKey});
  fixture.service.Admit(Head(HttpMethod::kPost, "/v1/embeddings", {}));
  EXPECT_EQ(fixture.metrics.api.requests.At("/v1/embeddings", "401").value(), 1u);
}

TEST(ServiceAdmission, LetsInWhoHasAKeyOnAnAccountOfItsOwn) {
  ServiceFixture fixture(SayHello(), {kKey, kOtherKey});
  const net::HttpHeaders json_type = {{"Content-Type", "application/json"}};
  const auto admit = [&](HttpMethod method, const char* path, net::HttpHeaders headers) {
    return fixture.service.Admit(Head(method, path, std::move(headers)));
  };
  const auto one = admit(HttpMethod::kPost, "/v1/chat/completions", WithKey(json_type));
  const auto same = admit(HttpMethod::kPost, "/v1/messages", WithKey(json_type));
  const auto other = admit(HttpMethod::kPost, "/v1/embeddings", WithKey(json_type, kOtherKey));
  for (const auto* admission : {&one, &same, &other}) {
    EXPECT_FALSE(admission->answer.has_value());
    EXPECT_NE(admission->account, 0u);
    EXPECT_EQ(admission->body_bytes_max, UINT64_MAX) << "the server's own limit holds";
  }
  EXPECT_EQ(one.account, same.account);
  EXPECT_NE(one.account, other.account);
  const auto models = admit(HttpMethod::kGet, "/v1/models", WithKey({}));
  EXPECT_EQ(models.body_bytes_max, kIgnoredBodyBytesMax);
  const auto health = admit(HttpMethod::kGet, "/health", {});
  EXPECT_FALSE(health.answer.has_value());
  EXPECT_EQ(health.body_bytes_max, 0u) << "no key, so nothing is received";
}

TEST(ServiceAdmission, HasNoAccountsWithoutKeys) {
  ServiceFixture fixture(SayHello());
  const auto admission = fixture.service.Admit(
      Head(HttpMethod::kPost, "/v1/chat/completions", {{"Content-Type", "application/json"}}));
  EXPECT_FALSE(admission.answer.has_value());
  EXPECT_EQ(admission.account, 0u);
}

TEST(ServiceAdmission, IsRefusedInTheShapeOfItsDialectAndOrigin) {
  const char* page = "https://chat.example.com";
  ServiceFixture fixture(SayHello(), {kKey}, {}, FixtureModel::kTemplate,
                         CorsPolicy::FromOrigins({page}).value());
  const auto admission =
      fixture.service.Admit(Head(HttpMethod::kPost, "/v1/messages", {{"Origin", page}}));
  ASSERT_TRUE(admission.answer.has_value());
  EXPECT_EQ(admission.answer->headers.Get("Access-Control-Allow-Origin"), page);
  EXPECT_EQ(json::parse(admission.answer->body)["type"], "error") << "Anthropic's shape";
}

TEST(ServiceAdmission, WhatTakesNoBodyGetsNoLargeOne) {
  ServiceFixture fixture(SayHello());
  for (const size_t bytes : {kIgnoredBodyBytesMax, kIgnoredBodyBytesMax + 1}) {
    FakeClient client;
    fixture.Send(client, HttpMethod::kGet, "/v1/models", std::string(bytes, 'x'));
    EXPECT_EQ(client.Wait().status, bytes > kIgnoredBodyBytesMax ? 413 : 200);
  }
}

}  // namespace
}  // namespace plumb::api::testing
