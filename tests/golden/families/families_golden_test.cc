// tests/golden/families/families_golden_test.cc
// A Hugging Face folder of each family gives the logits that transformers computes from it
// (make_goldens.py, manifest.json). Bounds on |ours - theirs| / |theirs| over a prompt: below.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/disk.h"
#include "model/load.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

using nlohmann::json;

// Two references, since plumb stores keys and values in f16. Against f16 keys and values, f32
// weights leave only the order of f32 sums, about sqrt(n) 2^-24; but a key that near to a rounding
// boundary may round the other way, which is 2^-11 of one entry, so a few of those are allowed.
constexpr double kSameRoundings = 0x1p-14;
// Against f32 keys and values: each is off by at most 2^-11 of itself, once in the scores and once
// in the values, and the layers (two or three) add up.
constexpr double kF16Steps = 6 * 0x1p-11;
// BF16 matrices are packed as fixed point: a weight is off by at most half of 2^-10 of its group's
// largest (docs/decisions/0002-bf16-fixed-point.md), about 2^-11 of a product's size; a layer has
// four products in sequence, which in two layers add up as independent errors do, to 3 * 2^-11.
// mistral's 200 tokens measured 1.2e-3, with and without its window; the same values stored as F32,
// 1.9e-5.
constexpr double kBf16Steps = 6 * 0x1p-11;
constexpr uint64_t kGoldensBytesMax = 1u << 20;

class FamiliesGolden : public testing::TestWithParam<const char*> {
 protected:
  std::string Path() const { return std::string(FOLDER) + "/" + GetParam(); }

  // Logits at `positions`, the prompt given in two steps.
  std::vector<std::vector<float>> Logits(Model& model, const std::vector<TokenId>& tokens,
                                         const std::vector<uint32_t>& positions) {
    const uint64_t vocabulary = model.info().vocabulary_size;
    std::vector<std::vector<std::byte>> memory(tokens.size() / kPageTokens + 1,
                                               std::vector<std::byte>(model.info().page_bytes));
    std::vector<std::byte*> pages;
    for (auto& page : memory) pages.push_back(page.data());
    std::vector<float> all(tokens.size() * vocabulary);
    const auto half = static_cast<uint32_t>(tokens.size() / 2);
    for (const auto& [begin, end] :
         {std::pair(0u, half), std::pair(half, static_cast<uint32_t>(tokens.size()))}) {
      if (begin == end) continue;
      const SequenceRows rows[] = {
          {std::span(tokens).subspan(begin, end - begin), begin, pages, end - begin}};
      model.Forward(rows, std::span(all).subspan(begin * vocabulary, (end - begin) * vocabulary));
    }
    std::vector<std::vector<float>> picked;
    for (const uint32_t position : positions) {
      const auto row = std::span(all).subspan(position * vocabulary, vocabulary);
      picked.emplace_back(row.begin(), row.end());
    }
    return picked;
  }
};

// |a - b| / |b|
double Distance(const std::vector<std::vector<float>>& a,
                const std::vector<std::vector<double>>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    EXPECT_EQ(a[i].size(), b[i].size());
    for (size_t k = 0; k < b[i].size(); ++k) {
      difference += (a[i][k] - b[i][k]) * (a[i][k] - b[i][k]);
      size += b[i][k] * b[i][k];
    }
  }
  return std::sqrt(difference / size);
}

TEST_P(FamiliesGolden, GivesTheLogitsOfTransformers) {
  auto checkpoint = OpenModelFile(Path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  tensor::ThreadPool pool({.threads = 2});
  auto model = LoadModel(**checkpoint, {.pool = pool,
                                        .kernels = **tensor::SelectKernels("auto"),
                                        .rows_max = 256,
                                        .logits_rows_max = 256});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  auto text = base::ReadFile(Path() + "/goldens.json", kGoldensBytesMax);
  ASSERT_TRUE(text.ok()) << text.status().ToString();
  const json goldens = json::parse(*text);
  const bool bf16 = (*checkpoint)->FindTensor("token_embd.weight")->stored_type == "BF16";
  double largest_same = 0, largest_f32 = 0;
  for (const json& prompt : goldens["prompts"]) {
    std::vector<TokenId> tokens;
    for (const uint32_t token : prompt["tokens"].get<std::vector<uint32_t>>()) {
      tokens.push_back(TokenId{token});
    }
    const auto positions = prompt["positions"].get<std::vector<uint32_t>>();
    const auto ours = Logits(**model, tokens, positions);
    const auto same = prompt["logits_f16_kv"].get<std::vector<std::vector<double>>>();
    const auto f32 = prompt["logits"].get<std::vector<std::vector<double>>>();
    ASSERT_EQ(same.size(), positions.size());
    EXPECT_LT(Distance(ours, same), bf16 ? kBf16Steps : kSameRoundings) << tokens.size();
    EXPECT_LT(Distance(ours, f32), kF16Steps + (bf16 ? kBf16Steps : 0)) << tokens.size();
    largest_same = std::max(largest_same, Distance(ours, same));
    largest_f32 = std::max(largest_f32, Distance(ours, f32));
  }
  RecordProperty("largest_same", std::to_string(largest_same));
  RecordProperty("largest_f32", std::to_string(largest_f32));
}

INSTANTIATE_TEST_SUITE_P(Families, FamiliesGolden,
                         testing::Values("llama", "mistral", "qwen2", "qwen3", "qwen3_f8",
                                         "qwen3_moe", "qwen3_moe_plain", "mixtral", "gemma3_text"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace plumb::model
