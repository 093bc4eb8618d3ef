// engine/engine.h
// The local Generator: a thread that runs receive, guess, plan, forward, sample, commit, hand over
// until it is told to stop, and one beside it that fills grammar masks and makes events. An answer
// depends on neither, nor on what else runs; see the README here. Read next: engine/engine.cc (the
// loop), engine/scheduler.h (who runs in a step), engine/host_thread.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "engine/engine_memory.h"
#include "engine/engine_options.h"
#include "engine/generator.h"
#include "engine/hand_over.h"
#include "engine/host_thread.h"
#include "engine/host_work.h"
#include "engine/live_request.h"
#include "engine/retry_after.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/speculation.h"
#include "engine/stall_watch.h"
#include "engine/stats.h"
#include "engine/step_cost.h"
#include "engine/weights_swap.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// Thread: Submit, Cancel, Drain, Stop, SwapModel, stats, Healthy: any. Start once. Step: see there.
//
// A sample's last event says that its sink gets no more of it; of the request's last one, also that
// its id may be used again. The pages of a sample are free by then, except where a stop string or
// the watchdog ended it: then within a step.
class Engine final : public Generator {
 public:
  // `model`, `tokenizer`, `clock` and what the options point to must outlive the engine; nobody
  // else may call the models. kInvalidArgument (field): an option out of range, or a KV budget
  // below one page; kUnsupported: a vocabulary above kVocabularySizeMax.
  static base::Result<std::unique_ptr<Engine>> Create(model::Model& model,
                                                      const text::Tokenizer& tokenizer,
                                                      const base::Clock& clock,
                                                      const EngineOptions& options);
  ~Engine() override;  // Stop()
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Starts the engine's thread, and the host's.
  void Start();
  // Refuses new requests (kUnavailable), finishes the accepted ones, cancels at `deadline` what is
  // left, and returns when all have ended and the threads are joined, which takes a model that
  // returns from Forward. Again with an earlier deadline: shortens it.
  void Drain(base::Instant deadline);
  // Drain with a deadline that has passed.
  void Stop();

  // Generator. Submit also gives kInvalidArgument (field "id") for an id that is live, and
  // kUnavailable while the engine hangs.
  base::Status Submit(Request request, EventSink& sink) override;
  void Cancel(RequestId id) override;

  // Puts other weights in place of the model's, without a restart. Samples that have begun end on
  // the old ones, those that wait or arrive meanwhile begin on the new ones, and all computed pages
  // are dropped between the two. On ok, the version that finishes carry from now on; the engine
  // does not touch the old model any more. `content` as EngineOptions.model_content.
  // kInvalidArgument (field "model"): not the shape of the model it was made with; kDeadline: what
  // had begun did not end in time; kUnavailable: stopping, or another swap is under way (reason
  // "swap_in_progress"). Without ok nothing has changed, and `model` is not touched any more.
  base::Result<uint32_t> SwapModel(model::Model& model, std::string content,
                                   base::Instant deadline);
  // Of the weights that answer what begins now; from 1.
  uint32_t weights_version() const { return weights_version_.load(std::memory_order_relaxed); }

  // One turn of the loop on the caller's thread, the host's work included; false when nothing is
  // live. For simulation and tests: only while Start has not been called.
  bool Step();
  // A page is free exactly when nothing refers to it, and all else that the pages promise (CHECK);
  // for simulation and tests, between steps.
  void CheckPages() const;
  // Tokens that one request may have, prompt and answer: the model's, or what the pages hold.
  uint32_t context_max() const { return context_max_; }
  // Of the model that it was made with; one that was put in its place differs in `name` at most.
  const model::ModelInfo& info() const { return info_; }

  EngineStats stats() const;
  // When the last step ended, or work first arrived after a pause.
  base::Instant LastProgress() const;
  // False when a thread is stuck (options.watchdog) or the engine is not taking requests.
  bool Healthy() const;

 private:
  // What a step gives a sample: rows with logits, for log-probabilities of its prompt, then to
  // sample from; or hidden states to be pooled.
  struct Target {
    Sample* sample;
    uint32_t position;   // of the first of them
    uint32_t first_row;  // of the step's logits
    uint32_t prompt_rows = 0;
    uint32_t sample_rows = 0;            // 0, or 1 + drafts
    const MaskItem* mask = nullptr;      // null: no grammar, or nothing is sampled
    std::span<const float> hidden = {};  // [rows, hidden_width]
  };

  Engine(model::Model& model, const text::Tokenizer& tokenizer, const base::Clock& clock,
         const EngineOptions& options, EngineMemory memory,
         std::unique_ptr<ModelDrafter> model_drafter);

  // Of Submit. Thread: any.
  std::unique_ptr<LiveRequest> MakeLive(Request request, EventSink& sink) const;
  base::Status Enqueue(std::unique_ptr<LiveRequest> live);
  base::Status CheckRoom(const Request& request) HOLDS(registry_mutex_);
  base::Status Refuse(base::Code code, std::string message, uint32_t retry_after_ms);
  void LeaveQueue(const Sample& sample);  // it waits no more; thread: engine
  bool hangs() const { return stalled_.load() || stall_watch_.host_hangs(); }
  // The names of the prompt's whole pages, after their root.
  std::vector<base::Hash256> PromptChain(const Request& request) const;

  // The loop and its parts, in order. Thread: engine, from here on where nothing else is said.
  void Run();
  void Receive(base::Instant now);
  void Guess();
  const StepPlan& MakePlan();
  void Prepare(const StepPlan& plan);
  void Forward(const StepPlan& plan);
  void AwaitMasks();
  void SampleRows();
  void Commit(base::Duration elapsed);
  void Conclude();
  void PostHandOver();
  void CountStep(base::Instant begin);
  void UpdateGauges();

