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

#include "base/token_id.h"

namespace plumb::model {

using base::TokenId;

// Tokens whose keys and values share a page, in every layer (docs/kv_page.md).
constexpr uint32_t kPageTokens = 128;

struct ModelInfo {
  std::string architecture;  // "llama", "qwen2"
  std::string name;          // as the file says; for people
  uint32_t vocabulary_size = 0;
  uint32_t context_max = 0;  // tokens, prompt and answer together
  uint64_t page_bytes = 0;   // of kPageTokens tokens, all layers
  uint64_t parameters = 0;
  uint64_t weight_bytes = 0;  // resident, after repacking
  std::string
      numerics_id;  // version of the arithmetic and KV format; pages and replay need equal ids
};

// One sequence's rows in a step.
struct SequenceRows {
  std::span<const TokenId> tokens;    // rows to compute, >= 1, each below vocabulary_size
  uint32_t position = 0;              // of tokens[0]; all earlier positions are in the pages
  std::span<std::byte* const> pages;  // page i: positions [i * kPageTokens, ...); covers every row
  uint32_t logits_rows = 0;           // logits are wanted for the last so many rows
};

// Thread: one at a time (the engine's); it uses its thread pool inside.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;

  // Rows that one Forward may hold, and rows with logits among them.
  virtual uint32_t rows_max() const = 0;
  virtual uint32_t logits_rows_max() const = 0;

  // Appends the rows' keys and values to the pages and writes logits: [sum of logits_rows,
  // vocabulary_size] f32, in the order of `sequences`. No allocation; arguments in range (CHECK).
  virtual void Forward(std::span<const SequenceRows> sequences, std::span<float> logits) = 0;
};

}  // namespace plumb::model
