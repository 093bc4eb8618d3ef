// cli/bench_engine_test.cc
// What is sent to the model and how time becomes a speed, with a model that only checks its rows
// and moves a clock.
#include "cli/bench_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "base/check.h"

namespace plumb::cli {
namespace {

constexpr uint32_t kVocabulary = 11;

// Takes 1 ms a row and 10 ms a step.
class FakeModel final : public model::Model {
 public:
  explicit FakeModel(base::ManualClock& clock) : clock_(clock) {
    info_.vocabulary_size = kVocabulary;
    info_.context_max = 1000;
    info_.page_bytes = 4096 + 8;
  }
  const model::ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return 64; }
  uint32_t logits_rows_max() const override { return 16; }

  void Forward(std::span<const model::SequenceRows> sequences, std::span<float> logits) override {
    uint64_t rows = 0, logits_rows = 0;
    std::set<const std::byte*> pages;
    for (const model::SequenceRows& sequence : sequences) {
      CHECK(!sequence.tokens.empty());
      for (const base::TokenId token : sequence.tokens) CHECK(base::Index(token) < kVocabulary);
      const uint64_t end = sequence.position + sequence.tokens.size();
      CHECK(end <= info_.context_max);
      CHECK(sequence.pages.size() * model::kPageTokens >= end);
      for (std::byte* page : sequence.pages) {
        CHECK(pages.insert(page).second) << "two sequences share a page";
        all_finite_ &= Finite(page);
      }
      rows += sequence.tokens.size();
      logits_rows += sequence.logits_rows;
      if (info_.state_bytes > 0) Remember(sequence);
    }
    replay_from.push_back(sequences.front().replay_from);
    CHECK(rows <= rows_max() && logits_rows <= logits_rows_max());
    CHECK(logits.size() == logits_rows * kVocabulary);
    steps.push_back({sequences.front().position, rows, logits_rows});
    clock_.Advance(base::Milliseconds(10 + static_cast<int64_t>(rows)));
  }

  struct Step {
    uint32_t position;
    uint64_t rows, logits_rows;
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;
  std::vector<uint32_t> replay_from;  // of each step's first sequence
  bool all_finite() const { return all_finite_; }
  // Sequences keep a state from now on: where they are.
  void KeepStates(uint32_t replay_rows) {
    info_.state_bytes = sizeof(uint32_t);
    info_.replay_rows = replay_rows;
  }

 private:
  // Writes where the sequence is into its state, and a mark for each token into its pages; what is
  // there must go on from it.
  void Remember(const model::SequenceRows& sequence) {
    CHECK(sequence.state != nullptr);
    const auto mark = [&](uint32_t position) {
      return sequence.pages[position / model::kPageTokens] +
             position % model::kPageTokens * sizeof(uint32_t);
    };
    uint32_t end = 0;
    if (sequence.position > 0) std::memcpy(&end, sequence.state, sizeof end);
    CHECK(end == sequence.position) << end << ", not " << sequence.position;
    for (uint32_t position = 0; position < end; ++position) {
      uint32_t found;
      std::memcpy(&found, mark(position), sizeof found);
      CHECK(found == 1000 + position) << "position " << position << " was not computed";
    }
    for (size_t i = 0; i < sequence.tokens.size(); ++i, ++end) {
      const uint32_t value = 1000 + end;
      std::memcpy(mark(end), &value, sizeof value);
    }
    std::memcpy(sequence.state, &end, sizeof end);
  }

  // As halves and as floats.
  bool Finite(const std::byte* page) const {
    for (uint64_t offset = 0; offset < info_.page_bytes; offset += 4) {
      uint16_t halves[2];
      float number;
      std::memcpy(halves, page + offset, 4);
      std::memcpy(&number, page + offset, 4);
      const bool half_infinite = (halves[0] & 0x7c00) == 0x7c00 || (halves[1] & 0x7c00) == 0x7c00;
      if (half_infinite || !std::isfinite(number)) return false;
    }
    return true;
  }

  base::ManualClock& clock_;
  model::ModelInfo info_;
  bool all_finite_ = true;
};

class BenchEngine : public testing::Test {
 protected:
  std::vector<BenchPoint> Measure(const EngineBenchPlan& plan) {
    auto measured = MeasureEngine(model_, plan, clock_, {});
    CHECK(measured.ok()) << measured.status().message();
    return std::move(measured).value().points;
  }

