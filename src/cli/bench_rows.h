// cli/bench_rows.h
// The sequences that a measurement sends through a model: their pages, states and tokens, touched
// before anything is timed. Pages begin as finite random bits, which do not change what a step
// costs; where sequences keep a state beside their pages, a context is computed instead, once, and
// copied. Read next: cli/bench_engine.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "kvcache/page_pool.h"
#include "model/model.h"

namespace plumb::cli {

struct BenchSize {
  uint32_t pages = 0;       // of all sequences of a point
  uint32_t sequences = 1;   // >= 1
  uint32_t prompt_max = 0;  // tokens
  uint32_t chunk_rows = 1;  // prompt rows of a step, >= 1
};

// Sequences that decode after the same context.
struct BenchDecode {
  uint32_t context = 0;
  uint32_t batch = 1;
  uint32_t pages = 0;  // of each
};

uint32_t PagesForTokens(uint64_t tokens);

// Thread: the model's. A resource type; the model is borrowed.
class BenchRows {
 public:
  // `advance` is called after each step, with its rows. kOverloaded: no memory.
  static base::Result<std::unique_ptr<BenchRows>> Create(model::Model& model, const BenchSize& size,
                                                         std::function<void(uint64_t)> advance);
  ~BenchRows();
  BenchRows(const BenchRows&) = delete;
  BenchRows& operator=(const BenchRows&) = delete;

  // Bytes that `batch` sequences take beside their pages.
  static uint64_t StateBytes(const model::Model& model, uint64_t batch);
  // Whether contexts are computed.
  static bool ComputesContexts(const model::Model& model) { return model.info().state_bytes > 0; }

  // A prompt from position 0 in steps of chunk_rows rows, logits for the last row alone.
  void Prefill(uint32_t prompt);

  // The context of Decode, where contexts are computed; costs nothing for the one that was prepared
  // last.
  void Prepare(const BenchDecode& decode);
  // Takes the sequences back to the end of the context that was prepared. Before each Decode.
  void Rewind(const BenchDecode& decode);
  void Decode(const BenchDecode& decode, uint32_t steps);

 private:
  BenchRows(model::Model& model, const BenchSize& size, std::function<void(uint64_t)> advance);
  base::Status MakePages();
  void MakeTokens();
  void Compute(uint32_t tokens, bool last_has_logits);
  void Forward(uint32_t sequences, uint32_t logits_rows);
  std::byte* StateOf(uint32_t sequence) {
    return states_.empty() ? nullptr : states_[sequence].data();
  }
  uint32_t ReplayFrom(uint32_t tokens) const;

  model::Model& model_;
  const BenchSize size_;
  const std::function<void(uint64_t)> advance_;
  std::unique_ptr<kvcache::PagePool> pool_;
  std::vector<kvcache::PageId> page_ids_;
  std::vector<std::byte*> pages_;               // theirs, in the same order
  std::vector<std::vector<std::byte>> states_;  // by sequence; empty where there are none
  std::vector<std::byte> kept_state_;           // at the end of the prepared context
  std::optional<uint32_t> prepared_;            // the context that sequence 0's pages hold
  std::vector<base::TokenId> tokens_;
  std::vector<float> logits_;
  std::vector<model::SequenceRows> rows_;
};

}  // namespace plumb::cli
