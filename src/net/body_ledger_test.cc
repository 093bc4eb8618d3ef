// net/body_ledger_test.cc
// What is refused, to whom, and that everything counted is given back.
#include "net/body_ledger.h"

#include <gtest/gtest.h>

namespace plumb::net {
namespace {

using Verdict = BodyLedger::Verdict;

TEST(BodyLedger, BoundsAllTogether) {
  BodyLedger ledger(100);
  EXPECT_EQ(ledger.Set(0, 0, 60), Verdict::kFits);
  EXPECT_EQ(ledger.Set(0, 0, 40), Verdict::kFits);
  EXPECT_EQ(ledger.Set(0, 40, 41), Verdict::kAllTooMuch);
  EXPECT_EQ(ledger.Set(0, 41, 0), Verdict::kFits);
  EXPECT_EQ(ledger.Set(0, 60, 100), Verdict::kFits) << "nobody's bytes have no share";
  EXPECT_EQ(ledger.Set(0, 100, 0), Verdict::kFits);
}

TEST(BodyLedger, GivesOneAccountAsMuchAsIsLeft) {
  BodyLedger ledger(100);
  EXPECT_EQ(ledger.Set(1, 0, 30), Verdict::kFits);
  EXPECT_EQ(ledger.Set(1, 0, 20), Verdict::kFits) << "two connections of one caller";
  EXPECT_EQ(ledger.Set(1, 20, 21), Verdict::kAccountTooMuch);
  EXPECT_EQ(ledger.Set(1, 21, 0), Verdict::kFits);
  EXPECT_EQ(ledger.Set(2, 0, 35), Verdict::kFits) << "another has its own share";
  EXPECT_EQ(ledger.Set(2, 35, 36), Verdict::kAccountTooMuch) << "and not all of the rest";
  EXPECT_EQ(ledger.Set(3, 0, 17), Verdict::kFits) << "there is always some left for the next";
  EXPECT_EQ(ledger.Set(3, 17, 0), Verdict::kFits);
  EXPECT_EQ(ledger.Set(2, 36, 0), Verdict::kFits);
  EXPECT_EQ(ledger.Set(1, 30, 50), Verdict::kFits);
  EXPECT_EQ(ledger.Set(1, 50, 0), Verdict::kFits);
  EXPECT_EQ(ledger.Set(1, 0, 50), Verdict::kFits) << "what is done is forgotten";
}

}  // namespace
}  // namespace plumb::net