  base::ManualClock clock_;
  FakeModel model_{clock_};
};

TEST_F(BenchEngine, APromptGoesInChunksAndOnlyItsLastRowGetsLogits) {
  const auto points = Measure({.prompts = {70},
                               .contexts = {},
                               .batches = {},
                               .repeat = 1,
                               .chunk_rows = 32,
                               .kv_memory_max = 1 << 20});
  using Step = FakeModel::Step;
  EXPECT_THAT(model_.steps, testing::ElementsAre(Step{0, 32, 1},  // the warm-up
                                                 Step{0, 32, 0}, Step{32, 32, 0}, Step{64, 6, 1}));
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].tokens, 70u);
  EXPECT_THAT(points[0].seconds, testing::ElementsAre(testing::DoubleEq(0.1)));  // 3 * 10 + 70 ms
  EXPECT_DOUBLE_EQ(SpeedOf(points[0]).median, 700);
}

TEST_F(BenchEngine, DecodeAdvancesEverySequenceFromItsContextInEverySample) {
  const auto points = Measure({.prompts = {},
                               .contexts = {200},
                               .batches = {3},
                               .decode_tokens = 5,
                               .repeat = 2,
                               .chunk_rows = 32,
                               .kv_memory_max = 1 << 20});
  std::vector<uint32_t> positions;
  for (const FakeModel::Step& step : model_.steps) {
    EXPECT_EQ(step.rows, 3u);
    EXPECT_EQ(step.logits_rows, 3u);
    positions.push_back(step.position);
  }
  EXPECT_THAT(positions, testing::ElementsAre(200, 201, 202, 203,       // warm-up
                                              200, 201, 202, 203, 204,  //
                                              200, 201, 202, 203,       // warm-up
                                              200, 201, 202, 203, 204));
  ASSERT_EQ(points.size(), 1u);
  EXPECT_EQ(points[0].tokens, 15u);
  EXPECT_EQ(points[0].seconds.size(), 2u);
  EXPECT_NEAR(SpeedOf(points[0]).median, 15 / 0.065, 1e-6);
}

TEST_F(BenchEngine, AContextIsComputedOnceWhereSequencesKeepAState) {
  model_.KeepStates(/*replay_rows=*/30);
  uint64_t done = 0, all = 0;
  const EngineBenchPlan plan{.prompts = {70},
                             .contexts = {0, 40},
                             .batches = {1, 3},
                             .decode_tokens = 6,
                             .repeat = 2,
                             .chunk_rows = 32,
                             .kv_memory_max = 1 << 20};
  const auto measured = MeasureEngine(
      model_, plan, clock_, {.progress = [&](uint64_t count, uint64_t total, std::string_view) {
        done = count;
        all = total;
      }});
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_EQ(done, all);
  // Steps without logits: two of each prompt of 70 but its last one, and all of one context.
  using Step = FakeModel::Step;
  std::vector<Step> silent;
  for (size_t i = 7; i < model_.steps.size(); ++i) {
    if (model_.steps[i].logits_rows == 0) silent.push_back(model_.steps[i]);
  }
  EXPECT_THAT(silent, testing::ElementsAre(Step{0, 32, 0}, Step{32, 8, 0}));
  EXPECT_EQ(model_.replay_from[1], 40u) << "of a prompt of 70 tokens, 30 are replayed";
  EXPECT_EQ(model_.replay_from.back(), 10u);
  EXPECT_NEAR(measured->points[3].seconds[1], 6 * 0.011, 1e-9)
      << "the context is not in the sample";
}

TEST_F(BenchEngine, StatesCountAsMemory) {
  model_.KeepStates(0);
  const uint64_t page = model_.info().page_bytes;
  const auto points = Measure({.prompts = {},
                               .contexts = {10},
                               .batches = {1, 2},
                               .decode_tokens = 1,
                               .repeat = 1,
                               .chunk_rows = 1,
                               .kv_memory_max = 2 * page + 2 * 4});
  EXPECT_EQ(points[0].skipped, "");
  EXPECT_NE(points[1].skipped, "") << "two pages, and three states";
}

TEST_F(BenchEngine, ContextsDecodeInTurnSoThatTheyMeetTheSameMoments) {
  Measure({.prompts = {},
           .contexts = {0, 200},
           .batches = {1},
           .decode_tokens = 1,
           .repeat = 3,
           .chunk_rows = 32,
           .kv_memory_max = 1 << 20});
  std::vector<uint32_t> positions;
  for (size_t i = 1; i < model_.steps.size(); i += 2) positions.push_back(model_.steps[i].position);
  EXPECT_THAT(positions, testing::ElementsAre(0, 200, 0, 200, 0, 200));
}

