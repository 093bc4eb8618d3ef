// tests/golden/embeddings/embeddings_golden_test.cc
// A model's hidden states, pooled, are the embedding that NumPy computes in f64 from the same
// checkpoint (make_goldens.py, manifest.json). Both have length 1, so |ours - theirs| is relative.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/disk.h"
#include "engine/pooling.h"
#include "model/load.h"
#include "tensor/cpu_features.h"

namespace plumb::engine {
namespace {

using nlohmann::json;

// Of one row, as of logits: see ../families/families_golden_test.cc.
constexpr double kSameRoundings = 0x1p-14;
constexpr double kF16Steps = 6 * 0x1p-11;
constexpr uint64_t kGoldensBytesMax = 1u << 20;

double Norm(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

// The prompt's hidden states, computed in three steps, and pooled.
struct Pooled {
  std::vector<float> embedding;
  // How much larger an error of the rows is in what they are pooled to, which is shorter than they
  // are where they point in different directions.
  double amplification = 1;
};

Pooled Embed(model::Model& model, const std::vector<TokenId>& tokens, Pooling pooling) {
  const uint32_t width = model.info().hidden_width;
  std::vector<std::byte> memory(model.info().page_bytes * (tokens.size() / model::kPageTokens + 1));
  std::vector<std::byte*> pages;
  for (size_t i = 0; i < memory.size(); i += model.info().page_bytes) pages.push_back(&memory[i]);
  Pooler pooler(pooling, width);
  double lengths = 0;
  std::vector<double> sum(width);
  const auto count = static_cast<uint32_t>(tokens.size());
  for (uint32_t begin = 0, end = 0; begin < count; begin = end) {
    end = std::min(count, begin + count / 3 + 1);
    std::vector<float> hidden(size_t{end - begin} * width);
    const model::SequenceRows rows[] = {{.tokens = std::span(tokens).subspan(begin, end - begin),
                                         .position = begin,
                                         .pages = pages,
                                         .hidden = hidden}};
    model.Forward(rows, {});
    EXPECT_TRUE(pooler.Add(hidden).ok());
    for (size_t row = 0; row < hidden.size(); row += width) {
      if (pooling == Pooling::kLast && begin + row / width + 1 < count) continue;
      const std::vector<double> one(hidden.begin() + static_cast<ptrdiff_t>(row),
                                    hidden.begin() + static_cast<ptrdiff_t>(row + width));
      lengths += Norm(one);
      for (uint32_t i = 0; i < width; ++i) sum[i] += one[i];
    }
  }
  EXPECT_TRUE(pooler.Finish().ok());
  return {pooler.Take(), lengths / Norm(sum)};
}

double Distance(const std::vector<float>& a, const json& b) {
  std::vector<double> difference = b.get<std::vector<double>>();
  EXPECT_EQ(a.size(), difference.size());
  EXPECT_NEAR(Norm(difference), 1, 1e-6);
  for (size_t i = 0; i < a.size(); ++i) difference[i] -= static_cast<double>(a[i]);
  return Norm(difference);
}

TEST(EmbeddingsGolden, MeanAndLastAreThoseOfTheDefinition) {
  auto checkpoint = model::OpenModelFile(std::string(FOLDER) + "/../families/qwen2");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  tensor::ThreadPool pool({.threads = 2});
  auto model = model::LoadModel(**checkpoint, {.pool = pool,
                                               .kernels = **tensor::SelectKernels("auto"),
                                               .rows_max = 256,
                                               .logits_rows_max = 1});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  auto text = base::ReadFile(std::string(FOLDER) + "/goldens.json", kGoldensBytesMax);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  const json goldens = json::parse(*text);
  ASSERT_EQ(goldens.size(), 4u);
  double largest_same = 0, largest_f64 = 0;
  for (const json& golden : goldens) {
    std::vector<TokenId> tokens;
    for (const uint32_t token : golden["tokens"].get<std::vector<uint32_t>>()) {
      tokens.push_back(TokenId{token});
    }
    SCOPED_TRACE(tokens.size());
    const Pooled mean = Embed(**model, tokens, Pooling::kMean);
    const Pooled last = Embed(**model, tokens, Pooling::kLast);
    EXPECT_LT(mean.amplification, 20) << "the bounds would say little";
    EXPECT_LT(Distance(mean.embedding, golden["mean_f16_kv"]), kSameRoundings * mean.amplification);
    EXPECT_LT(Distance(last.embedding, golden["last_f16_kv"]), kSameRoundings);
    EXPECT_LT(Distance(mean.embedding, golden["mean"]), kF16Steps * mean.amplification);
    EXPECT_LT(Distance(last.embedding, golden["last"]), kF16Steps);
    // One is not taken for the other.
    if (tokens.size() > 1) {
      EXPECT_GT(Distance(mean.embedding, golden["last"]), 0.1);
    }
    largest_same = std::max(largest_same, Distance(mean.embedding, golden["mean_f16_kv"]));
    largest_f64 = std::max(largest_f64, Distance(mean.embedding, golden["mean"]));
  }
  RecordProperty("largest_same", std::to_string(largest_same));
  RecordProperty("largest_f64", std::to_string(largest_f64));
}

}  // namespace
}  // namespace plumb::engine
