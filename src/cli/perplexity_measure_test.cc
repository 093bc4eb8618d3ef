// cli/perplexity_measure_test.cc: what is counted, and the figures, against models whose logits are
// known in closed form.
#include "cli/perplexity_measure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::cli {
namespace {

using base::TokenId;

constexpr uint32_t kVocabulary = 5;

// Logits that depend on the position in the window and the token there alone; keeps what it was
// fed.
class FakeModel final : public model::Model {
 public:
  explicit FakeModel(double slope) : slope_(slope) {
    info_.vocabulary_size = kVocabulary;
    info_.context_max = 64;
    info_.page_bytes = 16;
  }
  const model::ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return kMeasureRows; }
  uint32_t logits_rows_max() const override { return kMeasureLogitsRows; }
  void Forward(std::span<const model::SequenceRows> sequences, std::span<float> logits) override {
    ASSERT_EQ(sequences.size(), 1u);
    const model::SequenceRows& rows = sequences[0];
    if (rows.position == 0) fed.emplace_back();
    ASSERT_EQ(rows.position, fed.back().size());  // each row once, in order
    ASSERT_EQ(logits.size(), rows.logits_rows * kVocabulary);
    for (const TokenId token : rows.tokens) fed.back().push_back(static_cast<uint32_t>(token));
    for (uint32_t i = 0; i < rows.logits_rows; ++i) {
      const size_t row = rows.tokens.size() - rows.logits_rows + i;
      const auto position = static_cast<uint32_t>(rows.position + row);
      const auto token = static_cast<uint32_t>(rows.tokens[row]);
      for (uint32_t next = 0; next < kVocabulary; ++next) {
        logits[i * kVocabulary + next] = Logit(position, token, next);
      }
    }
  }
  float Logit(uint32_t position, uint32_t token, uint32_t next) const {
    if (bad_at == position) return std::numeric_limits<float>::quiet_NaN();
    return static_cast<float>(slope_ * ((position * 7 + token * 3 + next * next) % 11));
  }
  double LogProbability(uint32_t position, uint32_t token, uint32_t next) const {
    double sum = 0;
    for (uint32_t i = 0; i < kVocabulary; ++i) sum += std::exp(double{Logit(position, token, i)});
    return Logit(position, token, next) - std::log(sum);
  }

  std::vector<std::vector<uint32_t>> fed;  // by window
  uint32_t bad_at = UINT32_MAX;

 private:
  const double slope_;
  model::ModelInfo info_;
};

std::vector<TokenId> Tokens(size_t count) {
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i) tokens.push_back(TokenId{static_cast<uint32_t>(i * i % 5)});
  return tokens;
}

TEST(Measure, CountsTheSecondHalfOfEachWholeWindow) {
  tensor::ThreadPool pool({.threads = 2});
  FakeModel model(0.3);
  const std::vector<TokenId> tokens = Tokens(40);
  const auto found = Measure({.tokens = tokens, .context = 16}, {pool, model});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->windows, 2u);
  EXPECT_EQ(found->positions, 14u);
  double sum = 0, squares = 0;
  for (uint32_t window = 0; window < 2; ++window) {
    for (uint32_t p = 8; p < 15; ++p) {
      const auto token = static_cast<uint32_t>(tokens[16 * window + p]);
      const auto next = static_cast<uint32_t>(tokens[16 * window + p + 1]);
      sum -= model.LogProbability(p, token, next);
      squares += std::pow(model.LogProbability(p, token, next), 2);
    }
  }
  EXPECT_NEAR(found->model.mean_nll, sum / 14, 1e-12);
  EXPECT_NEAR(found->model.perplexity(), std::exp(sum / 14), 1e-9);
  const double variance = (squares - sum * sum / 14) / 13;
  EXPECT_NEAR(found->model.standard_error, std::sqrt(variance / 14), 1e-9);
  EXPECT_FALSE(found->reference.has_value());
  EXPECT_FALSE(found->divergence.has_value());
  // The last token of a window is predicted, never read.
  ASSERT_EQ(model.fed.size(), 2u);
  EXPECT_EQ(model.fed[1].size(), 15u);
  EXPECT_EQ(model.fed[1][0], static_cast<uint32_t>(tokens[16]));
}

TEST(Measure, KnowingNothingGivesTheSizeOfTheVocabulary) {
  tensor::ThreadPool pool({.threads = 1});
  FakeModel model(0);
  const std::vector<TokenId> tokens = Tokens(64);
  const auto found = Measure({.tokens = tokens, .context = 64}, {pool, model});
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->model.perplexity(), kVocabulary, 1e-12);
  EXPECT_NEAR(found->model.perplexity_error(), 0, 1e-12);
}

