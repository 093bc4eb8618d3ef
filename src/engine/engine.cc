// engine/engine.cc: the step loop, top down. Submitting, cancelling and stopping, which other
// threads call: engine_control.cc.
#include "engine/engine.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::engine {

void Engine::Run() {
  for (;;) {
    if (live_.empty()) {
      auto arrival = arrivals_.Pop();  // the only place where the thread waits
      if (!arrival) return;            // closed by Drain
      Accept(std::move(*arrival), clock_.Now());
    }
    Step();
  }
}

bool Engine::Step() {
  const base::Instant begin = clock_.Now();
  Receive(begin);
  if (live_.empty()) return false;
  const StepPlan& plan = scheduler_.Plan();
  UpdateGauges();
  Forward(plan);
  scheduler_.Commit(clock_.Now() - begin);
  Sample(plan);
  Publish(plan);
  counters_.steps.fetch_add(1, std::memory_order_relaxed);
  const base::Duration elapsed = clock_.Now() - begin;
  counters_.busy_ns.fetch_add(elapsed.ns, std::memory_order_relaxed);
  if (options_.metrics != nullptr) {
    options_.metrics->step_seconds.Observe(elapsed);
    options_.metrics->step_tokens.Observe(plan.rows);
  }
  last_progress_ns_.store((begin + elapsed).ns, std::memory_order_relaxed);
  return true;
}

void Engine::Receive(base::Instant now) {
  // Taken down before the arrivals are taken in: a request that is submitted and cancelled
  // meanwhile leaves the flag up for the next turn, when it is here to be found.
  const bool cancelling = cancel_pending_.exchange(false, std::memory_order_acquire);
  while (auto arrival = arrivals_.TryPop()) Accept(std::move(*arrival), now);
  EndOverdueAndCancelled(now, cancelling);
  std::erase_if(live_, [](const auto& live) { return live->unfinished == 0; });
  UpdateGauges();
}

void Engine::Accept(std::unique_ptr<LiveRequest> live, base::Instant now) {
  for (const auto& sample : live->samples) {
    sample->sequence.order = next_order_++;
    scheduler_.Add(sample->sequence);
  }
  live_.push_back(std::move(live));
  last_progress_ns_.store(now.ns, std::memory_order_relaxed);
}

void Engine::EndOverdueAndCancelled(base::Instant now, bool cancelling) {
  const bool stopping = now.ns >= drain_deadline_ns_.load(std::memory_order_acquire);
  for (const auto& live : live_) {
    if (stopping || (cancelling && live->cancelled.load(std::memory_order_relaxed))) {
      End(*live, FinishReason::kCancelled, base::OkStatus());
    } else if (now >= live->request.deadline) {
      End(*live, FinishReason::kError,
          base::Status(base::Code::kDeadline,
                       "the request's deadline passed before its answer ended"));
    }
  }
}

void Engine::Forward(const StepPlan& plan) {
  rows_.clear();
  for (const PlannedRows& item : plan.items) {
    engine::Sample& sample = *item.sequence->sample;
    if (!sample.started) Begin(sample);
    rows_.push_back({.tokens = std::span(sample.tokens).subspan(item.position, item.rows),
                     .position = item.position,
                     .pages = item.sequence->page_data,
                     .logits_rows = item.samples ? 1u : 0u});
  }
  const size_t vocabulary_size = model_.info().vocabulary_size;
  model_.Forward(rows_, std::span(logits_).first(plan.logits_rows * vocabulary_size));
  counters_.computed_rows.fetch_add(plan.rows, std::memory_order_relaxed);
}

void Engine::Begin(engine::Sample& sample) {
  const Request& request = sample.request.request;
  sample.started = true;
  sample.tokens.reserve(sample.sequence.length_max);
  sample.tokens.assign(request.prompt.begin(), request.prompt.end());
  sample.sequence.tokens = sample.tokens.data();
  if (UsesPenalties(request.sampling)) {
    sample.counts.Reset(std::min(model_.info().vocabulary_size, sample.sequence.length_max));
    for (const TokenId token : request.prompt) sample.counts.AddPrompt(token);
  }
  counters_.prompt_tokens.fetch_add(request.prompt.size(), std::memory_order_relaxed);
  std::lock_guard lock(registry_mutex_);
  --waiting_;
}

