// api/thinking_signature_test.cc
// Signatures carry thinking there and back, and nothing of anybody else.
#include "api/thinking_signature.h"

#include <gtest/gtest.h>

#include <vector>

namespace plumb::api {
namespace {

TEST(ThinkingSignature, CarriesTheThinkingWhereItIsNotShown) {
  for (const std::string& thinking :
       std::vector<std::string>{"a", "Let me see.\n\n한 😀", std::string(100000, 'x')}) {
    EXPECT_EQ(ThinkingOf(ThinkingSignature(thinking, /*carries=*/true)), thinking);
    const std::string shown = ThinkingSignature(thinking, /*carries=*/false);
    EXPECT_FALSE(ThinkingOf(shown));
    EXPECT_LT(shown.size(), 32u);
  }
}

TEST(ThinkingSignature, IsAFunctionOfTheThinking) {
  EXPECT_EQ(ThinkingSignature("a", false), ThinkingSignature("a", false));
  EXPECT_NE(ThinkingSignature("a", false), ThinkingSignature("b", false));
}

TEST(ThinkingSignature, TakesNothingFromOthers) {
  const std::string good = ThinkingSignature("secret", true);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string changed = good;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(ThinkingOf(changed)) << changed;
    EXPECT_FALSE(ThinkingOf(good.substr(0, i))) << i;
  }
  for (const char* other :
       {"", "sig", "plumb1.", "plumb1..", "plumb1.AAAAAAAAAAAAAAAAAAAA.QQ==", "EqQBCgIYAhIM"})
    EXPECT_FALSE(ThinkingOf(other)) << other;
}

}  // namespace
}  // namespace plumb::api
