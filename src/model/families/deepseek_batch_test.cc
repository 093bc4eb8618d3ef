// model/families/deepseek_batch_test.cc: which rows stay alive, in which order, and what a step may
// not ask for.
#include "model/families/deepseek_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace plumb::model {
namespace {

using testing::ElementsAre;

constexpr DeepseekLimits kLimits = {
    .rows_max = 20, .logits_rows_max = 10, .context_max = 100, .vocabulary = 50, .width = 3};

class DeepseekBatchTest : public testing::Test {
 protected:
  // Adds a sequence of `count` rows, each token its position.
  void Add(uint32_t position, uint32_t count, uint32_t logits_rows, uint32_t replay_from) {
    auto& tokens = tokens_.emplace_back();
    for (uint32_t i = 0; i < count; ++i) tokens.push_back(TokenId{position + i});
    sequences_.push_back({tokens, position, pages_, logits_rows, &state_, replay_from});
  }
  std::vector<uint32_t> Positions() const {
    std::vector<uint32_t> positions;
    for (uint32_t row = 0; row < batch_.rows(); ++row) {
      positions.push_back(batch_.row(row).position);
    }
    return positions;
  }

  std::byte page_{}, state_{};
  std::byte* const pages_[1] = {&page_};
  std::vector<std::vector<TokenId>> tokens_;
  std::vector<SequenceRows> sequences_;
  DeepseekBatch batch_{kLimits};
};

TEST_F(DeepseekBatchTest, RowsBeforeTheReplayAndRowsWithoutLogitsEnd) {
  tokens_.reserve(3);
  Add(10, 4, 1, 12);
  Add(0, 3, 0, 5);
  Add(30, 2, 2, 0);
  batch_.Gather(sequences_);
  EXPECT_THAT(Positions(), ElementsAre(10, 11, 12, 13, 0, 1, 2, 30, 31));
  std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7, 8};

  batch_.KeepReplayed();
  batch_.Compact(x.data(), 1);
  EXPECT_THAT(Positions(), ElementsAre(12, 13, 30, 31));
  EXPECT_THAT(std::span(x).first(4), ElementsAre(2, 3, 7, 8));
  EXPECT_EQ(batch_.row(2).origin, 7u);
  EXPECT_EQ(batch_.row(2).sequence, 2u);
  EXPECT_EQ(batch_.parts()[0].position, 12u);
  EXPECT_EQ(batch_.parts()[1].count, 0u);
  EXPECT_EQ(batch_.parts()[2].first, 2u);

  batch_.KeepWanted();
  batch_.Compact(x.data(), 1);
  EXPECT_THAT(Positions(), ElementsAre(13, 30, 31));
  EXPECT_THAT(std::span(x).first(3), ElementsAre(3, 7, 8));
  EXPECT_EQ(batch_.row(0).origin, 3u);
}

TEST_F(DeepseekBatchTest, EveryRowMayEnd) {
  Add(0, 3, 0, 5);
  batch_.Gather(sequences_);
  batch_.KeepReplayed();
  EXPECT_EQ(batch_.rows(), 0u);
  batch_.KeepWanted();
  EXPECT_EQ(batch_.rows(), 0u);
}

TEST_F(DeepseekBatchTest, HiddenStatesAreTakenOutFromBetweenLogits) {
  tokens_.reserve(3);
  Add(0, 2, 1, 0);
  Add(10, 3, 0, 0);
  Add(30, 2, 2, 0);
  std::vector<float> hidden(2 * kLimits.width);
  sequences_[1].hidden = hidden;
  batch_.Gather(sequences_);
  EXPECT_EQ(batch_.logits_rows(), 3u);
  batch_.KeepWanted();
  EXPECT_THAT(Positions(), ElementsAre(1, 11, 12, 30, 31));
  std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  batch_.TakeHidden(x.data());
  EXPECT_THAT(hidden, ElementsAre(3, 4, 5, 6, 7, 8));
  EXPECT_THAT(std::span(x).first(9), ElementsAre(0, 1, 2, 9, 10, 11, 12, 13, 14));
}

using DeepseekBatchDeathTest = DeepseekBatchTest;

TEST_F(DeepseekBatchDeathTest, RefusesLogitsOfRowsThatHaveNone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Add(0, 3, 2, 2);
  EXPECT_DEATH(batch_.Gather(sequences_), "replay from 2");
  std::vector<float> hidden(2 * kLimits.width);
  sequences_[0].logits_rows = 0;
  sequences_[0].hidden = hidden;
  EXPECT_DEATH(batch_.Gather(sequences_), "2 hidden states, replay from 2");
}

TEST_F(DeepseekBatchDeathTest, RefusesMoreThanAgreed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Add(0, 21, 0, 0);
  EXPECT_DEATH(batch_.Gather(sequences_), "21 rows");
  sequences_.clear();
  Add(0, 11, 11, 0);
  EXPECT_DEATH(batch_.Gather(sequences_), "more logits rows");
  sequences_.clear();
  Add(98, 3, 1, 0);
  EXPECT_DEATH(batch_.Gather(sequences_), "context 100");
  sequences_.clear();
  EXPECT_DEATH(batch_.Gather(sequences_), "rows_.empty");
}

}  // namespace
}  // namespace plumb::model
