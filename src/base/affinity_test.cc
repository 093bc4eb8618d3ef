// base/affinity_test.cc
// Where a thread may run, asked of the kernel again, and what a quota leaves of the processors.
#include "base/affinity.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/thread.h"

namespace plumb::base {
namespace {

TEST(Processors, AThreadIsRestrictedAndOthersAreNot) {
  const std::vector<uint32_t> allowed = AllowedProcessors();
  ASSERT_FALSE(allowed.empty());
  std::vector<uint32_t> restricted, again;
  Thread thread("restricted", [&] {
    const uint32_t last[] = {allowed.back()};
    ASSERT_TRUE(RestrictToProcessors(last));
    restricted = AllowedProcessors();
    ASSERT_TRUE(RestrictToProcessors(allowed));
    again = AllowedProcessors();
  });
  thread.Join();
  EXPECT_EQ(restricted, std::vector<uint32_t>{allowed.back()});
  EXPECT_EQ(again, allowed);
  EXPECT_EQ(AllowedProcessors(), allowed);
}

TEST(Processors, WhatTheSystemDoesNotHaveIsRefused) {
  const std::vector<uint32_t> allowed = AllowedProcessors();
  EXPECT_FALSE(RestrictToProcessors({}));
  for (const uint32_t none : {(1u << 20) - 1, 1u << 20, 0xffffffffu}) {
    const uint32_t one[] = {none};
    EXPECT_FALSE(RestrictToProcessors(one)) << none;
  }
  EXPECT_EQ(AllowedProcessors(), allowed);
}

TEST(Processors, AQuotaIsRoundedDown) {
  EXPECT_EQ(ProcessorsOf(8, std::nullopt), 8u);
  EXPECT_EQ(ProcessorsOf(8, 1.5), 1u);
  EXPECT_EQ(ProcessorsOf(8, 2.0), 2u);
  EXPECT_EQ(ProcessorsOf(8, 2.99), 2u);
  EXPECT_EQ(ProcessorsOf(8, 0.25), 1u);
  EXPECT_EQ(ProcessorsOf(2, 64.0), 2u);
  EXPECT_EQ(ProcessorsOf(0, std::nullopt), 1u);
  EXPECT_GE(UsableProcessors(), 1u);
}

}  // namespace
}  // namespace plumb::base
