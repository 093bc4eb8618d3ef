// engine/engine.h
// The local Generator: one thread that runs receive, plan, forward, sample, publish until it is
// told to stop. What a request's answer is does not depend on what else runs; see the README here.
// Read next: engine/scheduler.h (who runs in a step), engine/sampler.h, engine/publisher.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"
#include "base/thread.h"
#include "engine/generator.h"
#include "engine/publisher.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"
#include "engine/stats.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"
#include "model/model.h"
#include "telemetry/metrics.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// Everything that can grow. The model's own rows_max and logits_rows_max bound these too.
struct EngineOptions {
  uint64_t kv_budget_bytes = 1ull << 30;  // keys and values
  uint32_t sequences_max = 64;            // samples that run at once
  uint32_t waiting_max = 512;             // samples accepted and not yet started; >= kSamplesMax
  uint32_t rows_max = 512;                // rows of a step
  uint32_t prefill_rows_max = 256;        // prompt rows of a step
  // Prompt rows are also limited so that a step takes about so long: the bound on how late a
  // running stream's next token, a cancellation or a deadline may be. 0 = no such limit.
  base::Duration step_target = base::Milliseconds(80);
  // Computed pages are kept and reused by requests that begin alike (docs/prefix_cache.md).
  bool prefix_cache = true;
  // Names every byte of the model's files; a part of the pages' names.
  std::string model_content;
  // Healthy() turns false when work is pending and no step has ended for so long.
  base::Duration watchdog = base::Seconds(30);
  uint32_t retry_after_ms = 1000;  // told to whoever is refused
  // Where latencies and step sizes are recorded: its histograms, nothing else (counts: stats()).
  // Outlives the engine; null = nowhere.
  telemetry::EngineMetrics* metrics = nullptr;
};

// Thread: Submit, Cancel, Drain, Stop, stats, Healthy: any. Start once. Step: see there.
class Engine final : public Generator {
 public:
  // `model`, `tokenizer` and `clock` must outlive the engine; nobody else may call the model.
  // kInvalidArgument (field): an option out of range, or a KV budget below one page; kUnsupported:
  // a vocabulary above kVocabularySizeMax.
  static base::Result<std::unique_ptr<Engine>> Create(model::Model& model,
                                                      const text::Tokenizer& tokenizer,
                                                      const base::Clock& clock,
                                                      const EngineOptions& options);
  ~Engine() override;  // Stop()
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts the engine's thread.
  void Start();
  // Refuses new requests (kUnavailable), finishes the accepted ones, cancels at `deadline` what is
  // left, and returns when all have ended and the thread is joined. Again with an earlier deadline:
  // shortens it.
  void Drain(base::Instant deadline);
  // Drain with a deadline that has passed.
  void Stop();

  // Generator. Submit also gives kInvalidArgument (field "id") for an id that is live.
  base::Status Submit(Request request, EventSink& sink) override;
  void Cancel(RequestId id) override;

  // One turn of the loop on the caller's thread; false when nothing is live. For simulation and
  // tests: only while Start has not been called.
  bool Step();
  // A page is free exactly when nothing refers to it, and all else that the pages promise (CHECK);
  // for simulation and tests, between steps.
  void CheckPages() const;

  // Tokens that one request may have, prompt and answer: the model's, or what the pages hold.
  uint32_t context_max() const { return context_max_; }
  const model::ModelInfo& info() const { return model_.info(); }

  EngineStats stats() const;
  // When the last step ended, or work first arrived after a pause.
  base::Instant LastProgress() const;
  // False when the thread is stuck (options.watchdog) or the engine is not taking requests.
  bool Healthy() const;

 private:
  Engine(model::Model& model, const text::Tokenizer& tokenizer, const base::Clock& clock,
         const EngineOptions& options, std::unique_ptr<kvcache::PagePool> pool);

  // Registers and queues a checked request, or refuses it. Thread: any.
  base::Status Enqueue(std::unique_ptr<LiveRequest> live);
  base::Status Refuse(base::Code code, std::string message);
  // The names of the prompt's whole pages, after their root. Thread: any.
  std::vector<base::Hash256> PromptChain(const Request& request) const;

  // The loop and its parts, in order. Thread: engine.
  void Run();
  void Receive(base::Instant now);
  void Forward(const StepPlan& plan);
  void Sample(const StepPlan& plan);
  void Publish(const StepPlan& plan);

  void Accept(std::unique_ptr<LiveRequest> live, base::Instant now);
  void EndOverdueAndCancelled(base::Instant now, bool cancelling);
  void Begin(engine::Sample& sample);
  void Deliver(engine::Sample& sample, TokenEvent event, base::Instant now);
  // Takes the sample out, pages first, then tells its sink: `event` is its last.
  void Finish(engine::Sample& sample, TokenEvent event);
  void End(LiveRequest& live, FinishReason reason, const base::Status& status);
  void UpdateGauges();

  // Constant after construction.
  model::Model& model_;
  const text::Tokenizer& tokenizer_;
  const base::Clock& clock_;
  const EngineOptions options_;  // clamped to the model's limits
  const std::unique_ptr<kvcache::PagePool> pool_;
  const std::unique_ptr<kvcache::PrefixTree> tree_;  // null: nothing is reused
  const base::Hash256 identity_;                     // of the model, in page names
  const uint32_t context_max_;

  // Engine thread.
  Scheduler scheduler_;
  Sampler sampler_;
  Publisher publisher_;
  std::vector<std::unique_ptr<LiveRequest>> live_;  // by arrival
  std::vector<model::SequenceRows> rows_;           // of the step
  std::vector<float> logits_;                       // [sequences_max, vocabulary]
  std::vector<SampleResult> results_;               // of the step, by logits row
  uint64_t next_order_ = 0;

  // Shared with every thread.
  base::BoundedQueue<std::unique_ptr<LiveRequest>> arrivals_;
  EngineCounters counters_;
  std::atomic<bool> cancel_pending_{false};
  std::atomic<int64_t> drain_deadline_ns_{INT64_MAX};
  std::atomic<int64_t> last_progress_ns_{0};
  mutable std::mutex registry_mutex_;
  std::unordered_map<uint64_t, LiveRequest*>
      registry_;           // guarded by registry_mutex_; never iterated
  uint32_t waiting_ = 0;   // guarded by registry_mutex_
  bool draining_ = false;  // guarded by registry_mutex_

  std::mutex thread_mutex_;
  base::Thread thread_;  // guarded by thread_mutex_
};

}  // namespace plumb::engine
