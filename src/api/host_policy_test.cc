// api/host_policy_test.cc
// Which names a server without keys answers to.
#include "api/host_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plumb::api {
namespace {

using testing::HasSubstr;

bool Takes(const HostPolicy& policy, const std::string& host) {
  return policy.Check({{"Host", host}}).ok();
}

TEST(HostPolicy, ChecksNothingWhereCallersHaveKeys) {
  EXPECT_TRUE(Takes(HostPolicy(), "evil.example"));
}

TEST(HostPolicy, TakesWhatLeadsNowhereElse) {
  const HostPolicy policy = HostPolicy::Local({}).value();
  for (const char* host :
       {"localhost", "LocalHost:8000", "localhost.", "plumb.localhost:1", "127.0.0.1",
        "127.0.0.1:8000", "[::1]", "[::1]:8000", "192.168.1.5:80"}) {
    EXPECT_TRUE(Takes(policy, host)) << host;
  }
  EXPECT_TRUE(policy.Check({}).ok()) << "HTTP/1.0";
}

TEST(HostPolicy, RefusesEveryOtherName) {
  const HostPolicy policy = HostPolicy::Local({"plumb.internal"}).value();
  for (const char* host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example",
        "evillocalhost", "127.0.0.1@evil.example", "127.1", "2130706433", "0x7f000001", "", "[::1",
        "::1", "x.plumb.internal", "localhost:99999"}) {
    const base::Status status = policy.Check({{"Host", host}});
    EXPECT_EQ(status.code(), base::Code::kForbidden) << host;
    EXPECT_EQ(status.reason(), "host_not_allowed");
    EXPECT_THAT(status.message(), HasSubstr("--allowed-host"));
  }
}

TEST(HostPolicy, TakesTheNamesThatAreAllowed) {
  const HostPolicy policy = HostPolicy::Local({"Plumb.Internal", "gateway"}).value();
  for (const char* host : {"plumb.internal", "PLUMB.internal.:8000", "gateway:1"})
    EXPECT_TRUE(Takes(policy, host)) << host;
}

TEST(HostPolicy, RefusesNamesThatAreNone) {
  for (const char* name : {"", "*", "https://plumb.internal", "plumb.internal:8000", "a/b", "a b"})
    EXPECT_EQ(HostPolicy::Local({name}).status().field(), "--allowed-host") << name;
  EXPECT_FALSE(HostPolicy::Local(std::vector<std::string>(kAllowedHostsMax + 1, "a")).ok());
}

}  // namespace
}  // namespace plumb::api
