// model/families/deepseek_selection_test.cc: choices against sorting all scores, with and without
// candidate blocks, when blocks are fewer than there are rows, and in slices.
#include "model/families/deepseek_selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "model/families/tiny_runner.h"

namespace plumb::model {
namespace {

constexpr uint32_t kHeads = 2, kDim = 32, kHidden = 32, kRank = 32, kTop = 5, kBlocks = 3,
                   kBlockRows = 4, kPositions = 100;

DeepseekConfig Shape() {
  DeepseekConfig config;
  config.hidden = kHidden;
  config.layer_count = 2;
  config.layers = {
      {.ratio = 1, .kv_source = 0, .index_source = 0, .owns_kv = true, .owns_index = true},
      {.ratio = 1, .kv_source = 0, .index_source = 1, .owns_index = true}};
  config.window = 4;
  config.head_dim = 32;
  config.rope_dims = 2;
  config.rope_base = config.rope_base_compress = 1e4;
  config.query_rank = kRank;
  config.index_heads = kHeads;
  config.index_dim = kDim;
  config.index_top = kTop;
  config.candidate_source = 0;
  config.candidate_blocks = kBlocks;
  config.candidate_block_rows = kBlockRows;
  return config;
}

std::vector<float> Random(size_t count, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2 * rng.Uniform() - 1);
  return values;
}

// One sequence of kPositions rows, all in one step; keys are random.
class DeepseekSelectionTest : public testing::Test {
 protected:
  DeepseekSelectionTest() {
    const auto stored = [](const std::vector<float>& values, uint32_t outputs, uint32_t inputs) {
      return tensor::BlockMatrix{tensor::BlockFormat::kF32, outputs, inputs,
                                 reinterpret_cast<const std::byte*>(values.data()), nullptr};
    };
    weights_.query = stored(query_, kHeads * kDim, kRank);
    weights_.weights = stored(head_, kHeads, kHidden);
    for (uint32_t row = 0; row < kPositions; ++row) {
      const auto key = std::span(keys_).subspan(row * kDim, kDim);
      tensor::EncodeRow(tensor::RowFormat::kF32, key, layout_.KeyRow(0, pages_, row));
    }
    auto selection = DeepseekSelection::Create(config_, {}, layout_,
                                               {kPositions, kPositions, kPositions, 1}, nullptr);
    auto rotary = DeepseekRotary::Create(config_, kPositions);
    CHECK(selection.ok() && rotary.ok());
    selection_ = *std::move(selection);
    rotary_.emplace(*std::move(rotary));
    batch_.Gather(rows_);
    rotary_->Begin(compute_, batch_.positions());
  }

  void Choose(uint32_t layer) {
    selection_.Choose(compute_, *rotary_, batch_, {layer, &weights_, hidden_.data(), low_.data()});
  }
  // Scores of row `t` against the keys up to it, as the formula says, in double.
  std::vector<double> Scores(uint32_t t) {
    std::vector<float> query(kHeads * kDim);
    std::vector<double> weight(kHeads);
    for (uint32_t j = 0; j < kHeads * kDim; ++j) {
      double sum = 0;
      for (uint32_t i = 0; i < kRank; ++i)
        sum += double{query_[j * kRank + i]} * low_[t * kRank + i];
      query[j] = static_cast<float>(sum);
    }
    for (uint32_t h = 0; h < kHeads; ++h) {
      for (uint32_t i = 0; i < kHidden; ++i) {
        weight[h] += double{head_[h * kHidden + i]} * hidden_[t * kHidden + i];
      }
    }
    rotary_->RotateLast(Fastest(), rotary_->Row(RotaryKind::kCompress, t), kHeads, kDim,
                        query.data());
    std::vector<double> scores(t + 1);
    for (uint32_t row = 0; row <= t; ++row) {
      for (uint32_t h = 0; h < kHeads; ++h) {
        double dot = 0;
        for (uint32_t i = 0; i < kDim; ++i)
          dot += double{query[h * kDim + i]} * keys_[row * kDim + i];
        scores[row] += weight[h] * std::max(dot, 0.0);
      }
    }
    return scores;
  }
  // Of `among` the kTop best, ascending.
  static std::vector<uint32_t> Best(const std::vector<double>& scores,
                                    std::vector<uint32_t> among) {
    std::stable_sort(among.begin(), among.end(),
                     [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    among.resize(std::min<size_t>(among.size(), kTop));
    std::sort(among.begin(), among.end());
    return among;
  }

  const DeepseekConfig config_ = Shape();
  const DeepseekLayout layout_{config_, {}, 0};
  tensor::ThreadPool pool_{{.threads = 2}};
  const tensor::Compute compute_{pool_, Fastest()};
  std::vector<std::byte> page_ = std::vector<std::byte>(layout_.page_bytes());
  std::byte state_{};
  std::byte* pages_[1] = {page_.data()};
  const std::vector<TokenId> tokens_ = std::vector<TokenId>(kPositions);
  const SequenceRows rows_[1] = {{.tokens = tokens_, .pages = pages_, .state = &state_}};
  const std::vector<float> query_ = Random(kHeads * kDim * kRank, 1);
  const std::vector<float> head_ = Random(kHeads * kHidden, 2);
  const std::vector<float> keys_ = Random(kPositions * kDim, 3);
  const std::vector<float> hidden_ = Random(kPositions * kHidden, 4);
  const std::vector<float> low_ = Random(kPositions * kRank, 5);
  IndexerWeights weights_;
  DeepseekSelection selection_;
  std::optional<DeepseekRotary> rotary_;
  DeepseekBatch batch_{{kPositions, kPositions, kPositions, 1, kHidden}};
};

TEST_F(DeepseekSelectionTest, TheCandidateSourceChoosesAmongAllRows) {
  Choose(0);
  for (uint32_t t = 0; t < kPositions; ++t) {
    std::vector<uint32_t> all(t + 1);
    std::iota(all.begin(), all.end(), 0u);
    const auto chosen = selection_.Chosen(t);
    EXPECT_EQ(std::vector<uint32_t>(chosen.begin(), chosen.end()), Best(Scores(t), all)) << t;
  }
}

TEST_F(DeepseekSelectionTest, LaterLayersChooseInTheBestBlocksAndTheNewest) {
  Choose(0);
  Choose(1);
  for (uint32_t t = 0; t < kPositions; ++t) {
    const std::vector<double> scores = Scores(t);
    const uint32_t count = t / kBlockRows + 1;
    std::vector<std::pair<double, uint32_t>> blocks;
    for (uint32_t block = 0; block < count; ++block) {
      double best = block + 1 == count ? 1e9 : -1e9;
      for (uint32_t row = block * kBlockRows; row <= std::min(t, block * kBlockRows + 3); ++row) {
        best = std::max(best, scores[row]);
      }
      blocks.emplace_back(-best, block);
    }
    std::sort(blocks.begin(), blocks.end());
    blocks.resize(std::min<size_t>(blocks.size(), kBlocks));
    std::vector<uint32_t> among;
    for (const auto& [score, block] : blocks) {
      for (uint32_t row = block * kBlockRows; row <= std::min(t, block * kBlockRows + 3); ++row) {
        among.push_back(row);
      }
    }
    std::sort(among.begin(), among.end());
    const auto chosen = selection_.Chosen(t);
    EXPECT_EQ(std::vector<uint32_t>(chosen.begin(), chosen.end()), Best(scores, among)) << t;
  }
}

}  // namespace
}  // namespace plumb::model
