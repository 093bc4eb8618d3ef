// api/fingerprints_test.cc
// Which name stands for which version, and that the list stays short.
#include "api/fingerprints.h"

#include <gtest/gtest.h>

namespace plumb::api {
namespace {

TEST(Fingerprints, AreTheFirstUntilAVersionIsNamed) {
  Fingerprints fingerprints("fp_first");
  EXPECT_EQ(fingerprints.Of(0), "fp_first");
  EXPECT_EQ(fingerprints.Of(1), "fp_first");
  fingerprints.Add(2, "fp_failed");
  fingerprints.Add(2, "fp_second");  // the replacement before did not happen
  EXPECT_EQ(fingerprints.Of(1), "fp_first");
  EXPECT_EQ(fingerprints.Of(2), "fp_second");
}

TEST(Fingerprints, ForgetTheOldestOfTooMany) {
  Fingerprints fingerprints("fp_first");
  for (uint32_t version = 2; version < 2 + Fingerprints::kVersionsMax + 1; ++version) {
    fingerprints.Add(version, "fp_" + std::to_string(version));
  }
  EXPECT_EQ(fingerprints.Of(2), "fp_first");
  EXPECT_EQ(fingerprints.Of(3), "fp_3");
}

}  // namespace
}  // namespace plumb::api
