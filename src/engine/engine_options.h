// engine/engine_options.h
// What an engine is set up with: everything that can grow in it, and what it uses beside its model.
// Read next: engine/engine.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "engine/drafter.h"
#include "engine/request.h"
#include "engine/trace.h"
#include "model/model.h"
#include "telemetry/metrics.h"
#include "tensor/thread_pool.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// The model's own rows_max and logits_rows_max bound these too.
struct EngineOptions {
  uint64_t kv_budget_bytes = 1ull << 30;  // pages, states and checkpoints (engine_memory.h)
  uint32_t sequences_max = 64;            // samples that run at once
  uint32_t waiting_max = 512;             // samples accepted and not yet started; >= kSamplesMax
  // Of them, those of batch priority, so that they do not keep others out; in [kSamplesMax,
  // waiting_max]. 0 = three quarters, but kSamplesMax at least.
  uint32_t waiting_batch_max = 0;
  uint32_t rows_max = 512;          // rows of a step
  uint32_t prefill_rows_max = 256;  // prompt rows of a step
  // Prompt rows and drafts are also limited by the time they take (step_limit.h). `step_target`: of
  // a step in which nobody waits for a next token, the bound on how late an arrival, a cancellation
  // or a deadline is seen; 0 = no such limit. `itl_target`: between two tokens of a running answer;
  // 0 = by what a step without prompts takes.
  base::Duration step_target = base::Milliseconds(80);
  base::Duration itl_target{0};
  // Computed pages are kept and reused by requests that begin alike (docs/prefix_cache.md).
  bool prefix_cache = true;
  // Of models that need a checkpoint beside the pages to go on from: how many are kept, each of
  // ModelInfo::checkpoint_bytes. 0 = by the budget. Never more than there are pages.
  uint32_t checkpoints_max = 0;
  // Names every byte of the model's files; a part of the pages' names.
  std::string model_content;
  // Masks and events are done on the engine's thread between two forwards, not beside them: slower,
  // easier to follow, and the same answers.
  bool synchronous = false;
  // When work is pending and no step has ended for so long, or the thread of masks and events has
  // not gone on, Healthy() turns false and what is live fails. 0 = never.
  base::Duration watchdog = base::Seconds(30);
  uint32_t retry_after_ms = 1000;  // told to whoever is refused, when nothing is measured

  // The model's own: samples the rows of a step beside each other. Null = one after the other.
  tensor::ThreadPool* pool = nullptr;

  // For requests that leave it to the server; not kServer (docs/speculation.md).
  Speculation speculation = Speculation::kAuto;
  // Guesses for the model, of the same vocabulary; null = none. Its tokenizer is compared.
  model::Model* draft_model = nullptr;
  const text::Tokenizer* draft_tokenizer = nullptr;
  uint64_t draft_kv_budget_bytes = 256ull << 20;
  // Asked instead of the speculation above, and never weighed against what rows cost: for tests and
  // simulations. Null = none.
  Drafter* unweighed_drafter = nullptr;

  // Where latencies and step sizes are recorded: its histograms, nothing else (counts: stats()).
  // Null = nowhere.
  telemetry::EngineMetrics* metrics = nullptr;
  // Where the phases of steps are recorded; null = nowhere.
  EngineTrace* trace = nullptr;
};

}  // namespace plumb::engine
