// tests/sim/oracle.h
// A request's answer computed alone: the hash model over its tokens and the reference sampler, no
// engine, pages, batches or drafts. Like src/engine/oracle_testing.h, but fast enough for every
// answer of a simulation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/hash_model.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace plumb::sim {

struct ExpectedAnswer {
  std::vector<engine::TokenId> tokens;
  std::string text;
  std::vector<engine::TokenLogprob> logprobs;
  engine::FinishReason reason = engine::FinishReason::kLength;  // kError: the grammar's limit
  std::optional<std::string> stop;
};

// Thread: one.
class Oracle {
 public:
  // Both must outlive the oracle.
  Oracle(const engine::HashModel& model, const text::Tokenizer& tokenizer)
      : model_(model), tokenizer_(tokenizer) {}

  ExpectedAnswer Run(const engine::Request& request, uint32_t sample) const;

  // Of an answer that was ended from outside: of all its tokens, and no stop string among them.
  std::string TextOf(const std::vector<engine::TokenId>& tokens) const;

  // Of the prompt's tokens but the first.
  std::vector<engine::TokenLogprob> PromptLogprobs(const engine::Request& request) const;

 private:
  const engine::HashModel& model_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace plumb::sim
