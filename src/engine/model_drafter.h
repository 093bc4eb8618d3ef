// engine/model_drafter.h
// Guesses with a second, smaller model of the same vocabulary, whose keys and values have a page
// pool of their own. It samples as the target does, with the same parameters and the same noise, so
// that it guesses what the target samples wherever their distributions agree, also with
// temperature. All sequences of a step go through one Forward for each guess.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/draft_rate.h"
#include "engine/drafter.h"
#include "engine/sampler.h"
#include "kvcache/page_pool.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace plumb::engine {

struct ModelDrafterOptions {
  uint64_t kv_budget_bytes = 256ull << 20;
  uint32_t sequences_max = 16;  // in one Forward; of more, the first so many of a batch are guessed
  // Tokens of prompts and answers that it has not seen yet go through it in parts, so that a call
  // is longer by about so much.
  base::Duration catch_up_target = base::Milliseconds(10);
  uint32_t catch_up_rows_max = 256;
  std::vector<TokenId> never_sampled = {};  // model::ModelInfo, of the target: not guessed either
};

// kInvalidArgument (field "draft_model"): the draft model's tokens are not the target's.
base::Status CheckSameTokens(const text::Tokenizer& draft, const text::Tokenizer& target);

class ModelDrafter final : public Drafter {
 public:
  // `model` and `clock` must outlive it; nobody else may call the model. Its guesses are among the
  // first `candidate_count` tokens, those of the target's sampler. kInvalidArgument (field
  // "draft_model"): more tokens than can be sampled from, too few rows at once, or a model with
  // states; and what PagePool::Create gives.
  static base::Result<std::unique_ptr<ModelDrafter>> Create(model::Model& model,
                                                            uint32_t candidate_count,
                                                            const base::Clock& clock,
                                                            const ModelDrafterOptions& options);

  std::unique_ptr<DraftState> Begin(const SamplingParams& sampling, uint32_t sample_index,
                                    uint32_t length_max) override;
  // A sequence that is far behind first catches up, over several calls, without guesses. One for
  // which there are no pages, or that is longer than the model's context or has tokens the model
  // lacks, gives its pages back and is not guessed for any more.
  void DraftFor(std::span<Draft* const> batch) override;
  void Learn(DraftState& state, uint8_t kind, bool right) override;

  // Whether guesses are to be had of it: not given up.
  bool Serves(const DraftState& state) const;
  // Tokens that it has yet to see of a sequence of `length` before it can guess.
  uint32_t Behind(const DraftState& state, uint32_t length) const;
  // What one guess for each of so many sequences takes; 0: not measured yet.
  double PassNs(uint32_t sequences) const;
  uint32_t sequences_max() const { return options_.sequences_max; }

  uint32_t pages_free() const { return pool_->free(); }
  uint32_t pages_total() const { return pool_->total(); }

  // By the probability that the model gave the guess.
  static constexpr uint32_t kKinds = 10;
  static uint8_t KindOf(float probability);

 private:
  struct State;
  struct Guessing {  // a sequence that is guessed for in this call
    Draft* draft;
    State* state;
    double probability = 1;  // that all its guesses are right
    bool going = true;
  };

  ModelDrafter(model::Model& model, uint32_t candidate_count, const base::Clock& clock,
               const ModelDrafterOptions& options, std::unique_ptr<kvcache::PagePool> pool);

  void BeginPass();
  // The rows of a first pass. `catch_up_rows`: what may still be spent on catching up.
  void PlanFirst(Draft& draft, uint32_t& catch_up_rows);
  // So many rows that follow the computed ones; false: a token that the model lacks.
  bool AddRows(const Draft& draft, uint32_t rows, bool guesses);
  // Computes the planned rows, samples, and plans the next pass.
  void Pass();
  void SampleNext(Guessing& guessing, std::span<float> logits);
  static void RestoreCounts(const Guessing& guessing);
  // Pages for so many tokens; false when there are none.
  bool Grow(State& state, uint32_t length);
  void GiveUp(State& state);
  void Measure(uint32_t sequences, uint32_t rows, base::Duration elapsed);

  model::Model& model_;
  const base::Clock& clock_;
  const ModelDrafterOptions options_;
  const std::unique_ptr<kvcache::PagePool> pool_;
  Sampler sampler_;
  SampleResult result_;
  const TokenCounts no_counts_{};
  std::array<DraftRate, kKinds> rates_;    // over all sequences
  std::vector<Guessing> guessing_;         // capacity sequences_max
  std::vector<model::SequenceRows> rows_;  // of the pass; capacity sequences_max
  std::vector<TokenId> tokens_;            // of these rows, never reallocated
  uint32_t logits_rows_ = 0;               // of these rows
  std::vector<float> logits_;              // [sequences_max, vocabulary]
  std::array<double, 33> pass_ns_{};       // running means, by bit width of the sequences; 0 = none
  double row_ns_ = 0;                      // running mean, of a row among many; 0 = none
};

}  // namespace plumb::engine
