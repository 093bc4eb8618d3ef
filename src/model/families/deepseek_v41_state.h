// model/families/deepseek_v41_state.h
// Where a sequence's numbers lie. In pages: rows of the layers that own keys and values, compressed
// ("main rows") and index keys. In the state: rings by position, of window rows of every layer, of
// open groups of the compressors, of the last token ids. In a checkpoint: what of the state cannot
// be computed again from the last rows of a prompt; without replay all of it, at a page boundary.
// Bytes: docs/numerics_deepseek_v41.md, "Rows".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/families/deepseek_step.h"
#include "model/families/deepseek_v41_config.h"
#include "model/model.h"

namespace plumb::model {

// What a state knows of itself.
struct DeepseekProgress {
  uint32_t end = 0;     // positions that the last step computed up to
  uint32_t newest = 0;  // the largest `end` so far: rings hold what lies shortly before it
  uint32_t begin = 0;   // where decoder windows can begin: the checkpoint's position, or 0
};

// A value type, immutable. No memory here is assumed to be aligned.
class DeepseekLayout {
 public:
  // `replays`: decoder windows are computed again by whoever goes on from a checkpoint.
  DeepseekLayout(const DeepseekConfig& config, const DeepseekRoundings& roundings,
                 uint32_t backtrack_rows, bool replays = true);

  // ---- pages ----
  uint64_t page_bytes() const { return page_bytes_; }
  // Main rows, and index keys, of a layer that owns them, in one page.
  uint32_t page_rows(uint32_t layer) const { return sources_[layer].page_rows; }
  uint64_t key_offset(uint32_t layer) const { return sources_[layer].key_offset; }
  std::byte* MainRow(uint32_t layer, std::span<std::byte* const> pages, uint32_t row) const;
  std::byte* KeyRow(uint32_t layer, std::span<std::byte* const> pages, uint32_t row) const;

  // ---- state ----
  uint64_t state_bytes() const { return state_bytes_; }
  uint32_t backtrack_rows() const { return backtrack_rows_; }
  uint32_t window_slots() const { return window_slots_; }
  uint64_t window_row_bytes() const { return window_row_bytes_; }
  std::byte* WindowRow(std::byte* state, uint32_t layer, uint32_t position) const;
  // Gate, then value, of an owning layer with a ratio above 1: 2 * head_dim f32.
  uint32_t open_slots(uint32_t layer) const { return sources_[layer].open_slots; }
  std::byte* OpenRow(std::byte* state, uint32_t layer, uint32_t position) const;
  uint32_t token_slots() const { return token_slots_; }
  TokenId Token(const std::byte* state, uint32_t position) const;
  void SetToken(std::byte* state, uint32_t position, TokenId token) const;
  static DeepseekProgress Progress(const std::byte* state);
  static void SetProgress(std::byte* state, const DeepseekProgress& progress);

  // ---- checkpoints: Model::SaveState and LoadState ----
  uint64_t checkpoint_bytes() const { return checkpoint_bytes_; }
  void Save(const std::byte* state, uint32_t position, std::span<std::byte> checkpoint) const;
  void Load(std::span<const std::byte> checkpoint, uint32_t position, std::byte* state) const;

 private:
  struct Source {
    uint32_t page_rows = 0;
    uint64_t main_offset = 0;
    uint64_t key_offset = 0;
    uint32_t open_slots = 0;
    uint64_t open_offset = 0;
  };

  uint32_t window_ = 0;
  bool replays_ = true;
  uint32_t kept_layers_ = 0;  // whose windows are in a checkpoint: the first so many
  uint32_t backtrack_rows_ = 0;
  uint64_t main_row_bytes_ = 0;
  uint64_t key_row_bytes_ = 0;
  uint64_t window_row_bytes_ = 0;
  uint64_t open_row_bytes_ = 0;
  std::vector<Source> sources_;  // by layer
  uint64_t page_bytes_ = 0;
  uint32_t window_slots_ = 0;
  uint32_t token_slots_ = 0;
  uint32_t tokens_kept_ = 0;  // in a checkpoint
  uint64_t token_offset_ = 0;
  uint64_t state_bytes_ = 0;
  uint64_t checkpoint_bytes_ = 0;
};

}  // namespace plumb::model
