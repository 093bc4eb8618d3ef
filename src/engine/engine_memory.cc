// engine/engine_memory.cc
// Sizes by the model and the options, behind engine/engine_memory.h.
#include "engine/engine_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"

namespace plumb::engine {
namespace {

using kvcache::CheckpointStore;
using kvcache::PagePool;

// Checkpoints that there is room for, as far as options leave it open: a sequence stores two at its
// end and two on the way.
constexpr uint64_t kCheckpointShare = 8, kCheckpointShareMost = 4;
constexpr uint64_t kCheckpointsPerSequence = 4;

kvcache::PageLayout LayoutOf(const model::ModelInfo& info) {
  return {.page_tokens = model::kPageTokens,
          .page_bytes = info.page_bytes,
          .checkpoint_bytes = info.checkpoint_bytes};
}

bool Reuses(const model::ModelInfo& info, const EngineOptions& options) {
  return options.prefix_cache && (info.state_bytes == 0 || info.checkpoint_bytes > 0);
}

base::Status NoRoomForStates(const model::ModelInfo& info, const EngineOptions& options,
                             uint64_t seat_bytes) {
  return base::InvalidArgument(
      "kv_budget_bytes",
      fmt::format("a KV budget of {} bytes does not hold the states of {} sequences, {} bytes "
                  "each, and a page of {}; raise it, or run fewer sequences at once",
                  options.kv_budget_bytes, options.sequences_max, seat_bytes,
                  PagePool::StrideBytes(LayoutOf(info))));
}

// Of `left` bytes, which are shared with pages.
base::Result<uint32_t> CheckpointCount(const model::ModelInfo& info, const EngineOptions& options,
                                       uint64_t left) {
  const uint64_t slot = CheckpointStore::StrideBytes(LayoutOf(info));
  const uint64_t page = PagePool::StrideBytes(LayoutOf(info));
  // Each hangs on a page.
  const uint64_t most = std::min<uint64_t>(left / (slot + page), PagePool::kPagesMax);
  if (options.checkpoints_max == 0) {
    const uint64_t for_sequences = std::min(kCheckpointsPerSequence * options.sequences_max,
                                            left / kCheckpointShareMost / slot);
    return static_cast<uint32_t>(
        std::min(std::max(left / kCheckpointShare / slot, for_sequences), most));
  }
  if ((left - page) / slot < options.checkpoints_max) {
    return base::InvalidArgument(
        "checkpoints_max",
        fmt::format("{} checkpoints of {} bytes leave no page in a KV budget of {} bytes, {} of "
                    "them for states; keep fewer, or raise it",
                    options.checkpoints_max, slot, options.kv_budget_bytes,
                    options.kv_budget_bytes - left));
  }
  return static_cast<uint32_t>(std::min<uint64_t>(options.checkpoints_max, most));
}

}  // namespace

base::Result<MemoryPlan> MemoryPlan::Make(const model::ModelInfo& info,
                                          const EngineOptions& options) {
  MemoryPlan plan{.reuses = Reuses(info, options)};
  const kvcache::PageLayout layout = LayoutOf(info);
  const uint64_t page = PagePool::StrideBytes(layout);
  uint64_t left = options.kv_budget_bytes;
  if (info.state_bytes > 0) {
    const uint64_t seat = SequenceStates::SeatBytes(info, plan.reuses);
    const auto states = base::CheckedMul(seat, options.sequences_max);
    if (!states || *states > left || left - *states < page) {
      return NoRoomForStates(info, options, seat);
    }
    plan.seats = options.sequences_max;
    plan.state_bytes = *states;
    left -= plan.state_bytes;
    if (plan.reuses) {
      ASSIGN_OR_RETURN(plan.checkpoints, CheckpointCount(info, options, left));
      plan.reuses = plan.checkpoints > 0;
    }
    plan.checkpoint_bytes = plan.checkpoints * CheckpointStore::StrideBytes(layout);
    left -= plan.checkpoint_bytes;
  }
  plan.page_bytes = left / page * page;
  return plan;
}

uint64_t MemoryPlan::BudgetFor(const model::ModelInfo& info, const EngineOptions& options,
                               uint64_t pages) {
  const kvcache::PageLayout layout = LayoutOf(info);
  uint64_t bytes = pages * PagePool::StrideBytes(layout);
  if (info.state_bytes == 0) return bytes;
  const bool reuses = Reuses(info, options);
  bytes += options.sequences_max * SequenceStates::SeatBytes(info, reuses);
  if (!reuses) return bytes;
  uint64_t checkpoints = options.checkpoints_max;
  if (checkpoints == 0) checkpoints = kCheckpointsPerSequence * options.sequences_max;
  return bytes + std::min(checkpoints, pages) * CheckpointStore::StrideBytes(layout);
}

base::Result<EngineMemory> EngineMemory::Create(const model::Model& model,
                                                const EngineOptions& options) {
  const model::ModelInfo& info = model.info();
  const bool stateful = info.state_bytes > 0;
  CHECK(stateful || (info.checkpoint_bytes == 0 && info.replay_rows == 0))
      << "checkpoints and replay come with states";
  EngineMemory memory;
  ASSIGN_OR_RETURN(memory.plan, MemoryPlan::Make(info, options));
  const MemoryPlan& plan = memory.plan;
  const kvcache::PageLayout layout = LayoutOf(info);
  // All of it, so that an error of the pool's is about what was asked for.
  const uint64_t page_bytes = stateful ? plan.page_bytes : options.kv_budget_bytes;
  ASSIGN_OR_RETURN(memory.pool, PagePool::Create(layout, page_bytes));
  const uint32_t pages = memory.pool->total();
  if (plan.checkpoints > 0) {
    ASSIGN_OR_RETURN(memory.checkpoints, CheckpointStore::Create(layout, pages, plan.checkpoints));
  }
  if (plan.reuses) {
    memory.tree = std::make_unique<kvcache::PrefixTree>(*memory.pool, memory.checkpoints.get());
  }
  if (stateful) {
    ASSIGN_OR_RETURN(memory.states, SequenceStates::Create(model, plan.seats, plan.reuses));
  }
  return memory;
}

}  // namespace plumb::engine
