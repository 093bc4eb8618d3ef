// tests/sim/workload.h
// The crowd: requests whose prompts have beginnings in common, within a tenant and across tenants,
// with parameters of every kind. The same few texts are asked for under every isolation key, so
// that a page that crosses from one to another is there to be taken. Read next: tests/sim/ledger.h.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "config.h"
#include "engine/request.h"

namespace plumb::sim {

// Request::isolation of a key's number.
base::Hash256 IsolationKey(uint32_t number);

// Thread: one.
class Workload {
 public:
  // `context_max`: what the engine takes, prompt and answer.
  Workload(const SimConfig& config, uint32_t context_max);

  // Deterministic. Deadlines are left to the caller.
  engine::Request Next();

  // The whole of an answered request: later prompts may go on from it.
  void Remember(const engine::Request& request, const std::vector<engine::TokenId>& answer);

 private:
  std::vector<engine::TokenId> Prompt(uint32_t length);
  uint32_t PromptLength();

  const SimConfig config_;
  const uint32_t context_max_;
  base::Rng rng_;
  uint64_t last_id_ = 0;
  std::vector<std::vector<engine::TokenId>> turns_;  // at most kTurnsMax, the oldest goes
};

}  // namespace plumb::sim
