// tenancy/api_key_test.cc
// Who gets in, who does not, and what a refusal gives away.
#include "tenancy/api_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumb::tenancy {
namespace {

using base::Code;
using testing::HasSubstr;
using testing::Not;

TEST(BearerToken, ReadsTheTokenAndNothingElse) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bEARER   abc  "), "abc");
  for (std::string_view bad :
       {"", "Bearer", "Bearer ", "Bearer   ", "Bearerabc", "Basic abc", "abc", "Bearer a b",
        "Bearer\tabc", "Bearer a\xc3\xa9", " Bearer abc"}) {
    EXPECT_EQ(BearerToken(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(BearerToken("Bearer " + std::string(kKeyBytesMax + 1, 'a')), std::nullopt);
}

TEST(ApiKeys, LetsEveryoneInWithoutKeys) {
  const ApiKeys keys;
  EXPECT_FALSE(keys.required());
  const auto caller = keys.Check(std::nullopt);
  ASSERT_TRUE(caller.ok());
  EXPECT_EQ(*caller, std::nullopt);
  EXPECT_TRUE(keys.Check("anything").ok()) << "a key that nobody asked for does no harm";
}

TEST(ApiKeys, TellsWhichKeyWasUsed) {
  const auto keys = ApiKeys::FromKeys({"first-key-1", "second-key-2", "third-key-3"});
  ASSERT_TRUE(keys.ok());
  EXPECT_TRUE(keys->required());
  EXPECT_EQ(*keys->Check("Bearer first-key-1"), 0u);
  EXPECT_EQ(*keys->Check("bearer third-key-3"), 2u);
}

TEST(ApiKeys, ATenantIsFoundByItsNameWhereverItsKeyStands) {
  const auto keys = ApiKeys::FromKeys({"first-key-1", "second-key-2"});
  const auto others = ApiKeys::FromKeys({"second-key-2", "third-key-3"});
  EXPECT_NE(keys->Isolation(0), keys->Isolation(1));
  EXPECT_EQ(keys->Isolation(1), others->Isolation(0));
  EXPECT_EQ(keys->Find(keys->Isolation(1)), 1u);
  EXPECT_EQ(others->Find(keys->Isolation(1)), 0u);
  EXPECT_EQ(others->Find(keys->Isolation(0)), std::nullopt) << "its key is gone";
  EXPECT_EQ(keys->Find(base::Hash256()), std::nullopt) << "it came when there were no keys";
  EXPECT_EQ(ApiKeys().Isolation(0), base::Hash256());
  EXPECT_EQ(ApiKeys().Find(keys->Isolation(1)), 0u) << "all callers are one";
}

TEST(ApiKeys, RefusesWithoutTellingHowCloseItWas) {
  const auto keys = ApiKeys::FromKeys({"first-key-1", "second-key-2"});
  ASSERT_TRUE(keys.ok());
  std::string message;
  for (const char* wrong : {"Bearer first-key-2", "Bearer x", "Bearer first-key-1x",
                            "Bearer first-key-", "Bearer FIRST-KEY-1"}) {
    const auto caller = keys->Check(wrong);
    ASSERT_FALSE(caller.ok()) << wrong;
    EXPECT_EQ(caller.status().code(), Code::kUnauthenticated);
    EXPECT_EQ(caller.status().reason(), "invalid_api_key");
    if (message.empty()) message = caller.status().message();
    EXPECT_EQ(caller.status().message(), message) << "one message for every wrong key";
  }
  for (std::optional<std::string_view> none :
       {std::optional<std::string_view>(), std::optional<std::string_view>("first-key-1"),
        std::optional<std::string_view>("Basic first-key-1")}) {
    const auto caller = keys->Check(none);
    ASSERT_FALSE(caller.ok());
    EXPECT_EQ(caller.status().code(), Code::kUnauthenticated);
    EXPECT_THAT(caller.status().message(), HasSubstr("Bearer KEY"));
  }
}

TEST(ApiKeys, RefusesKeysThatNoClientCouldSend) {
  const std::string secret = "secret secret";
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"good-key-1", ""},
                                              {"good-key-1", "short"},
                                              {"good-key-1", secret},
                                              {"good-key-1", std::string(kKeyBytesMax + 1, 'a')},
                                              {"good-key-1", "umlaut-\xc3\xa4-key"}}) {
    const auto keys = ApiKeys::FromKeys(bad);
    ASSERT_FALSE(keys.ok());
    EXPECT_EQ(keys.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(keys.status().field(), "--api-key");
    EXPECT_THAT(keys.status().message(), HasSubstr("key 2"));
    EXPECT_THAT(keys.status().message(), Not(HasSubstr("secret")));
  }
  EXPECT_FALSE(ApiKeys::FromKeys(std::vector<std::string>(kKeysMax + 1, "good-key-1")).ok());
}

}  // namespace
}  // namespace plumb::tenancy
