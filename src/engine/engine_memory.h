// engine/engine_memory.h
// What an engine allocates at start for the sequences that it runs and for what it keeps of those
// that have ended: pages, the tree over them, checkpoints and states, together no more than
// EngineOptions::kv_budget_bytes. Read next: kvcache/page_pool.h, engine/sequence_states.h.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "engine/engine_options.h"
#include "engine/sequence_states.h"
#include "kvcache/checkpoint_store.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"
#include "model/model.h"

namespace plumb::engine {

// How the budget is divided: a state for each sequence that may run; of what they leave, an eighth
// for checkpoints, or four for each sequence if that is more, but a quarter at most; the rest is
// for pages. Models without states have pages alone. A value type.
struct MemoryPlan {
  bool reuses = false;       // computed pages are kept for others, and checkpoints if those are
                             // needed
  uint32_t seats = 0;        // states
  uint32_t checkpoints = 0;  // slots
  uint64_t state_bytes = 0, checkpoint_bytes = 0, page_bytes = 0;  // in all; within the budget

  // `options` are cut to the model's limits. kInvalidArgument (field "kv_budget_bytes"): states,
  // checkpoints and one page do not fit; field "checkpoints_max": they leave no page.
  static base::Result<MemoryPlan> Make(const model::ModelInfo& info, const EngineOptions& options);

  // The budget for so many pages beside the states and checkpoints that the options ask for; where
  // they leave the checkpoints open, four for each sequence.
  static uint64_t BudgetFor(const model::ModelInfo& info, const EngineOptions& options,
                            uint64_t pages);
};

// In order of construction: each refers to those before it.
struct EngineMemory {
  // For `model` and options that are cut to its limits. Errors: as MemoryPlan, PagePool,
  // CheckpointStore and SequenceStates give them.
  static base::Result<EngineMemory> Create(const model::Model& model, const EngineOptions& options);

  MemoryPlan plan;
  std::unique_ptr<kvcache::PagePool> pool;
  std::unique_ptr<kvcache::CheckpointStore> checkpoints;  // null: pages suffice
  // Null: nothing is reused, since options say so or the model can go on from nowhere.
  std::unique_ptr<kvcache::PrefixTree> tree;
  std::unique_ptr<SequenceStates> states;  // null: the model has none
};

}  // namespace plumb::engine
