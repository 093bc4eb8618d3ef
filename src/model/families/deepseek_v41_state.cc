// model/families/deepseek_v41_state.cc: offsets, and copies between rings and checkpoints. A ring
// has as many slots as the longest look back plus the rows that may be taken back, so that what a
// later step can still want is never overwritten.
#include "model/families/deepseek_v41_state.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace plumb::model {
namespace {

constexpr uint64_t kSectionAlignment = 32;
constexpr uint64_t kHeaderBytes = 64;
static_assert(sizeof(DeepseekProgress) <= kHeaderBytes);

uint64_t Align(uint64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

}  // namespace

DeepseekLayout::DeepseekLayout(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                               uint32_t backtrack_rows, bool replays)
    : window_(config.window),
      replays_(replays),
      kept_layers_(replays ? config.decoder_begin : config.layer_count),
      backtrack_rows_(backtrack_rows),
      main_row_bytes_(tensor::RowBytes(roundings.main, config.head_dim)),
      key_row_bytes_(tensor::RowBytes(roundings.key, config.index_dim)),
      window_row_bytes_(tensor::RowBytes(roundings.window, config.head_dim)),
      open_row_bytes_(2 * sizeof(float) * config.head_dim),
      sources_(config.layer_count) {
  window_slots_ = window_ + backtrack_rows_;
  state_bytes_ = kHeaderBytes + Align(config.layer_count * window_slots_ * window_row_bytes_);
  for (const uint32_t layer : config.KvSources()) {
    const uint32_t ratio = config.layers[layer].ratio;
    CHECK(ratio >= 1 && kPageTokens % ratio == 0) << ratio;
    Source& source = sources_[layer];
    source.page_rows = kPageTokens / ratio;
    source.main_offset = page_bytes_;
    source.key_offset = source.main_offset + Align(source.page_rows * main_row_bytes_);
    page_bytes_ = source.key_offset + Align(source.page_rows * key_row_bytes_);
    if (ratio == 1) continue;
    source.open_slots = ratio + backtrack_rows_;
    source.open_offset = state_bytes_;
    state_bytes_ += source.open_slots * open_row_bytes_;
  }
  token_offset_ = state_bytes_;
  if (!config.engram_layers.empty()) {
    tokens_kept_ = config.engram_ngram_max - 1;
    token_slots_ = tokens_kept_ + backtrack_rows_;
    state_bytes_ = Align(state_bytes_ + token_slots_ * sizeof(TokenId));
  }
  checkpoint_bytes_ =
      uint64_t{kept_layers_} * window_ * window_row_bytes_ + tokens_kept_ * sizeof(TokenId);
}

std::byte* DeepseekLayout::MainRow(uint32_t layer, std::span<std::byte* const> pages,
                                   uint32_t row) const {
  const Source& source = sources_[layer];
  return pages[row / source.page_rows] + source.main_offset +
         row % source.page_rows * main_row_bytes_;
}

std::byte* DeepseekLayout::KeyRow(uint32_t layer, std::span<std::byte* const> pages,
                                  uint32_t row) const {
  const Source& source = sources_[layer];
  return pages[row / source.page_rows] + source.key_offset +
         row % source.page_rows * key_row_bytes_;
}

std::byte* DeepseekLayout::WindowRow(std::byte* state, uint32_t layer, uint32_t position) const {
  const uint64_t slot = uint64_t{layer} * window_slots_ + position % window_slots_;
  return state + kHeaderBytes + slot * window_row_bytes_;
}

std::byte* DeepseekLayout::OpenRow(std::byte* state, uint32_t layer, uint32_t position) const {
  const Source& source = sources_[layer];
  return state + source.open_offset + position % source.open_slots * open_row_bytes_;
}

TokenId DeepseekLayout::Token(const std::byte* state, uint32_t position) const {
  TokenId token;
  std::memcpy(&token, state + token_offset_ + position % token_slots_ * sizeof token, sizeof token);
  return token;
}

void DeepseekLayout::SetToken(std::byte* state, uint32_t position, TokenId token) const {
  std::memcpy(state + token_offset_ + position % token_slots_ * sizeof token, &token, sizeof token);
}

DeepseekProgress DeepseekLayout::Progress(const std::byte* state) {
  DeepseekProgress progress;
  std::memcpy(&progress, state, sizeof progress);
  return progress;
}

void DeepseekLayout::SetProgress(std::byte* state, const DeepseekProgress& progress) {
  std::memcpy(state, &progress, sizeof progress);
}

// Position p of the checkpoint's windows lies at p - (position - window); what lies before the
// sequence's first token is zero, so that equal sequences have equal checkpoints.
void DeepseekLayout::Save(const std::byte* state, uint32_t position,
                          std::span<std::byte> checkpoint) const {
  const DeepseekProgress progress = Progress(state);
  CHECK(position % kPageTokens == 0 && position > 0) << position;
  CHECK(position <= progress.end && position + backtrack_rows_ >= progress.newest)
      << position << " of " << progress.end << ", newest " << progress.newest;
  CHECK(checkpoint.size() == checkpoint_bytes_) << checkpoint.size();
  auto* source = const_cast<std::byte*>(state);  // WindowRow only computes an address
  std::byte* out = checkpoint.data();
  for (uint32_t layer = 0; layer < kept_layers_; ++layer) {
    for (uint32_t back = window_; back >= 1; --back, out += window_row_bytes_) {
      if (back > position) {
        std::memset(out, 0, window_row_bytes_);
      } else {
        std::memcpy(out, WindowRow(source, layer, position - back), window_row_bytes_);
      }
    }
  }
  for (uint32_t back = tokens_kept_; back >= 1; --back, out += sizeof(TokenId)) {
    const TokenId token = back > position ? TokenId{} : Token(state, position - back);
    std::memcpy(out, &token, sizeof token);
  }
}

void DeepseekLayout::Load(std::span<const std::byte> checkpoint, uint32_t position,
                          std::byte* state) const {
  CHECK(position % kPageTokens == 0 && position > 0) << position;
  CHECK(checkpoint.size() == checkpoint_bytes_) << checkpoint.size();
  const std::byte* in = checkpoint.data();
  for (uint32_t layer = 0; layer < kept_layers_; ++layer) {
    for (uint32_t back = window_; back >= 1; --back, in += window_row_bytes_) {
      if (back > position) continue;
      std::memcpy(WindowRow(state, layer, position - back), in, window_row_bytes_);
    }
  }
  for (uint32_t back = tokens_kept_; back >= 1; --back, in += sizeof(TokenId)) {
    if (back > position) continue;
    TokenId token;
    std::memcpy(&token, in, sizeof token);
    SetToken(state, position - back, token);
  }
  SetProgress(state, {.end = position, .newest = position, .begin = replays_ ? position : 0});
}

}  // namespace plumb::model