TEST_F(BenchEngine, WhatMemoryGivesIsReadManyTimesBeforeBetweenAndAfterSamplesOfDecode) {
  std::vector<size_t> steps_before;
  const auto measured = MeasureEngine(model_,
                                      {.prompts = {4},
                                       .contexts = {7},
                                       .batches = {1},
                                       .decode_tokens = 5,
                                       .repeat = 2,
                                       .chunk_rows = 32,
                                       .kv_memory_max = 1 << 20},
                                      clock_, {.read_rate = [&] {
                                        steps_before.push_back(model_.steps.size());
                                        clock_.Advance(base::Milliseconds(100));
                                        return static_cast<double>(steps_before.size());
                                      }});
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  ASSERT_EQ(measured->read_rates.size(), 3 * kReadProbes);
  EXPECT_EQ(measured->read_rates.front(), 1);
  EXPECT_EQ(measured->read_rates.back(), 3 * kReadProbes);
  EXPECT_NEAR(measured->points[1].seconds[1], 0.055, 1e-9) << "their time is not the sample's";
  // Three prompts of one step; a sample is four steps of warm-up and five that count.
  EXPECT_THAT(std::set<size_t>(steps_before.begin(), steps_before.end()),
              testing::ElementsAre(3, 12, 21));
}

TEST_F(BenchEngine, MemoryIsNotReadWhereNothingDecodes) {
  uint32_t calls = 0;
  const auto measured = MeasureEngine(
      model_, {.prompts = {4}, .repeat = 1, .chunk_rows = 32, .kv_memory_max = 1 << 20}, clock_,
      {.read_rate = [&] { return ++calls; }});
  ASSERT_TRUE(measured.ok()) << measured.status().message();
  EXPECT_EQ(calls, 0u);
}

TEST_F(BenchEngine, PagesHoldFiniteNumbersInAnyFormat) {
  Measure({.prompts = {},
           .contexts = {300},
           .batches = {1},
           .decode_tokens = 1,
           .repeat = 1,
           .chunk_rows = 1,
           .kv_memory_max = 1 << 20});
  EXPECT_TRUE(model_.all_finite());
}

TEST_F(BenchEngine, WhatNeedsTooMuchMemoryIsSkippedAndTheRestMeasured) {
  const uint64_t page = model_.info().page_bytes;
  const auto points = Measure({.prompts = {},
                               .contexts = {0, 200},
                               .batches = {1, 4},
                               .decode_tokens = 1,
                               .repeat = 1,
                               .chunk_rows = 1,
                               .kv_memory_max = 4 * page});
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points[0].skipped + points[1].skipped + points[2].skipped, "");
  EXPECT_NE(points[3].skipped, "");  // 4 sequences of two pages
  EXPECT_TRUE(points[3].seconds.empty());
}

TEST_F(BenchEngine, ProgressEndsAtItsTotal) {
  uint64_t last = 0, all = 0;
  const EngineBenchPlan plan{.prompts = {70, 5},
                             .contexts = {0, 200},
                             .batches = {1, 3},
                             .decode_tokens = 6,
                             .repeat = 3,
                             .chunk_rows = 32,
                             .kv_memory_max = 1 << 20};
  ASSERT_TRUE(MeasureEngine(model_, plan, clock_,
                            {.progress =
                                 [&](uint64_t done, uint64_t total, std::string_view) {
                                   EXPECT_GT(done, last);
                                   last = done;
                                   all = total;
                                 }})
                  .ok());
  EXPECT_EQ(last, all);
}

TEST_F(BenchEngine, RefusesWhatTheModelDoesNotSupport) {
  const EngineBenchPlan good{
      .prompts = {1000}, .contexts = {990}, .batches = {16}, .decode_tokens = 10, .chunk_rows = 64};
  EXPECT_TRUE(CheckPlan(good, model_).ok());
  EngineBenchPlan plan = good;
  plan.prompts = {1, 1001};
  EXPECT_EQ(CheckPlan(plan, model_).field(), "--prompt");
  plan = good;
  plan.contexts = {991};
  EXPECT_EQ(CheckPlan(plan, model_).field(), "--context");
  plan = good;
  plan.batches = {17};
  EXPECT_EQ(CheckPlan(plan, model_).field(), "--batch");
  plan = good;
  plan.chunk_rows = 65;
  EXPECT_EQ(CheckPlan(plan, model_).field(), "--chunk");
  plan = good;
  plan.contexts = {UINT32_MAX};
  const auto measured = MeasureEngine(model_, plan, clock_, {});
  EXPECT_EQ(measured.status().code(), base::Code::kInvalidArgument);
  EXPECT_TRUE(model_.steps.empty());
}

TEST(SpreadOf, IsMedianRangeAndMedianDeviation) {
  const Spread odd = SpreadOf({5, 1, 3, 2, 10});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 10);
  EXPECT_EQ(odd.deviation, 2);  // of 2, 2, 0, 1, 7
  EXPECT_EQ(SpreadOf({1, 4}).median, 2.5);
  EXPECT_EQ(SpreadOf({7}).deviation, 0);
}

}  // namespace
}  // namespace plumb::cli
