// engine/engine_control.cc
// What other threads call: Submit, Cancel, Drain, Stop, health, and the watchdog. They share with
// the loop the arrivals queue, the registry of live requests and a few atomics, nothing else.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/request_check.h"
#include "kvcache/page_chain.h"

namespace plumb::engine {

base::Status Engine::Submit(Request request, EventSink& sink) {
  RETURN_IF_ERROR(CheckRequest(request, {.vocabulary_size = info_.vocabulary_size,
                                         .context_max = context_max_,
                                         .hidden_width = info_.hidden_width,
                                         .has_draft_model = options_.draft_model != nullptr}));
  return Enqueue(MakeLive(std::move(request), sink));
}

std::unique_ptr<LiveRequest> Engine::MakeLive(Request request, EventSink& sink) const {
  auto live = std::make_unique<LiveRequest>(std::move(request), sink);
  const Request& taken = live->request;
  // Before the names: when the weights change in between, they are made again.
  live->names_version = weights_version();
  const std::vector<base::Hash256> chain = PromptChain(taken);
  for (uint32_t index = 0; index < taken.samples; ++index) {
    Sequence& sequence =
        live->samples
            .emplace_back(std::make_unique<Sample>(*live, index, tokenizer_, taken.sampling.stop))
            ->sequence;
    sequence.length = live->prompt_tokens();
    sequence.length_max = live->prompt_tokens() + taken.sampling.tokens_max;
    sequence.priority = taken.priority;
    sequence.tenant = taken.tenant;
    sequence.tokens = taken.prompt.data();
    sequence.chain = chain;
    for (size_t i = 0; i < taken.hints.size(); ++i) {
      sequence.hints[i] = {.pages = taken.hints[i].tokens / pool_->layout().page_tokens,
                           .time = taken.hints[i].time};
    }
    if (taken.pooling != Pooling::kNone) {
      sequence.hidden_from = taken.pooling == Pooling::kMean ? 0 : sequence.length - 1;
    }
    const bool describes = taken.prompt_logprobs && index == 0 && taken.prompt.size() > 1;
    if (describes) sequence.logits_from = 0;
    // Of a mean every row has all layers.
    if (info_.replay_rows > 0 && taken.pooling != Pooling::kMean) {
      sequence.replay_from = sequence.length - std::min(sequence.length, info_.replay_rows);
      sequence.resume_max = sequence.replay_from;
    } else if (states_ != nullptr && info_.replay_rows == 0) {
      sequence.resume_max = sequence.length - 1;
    }
    sequence.full_pass = describes && sequence.replay_from > 0;
  }
  live->unfinished = live->unpublished = taken.samples;
  live->arrival = clock_.Now();
  return live;
}

std::vector<base::Hash256> Engine::PromptChain(const Request& request) const {
  if (tree_ == nullptr) return {};
  base::Hash256 identity;
  {
    base::MutexLock lock(registry_mutex_);
    identity = identity_;
  }
  const std::span<const TokenId> prompt(request.prompt);
  const uint32_t page_tokens = pool_->layout().page_tokens;
  std::vector<base::Hash256> chain;
  chain.reserve(prompt.size() / page_tokens + 1);
  chain.push_back(kvcache::ChainRoot(request.isolation, identity, pool_->layout()));
  while (chain.size() <= prompt.size() / page_tokens) {
    const size_t page = chain.size() - 1;
    chain.push_back(
        kvcache::ChainNext(chain.back(), prompt.subspan(page * page_tokens, page_tokens)));
  }
  return chain;
}

base::Status Engine::Enqueue(std::unique_ptr<LiveRequest> live) {
  const Request& request = live->request;
  base::MutexLock lock(registry_mutex_);
  RETURN_IF_ERROR(CheckRoom(request));
  if (registry_.empty()) last_progress_ns_.store(live->arrival.ns, std::memory_order_relaxed);
  registry_.emplace(static_cast<uint64_t>(request.id), live.get());
  waiting_ += request.samples;
  if (request.priority == Priority::kBatch) waiting_batch_ += request.samples;
  counters_.requests.fetch_add(1, std::memory_order_relaxed);
  CHECK(arrivals_.Push(std::move(live))) << "as many requests as waiting samples fit the queue";
  return base::OkStatus();
}

base::Status Engine::CheckRoom(const Request& request) {
  if (draining_) {
    return Refuse(base::Code::kUnavailable, "the server is stopping; try another one",
                  options_.retry_after_ms);
  }
  if (hangs()) {
    return Refuse(base::Code::kUnavailable, "the engine makes no progress; try another server",
                  options_.retry_after_ms);
  }
  const uint64_t id = static_cast<uint64_t>(request.id);
  if (registry_.contains(id)) {
    return base::InvalidArgument("id", fmt::format("request id {} is in use", id));
  }
  if (waiting_ + request.samples > options_.waiting_max) {
    return Refuse(base::Code::kOverloaded,
                  fmt::format("{} answers wait already, of {} that may; try again later", waiting_,
                              options_.waiting_max),
                  retry_after_.Refuse());
  }
  if (request.priority == Priority::kBatch &&
      waiting_batch_ + request.samples > options_.waiting_batch_max) {
    return Refuse(
        base::Code::kOverloaded,
        fmt::format("{} answers of batch priority wait already, of {} that may; try again "
                    "later",
                    waiting_batch_, options_.waiting_batch_max),
        retry_after_.Refuse());
  }
  return base::OkStatus();
}

void Engine::LeaveQueue(const Sample& sample) {
  base::MutexLock lock(registry_mutex_);
  CHECK(waiting_ > 0);
  --waiting_;
  if (sample.request.request.priority != Priority::kBatch) return;
  CHECK(waiting_batch_ > 0);
  --waiting_batch_;
}

base::Status Engine::Refuse(base::Code code, std::string message, uint32_t retry_after_ms) {
  counters_.requests_refused.fetch_add(1, std::memory_order_relaxed);
  return base::Status(code, std::move(message)).WithRetryAfterMs(retry_after_ms);
}

void Engine::Forget(const LiveRequest& live) {
  base::MutexLock lock(registry_mutex_);
  registry_.erase(static_cast<uint64_t>(live.request.id));
}

void Engine::Cancel(RequestId id) {
  base::MutexLock lock(registry_mutex_);
  const auto place = registry_.find(static_cast<uint64_t>(id));
  if (place == registry_.end()) return;
  place->second->cancelled.store(true, std::memory_order_relaxed);
  cancel_pending_.store(true, std::memory_order_release);
}

void Engine::Drain(base::Instant deadline) {
  {
    base::MutexLock lock(registry_mutex_);
    draining_ = true;
    const int64_t earlier = std::min(drain_deadline_ns_.load(), deadline.ns);
    drain_deadline_ns_.store(earlier, std::memory_order_release);
  }
  arrivals_.Close();
  base::MutexLock lock(thread_mutex_);
  if (thread_.joinable()) {
    thread_.Join();
    host_.Stop();
    stall_watch_.Stop();
  } else {
    while (Step()) {
    }
  }
}

void Engine::Stop() { Drain(base::Instant{INT64_MIN}); }

EngineStats Engine::stats() const {
  EngineStats stats = counters_.Read(pool_->total());
  stats.page_bytes = memory_.plan.page_bytes;
  stats.state_bytes = memory_.plan.state_bytes;
  stats.checkpoint_bytes = memory_.plan.checkpoint_bytes;
  return stats;
}

base::Instant Engine::LastProgress() const {
  return {last_progress_ns_.load(std::memory_order_relaxed)};
}

bool Engine::Healthy() const {
  base::MutexLock lock(registry_mutex_);
  if (draining_ || hangs()) return false;
  return !Overdue();
}

bool Engine::Overdue() const {
  return options_.watchdog.ns > 0 && !registry_.empty() &&
         clock_.Now() - LastProgress() > options_.watchdog;
}

bool Engine::EngineHangs() {
  const bool stands_still = engine_looks_.StandsStill(LastProgress().ns);
  base::MutexLock lock(registry_mutex_);
  if (stands_still && Overdue()) stalled_.store(true);
  return stalled_.load();
}

bool Engine::FailAll() {
  const base::Status status =
      base::Status(base::Code::kUnavailable,
                   fmt::format("the engine made no progress for {:.1f} s; try another server",
                               options_.watchdog.seconds()))
          .WithReason("engine_stalled")
          .WithRetryAfterMs(options_.retry_after_ms);
  return host_work_.FailAll(
      [this] {
        std::vector<LiveRequest*> live = Registered();
        counters_.requests_failed_by_watchdog.fetch_add(live.size(), std::memory_order_relaxed);
        return live;
      },
      status);
}

std::vector<LiveRequest*> Engine::Registered() {
  base::MutexLock lock(registry_mutex_);
  std::vector<LiveRequest*> live;
  live.reserve(registry_.size());
  for (const auto& [id, request] : registry_) live.push_back(request);
  // No order of a table's own: by id.
  std::sort(live.begin(), live.end(), [](const LiveRequest* a, const LiveRequest* b) {
    return a->request.id < b->request.id;
  });
  return live;
}

}  // namespace plumb::engine
