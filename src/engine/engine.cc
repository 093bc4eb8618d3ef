// engine/engine.cc
// The step loop, top down, and what a turn of it takes in. Read next: engine_rows.cc (what is
// computed), engine_sample.cc (what comes of it); engine_control.cc has what other threads call.
#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/caller_pin.h"

namespace plumb::engine {

void Engine::Run() {
  const tensor::CallerPin pin(options_.pool);  // it computes beside the pool's workers
  for (;;) {
    // With other weights waiting, the last request may have ended since they came: it is their
    // turn.
    if (active_ == 0 && !swap_.pending.load(std::memory_order_acquire)) {
      auto arrival = arrivals_.Pop();  // the only place where an idle engine waits
      if (!arrival) return;            // closed by Drain
      if (*arrival != nullptr) Accept(std::move(*arrival), clock_.Now());
    }
    Step();
  }
}

bool Engine::Step() {
  const base::Instant begin = clock_.Now();
  Receive(begin);
  if (active_ == 0) return false;
  Guess();
  const base::Instant guessed = clock_.Now();
  const StepPlan& plan = MakePlan();
  Prepare(plan);
  host_.PostMasks();
  Forward(plan);
  AwaitMasks();
  SampleRows();
  Commit(clock_.Now() - guessed);
  Conclude();
  PostHandOver();
  CountStep(begin);
  return true;
}

void Engine::Receive(base::Instant now) {
  TraceScope scope(options_.trace, clock_, TracePhase::kReceive, step_);
  stalled_.store(false, std::memory_order_relaxed);
  if (tree_ != nullptr) tree_->SetTime(now);
  // Taken down before the arrivals are taken in: a request that is submitted and cancelled
  // meanwhile leaves the flag up for the next turn, when it is here to be found.
  const bool cancelling = cancel_pending_.exchange(false, std::memory_order_acquire);
  const bool host_ended = ended_by_host_.exchange(false, std::memory_order_acquire);
  while (auto arrival = arrivals_.TryPop()) {
    if (*arrival != nullptr) Accept(std::move(*arrival), now);
  }
  if (host_ended) RemoveWhatHostEnded();
  EndOverdueAndCancelled(now, cancelling);
  if (swap_.pending.load(std::memory_order_acquire)) ServeSwap();
  UpdateGauges();
  PostHandOver();  // before the forward: an end does not wait for it
  FreeWhatEnded();
}

void Engine::Accept(std::unique_ptr<LiveRequest> live, base::Instant now) {
  // Submitted before the weights changed: its pages have other names now.
  if (live->names_version != weights_version()) Rename(*live);
  for (const auto& sample : live->samples) {
    sample->sequence.order = next_order_++;
    scheduler_.Add(sample->sequence);
  }
  live_.push_back(std::move(live));
  ++active_;
  last_progress_ns_.store(now.ns, std::memory_order_relaxed);
}

void Engine::RemoveWhatHostEnded() {
  for (const auto& live : live_) {
    if (live->unfinished == 0) continue;
    for (const auto& sample : live->samples) {
      const bool ended = sample->ended_by_host.load(std::memory_order_relaxed);
      if (!ended || sample->sequence.state == SequenceState::kEnded) continue;
      Remove(*sample);
      live->free_after = host_.posted();
    }
  }
}

void Engine::EndOverdueAndCancelled(base::Instant now, bool cancelling) {
  const bool stopping = now.ns >= drain_deadline_ns_.load(std::memory_order_acquire);
  for (const auto& live : live_) {
    if (live->unfinished == 0) continue;
    if (stopping || (cancelling && live->cancelled.load(std::memory_order_relaxed))) {
      End(*live, FinishReason::kCancelled, base::OkStatus());
    } else if (now >= live->request.deadline) {
      End(*live, FinishReason::kError,
          base::Status(base::Code::kDeadline,
                       "the request's deadline passed before its answer ended"));
    }
  }
}

void Engine::End(LiveRequest& live, FinishReason reason, const base::Status& status) {
  for (const auto& sample : live.samples) {
    if (sample->sequence.state == SequenceState::kEnded) continue;
    HandedSample& handed = host_.current().samples.emplace_back(NewHanded(*sample));
    handed.end = reason;
    handed.status = status;
    Remove(*sample);
  }
  live.free_after = host_.posted() + 1;
}

void Engine::Remove(Sample& sample) {
  LiveRequest& live = sample.request;
  scheduler_.Remove(sample.sequence);
  CHECK(live.unfinished > 0);
  if (--live.unfinished == 0) --active_;
  if (!sample.started) LeaveQueue(sample);
}

HandedSample Engine::NewHanded(Sample& sample) {
  return {.sample = &sample,
          .cached_tokens = sample.sequence.cached,
          .stored_tokens = sample.sequence.stored_tokens(),
          .weights_version = sample.weights_version};
}

void Engine::FreeWhatEnded() {
  std::erase_if(live_, [this](const auto& live) {
    return live->unfinished == 0 && live->published.load(std::memory_order_acquire) &&
           host_.done() >= live->free_after;
  });
}

void Engine::AwaitMasks() {
  if (host_.masks().items.empty()) return;
  TraceScope scope(options_.trace, clock_, TracePhase::kMaskWait, step_);
  host_.AwaitMasks();
}

void Engine::Commit(base::Duration elapsed) {
  TraceScope scope(options_.trace, clock_, TracePhase::kCommit, step_);
  // What was to be expected, before this step is learned from.
  const base::Duration predicted = scheduler_.cost().Predict(planned_);
  speculator_.Observe(draft_rows_, predicted, elapsed);
  scheduler_.Commit(elapsed);
  retry_after_.Observe(scheduler_.starts(), elapsed);
}

void Engine::Conclude() {
  for (HandedSample& handed : host_.current().samples) {
    handed.stored_tokens = handed.sample->sequence.stored_tokens();  // with this step's pages
    if (!handed.end) continue;
    Remove(*handed.sample);
    handed.sample->request.free_after = host_.posted() + 1;
  }
  UpdateGauges();
}

void Engine::PostHandOver() {
  if (host_.current().samples.empty()) return;
  TraceScope scope(options_.trace, clock_, TracePhase::kHandOver, step_);
  host_.current().step = step_;
  host_.Post();
}

void Engine::CountStep(base::Instant begin) {
  const base::Instant now = clock_.Now();
  ++step_;
  counters_.steps.fetch_add(1, std::memory_order_relaxed);
  counters_.busy_ns.fetch_add((now - begin).ns, std::memory_order_relaxed);
  if (options_.metrics != nullptr) {
    options_.metrics->step_seconds.Observe(now - begin);
    options_.metrics->step_tokens.Observe(planned_.rows);
  }
  last_progress_ns_.store(now.ns, std::memory_order_relaxed);
}

void Engine::UpdateGauges() {
  counters_.running.store(static_cast<uint32_t>(scheduler_.running().size()),
                          std::memory_order_relaxed);
  counters_.waiting.store(static_cast<uint32_t>(scheduler_.waiting().size()),
                          std::memory_order_relaxed);
  const uint32_t cached = tree_ != nullptr ? tree_->idle() : 0;
  counters_.pages_used.store(pool_->total() - pool_->free() - cached, std::memory_order_relaxed);
  counters_.pages_cached.store(cached, std::memory_order_relaxed);
  counters_.preemptions.store(scheduler_.preemptions(), std::memory_order_relaxed);
  counters_.prefix_hits.store(scheduler_.pages().hits(), std::memory_order_relaxed);
  counters_.cached_tokens.store(scheduler_.pages().reused_tokens(), std::memory_order_relaxed);
  if (tree_ != nullptr) {
    counters_.page_evictions.store(tree_->evictions(), std::memory_order_relaxed);
    counters_.pages_hinted.store(tree_->hints().count(), std::memory_order_relaxed);
    counters_.hinted_evictions.store(tree_->hinted_evictions(), std::memory_order_relaxed);
  }
  if (const auto& checkpoints = memory_.checkpoints; checkpoints != nullptr) {
    counters_.checkpoints.store(checkpoints->stored(), std::memory_order_relaxed);
    counters_.checkpoints_stored.store(checkpoints->added(), std::memory_order_relaxed);
    counters_.checkpoint_hits.store(scheduler_.pages().resumed(), std::memory_order_relaxed);
    counters_.checkpoint_evictions.store(checkpoints->evictions(), std::memory_order_relaxed);
  }
}

}  // namespace plumb::engine
