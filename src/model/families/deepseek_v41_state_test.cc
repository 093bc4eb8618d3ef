// model/families/deepseek_v41_state_test.cc: bytes of the released shape, and places that never
// meet.
#include "model/families/deepseek_v41_state.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace plumb::model {
namespace {

// The released model's numbers, as far as layout goes.
DeepseekConfig ReleasedShape() {
  DeepseekConfig config;
  config.layer_count = 40;
  config.decoder_begin = 20;
  config.window = 128;
  config.head_dim = 512;
  config.index_dim = 128;
  config.engram_layers = {1, 14};
  config.engram_ngram_max = 4;
  config.layers.resize(40);
  for (uint32_t i = 2; i < 40; ++i) config.layers[i].ratio = i < 20 ? 2 : 1;
  for (const uint32_t source : {2, 8, 14, 20}) config.layers[source].owns_kv = true;
  return config;
}

TEST(DeepseekLayout, HasThePublishedBytesOfTheReleasedModel) {
  const DeepseekLayout layout(ReleasedShape(), RoundingsOf(Roundings::kKvq), 6);
  EXPECT_EQ(layout.page_bytes(), 113'920u);
  EXPECT_EQ(layout.page_bytes() / kPageTokens, 890u);
  EXPECT_EQ(layout.page_bytes() % kPageTokens, 0u);
  EXPECT_EQ(layout.window_row_bytes(), 528u);
  EXPECT_EQ(layout.window_slots(), 134u);
  EXPECT_EQ(layout.open_slots(2), 8u);
  EXPECT_EQ(layout.checkpoint_bytes(), 20u * 128 * 528 + 3 * 4);
  // 40 windows of 134 rows; three compressors; nine token ids.
  EXPECT_GE(layout.state_bytes(), 40u * 134 * 528 + 3u * 8 * 4096 + 9 * 4);
  EXPECT_LT(layout.state_bytes(), 40u * 134 * 528 + 3u * 8 * 4096 + 9 * 4 + 256);
}

TEST(DeepseekLayout, WithoutReplayACheckpointHoldsEveryLayersWindow) {
  const DeepseekLayout layout(ReleasedShape(), RoundingsOf(Roundings::kKvq), 6, false);
  EXPECT_EQ(layout.checkpoint_bytes(), 40u * 128 * 528 + 3 * 4);
  std::vector<std::byte> state(layout.state_bytes()), other(layout.state_bytes());
  std::vector<std::byte> checkpoint(layout.checkpoint_bytes());
  layout.WindowRow(state.data(), 39, 255)[0] = std::byte{7};
  DeepseekLayout::SetProgress(state.data(), {.end = 256, .newest = 256});
  layout.Save(state.data(), 256, checkpoint);
  layout.Load(checkpoint, 256, other.data());
  EXPECT_EQ(layout.WindowRow(other.data(), 39, 255)[0], std::byte{7});
  EXPECT_EQ(DeepseekLayout::Progress(other.data()).begin, 0u) << "as if it had computed all";
}

TEST(DeepseekLayout, PageSectionsAreAlignedAndDoNotMeet) {
  for (const Roundings mode : {Roundings::kF32, Roundings::kKvq}) {
    DeepseekConfig config = ReleasedShape();
    config.head_dim = 96;
    config.index_dim = 64;
    const DeepseekRoundings roundings = RoundingsOf(mode);
    const DeepseekLayout layout(config, roundings, 6);
    std::vector<std::byte> page(layout.page_bytes());
    std::byte* const pages[] = {page.data()};
    std::set<std::ptrdiff_t> bytes;
    for (const uint32_t layer : config.KvSources()) {
      EXPECT_EQ((layout.MainRow(layer, pages, 0) - page.data()) % 32, 0);
      EXPECT_EQ(layout.key_offset(layer) % 32, 0u);
      for (uint32_t row = 0; row < layout.page_rows(layer); ++row) {
        const auto take = [&](const std::byte* first, uint64_t size) {
          for (uint64_t i = 0; i < size; ++i) {
            EXPECT_TRUE(bytes.insert(first + i - page.data()).second);
          }
        };
        take(layout.MainRow(layer, pages, row), tensor::RowBytes(roundings.main, 96));
        take(layout.KeyRow(layer, pages, row), tensor::RowBytes(roundings.key, 64));
      }
    }
    EXPECT_GE(*bytes.begin(), 0);
    EXPECT_LT(*bytes.rbegin(), static_cast<std::ptrdiff_t>(page.size()));
  }
}

TEST(DeepseekLayout, RowsOfLaterPagesLieThere) {
  const DeepseekLayout layout(ReleasedShape(), RoundingsOf(Roundings::kKvq), 6);
  std::vector<std::byte> first(layout.page_bytes()), second(layout.page_bytes());
  std::byte* const pages[] = {first.data(), second.data()};
  EXPECT_EQ(layout.MainRow(2, pages, 64) - second.data(),
            layout.MainRow(2, pages, 0) - first.data());
  EXPECT_EQ(layout.KeyRow(20, pages, 130) - second.data(),
            layout.KeyRow(20, pages, 2) - first.data());
}

// A later position never takes the slot of one that a step may still look back to.
TEST(DeepseekLayout, RingsHoldWhatCanStillBeWanted) {
  const DeepseekConfig config = ReleasedShape();
  const DeepseekLayout layout(config, RoundingsOf(Roundings::kKvq), 6);
  std::vector<std::byte> state(layout.state_bytes());
  const uint32_t newest = 5000, next = newest - 6;  // the last step's end, the next one's begin
  std::set<std::byte*> slots;
  for (uint32_t position = next - 127; position < newest; ++position) {
    EXPECT_TRUE(slots.insert(layout.WindowRow(state.data(), 3, position)).second);
  }
  for (uint32_t position = next - 1; position < newest; ++position) {
    EXPECT_TRUE(slots.insert(layout.OpenRow(state.data(), 8, position)).second);
  }
  for (uint32_t position = next - 3; position < newest; ++position) {
    layout.SetToken(state.data(), position, TokenId{position});
  }
  for (uint32_t position = next - 3; position < newest; ++position) {
    EXPECT_EQ(layout.Token(state.data(), position), TokenId{position});
  }
  for (std::byte* slot : slots) {
    EXPECT_GE(slot, state.data() + sizeof(DeepseekProgress));
    EXPECT_LT(slot, state.data() + state.size());
  }
}

TEST(DeepseekLayoutDeathTest, SavesOnlyWhatTheStateStillHolds) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const DeepseekLayout layout(ReleasedShape(), RoundingsOf(Roundings::kKvq), 6);
  std::vector<std::byte> state(layout.state_bytes());
  std::vector<std::byte> checkpoint(layout.checkpoint_bytes());
  DeepseekLayout::SetProgress(state.data(), {.end = 135, .newest = 135});
  EXPECT_DEATH(layout.Save(state.data(), 128, checkpoint), "newest 135");
  EXPECT_DEATH(layout.Save(state.data(), 256, checkpoint), "256 of 135");
  EXPECT_DEATH(layout.Save(state.data(), 100, checkpoint), "100");
  DeepseekLayout::SetProgress(state.data(), {.end = 134, .newest = 134});
  layout.Save(state.data(), 128, checkpoint);
  EXPECT_DEATH(layout.Load(std::span(checkpoint).first(9), 128, state.data()), "9");
}

}  // namespace
}  // namespace plumb::model
