// engine/engine_memory.h
// What an engine allocates at start for the sequences that it runs and for what it keeps of those
// that have ended: pages, the tree over them, checkpoints and states. Read next:
// kvcache/page_pool.h, engine/sequence_states.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "engine/engine_options.h"
#include "engine/sequence_states.h"
#include "kvcache/checkpoint_store.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"
#include "model/model.h"

namespace plumb::engine {

// In order of construction: each refers to those before it.
struct EngineMemory {
  // For `model` and options that are cut to its limits. Errors: as PagePool, CheckpointStore and
  // SequenceStates give them.
  static base::Result<EngineMemory> Create(const model::Model& model, const EngineOptions& options);

  std::unique_ptr<kvcache::PagePool> pool;
  std::unique_ptr<kvcache::CheckpointStore> checkpoints;  // null: pages suffice
  // Null: nothing is reused, since options say so or the model can go on from nowhere.
  std::unique_ptr<kvcache::PrefixTree> tree;
  std::unique_ptr<SequenceStates> states;  // null: the model has none
};

}  // namespace plumb::engine
