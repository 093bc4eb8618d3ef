// api/routes_test.cc
// Which path is whose.
#include "api/routes.h"

#include <gtest/gtest.h>

namespace plumb::api {
namespace {

using net::HttpMethod;

std::vector<Route> Table() {
  return {{HttpMethod::kGet, "/", {}},
          {HttpMethod::kPost, "/v1/things", {}},
          {HttpMethod::kGet, "/v1/things", {}},
          {HttpMethod::kGet, "/v1/things/all", {}},
          {HttpMethod::kGet, "/v1/things/{}", {}},
          {HttpMethod::kPost, "/v1/things/{}/cancel", {}},
          {HttpMethod::kGet, "/v1/models/{*}", {}}};
}

std::string Pattern(HttpMethod method, std::string_view path) {
  static const std::vector<Route> table = Table();
  const FoundRoute found = FindRoute(table, method, path);
  std::string out(found.route == nullptr ? "none " + found.allowed : found.route->pattern);
  for (const std::string& name : found.names) out += " " + name;
  return out;
}

TEST(Routes, MatchesSegmentBySegment) {
  EXPECT_EQ(Pattern(HttpMethod::kGet, "/"), "/");
  EXPECT_EQ(Pattern(HttpMethod::kPost, "/v1/things"), "/v1/things");
  EXPECT_EQ(Pattern(HttpMethod::kGet, "/v1/things/all"), "/v1/things/all");
  EXPECT_EQ(Pattern(HttpMethod::kGet, "/v1/things/a"), "/v1/things/{} a");
  EXPECT_EQ(Pattern(HttpMethod::kPost, "/v1/things/a/cancel"), "/v1/things/{}/cancel a");
  EXPECT_EQ(Pattern(HttpMethod::kGet, "/v1/models/a/b"), "/v1/models/{*} a/b");
}

TEST(Routes, NothingIsGuessed) {
  for (const char* path :
       {"", "//", "/v1", "/v1/", "/v1/things/", "/v1/things//cancel", "/v1/models", "/v1/models/",
        "v1/things", "/v1/things/a/b", "/V1/things", "/v1/things?", "/v1/things/a/cancel/"})
    EXPECT_EQ(Pattern(HttpMethod::kGet, path), "none ") << path;
}

TEST(Routes, SaysWhichMethodsAPathTakes) {
  EXPECT_EQ(Pattern(HttpMethod::kHead, "/v1/things"), "/v1/things");
  EXPECT_EQ(Pattern(HttpMethod::kPut, "/v1/things"), "none POST, GET, HEAD");
  EXPECT_EQ(Pattern(HttpMethod::kPost, "/v1/things/all"), "none GET, HEAD");
}

}  // namespace
}  // namespace plumb::api
