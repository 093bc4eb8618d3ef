// engine/fair_share_test.cc
// Counters of tenants that come, wait, are served and leave.
#include "engine/fair_share.h"

#include <gtest/gtest.h>

#include <memory>

namespace plumb::engine {
namespace {

std::unique_ptr<Sequence> Of(uint64_t tenant, Priority priority = Priority::kDefault) {
  auto sequence = std::make_unique<Sequence>();
  sequence->tenant = tenant;
  sequence->priority = priority;
  return sequence;
}

TEST(FairShare, ANewcomerStartsLevelWithTheLeastServedThatWaits) {
  FairShare fair(10);
  const auto a = Of(1), b = Of(2), c = Of(3);
  fair.Add(*a);
  fair.Wait(*a);
  fair.EndWait(*a);
  fair.Charge(*a, 100);
  // Nobody waits, so nobody is owed anything.
  fair.Add(*b);
  fair.Wait(*b);
  EXPECT_EQ(fair.Served(*b), 100);
  fair.Charge(*a, 50);
  fair.Add(*c);
  fair.Wait(*c);
  EXPECT_EQ(fair.Served(*c), 100) << "as b, which waits";
  EXPECT_EQ(fair.Served(*a), 150);
}

TEST(FairShare, NobodySavesUpAClaimByStayingAway) {
  FairShare fair(10);
  const auto a = Of(1), b = Of(2), again = Of(1);
  for (const auto* sequence : {a.get(), b.get()}) {
    fair.Add(*sequence);
    fair.Wait(*sequence);
  }
  fair.EndWait(*a);
  fair.Charge(*a, 10);
  fair.Charge(*b, 500);
  fair.Add(*again);
  fair.Wait(*again);
  EXPECT_EQ(fair.Served(*again), 500);
}

TEST(FairShare, PrioritiesHaveCountersOfTheirOwn) {
  FairShare fair(10);
  const auto a = Of(1), urgent = Of(1, Priority::kInteractive);
  fair.Add(*a);
  fair.Add(*urgent);
  fair.Charge(*a, 7);
  EXPECT_EQ(fair.Served(*urgent), 0);
  EXPECT_EQ(fair.accounts(), 2u);
}

TEST(FairShare, AnAccountIsForgottenWhenItOwesNothing) {
  FairShare fair(10);
  const auto a = Of(1), b = Of(2), again = Of(1);
  fair.Add(*a);
  fair.Charge(*a, 100);
  fair.Remove(*a);
  EXPECT_EQ(fair.accounts(), 0u);

  fair.Add(*b);
  fair.Wait(*b);
  fair.Add(*a);
  fair.Charge(*a, 100);
  fair.Remove(*a);
  EXPECT_EQ(fair.accounts(), 2u) << "ahead of b, which waits";
  fair.Add(*again);
  EXPECT_EQ(fair.Served(*again), 100);
}

TEST(FairShare, RemembersNoMoreThanItsMaximum) {
  FairShare fair(10);
  const auto waiting = Of(0);
  fair.Add(*waiting);
  fair.Wait(*waiting);
  for (uint64_t tenant = 1; tenant <= 3 * kDebtorsMax; ++tenant) {
    const auto sequence = Of(tenant);
    fair.Add(*sequence);
    fair.Charge(*sequence, static_cast<double>(10 + tenant));
    fair.Remove(*sequence);
    ASSERT_LE(fair.accounts(), kDebtorsMax + 2u);
  }
  // Those that owe most are still known.
  const auto last = Of(3 * kDebtorsMax);
  fair.Add(*last);
  EXPECT_EQ(fair.Served(*last), 10 + 3 * kDebtorsMax);
}

}  // namespace
}  // namespace plumb::engine
