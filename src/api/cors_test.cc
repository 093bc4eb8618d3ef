// api/cors_test.cc
// Which origins may be named, and what a browser is told of a page's call.
#include "api/cors.h"

#include <gtest/gtest.h>

#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

using net::HttpMethod;

constexpr const char* kPage = "https://chat.example.com";
constexpr const char* kKey = "key-of-at-least-eight";

FakeScript SayHello() {
  return [](const engine::Request&, uint32_t) { return FakeAnswer{.tokens = ByteTokens("hello")}; };
}

struct CorsFixture : ServiceFixture {
  explicit CorsFixture(std::vector<std::string> origins = {kPage})
      : ServiceFixture(SayHello(), {kKey}, {}, FixtureModel::kTemplate,
                       CorsPolicy::FromOrigins(std::move(origins)).value()) {}

  net::HttpResponse Ask(HttpMethod method, const std::string& path, net::HttpHeaders headers,
                        const std::string& body = "") {
    FakeClient client;
    Send(client, method, path, body, std::move(headers));
    return client.Wait();
  }
  net::HttpResponse Preflight(const std::string& path, const std::string& origin = kPage) {
    return Ask(HttpMethod::kOptions, path,
               {{"Origin", origin}, {"Access-Control-Request-Method", "POST"}});
  }
};

constexpr const char* kAllowOrigin = "Access-Control-Allow-Origin";

TEST(Cors, TakesOriginsAsBrowsersWriteThem) {
  EXPECT_TRUE(CorsPolicy::FromOrigins({"https://a.example", "http://localhost:5173",
                                       "http://[::1]:8080", "vscode-webview://1a2b"})
                  .ok());
  EXPECT_FALSE(CorsPolicy::FromOrigins({}).value().enabled());
}

TEST(Cors, OnlyPagesOfThisServerAndThoseThatMayCallAct) {
  const CorsPolicy policy = CorsPolicy::FromOrigins({kPage}).value();
  const auto may = [&](net::HttpHeaders headers) {
    return policy.MayAct({.headers = std::move(headers)});
  };
  EXPECT_TRUE(may({})) << "no page at all";
  EXPECT_TRUE(may({{"Host", "h:8000"}, {"Origin", "http://h:8000"}}));
  EXPECT_TRUE(may({{"Host", "h"}, {"Origin", "https://h"}}));
  EXPECT_TRUE(may({{"Host", "h"}, {"Origin", kPage}}));
  for (const char* origin : {"http://evil.example", "null", "http://h:8000", "http://", "h"})
    EXPECT_FALSE(may({{"Host", "h"}, {"Origin", origin}})) << origin;
  EXPECT_FALSE(may({{"Origin", "http://"}})) << "no host";
}

TEST(Cors, RefusesWhatIsNoOriginOrAllOfThem) {
  for (const std::string origin :
       {"*", "null", "", "a.example", "https://", "://a", "https://a.example/",
        "https://a.example/x", "https://A.example", "HTTPS://a.example", "https://*.example",
        "https://u@a.example", "https://a.example:443", "http://a.example:80",
        "https://a.example, https://b.example", "https://a.example\r\nX: y"}) {
    const auto policy = CorsPolicy::FromOrigins({origin});
    ASSERT_FALSE(policy.ok()) << origin;
    EXPECT_EQ(policy.status().field(), "--cors-origin") << origin;
  }
  EXPECT_FALSE(CorsPolicy::FromOrigins({"https://" + std::string(kCorsOriginBytesMax, 'a')}).ok());
  EXPECT_TRUE(
      CorsPolicy::FromOrigins(std::vector<std::string>(kCorsOriginsMax, "https://a.example")).ok());
  EXPECT_FALSE(
      CorsPolicy::FromOrigins(std::vector<std::string>(kCorsOriginsMax + 1, "https://a.example"))
          .ok());
}

TEST(Cors, APreflightNeedsNoKeyAndNamesWhatThePathTakes) {
  CorsFixture fixture;
  const net::HttpResponse post = fixture.Preflight("/v1/chat/completions");
  EXPECT_EQ(post.status, 204);
  EXPECT_EQ(post.headers.Get(kAllowOrigin), kPage);
  EXPECT_EQ(post.headers.Get("Access-Control-Allow-Methods"), "POST");
  EXPECT_EQ(post.headers.Get("Access-Control-Allow-Headers"), "Authorization, *");
  EXPECT_EQ(post.headers.Get("Vary"), "Origin");
  EXPECT_FALSE(post.headers.Get("Access-Control-Allow-Credentials"));
  EXPECT_EQ(fixture.Preflight("/v1/models").headers.Get("Access-Control-Allow-Methods"),
            "GET, HEAD");
  EXPECT_EQ(fixture.Preflight("/v1/nothing").status, 404);
  EXPECT_EQ(fixture.Ask(HttpMethod::kOptions, "/v1/models", {{"Origin", kPage}}).status, 405)
      << "no preflight without the method that it asks for";
}

TEST(Cors, OtherOriginsAreToldNothing) {
  CorsFixture fixture;
  for (const char* origin :
       {"https://evil.example", "https://chat.example.com.evil.example", "http://chat.example.com",
        "https://chat.example.com:8443", "null", "HTTPS://CHAT.EXAMPLE.COM", ""}) {
    const net::HttpResponse asked = fixture.Preflight("/v1/chat/completions", origin);
    EXPECT_EQ(asked.status, 405) << origin;
    EXPECT_FALSE(asked.headers.Get(kAllowOrigin)) << origin;
    EXPECT_EQ(asked.headers.Get("Vary"), "Origin") << origin;
  }
}

// A page must be able to read why it was refused, and streams are answers, too.
TEST(Cors, EveryAnswerToAnAllowedOriginNamesIt) {
  CorsFixture fixture;
  const net::HttpHeaders page{{"Origin", kPage}, {"Content-Type", "application/json"}};
  EXPECT_EQ(fixture.Ask(HttpMethod::kGet, "/v1/models", page).headers.Get(kAllowOrigin), kPage);
  EXPECT_EQ(fixture.Ask(HttpMethod::kGet, "/nothing", page).headers.Get(kAllowOrigin), kPage);
  net::HttpHeaders with_key = page;
  with_key.Add("Authorization", std::string("Bearer ") + kKey);
  for (const bool stream : {false, true}) {
    const net::HttpResponse answer = fixture.Ask(HttpMethod::kPost, "/v1/chat/completions",
                                                 with_key, ChatBody({{"stream", stream}}).dump());
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.headers.Get(kAllowOrigin), kPage);
    EXPECT_EQ(answer.headers.Count("Vary"), 1u);
    EXPECT_TRUE(answer.headers.Get("Access-Control-Expose-Headers").has_value());
  }
}

TEST(Cors, IsOffByDefault) {
  CorsFixture fixture(std::vector<std::string>{});
  const net::HttpResponse asked = fixture.Preflight("/v1/chat/completions");
  EXPECT_EQ(asked.status, 405);
  EXPECT_FALSE(asked.headers.Get(kAllowOrigin));
  EXPECT_FALSE(asked.headers.Get("Vary"));
}

}  // namespace
}  // namespace plumb::api::testing
