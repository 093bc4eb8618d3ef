// model/families/architecture_test.cc
// Each family computes its architecture: float models of every variant against the plain forward in
// double. Real checkpoints of another implementation: tests/golden/families.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/families/plain_forward.h"
#include "model/families/tiny_runner.h"

namespace plumb::model {
namespace {

TEST(Families, ComputeWhatThePapersSay) {
  struct Case {
    const char* name;
    TinyModelSpec spec;
  };
  const Case cases[] = {
      {"llama", {}},
      {"llama untied", {.tied_output = false}},
      {"llama 3 frequencies", {.rope_freqs = true}},
      {"mistral window", {.sliding_window = 50}},
      {"one kv head per head", {.kv_heads = 4}},
      {"wide heads", {.heads = 2, .kv_heads = 1, .head_dim = 48}},
      {"one layer", {.layers = 1}},
      {"qwen2", {.architecture = "qwen2", .qkv_bias = true}},
      {"qwen3", {.architecture = "qwen3", .head_dim = 32}},
      {"mixtral", {.sliding_window = 30, .experts = 4, .experts_used = 2}},
      {"mixtral, all experts", {.experts = 3, .experts_used = 3}},
      {"qwen3moe", {.architecture = "qwen3moe", .experts = 9, .experts_used = 4}},
      {"qwen3moe, not normalised",
       {.architecture = "qwen3moe", .experts = 8, .experts_used = 3, .expert_norm = false}},
      {"gemma3", {.architecture = "gemma3", .layers = 7, .sliding_window = 40}},
      {"gemma3, period and cap",
       {.architecture = "gemma3",
        .layers = 4,
        .sliding_window = 20,
        .window_period = 2,
        .soft_cap = 1.5f}},
      {"gemma3, no window", {.architecture = "gemma3", .tied_output = false}},
  };
  for (const Case& c : cases) {
    TinyModelSpec spec = c.spec;
    spec.tokenizer = false;
    spec.types = {0};
    spec.embedding_type = 0;
    spec.vocabulary = 40;
    const std::string file = TinyModel(spec);
    auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
    const std::vector<TokenId> tokens = RandomTokens(140, spec.vocabulary, 3);
    auto config = ReadConfig(**gguf);
    ASSERT_TRUE(config.ok()) << c.name << config.status().ToString();
    const auto expected = PlainForward(**gguf, *config).Run(tokens);
    TinyRunner runner(file, 2, Fastest());
    const std::vector<float> logits = RunAlone(runner.model(), tokens, [] { return 200; });
    double largest = 0, error = 0;
    for (size_t p = 0; p < tokens.size(); ++p) {
      for (uint32_t t = 0; t < spec.vocabulary; ++t) {
        largest = std::max(largest, std::abs(expected[p][t]));
        error = std::max(error, std::abs(expected[p][t] - logits[p * spec.vocabulary + t]));
      }
    }
    EXPECT_GT(largest, 0.5) << c.name;
    // Keys and values rounded to f16 (2^-11) are the largest error by far.
    EXPECT_LT(error, 4 * 0x1p-11 * largest) << c.name;
  }
}

}  // namespace
}  // namespace plumb::model
