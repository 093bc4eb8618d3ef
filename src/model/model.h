// model/model.h
// What the engine sees of a model: its shape, and one function that computes a ragged batch of
// rows. Keys and values live in pages owned by the caller; a page is opaque bytes to everyone but
// the model. The rows of a sequence give the same logits bit for bit however they are chunked or
// batched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/token_id.h"

namespace plumb::model {

using base::TokenId;

// Tokens whose keys and values share a page, in every layer (docs/kv_page.md).
constexpr uint32_t kPageTokens = 128;

struct ModelInfo {
  std::string architecture;  // "llama", "qwen2"
  std::string name;          // as the file says; for people
  uint32_t vocabulary_size = 0;
  uint32_t hidden_width = 0;  // of a row's hidden state
  uint32_t context_max = 0;   // tokens, prompt and answer together
  uint64_t page_bytes = 0;    // of kPageTokens tokens, all layers
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;  // resident, after repacking
  std::string
      numerics_id;  // version of the arithmetic and KV format; pages and replay need equal ids
  // What a sequence needs beside its pages: working memory that Forward reads and writes (windows,
  // open groups), and what of it must be kept to go on from a page boundary. 0 = pages suffice.
  uint64_t state_bytes = 0;
  uint64_t checkpoint_bytes = 0;
  // Bounded replay: upper layers compute only rows from SequenceRows::replay_from on, which is so
  // many rows before the prompt's end (or 0, for short prompts). 0 = every row has all layers.
  uint32_t replay_rows = 0;
  // Rows behind the last one that is kept that may have been computed in vain (drafts): the next
  // Forward of the sequence begins at most so many rows before the end of its last one.
  uint32_t backtrack_max = UINT32_MAX;
  // Ids that stand for something else than text (a place in an image): they have logits, and an
  // answer never holds one. Each once, below vocabulary_size.
  std::vector<TokenId> never_sampled = {};
};

// One sequence's rows in a step.
struct SequenceRows {
  std::span<const TokenId> tokens;    // rows to compute, >= 1, each below vocabulary_size
  uint32_t position = 0;              // of tokens[0]; all earlier positions are in the pages
  std::span<std::byte* const> pages;  // page i: positions [i * kPageTokens, ...); covers every row
  uint32_t logits_rows = 0;           // logits are wanted for the last so many rows
  // Of ModelInfo::state_bytes, one for each sequence; null when that is 0. Forward at position 0
  // begins it anew, whatever it held.
  std::byte* state = nullptr;
  // A property of the sequence, not of the step: max(0, prompt tokens - replay_rows), or 0 where
  // rows before have logits too. Rows before it have no logits; generated rows lie behind it.
  uint32_t replay_from = 0;
  // Not empty: gets the hidden states after the last norm, [rows, hidden_width] f32, of the last so
  // many rows, for which the same holds as for rows with logits; logits_rows is then 0.
  std::span<float> hidden = {};
  // Known tokens that come right after `tokens`, in a later Forward: at most as many. What they
  // need from disk may be asked for now; results never depend on them. Each below vocabulary_size.
  std::span<const TokenId> upcoming = {};
};

// Thread: one at a time (the engine's); it uses its thread pool inside.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // Rows that one Forward may hold, and rows with logits among them; all may have hidden states.
  virtual uint32_t rows_max() const = 0;
  virtual uint32_t logits_rows_max() const = 0;

  // Appends the rows' keys and values to the pages and writes logits: [sum of logits_rows,
  // vocabulary_size] f32, in the order of `sequences`. No allocation; arguments in range (CHECK).
  virtual void Forward(std::span<const SequenceRows> sequences, std::span<float> logits) = 0;

  // For models with checkpoint_bytes. What is needed to go on from `position`, a multiple of
  // kPageTokens: `state` has computed up to it and at most backtrack_max rows more. A sequence that
  // is begun from it by LoadState, with the same pages before `position` and a replay_from not
  // before it (any, where replay_rows is 0: all layers of it are kept), has the same logits, bit
  // for bit, as one that computed all.
  virtual void SaveState(const std::byte* state, uint32_t position,
                         std::span<std::byte> checkpoint) const;
  virtual void LoadState(std::span<const std::byte> checkpoint, uint32_t position,
                         std::byte* state) const;
};

}  // namespace plumb::model
