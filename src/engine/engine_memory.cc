// engine/engine_memory.cc
// Sizes by the model and the options, behind engine/engine_memory.h.
#include "engine/engine_memory.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {
namespace {

// Checkpoints that there is room for, as far as options leave it open: an eighth of the memory for
// pages besides it, or some for each sequence, which stores two at its end and two on the way.
constexpr uint64_t kPageMemoryPerCheckpoints = 8;
constexpr uint64_t kCheckpointsPerSequence = 4;

uint32_t CheckpointCount(const model::ModelInfo& info, const EngineOptions& options,
                         uint32_t pages) {
  uint64_t count = options.checkpoints_max;
  if (count == 0) {
    count = std::max(options.kv_budget_bytes / kPageMemoryPerCheckpoints / info.checkpoint_bytes,
                     kCheckpointsPerSequence * options.sequences_max);
  }
  return static_cast<uint32_t>(std::min<uint64_t>(count, pages));
}

}  // namespace

base::Result<EngineMemory> EngineMemory::Create(const model::Model& model,
                                                const EngineOptions& options) {
  const model::ModelInfo& info = model.info();
  const bool stateful = info.state_bytes > 0;
  CHECK(stateful || (info.checkpoint_bytes == 0 && info.replay_rows == 0))
      << "checkpoints and replay come with states";
  // A checkpoint serves where all rows before it are skipped (model::Model::SaveState), which is
  // nowhere when every row has all layers.
  const bool resumes = info.checkpoint_bytes > 0 && info.replay_rows > 0;
  const bool reuses = options.prefix_cache && (!stateful || resumes);

  EngineMemory memory;
  const kvcache::PageLayout layout{.page_tokens = model::kPageTokens,
                                   .page_bytes = info.page_bytes,
                                   .checkpoint_bytes = info.checkpoint_bytes};
  ASSIGN_OR_RETURN(memory.pool, kvcache::PagePool::Create(layout, options.kv_budget_bytes));
  if (reuses && stateful) {
    const uint32_t pages = memory.pool->total();
    ASSIGN_OR_RETURN(memory.checkpoints, kvcache::CheckpointStore::Create(
                                             layout, pages, CheckpointCount(info, options, pages)));
  }
  if (reuses) {
    memory.tree = std::make_unique<kvcache::PrefixTree>(*memory.pool, memory.checkpoints.get());
  }
  if (stateful) {
    ASSIGN_OR_RETURN(memory.states, SequenceStates::Create(model, options.sequences_max, reuses));
  }
  return memory;
}

}  // namespace plumb::engine
