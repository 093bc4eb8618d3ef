// engine/engine_swap.cc
// Other weights in the place of the model's: nothing new begins, what has begun ends on the old
// ones, pages go, and what waited goes on with the new ones. The caller waits beside it, and may
// give up; the engine never waits.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "kvcache/page_chain.h"

namespace plumb::engine {
namespace {

// How often a waiting caller looks at the clock and whether the engine stops, in real time.
constexpr base::Duration kLookPeriod = base::Milliseconds(10);

base::Status CheckEqual(const char* what, uint64_t value, uint64_t expected) {
  if (value == expected) return base::OkStatus();
  return base::InvalidArgument(
      "model", fmt::format("its {} is {}, that of the model it would replace {}; restart with it "
                           "instead",
                           what, value, expected));
}

base::Status CheckEnough(const char* what, uint64_t value, uint64_t needed) {
  if (value >= needed) return base::OkStatus();
  return base::InvalidArgument(
      "model", fmt::format("its {} is {}, at least {} are needed", what, value, needed));
}

}  // namespace

base::Status Engine::CheckSwap(const model::Model& model) const {
  const model::ModelInfo& info = model.info();
  RETURN_IF_ERROR(CheckEqual("vocabulary", info.vocabulary_size, info_.vocabulary_size));
  if (info.never_sampled != info_.never_sampled) {
    return base::InvalidArgument("model",
                                 "it never says other tokens than the model it would replace; "
                                 "restart with it instead");
  }
  RETURN_IF_ERROR(CheckEqual("size of a page", info.page_bytes, info_.page_bytes));
  RETURN_IF_ERROR(CheckEqual("size of a state", info.state_bytes, info_.state_bytes));
  RETURN_IF_ERROR(
      CheckEqual("size of a checkpoint", info.checkpoint_bytes, info_.checkpoint_bytes));
  RETURN_IF_ERROR(CheckEqual("number of replayed rows", info.replay_rows, info_.replay_rows));
  RETURN_IF_ERROR(
      CheckEnough("number of rows to take back", info.backtrack_max, info_.backtrack_max));
  RETURN_IF_ERROR(CheckEnough("context", info.context_max, context_max_));
  RETURN_IF_ERROR(CheckEnough("number of rows in a step", model.rows_max(), options_.rows_max));
  return CheckEnough("number of rows with logits", model.logits_rows_max(), logits_rows_max_);
}

base::Result<uint32_t> Engine::SwapModel(model::Model& model, std::string content,
                                         base::Instant deadline) {
  RETURN_IF_ERROR(CheckSwap(model));
  {
    base::MutexLock lock(swap_.mutex);
    if (swap_.in_progress) {
      return base::Status(base::Code::kUnavailable, "other weights are being put in place already")
          .WithReason("swap_in_progress");
    }
    swap_.model = &model;
    swap_.content = std::move(content);
    swap_.in_progress = true;
    swap_.pending.store(true, std::memory_order_release);
  }
  arrivals_.Push(nullptr);  // wakes an idle loop; one that is not idle needs no waking
  base::Status given_up;
  while (AwaitsSwap(deadline, given_up)) {
    if (!started_.load()) {
      Step();
      continue;
    }
    base::MutexLock lock(swap_.mutex);
    swap_.changed.WaitFor(lock, kLookPeriod,
                          [&]() HOLDS(swap_.mutex) { return swap_.model == nullptr; });
  }
  if (!given_up.ok()) return given_up;
  return weights_version();
}

// False: the weights are in place, or the wait was given up for what `given_up` says then.
bool Engine::AwaitsSwap(base::Instant deadline, base::Status& given_up) {
  bool draining = false;
  {
    base::MutexLock lock(registry_mutex_);
    draining = draining_;
  }
  base::MutexLock lock(swap_.mutex);
  if (swap_.model != nullptr) {
    if (draining) {
      given_up = base::Status(base::Code::kUnavailable, "the server is stopping");
    } else if (clock_.Now() >= deadline) {
      given_up =
          base::Status(base::Code::kDeadline,
                       "requests that had begun did not end in time; the weights are as before");
    }
    if (given_up.ok()) return true;
    swap_.model = nullptr;
  }
  swap_.in_progress = false;
  return false;
}

void Engine::ServeSwap() {
  base::MutexLock lock(swap_.mutex);
  if (swap_.model != nullptr) {
    scheduler_.Pause(true);
    // One that was preempted before its first row counts as begun there, and so here.
    const auto begun = [](const Sequence* sequence) {
      return sequence->preempted || sequence->begun;
    };
    const std::span<Sequence* const> waiting = scheduler_.waiting();
    if (!scheduler_.running().empty() || std::any_of(waiting.begin(), waiting.end(), begun)) {
      return;
    }
    Exchange();
    swap_.model = nullptr;
    swap_.changed.NotifyAll();
  }
  scheduler_.Pause(false);
  swap_.pending.store(false, std::memory_order_relaxed);
}

void Engine::Exchange() {
  if (tree_ != nullptr) {
    tree_->Evict(tree_->idle());
    CHECK(tree_->stored() == 0) << "nobody uses a page, so all were idle";
  }
  model_ = swap_.model;
  if (states_ != nullptr) states_->Exchange(*model_);
  {
    base::MutexLock lock(registry_mutex_);
    identity_ = kvcache::ModelIdentity(swap_.content, model_->info().numerics_id);
    weights_version_.fetch_add(1, std::memory_order_relaxed);
  }
  for (const auto& live : live_) {
    if (live->unfinished > 0) Rename(*live);
  }
}

void Engine::Rename(LiveRequest& live) {
  live.names_version = weights_version();
  const std::vector<base::Hash256> chain = PromptChain(live.request);
  for (const auto& sample : live.samples) {
    if (sample->sequence.state != SequenceState::kEnded) sample->sequence.chain = chain;
  }
}

}  // namespace plumb::engine