  // Of Receive.
  void Accept(std::unique_ptr<LiveRequest> live, base::Instant now);
  void RemoveWhatHostEnded();
  void EndOverdueAndCancelled(base::Instant now, bool cancelling);
  void End(LiveRequest& live, FinishReason reason, const base::Status& status);
  void FreeWhatEnded();
  // Takes a sample out, its pages at once; what its sink hears of it is somebody else's affair.
  void Remove(Sample& sample);
  static HandedSample NewHanded(Sample& sample);

  // Of Guess and Prepare.
  void GuessWeighed();
  void GuessUnweighed();
  void SetDrafts(Sample& sample, std::span<const TokenId> guesses);
  uint32_t GuessesMax(const Sample& sample) const;
  void Begin(Sample& sample);
  void AddTarget(const PlannedRows& item, uint32_t first_row);
  void AddHiddenTarget(const PlannedRows& item);

  // Of SampleRows. Thread: of the compute pool; each sample on one.
  void SampleTarget(const Target& target, Sampler& sampler, HandedSample& handed);
  base::Status DescribePrompt(const Target& target, Sampler& sampler, HandedSample& handed);
  base::Status PoolRows(const Target& target, HandedSample& handed);
  base::Status SampleInTurn(const Target& target, Sampler& sampler, HandedSample& handed);
  // Whether the newest token ends the answer, which `handed` then says; else grammars go on by it.
  base::Result<bool> EndsAfter(TokenId token, HandedSample& handed) const;
  std::span<float> LogitsRow(uint32_t row);

  // What the host's work calls (HostWork::Surroundings). Thread: the host's.
  void Forget(const LiveRequest& live);
  // What stall_watch_ calls, and of it. Thread: its own.
  bool EngineHangs();
  bool FailAll();
  std::vector<LiveRequest*> Registered();
  bool Overdue() const HOLDS(registry_mutex_);

  // Of SwapModel; CheckSwap: thread any.
  base::Status CheckSwap(const model::Model& model) const;
  bool AwaitsSwap(base::Instant deadline, base::Status& given_up);
  void ServeSwap();
  void Exchange() HOLDS(swap_.mutex);
  void Rename(LiveRequest& live);

  // Constant after construction.
  const model::ModelInfo info_;
  const text::Tokenizer& tokenizer_;
  const base::Clock& clock_;
  const EngineOptions options_;  // clamped to the model's limits
  const EngineMemory memory_;
  kvcache::PagePool* const pool_;    // of memory_
  kvcache::PrefixTree* const tree_;  // likewise; null: nothing is reused
  SequenceStates* const states_;     // likewise; null: the model has none
  const uint32_t context_max_;
  const uint32_t logits_rows_max_;  // of a step

  // Engine thread.
  model::Model* model_;
  Scheduler scheduler_;
  Speculator speculator_;
  std::vector<Sampler> samplers_;                   // one a thread of the pool
  std::vector<std::unique_ptr<LiveRequest>> live_;  // by arrival; also what is only to be freed
  uint32_t active_ = 0;                             // of them, those with unfinished samples
  uint64_t next_order_ = 0;
  // Of the step.
  uint64_t step_ = 0;
  std::vector<Sample*> guessing_;  // who may have guesses, and what the speculator is told of each
  std::vector<SpeculationItem> guessed_;
  std::vector<Draft> unweighed_;
  std::vector<Draft*> unweighed_batch_;
  StepForecast forecast_;
  StepShape planned_;
  uint32_t draft_rows_ = 0, mask_count_ = 0, hidden_rows_ = 0;
  std::vector<model::SequenceRows> rows_;
  std::vector<Target> targets_;
  const std::unique_ptr<float[]> logits_;  // [logits_rows_max, vocabulary], not touched before use
  const std::unique_ptr<float[]> hidden_;  // [rows_max, hidden_width], likewise

  // Shared with every thread.
  base::BoundedQueue<std::unique_ptr<LiveRequest>> arrivals_;  // null: only to wake the loop
  EngineCounters counters_;
  std::atomic<bool> cancel_pending_{false};
  std::atomic<bool> ended_by_host_{false};
  std::atomic<bool> stalled_{false};  // by the watchdog, until a step ends
  std::atomic<int64_t> drain_deadline_ns_{INT64_MAX};
  std::atomic<int64_t> last_progress_ns_{0};
  RetryAfter retry_after_;
  mutable base::Mutex registry_mutex_;
  // What has not ended for its sink.
  std::unordered_map<uint64_t, LiveRequest*> registry_ GUARDED_BY(registry_mutex_);
  base::Hash256 identity_ GUARDED_BY(registry_mutex_);  // of the model, in page names
  std::atomic<uint32_t> weights_version_{1};            // written under registry_mutex_
  uint32_t waiting_ GUARDED_BY(registry_mutex_) = 0;    // samples that have not begun
  uint32_t waiting_batch_ GUARDED_BY(registry_mutex_) = 0;
  bool draining_ GUARDED_BY(registry_mutex_) = false;

  WeightsSwap swap_;
  StallLooks engine_looks_;  // thread: stall_watch_'s
  HostWork host_work_;
  HostThread host_;  // last but the thread: it uses the rest
  std::atomic<bool> started_{false};
  base::Mutex thread_mutex_;
  base::Thread thread_ GUARDED_BY(thread_mutex_);
  StallWatch stall_watch_;
};

}  // namespace plumb::engine
