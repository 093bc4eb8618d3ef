// base/status_test.cc: statuses, results and the two macros.
// Also CHECK, since a Result without value is one.
#include "base/status.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "base/result.h"

namespace plumb::base {
namespace {

using testing::HasSubstr;

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("value", "cannot halve " + std::to_string(value));
  return value / 2;
}

Result<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status QuarterExists(int value) {
  RETURN_IF_ERROR(Quarter(value));
  return OkStatus();
}

TEST(Status, CarriesFieldReasonAndRetryAndPrintsThem) {
  const Status status = Status(Code::kOverloaded, "the queue is full")
                            .WithField("messages")
                            .WithReason("queue_full")
                            .WithRetryAfterMs(250);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.retry_after_ms(), 250u);
  EXPECT_EQ(status.ToString(),
            "kOverloaded: the queue is full (field messages) (reason queue_full)");
}

TEST(Status, EveryCodeHasItsOwnName) {
  for (int a = 0; a <= static_cast<int>(Code::kInternal); ++a) {
    EXPECT_NE(CodeName(static_cast<Code>(a)), "kUnknown");
    for (int b = 0; b < a; ++b) {
      EXPECT_NE(CodeName(static_cast<Code>(a)), CodeName(static_cast<Code>(b)));
    }
  }
}

TEST(Result, PassesValuesAndErrorsUp) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(6).status().field(), "value");
  EXPECT_TRUE(QuarterExists(8).ok());
  EXPECT_EQ(QuarterExists(2).code(), Code::kInvalidArgument);
  EXPECT_EQ(Quarter(5).value_or(-1), -1);
}

TEST(Result, HoldsWhatCanOnlyBeMoved) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  std::unique_ptr<int> taken = std::move(result).value();
  EXPECT_EQ(*taken, 7);
}

TEST(ResultDeathTest, ValueOfAnErrorIsABugThatNamesTheError) {
  EXPECT_DEATH((void)Half(3).value(), HasSubstr("cannot halve 3"));
  EXPECT_DEATH(Result<int>{OkStatus()}, HasSubstr("needs an error"));
}

TEST(CheckDeathTest, PrintsConditionAndValues) {
  const int pages = 3;
  EXPECT_DEATH(CHECK(pages == 4) << "pages " << pages, HasSubstr("pages == 4: pages 3"));
}

}  // namespace
}  // namespace plumb::base
