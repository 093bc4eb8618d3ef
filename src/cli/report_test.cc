// cli/report_test.cc
// An error names its flag once.
#include "cli/report.h"

#include <gtest/gtest.h>

namespace plumb::cli {
namespace {

TEST(NamingFlag, PutsTheFlagInFrontOnce) {
  const base::Status plain(base::Code::kUnsupported, "no such kernels");
  const base::Status named = NamingFlag(plain, "--kernels");
  EXPECT_EQ(named.message(), "--kernels: no such kernels");
  EXPECT_EQ(named.field(), "--kernels");
  EXPECT_EQ(named.code(), base::Code::kUnsupported);
  EXPECT_EQ(NamingFlag(named, "--kernels").message(), named.message());
  EXPECT_EQ(NamingFlag(plain, "").message(), plain.message());
  EXPECT_TRUE(NamingFlag(base::OkStatus(), "--kernels").ok());
}

}  // namespace
}  // namespace plumb::cli
