// model/allocation_test.cc: Forward takes no memory. Counts every operator new of the test binary;
// C allocations are out of its sight, and nothing on this path calls them.
#include <gtest/gtest.h>

#include <vector>

#include "base/testing/allocation_count.h"
#include "model/families/deepseek_runner.h"
#include "model/load.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

void ExpectNoAllocation(const TinyModelSpec& spec) {
  const std::string file = TinyModel(spec);
  auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
  ASSERT_TRUE(gguf.ok());
  tensor::ThreadPool pool({.threads = 2});
  auto model = LoadModel(**gguf, {.pool = pool,
                                  .kernels = **tensor::SelectKernels("auto"),
                                  .rows_max = 64,
                                  .logits_rows_max = 8});
  ASSERT_TRUE(model.ok()) << model.status().ToString();

  std::vector<std::byte> first((*model)->info().page_bytes), second(first.size());
  std::byte* const pages[] = {first.data()};
  std::byte* const more_pages[] = {second.data()};
  const std::vector<base::TokenId> tokens(50, base::TokenId{3});
  std::vector<float> logits(3 * (*model)->info().vocabulary_size);
  const uint64_t before = base::testing::allocation_count.load();
  EXPECT_GT(before, 0u);
  for (uint32_t step = 0; step < 3; ++step) {
    const SequenceRows rows[] = {
        {std::span(tokens).first(30), 30 * step, pages, 1},
        {std::span(tokens).first(step + 2), 2 * step, more_pages, 2},
    };
    (*model)->Forward(rows, logits);
  }
  EXPECT_EQ(base::testing::allocation_count.load(), before);
}

TEST(ForwardAllocation, NoneFromTheFirstStepOn) {
  const TinyModelSpec specs[] = {
      {.types = {8, 2, 0}},
      {.architecture = "qwen3", .types = {8, 2, 0}},
      {.experts = 5, .experts_used = 2, .types = {8, 0}},
      {.architecture = "gemma3", .sliding_window = 20, .soft_cap = 30, .types = {8, 0}},
  };
  for (const TinyModelSpec& spec : specs) {
    SCOPED_TRACE(spec.architecture);
    ExpectNoAllocation(spec);
  }
}

TEST(ForwardAllocation, NoneInDeepseekEither) {
  const HfFiles files = DeepseekTinyFiles(MakeDeepseekTiny({}));
  for (const Roundings roundings : {Roundings::kF32, Roundings::kKvq, Roundings::kFull}) {
    DeepseekRunner runner(
        files, {.threads = 2, .rows_max = 64, .roundings = roundings, .replay_rows = 20});
    const auto tokens = RandomTokens(200, runner.vocabulary(), 1);
    DeepseekSequence prompt(runner.model(), tokens, 180), decode(runner.model(), tokens);
    std::vector<float> logits(64 * runner.vocabulary());
    const uint64_t before = base::testing::allocation_count.load();
    while (prompt.left() > 0) {
      const SequenceRows rows[] = {prompt.Take(std::min(prompt.left(), 50u)), decode.Take(2)};
      const uint64_t wanted = rows[0].logits_rows + rows[1].logits_rows;
      runner.model().Forward(rows, std::span(logits).first(wanted * runner.vocabulary()));
    }
    EXPECT_EQ(base::testing::allocation_count.load(), before);
  }
}

}  // namespace
}  // namespace plumb::model
