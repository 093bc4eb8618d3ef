// model/families/deepseek_v41_need_test.cc: the released model's sizes, which were published; small
// models are held against their files in deepseek_v41_weights_test.cc.
#include "model/families/deepseek_v41_need.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/families/deepseek_v41_released.h"
#include "model/families/deepseek_v41_tiny.h"

namespace plumb::model {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

DeepseekConfig Released() { return *ReadDeepseekConfig(kDeepseekReleasedConfig, ""); }

TEST(DeepseekNeed, TheReleasedModelKeeps890BytesAToken) {
  const DeepseekNeed need = NeedOf(Released());
  EXPECT_EQ(need.token_bytes, 890u);
  EXPECT_EQ(need.page_bytes, 113'920u);
  // Window rows of 20 layers, and the last three token ids.
  EXPECT_EQ(need.checkpoint_bytes, 20u * 128 * 528 + 3 * 4);
  EXPECT_GT(need.state_bytes, 40u * 134 * 528);
}

TEST(DeepseekNeed, TheReleasedModelTakesWhatWasPublished) {
  const DeepseekNeed need = NeedOf(Released());
  // Rows of 256 codes and 8 scales.
  EXPECT_EQ(need.table_bytes, (384006168u + uint64_t{384016682}) * 264);
  EXPECT_EQ(need.expert_bytes, uint64_t{40} * 384 * 3 * 2304 * 5120 * 17 / 32);
  EXPECT_EQ(need.table_row_bytes, 2u * 24 * 264);
  // 475 GiB with vision, which is half of one.
  const double all =
      static_cast<double>(need.weight_bytes + need.table_bytes + need.draft_bytes) / kGiB;
  EXPECT_NEAR(all, 474.5, 1.0);
  // "16B active", "about 13 GB of reads".
  EXPECT_NEAR(static_cast<double>(need.active_parameters), 16e9, 0.3e9);
  EXPECT_NEAR(static_cast<double>(need.active_weight_bytes), 12.9e9, 0.3e9);
}

TEST(DeepseekNeed, KeysAndValuesReadGrowOnlyByIndexKeysBehindTheSelection) {
  const DeepseekConfig c = Released();
  const auto read = [&](uint64_t position) {
    return DeepseekWorkOf(c, {.position = position}).kv_bytes;
  };
  // A window row in each layer; main row and index keys of the token in the decoder.
  EXPECT_EQ(read(0), 40 * 528 + 20 * 288 + 5 * 68);
  // Sources 2, 8, 14 score a key for two tokens, source 20 one for each; the rest their candidates.
  EXPECT_EQ(read(102'000) - read(100'000), 3 * 1000 * 68 + 2000 * 68);
}

TEST(DeepseekNeed, ATokenIsAShareOfItsPageAlsoWhereRowsOfPairsAreOdd) {
  // Rows of 32 + 4 and 16 + 1 bytes: 53 for a token, and for two in the encoder.
  DeepseekTinySpec spec;
  spec.head_dim = 64;
  spec.kv_sources = {1, 2, 3};
  spec.index_sources = {1, 2, 3};
  const DeepseekConfig c = *ReadDeepseekConfig(MakeDeepseekTiny(spec).config.dump(), "");
  EXPECT_EQ(NeedOf(c).token_bytes, 106u);
}

TEST(DeepseekWork, OfADecodedTokenIsWhatATokenTouches) {
  const DeepseekConfig c = Released();
  const DeepseekNeed need = NeedOf(c);
  for (const uint64_t position : {0u, 1000u, 100'000u}) {
    const DeepseekWork work = DeepseekWorkOf(c, {.position = position});
    EXPECT_NEAR(work.weight_bytes + work.row_bytes, static_cast<double>(need.active_weight_bytes),
                64)
        << position;
    EXPECT_EQ(work.row_bytes, static_cast<double>(need.table_row_bytes + 2 * c.hidden));
  }
  // The first token: its window row in each layer, its main row in the decoder's, five index keys.
  const uint64_t attention = (40 + 20) * 2 * 64 * 512 + 5 * 32 * 128;
  EXPECT_EQ(DeepseekWorkOf(c, {}).operations,
            2 * static_cast<double>(need.active_parameters + attention));
}

TEST(DeepseekWork, OfAPromptIsTheSumOfItsStepsAndRowsBeforeTheReplayHaveNoDecoder) {
  const DeepseekConfig c = Released();
  const auto work = [&](uint64_t position, uint64_t rows, uint64_t logits_rows) {
    return DeepseekWorkOf(
        c, {.position = position, .rows = rows, .replay_from = 600, .logits_rows = logits_rows});
  };
  const DeepseekWork whole = work(0, 1000, 1);
  const DeepseekWork before = work(0, 600, 0);
  const DeepseekWork replayed = work(600, 400, 1);
  EXPECT_DOUBLE_EQ(whole.operations, before.operations + replayed.operations);
  EXPECT_DOUBLE_EQ(whole.row_bytes, before.row_bytes + replayed.row_bytes);
  const double all_layers =
      2 * 600 * static_cast<double>(NeedOf(c).active_parameters - uint64_t{129280} * 5120);
  EXPECT_LT(before.operations, 0.6 * all_layers);
  EXPECT_GT(before.operations, 0.5 * all_layers);
}

TEST(DeepseekWork, ManyRowsReadEveryExpertOnce) {
  const DeepseekConfig c = Released();
  const DeepseekWork work = DeepseekWorkOf(c, {.sequences = 4000});
  EXPECT_NEAR(work.weight_bytes,
              static_cast<double>(NeedOf(c).weight_bytes - uint64_t{129280} * 5120 * 2), 4096);
  EXPECT_EQ(work.kv_bytes, 4000 * DeepseekWorkOf(c, {}).kv_bytes);
}

TEST(DeepseekNeed, WithoutRoundingsRowsAreFloats) {
  EXPECT_EQ(NeedOf(Released(), Roundings::kF32).token_bytes, (3u * (512 + 128) / 2 + 640) * 4);
}

}  // namespace
}  // namespace plumb::model
