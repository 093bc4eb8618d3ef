// engine/host_work.cc
// Masks first, then events: what the next step waits for goes before what a reader waits for.
#include "engine/host_work.h"

#include "base/check.h"
#include "engine/publisher.h"

namespace plumb::engine {
namespace {

// Real time that whoever fails requests waits for the gate: an event takes microseconds.
constexpr base::Duration kGateWait = base::Milliseconds(100);

}  // namespace

void HostWork::FillMasks(MaskWork& work) {
  TraceScope scope(surroundings_.trace, surroundings_.clock, TracePhase::kMasks, work.step);
  for (MaskItem& item : work.items) {
    FillMasksOf(item, work);
    Progress();
  }
  scope.set_rows(work.items.size());
}

void HostWork::FillMasksOf(MaskItem& item, const MaskWork& work) const {
  Sample& sample = *item.sample;
  if (sample.grammar == nullptr) {
    sample.grammar = sample.request.request.grammar->NewState();
    CHECK(sample.grammar != nullptr);
  }
  const TokenId* drafts = sample.sequence.tokens + sample.sequence.length;
  uint32_t accepted = 0;
  for (;;) {
    item.status = sample.grammar->FillMask(work.Mask(item.first_mask + item.filled));
    if (!item.status.ok()) break;
    if (item.filled++ == item.drafts) break;
    // A draft that it refuses is not what is sampled: the rows after it are never looked at.
    if (!sample.grammar->Accept(drafts[accepted]).ok()) break;
    ++accepted;
  }
  if (accepted > 0) sample.grammar->Rollback(accepted);
}

void HostWork::Publish(const HandOver& hand_over, const std::function<void()>& between) {
  TraceScope scope(surroundings_.trace, surroundings_.clock, TracePhase::kPublish, hand_over.step);
  scope.set_rows(hand_over.samples.size());
  const base::Instant now = surroundings_.clock.Now();
  for (const HandedSample& handed : hand_over.samples) {
    {
      base::TryMutexLock lock(gate_);
      PublishOne(handed, hand_over.ResultsOf(handed), now);
    }
    Progress();
    if (between) between();
  }
}

void HostWork::PublishOne(const HandedSample& handed, std::span<const SampleResult> results,
                          base::Instant now) {
  Sample& sample = *handed.sample;
  if (sample.ended) return;
  // Of an embedding only the end is news.
  if (sample.request.request.pooling != Pooling::kNone && !handed.end) return;
  sample.cached_published = handed.cached_tokens;
  const uint32_t before = sample.tokens_published;
  TokenEvent event = MakeEvent(handed, results);
  if (handed.tokens > 0) ObserveLatency(sample, now, before == 0);
  surroundings_.counters.generated_tokens.fetch_add(sample.tokens_published - before,
                                                    std::memory_order_relaxed);
  if (!event.finish) {
    sample.request.sink.OnEvent(std::move(event));
    return;
  }
  if (!handed.end) {
    sample.ended_by_host.store(true, std::memory_order_relaxed);
    surroundings_.tell_engine();
  }
  Finish(sample, std::move(event));
}

void HostWork::ObserveLatency(Sample& sample, base::Instant now, bool first) {
  // Tokens that come in one event come at one time: that is one interval.
  if (surroundings_.metrics != nullptr && first) {
    surroundings_.metrics->first_token_seconds.Observe(now - sample.request.arrival);
  } else if (surroundings_.metrics != nullptr) {
    surroundings_.metrics->inter_token_seconds.Observe(now - sample.last_token);
  }
  sample.last_token = now;
}

void HostWork::Finish(Sample& sample, TokenEvent event) {
  LiveRequest& live = sample.request;
  CHECK(!sample.ended && live.unpublished > 0);
  sample.ended = true;
  CountFinish(event.finish->reason);
  surroundings_.counters.embeddings.fetch_add(!event.embedding.empty(), std::memory_order_relaxed);
  const bool last = --live.unpublished == 0;
  if (last) surroundings_.forget(live);
  live.sink.OnEvent(std::move(event));
  // From here on the engine may free the request.
  if (last) live.published.store(true, std::memory_order_release);
}

void HostWork::CountFinish(FinishReason reason) {
  EngineCounters& counters = surroundings_.counters;
  std::atomic<uint64_t>* counter = nullptr;
  switch (reason) {
    case FinishReason::kStop:
      counter = &counters.samples_stop;
      break;
    case FinishReason::kLength:
      counter = &counters.samples_length;
      break;
    case FinishReason::kCancelled:
      counter = &counters.samples_cancelled;
      break;
    case FinishReason::kError:
      counter = &counters.samples_error;
      break;
  }
  counter->fetch_add(1, std::memory_order_relaxed);
}

bool HostWork::FailAll(const std::function<std::vector<LiveRequest*>()>& list,
                       const base::Status& status) {
  if (!gate_.TryLockFor(kGateWait)) return false;
  base::TryMutexLock lock(gate_, base::kLocked);
  for (LiveRequest* live : list()) {
    // Not touched once its last event is out.
    for (uint32_t index = 0, left = live->unpublished; left > 0; ++index) {
      Sample& sample = *live->samples[index];
      if (sample.ended) continue;
      --left;
      sample.ended_by_host.store(true, std::memory_order_relaxed);
      HandedSample handed{.sample = &sample,
                          .end = FinishReason::kError,
                          .status = status,
                          .cached_tokens = sample.cached_published};
      Finish(sample, MakeEvent(handed, {}));
    }
  }
  surroundings_.tell_engine();
  return true;
}

}  // namespace plumb::engine
