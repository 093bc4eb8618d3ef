// engine/speculation_schedule_test.cc: the schedule against every choice there is, and what it does
// where rows are dear, free, or of unknown price.
#include "engine/speculation_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace plumb::engine {
namespace {

std::vector<Draft> MakeDrafts(const std::vector<std::vector<float>>& confidences) {
  std::vector<Draft> drafts(confidences.size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    for (const float confidence : confidences[i]) drafts[i].Append(TokenId{1}, confidence, 0);
  }
  return drafts;
}

ScheduleChoice Choose(std::vector<Draft>& drafts, const ScheduleInput& input, const StepNs& ns) {
  SpeculationSchedule schedule(static_cast<uint32_t>(drafts.size()));
  std::vector<Draft*> batch;
  for (Draft& draft : drafts) batch.push_back(&draft);
  return schedule.Choose(batch, input, ns);
}

// Tokens that the first `count` guesses are expected to give.
double Expected(const Draft& draft, uint32_t count) {
  double tokens = 0, probability = 1;
  for (uint32_t i = 0; i < count; ++i) tokens += probability *= draft.confidence[i];
  return tokens;
}

// The best tokens per ns of all choices, from draft `next` on.
double BestRate(const std::vector<Draft>& drafts, size_t next, uint32_t rows, double tokens,
                const ScheduleInput& input, const StepNs& ns) {
  if (next == drafts.size()) return tokens / (ns(rows) + input.spent_ns);
  double best = 0;
  for (uint32_t count = 0; count <= drafts[next].count; ++count) {
    if (rows + count > input.drafts_max) break;
    best = std::max(best, BestRate(drafts, next + 1, rows + count,
                                   tokens + Expected(drafts[next], count), input, ns));
  }
  return best;
}

TEST(SpeculationSchedule, FindsTheBestOfAllChoices) {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    base::Rng rng(seed);
    std::vector<std::vector<float>> confidences(1 + rng.Below(4));
    for (auto& of_one : confidences) {
      for (uint64_t i = rng.Below(5); i > 0; --i) {
        // Certain ones and equal ones among them.
        of_one.push_back(rng.Below(4) == 0 ? static_cast<float>(rng.Below(3)) / 2
                                           : static_cast<float>(rng.Uniform()));
      }
    }
    std::vector<Draft> drafts = MakeDrafts(confidences);
    std::vector<double> times = {1 + 9 * rng.Uniform()};
    for (int i = 0; i < 16; ++i) {
      // Steps and plateaus, as real machines have them.
      times.push_back(times.back() + (rng.Below(3) == 0 ? 4 : 0.5) * rng.Uniform());
    }
    const StepNs ns = [&](uint32_t rows) { return times[rows]; };
    const ScheduleInput input{.tokens = static_cast<double>(confidences.size() + rng.Below(3)),
                              .spent_ns = rng.Below(2) == 0 ? 0 : 3 * rng.Uniform(),
                              .drafts_max = static_cast<uint32_t>(rng.Below(17))};
    const double best = BestRate(drafts, 0, 0, input.tokens, input, ns);

    const ScheduleChoice choice = Choose(drafts, input, ns);
    uint32_t rows = 0;
    double tokens = input.tokens;
    for (size_t i = 0; i < drafts.size(); ++i) {
      ASSERT_LE(drafts[i].count, confidences[i].size());
      rows += drafts[i].count;
      tokens += Expected(drafts[i], drafts[i].count);
    }
    EXPECT_EQ(choice.drafts, rows);
    EXPECT_LE(rows, input.drafts_max);
    EXPECT_NEAR(choice.tokens, tokens, 1e-9);
    EXPECT_NEAR(tokens / (ns(rows) + input.spent_ns), best, 1e-9 * best) << "seed " << seed;
  }
}

TEST(SpeculationSchedule, NoGuessPaysWhereEveryRowCostsItsShare) {
  // Sixteen sequences, a step's time in proportion to its rows.
  std::vector<Draft> drafts = MakeDrafts(std::vector<std::vector<float>>(16, {0.95f, 0.95f}));
  const ScheduleInput input{.tokens = 16, .drafts_max = 64};
  EXPECT_EQ(Choose(drafts, input, [](uint32_t rows) { return 16.0 + rows; }).drafts, 0u);
}

TEST(SpeculationSchedule, AllGuessesPayWhereRowsAreFree) {
  std::vector<Draft> drafts = MakeDrafts({{0.5f, 0.1f}, {0.01f}});
  const ScheduleInput input{.tokens = 2, .drafts_max = 64};
  EXPECT_EQ(Choose(drafts, input, [](uint32_t) { return 1.0; }).drafts, 3u);
}

TEST(SpeculationSchedule, ASmallGainIsNotWorthIt) {
  const StepNs ns = [](uint32_t rows) { return 10.0 + 5 * rows; };  // a gain of 1.9 / 1.5
  std::vector<Draft> drafts = MakeDrafts({{0.9f}});
  EXPECT_EQ(Choose(drafts, {.tokens = 1, .gain_min = 1.3, .drafts_max = 8}, ns).drafts, 0u);
  drafts = MakeDrafts({{0.9f}});
  EXPECT_EQ(Choose(drafts, {.tokens = 1, .gain_min = 1.2, .drafts_max = 8}, ns).drafts, 1u);
}

TEST(SpeculationSchedule, TakesLikelyGuessesWhileTimesAreNotKnown) {
  std::vector<Draft> drafts = MakeDrafts({{0.9f, 0.8f, 0.6f}, {0.4f}, {0.6f}});
  const ScheduleInput input{.tokens = 3, .drafts_max = 64};
  const ScheduleChoice choice = Choose(drafts, input, [](uint32_t) { return 0.0; });
  EXPECT_EQ(choice.drafts, 3u);
  EXPECT_EQ(drafts[0].count, 2u);
  EXPECT_EQ(drafts[1].count, 0u);
  EXPECT_EQ(drafts[2].count, 1u);
}

TEST(SpeculationSchedule, NothingIsChosenOfNothing) {
  std::vector<Draft> drafts = MakeDrafts({{}, {}});
  EXPECT_EQ(Choose(drafts, {.tokens = 2, .drafts_max = 8}, [](uint32_t) { return 1.0; }).drafts,
            0u);
}

}  // namespace
}  // namespace plumb::engine