TEST(Measure, DivergesByTheDefinition) {
  tensor::ThreadPool pool({.threads = 2});
  FakeModel model(0.2), reference(0.5);
  const std::vector<TokenId> tokens = Tokens(32);
  const auto found = Measure({.tokens = tokens, .context = 16}, {pool, model, &reference});
  ASSERT_TRUE(found.ok());
  std::vector<double> all;
  double sum = 0;
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t p = i % 16;
    if (p < 8 || p == 15) continue;
    const auto token = static_cast<uint32_t>(tokens[i]);
    double divergence = 0;
    for (uint32_t next = 0; next < kVocabulary; ++next) {
      const double log_p = reference.LogProbability(p, token, next);
      divergence += std::exp(log_p) * (log_p - model.LogProbability(p, token, next));
    }
    all.push_back(divergence);
    sum += divergence;
  }
  std::ranges::sort(all);
  EXPECT_NEAR(found->divergence->mean, sum / 14, 1e-12);
  EXPECT_NEAR(found->divergence->median, all[6], 1e-12);
  EXPECT_NEAR(found->divergence->p99, all[13], 1e-12);
  EXPECT_NEAR(found->divergence->largest, all[13], 1e-12);
  EXPECT_EQ(found->divergence->agreement, 1.0);  // a flatter slope keeps the order
  EXPECT_LT(found->reference->mean_nll, 10);
}

TEST(Measure, EqualModelsDoNotDiverge) {
  tensor::ThreadPool pool({.threads = 1});
  FakeModel model(0.4), reference(0.4), opposite(-0.4);
  const std::vector<TokenId> tokens = Tokens(32);
  const MeasureJob job{.tokens = tokens, .context = 32};
  const auto equal = Measure(job, {pool, model, &reference});
  EXPECT_EQ(equal->divergence->largest, 0);
  EXPECT_EQ(equal->divergence->agreement, 1);
  EXPECT_EQ(equal->model.mean_nll, equal->reference->mean_nll);
  EXPECT_LT(Measure(job, {pool, opposite, &reference})->divergence->agreement, 0.5);
}

TEST(Measure, BosStandsBeforeEachWindow) {
  tensor::ThreadPool pool({.threads = 1});
  FakeModel model(0.1);
  const std::vector<TokenId> tokens = Tokens(32);
  ASSERT_TRUE(Measure({.tokens = tokens, .context = 16, .bos = TokenId{4}}, {pool, model}).ok());
  EXPECT_EQ(model.fed[0][0], 4u);
  EXPECT_EQ(model.fed[1][0], 4u);
  EXPECT_EQ(model.fed[1][1], static_cast<uint32_t>(tokens[17]));
}

TEST(Measure, DoesNotDependOnThreadsAndTellsItsProgress) {
  const std::vector<TokenId> tokens = Tokens(64);
  std::vector<double> figures;
  for (const uint32_t threads : {1u, 4u}) {
    tensor::ThreadPool pool({.threads = threads});
    FakeModel model(0.7), reference(0.6);
    std::vector<uint64_t> done;
    const auto found = Measure({.tokens = tokens, .context = 16, .windows_max = 3},
                               {pool, model, &reference, [&](uint64_t windows, double perplexity) {
                                  done.push_back(windows);
                                  EXPECT_GT(perplexity, 1);
                                }});
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(done, (std::vector<uint64_t>{1, 2, 3}));
    figures.push_back(found->model.mean_nll);
    figures.push_back(found->divergence->mean);
  }
  EXPECT_EQ(figures[0], figures[2]);
  EXPECT_EQ(figures[1], figures[3]);
}

TEST(Measure, RefusesAShortTextAndBadLogits) {
  tensor::ThreadPool pool({.threads = 1});
  FakeModel model(0.1);
  const std::vector<TokenId> tokens = Tokens(31);
  const auto brief = Measure({.tokens = tokens, .context = 32}, {pool, model});
  EXPECT_EQ(brief.status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(brief.status().field(), "text");
  model.bad_at = 9;
  EXPECT_EQ(Measure({.tokens = tokens, .context = 16}, {pool, model}).status().code(),
            base::Code::kCorrupt);
  model.bad_at = 15;  // never computed
  EXPECT_TRUE(Measure({.tokens = tokens, .context = 16}, {pool, model}).ok());
}

}  // namespace
}  // namespace plumb::cli
