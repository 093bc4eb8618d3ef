// api/console_test.cc
// The console over the service: open to all, cached by content, and served so that a browser runs
// nothing but our files.
#include "api/console.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "api/embedded_files.h"
#include "api/testing/service_fixture.h"

namespace plumb::api {
namespace {

using testing::FakeClient;
using testing::ServiceFixture;

testing::FakeAnswer Silence(const engine::Request&, uint32_t) {
  return {testing::ByteTokens(""), 1, {}};
}

std::string HeaderOf(const net::HttpResponse& response, std::string_view name) {
  return std::string(response.headers.Get(name).value_or("<absent>"));
}

TEST(Console, IsServedWithoutAKeyWhereOthersNeedOne) {
  ServiceFixture fixture(Silence, {"correct-horse-battery"});
  const net::HttpResponse page = fixture.Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(HeaderOf(page, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("<!doctype html>"), page.body.npos);
  EXPECT_EQ(fixture.Get("/console/main.js").status, 200);
  EXPECT_EQ(fixture.Get("/v1/models").status, 401);
}

TEST(Console, AnswersHeadAsGet) {
  ServiceFixture fixture(Silence);
  FakeClient client;
  fixture.Send(client, net::HttpMethod::kHead, "/", "", {});
  EXPECT_EQ(client.Wait().status, 200);
}

TEST(Console, EveryFileOfThePageIsThereWithItsType) {
  ServiceFixture fixture(Silence);
  std::set<std::string_view> types;
  for (const EmbeddedFile& file : WebFiles()) {
    SCOPED_TRACE(file.name);
    EXPECT_FALSE(file.body.empty());
    EXPECT_EQ(file.etag.size(), 34u);  // 32 digits and the quotes
    types.insert(file.type);
    if (file.name == "index.html") continue;
    const net::HttpResponse response = fixture.Get("/console/" + std::string(file.name));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, file.body);
    EXPECT_EQ(HeaderOf(response, "Content-Type"), file.type);
    EXPECT_EQ(HeaderOf(response, "X-Content-Type-Options"), "nosniff");
  }
  const std::set<std::string_view> known = {"text/html; charset=utf-8", "text/css; charset=utf-8",
                                            "text/javascript; charset=utf-8", "image/svg+xml"};
  EXPECT_EQ(types, known);
  EXPECT_TRUE(std::ranges::is_sorted(WebFiles(), {}, &EmbeddedFile::name));
}

// Whatever the page names is embedded, so it needs nothing else.
TEST(Console, ThePageNamesOnlyFilesThatThereAre) {
  ServiceFixture fixture(Silence);
  const std::string html = fixture.Get("/").body;
  size_t named = 0;
  for (const std::string_view attribute : {"src=\"", "href=\""}) {
    for (size_t at = html.find(attribute); at != html.npos; at = html.find(attribute, at + 1)) {
      const size_t begin = at + attribute.size();
      const std::string link = html.substr(begin, html.find('"', begin) - begin);
      if (link.starts_with("#")) continue;
      ++named;
      EXPECT_EQ(fixture.Get("/" + link).status, 200) << link;
    }
  }
  EXPECT_GE(named, 5u);
}

TEST(Console, LetsABrowserRunOurFilesAlone) {
  ServiceFixture fixture(Silence);
  const net::HttpResponse page = fixture.Get("/");
  const std::string policy = HeaderOf(page, "Content-Security-Policy");
  for (const char* part :
       {"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';",
        "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"})
    EXPECT_NE(policy.find(part), policy.npos) << part;
  EXPECT_EQ(policy.find("unsafe"), policy.npos);
  EXPECT_EQ(policy.find('*'), policy.npos);
  EXPECT_EQ(HeaderOf(page, "X-Frame-Options"), "DENY");
  EXPECT_EQ(HeaderOf(page, "Referrer-Policy"), "no-referrer");
}

TEST(Console, IsNotSentAgainToWhoHasIt) {
  ServiceFixture fixture(Silence);
  const net::HttpResponse first = fixture.Get("/console/main.js");
  EXPECT_EQ(HeaderOf(first, "Cache-Control"), "no-cache");
  const std::string etag = HeaderOf(first, "ETag");
  const net::HttpResponse again = fixture.Get("/console/main.js", {{"If-None-Match", etag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
  EXPECT_EQ(HeaderOf(again, "ETag"), etag);
  EXPECT_NE(HeaderOf(again, "Content-Security-Policy"), "<absent>");
  EXPECT_EQ(fixture.Get("/console/main.js", {{"If-None-Match", "\"old\""}}).status, 200);
}

TEST(Console, TagsMatchAsHttpSays) {
  EXPECT_TRUE(MatchesTag("\"a\"", "\"a\""));
  EXPECT_TRUE(MatchesTag(" \"b\" ,\tW/\"a\"", "\"a\""));
  EXPECT_TRUE(MatchesTag(" * ", "\"a\""));
  EXPECT_FALSE(MatchesTag("", "\"a\""));
  EXPECT_FALSE(MatchesTag(",, ,", "\"a\""));
  EXPECT_FALSE(MatchesTag("a", "\"a\""));
  EXPECT_FALSE(MatchesTag("\"a\"b", "\"a\""));
}

TEST(Console, HasNoOtherFilesAndNoOtherMethods) {
  ServiceFixture fixture(Silence);
  for (const char* path : {"/console/", "/console/none.js", "/console/index.html", "/console",
                           "/console/../main.js", "/console/package.json", "/index.html"})
    EXPECT_EQ(fixture.Get(path).status, 404) << path;
  FakeClient client;
  fixture.Send(client, net::HttpMethod::kPost, "/", "{}");
  const net::HttpResponse refused = client.Wait();
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(HeaderOf(refused, "Allow"), "GET, HEAD");
}

}  // namespace
}  // namespace plumb::api