void Engine::Sample(const StepPlan& plan) {
  const size_t vocabulary_size = model_.info().vocabulary_size;
  size_t row = 0;
  for (const PlannedRows& item : plan.items) {
    if (!item.samples) continue;
    engine::Sample& sample = *item.sequence->sample;
    const SamplingParams& params = sample.request.request.sampling;
    const std::span<float> logits =
        std::span(logits_).subspan(row * vocabulary_size, vocabulary_size);
    SampleResult& result = results_[row++];
    const NoiseKey key{
        .seed = params.seed, .sample_index = sample.index, .position = item.sequence->length};
    sampler_.Sample(logits, params, sample.counts, key, result);
    if (!result.status.ok()) continue;
    sample.tokens.push_back(result.token);
    if (UsesPenalties(params)) sample.counts.AddGenerated(result.token);
    ++item.sequence->length;
  }
}

void Engine::Publish(const StepPlan& plan) {
  const base::Instant now = clock_.Now();
  size_t row = 0;
  for (const PlannedRows& item : plan.items) {
    if (!item.samples) continue;
    engine::Sample& sample = *item.sequence->sample;
    SampleResult& result = results_[row++];
    if (result.status.ok()) {
      Deliver(sample, publisher_.Next(sample, result), now);
    } else {
      Finish(sample, publisher_.Last(sample, FinishReason::kError, std::move(result.status)));
    }
  }
}

void Engine::Deliver(engine::Sample& sample, TokenEvent event, base::Instant now) {
  const bool first = sample.tokens.size() == sample.request.request.prompt.size() + 1;
  if (options_.metrics != nullptr && first) {
    options_.metrics->first_token_seconds.Observe(now - sample.request.arrival);
  } else if (options_.metrics != nullptr) {
    options_.metrics->inter_token_seconds.Observe(now - sample.last_token);
  }
  sample.last_token = now;
  counters_.generated_tokens.fetch_add(1, std::memory_order_relaxed);
  if (event.finish) {
    Finish(sample, std::move(event));
  } else {
    sample.request.sink.OnEvent(std::move(event));
  }
}

void Engine::Finish(engine::Sample& sample, TokenEvent event) {
  LiveRequest& live = sample.request;
  scheduler_.Remove(sample.sequence);
  CHECK(live.unfinished > 0);
  --live.unfinished;
  {
    std::lock_guard lock(registry_mutex_);
    if (!sample.started) --waiting_;
    if (live.unfinished == 0) registry_.erase(static_cast<uint64_t>(live.request.id));
  }
  switch (event.finish->reason) {
    case FinishReason::kStop:
      counters_.samples_stop.fetch_add(1, std::memory_order_relaxed);
      break;
    case FinishReason::kLength:
      counters_.samples_length.fetch_add(1, std::memory_order_relaxed);
      break;
    case FinishReason::kCancelled:
      counters_.samples_cancelled.fetch_add(1, std::memory_order_relaxed);
      break;
    case FinishReason::kError:
      counters_.samples_error.fetch_add(1, std::memory_order_relaxed);
      break;
  }
  UpdateGauges();
  live.sink.OnEvent(std::move(event));
}

void Engine::End(LiveRequest& live, FinishReason reason, const base::Status& status) {
  for (const auto& sample : live.samples) {
    if (sample->sequence.state == SequenceState::kEnded) continue;
    Finish(*sample, publisher_.Last(*sample, reason, status));
  }
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
  if (tree_ == nullptr) return;
  counters_.page_evictions.store(tree_->evictions(), std::memory_order_relaxed);
}

}  // namespace plumb::engine
