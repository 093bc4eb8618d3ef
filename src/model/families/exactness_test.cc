// model/families/exactness_test.cc
// The promise of every family: a row's logits and hidden states are the same bits however the
// tokens are split into steps, batched, threaded, and whichever kernels run. Splits are random,
// their seeds printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/families/tiny_runner.h"

namespace plumb::model {
namespace {

struct FamilyCase {
  const char* name;
  TinyModelSpec spec;
  tensor::KvFormat kv_format = tensor::KvFormat::kF16;
};

// Every quantisation of the models at hand; 256 inputs so that K blocks fit.
TinyModelSpec Mixed(TinyModelSpec spec) {
  spec.embedding = 256;
  spec.feed_forward = 512;
  spec.heads = 16;
  spec.kv_heads = 4;
  spec.vocabulary = 70;
  spec.types = {8, 2, 3, 6, 7, 12, 13, 14, 1, 30, 0};
  spec.embedding_type = 14;
  spec.tokenizer = false;
  return spec;
}

const FamilyCase kFamilies[] = {
    {"llama", Mixed({.tied_output = false})},
    {"mistral", {.sliding_window = 100}},
    {"qwen2", Mixed({.architecture = "qwen2", .qkv_bias = true})},
    {"qwen3", Mixed({.architecture = "qwen3"})},
    {"mixtral", Mixed({.experts = 4, .experts_used = 2})},
    {"qwen3moe", Mixed({.architecture = "qwen3moe", .experts = 7, .experts_used = 3})},
    {"gemma3",
     Mixed({.architecture = "gemma3", .layers = 3, .sliding_window = 100, .window_period = 3})},
    {"llama_q8kv", Mixed({.tied_output = false}), tensor::KvFormat::kQ8},
    {"gemma3_q8kv",
     Mixed({.architecture = "gemma3", .layers = 3, .sliding_window = 100, .window_period = 3}),
     tensor::KvFormat::kQ8},
};

class Exactness : public testing::TestWithParam<FamilyCase> {
 protected:
  TinyRunner Runner(uint32_t threads, const tensor::KernelTable& kernels) const {
    return TinyRunner(file_, threads, kernels, 512, GetParam().kv_format);
  }
  const std::string file_ = TinyModel(GetParam().spec);
};

TEST_P(Exactness, ChunksDoNotChangeABit) {
  std::vector<float> whole;
  for (uint32_t threads = 1; threads <= 8; ++threads) {
    TinyRunner runner = Runner(threads, Fastest());
    const auto tokens = RandomTokens(200, runner.vocabulary(), 7);
    if (threads == 1) {
      whole = RunAlone(runner.model(), tokens, [] { return 512u; });
      for (const float logit : whole) ASSERT_TRUE(std::isfinite(logit));
      EXPECT_TRUE(SameBits(whole, RunAlone(runner.model(), tokens, [] { return 1u; })));
    }
    for (const uint64_t bound : {150u, 12u}) {
      base::Rng rng(11 * threads + bound);
      EXPECT_TRUE(
          SameBits(whole, RunAlone(runner.model(), tokens,
                                   [&] { return static_cast<uint32_t>(1 + rng.Below(bound)); })))
          << threads << " threads, chunks of at most " << bound;
    }
  }
}

// What each sequence gives alone, for every row.
struct Alone {
  std::vector<float> logits, hidden;
};

// Takes rows of random sequences as the next step, with logits for some of the last of each.
std::vector<SequenceRows> RandomStep(std::vector<TinySequence>& sequences, base::Rng& rng,
                                     std::vector<uint32_t>& who) {
  std::vector<SequenceRows> step;
  uint32_t room = 60;
  who.clear();
  for (uint32_t i = 0; i < sequences.size(); ++i) {
    if (sequences[i].left() == 0 || room == 0 || rng.Below(4) == 0) continue;
    const uint64_t bound = rng.Below(2) == 0 ? 1 : 40;
    const uint32_t count =
        std::min({sequences[i].left(), room, static_cast<uint32_t>(1 + rng.Below(bound))});
    step.push_back(sequences[i].Take(count));
    step.back().logits_rows = static_cast<uint32_t>(rng.Below(count + 1));
    who.push_back(i);
    room -= count;
  }
  return step;
}

// Steps of random composition until all sequences are through, prompts, decode rows and all
// between; what they give against each sequence alone. Returns the number of rows compared.
uint32_t CompareInRandomSteps(Model& model, const std::vector<std::vector<TokenId>>& prompts,
                              const std::vector<Alone>& alone, uint64_t seed) {
  base::Rng rng(seed);
  const uint64_t vocabulary = model.info().vocabulary_size, width = model.info().hidden_width;
  std::vector<TinySequence> sequences;
  for (const auto& tokens : prompts) sequences.emplace_back(model, tokens);
  uint32_t compared = 0;
  std::vector<uint32_t> who;
  while (std::any_of(sequences.begin(), sequences.end(),
                     [](const TinySequence& s) { return s.left() > 0; })) {
    std::vector<SequenceRows> step = RandomStep(sequences, rng, who);
    if (step.empty()) continue;
    uint32_t wanted = 0;
    for (const SequenceRows& rows : step) wanted += rows.logits_rows;
    compared += wanted;
    // Of some, hidden states instead.
    std::vector<std::vector<float>> hidden(step.size());
    for (size_t i = 0; i < step.size(); ++i) {
      if (rng.Below(3) > 0) continue;
      hidden[i].resize(step[i].logits_rows * width);
      step[i].hidden = hidden[i];
      wanted -= std::exchange(step[i].logits_rows, 0);
    }
    std::vector<float> logits(wanted * vocabulary);
    model.Forward(step, logits);
    std::span<const float> next = logits;
    for (size_t i = 0; i < step.size(); ++i) {
      const auto last_of = [&](const std::vector<float>& all, uint64_t row, uint64_t count) {
        return std::span(all).subspan(sequences[who[i]].done * row - count, count);
      };
      const Alone& expected = alone[who[i]];
      const uint64_t count = step[i].logits_rows * vocabulary;
      EXPECT_TRUE(SameBits(next.first(count), last_of(expected.logits, vocabulary, count)));
      EXPECT_TRUE(SameBits(hidden[i], last_of(expected.hidden, width, hidden[i].size())));
      next = next.subspan(count);
    }
  }
  return compared;
}

TEST_P(Exactness, BatchMatesThreadsAndKernelsDoNotChangeABit) {
  TinyRunner one = Runner(1, Fastest());
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Alone> alone;
  for (uint32_t i = 0; i < 5; ++i) {
    prompts.push_back(RandomTokens(10 + 35 * i, one.vocabulary(), i));
    alone.push_back({RunAlone(one.model(), prompts.back(), [] { return 512u; }),
                     HiddenAlone(one.model(), prompts.back(), [] { return 512u; })});
    for (const float value : alone.back().hidden) ASSERT_TRUE(std::isfinite(value));
  }
  for (const tensor::KernelTable* kernels : tensor::AllKernels()) {
    for (uint32_t threads = 1; threads <= 8; ++threads) {
      // The judge is slow, and threads are the same to it.
      if (kernels->name == "scalar" && threads != 2) continue;
      const uint64_t seed = 1000 * threads + kernels->name.size();
      SCOPED_TRACE(testing::Message() << GetParam().name << ", " << kernels->name << ", " << threads
                                      << " threads, seed " << seed);
      TinyRunner runner = Runner(threads, *kernels);
      EXPECT_GT(CompareInRandomSteps(runner.model(), prompts, alone, seed), 50u);
    }
  }
}

// What a sealed page holds must not change when later rows arrive, nor by how it was computed, nor
// by whose logits were wanted.
TEST_P(Exactness, PagesHoldTheSameBytesHoweverTheyWereFilled) {
  TinyRunner runner = Runner(2, Fastest());
  const auto tokens = RandomTokens(kPageTokens + 30, runner.vocabulary(), 13);
  TinySequence whole(runner.model(), tokens), pieces(runner.model(), tokens);
  std::vector<float> logits(tokens.size() * runner.vocabulary());
  const SequenceRows all[] = {whole.Take(whole.left())};
  runner.model().Forward(all, logits);
  while (pieces.left() > 0) {
    SequenceRows rows[] = {pieces.Take(std::min(pieces.left(), 17u))};
    rows[0].logits_rows = 0;
    runner.model().Forward(rows, {});
  }
  EXPECT_EQ(whole.memory, pieces.memory);
}

INSTANTIATE_TEST_SUITE_P(Families, Exactness, testing::ValuesIn(kFamilies),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(FamiliesDeathTest, RefuseWhatCannotBeComputed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string file = TinyModel({.context = 16, .tokenizer = false});
  TinyRunner runner(file, 1, Fastest(), 8);
  TinySequence sequence(runner.model(), RandomTokens(8, runner.vocabulary(), 1));
  std::vector<float> logits(8 * runner.vocabulary());
  const auto run = [&](std::vector<TokenId> tokens, uint32_t position, uint32_t logits_rows,
                       bool pages) {
    const std::span<std::byte* const> all(sequence.pages);
    const SequenceRows rows[] = {{tokens, position, pages ? all : all.first(0), logits_rows}};
    runner.model().Forward(rows, logits);
  };
  const std::vector<TokenId> one = {TokenId{1}};
  EXPECT_DEATH(run({}, 0, 0, true), "rows");
  EXPECT_DEATH(run(RandomTokens(9, 10, 1), 0, 0, true), "rows");
  EXPECT_DEATH(run({TokenId{320}}, 0, 1, true), "320");
  EXPECT_DEATH(run(one, 16, 1, true), "context 16");
  EXPECT_DEATH(run(one, 0, 1, false), "0 pages");
  EXPECT_DEATH(run(one, 0, 2, true), "2");
  const auto want = [&](uint32_t logits_rows, size_t hidden_values) {
    std::vector<float> hidden(hidden_values);
    const SequenceRows rows[] = {
        {.tokens = one, .pages = sequence.pages, .logits_rows = logits_rows, .hidden = hidden}};
    runner.model().Forward(rows, {});
  };
  const uint32_t width = runner.model().info().hidden_width;
  EXPECT_DEATH(want(1, width), "hidden states and logits");
  EXPECT_DEATH(want(0, width - 1), "hidden");
  EXPECT_DEATH(want(0, 2 * width), "2");
  EXPECT_DEATH(run(one, 0, 1, true), "logits.size");  // the span is too long for one row
}

}  // namespace
}  // namespace plumb::model
