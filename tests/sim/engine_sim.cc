// tests/sim/engine_sim.cc
// The clients and the loop around the engine, behind tests/sim/engine_sim.h.
#include "engine_sim.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/engine_testing.h"

namespace plumb::sim {
namespace {

using base::Duration;
using engine::Request;

constexpr uint32_t kTriesMax = 4;         // of a client whose request is refused
constexpr uint32_t kBurstMax = 12;        // requests that arrive at once
constexpr uint32_t kIdleTurnsMax = 1000;  // of the loop, without a forward
constexpr uint64_t kForwardsSlack = 100;
constexpr uint64_t kBeginnings = 3;  // of a sample, as preemption goes: a generous mean
constexpr uint32_t kRetryMsMax = 60'000;

Duration Exponential(base::Rng& rng, Duration mean) {
  return {static_cast<int64_t>(-std::log(1 - rng.Uniform()) * static_cast<double>(mean.ns))};
}

// A draft model is an eighth of the model.
StepTime DraftTime(StepTime time) {
  time.fixed.ns /= 8;
  time.by_row.ns /= 8;
  time.by_key_ns /= 8;
  return time;
}

}  // namespace

EngineSim::EngineSim(const SimConfig& config)
    : config_(config),
      rng_(config.seed ^ 0xE5),
      tokenizer_(engine::MakeTokenizer()),
      model_(config.context_max, config.step_time, config.seed ^ 0x10D, world_, config.state),
      draft_model_(config.context_max, DraftTime(config.step_time), config.seed ^ 0xD4AF7, world_),
      fake_drafter_(config.seed, static_cast<uint32_t>(10 * config.draft_accuracy),
                    engine::kTokenizerSize),
      ledger_(model_.hash(), *tokenizer_, world_, journal_),
      engine_(MakeEngine()),
      workload_(config, engine_->context_max()) {
  model_.bad_logits_chance = config.bad_logits_chance;
  model_.on_spoilt_row = [this] { ledger_.SpoiltRow(); };
  model_.before_forward = [this] { BeginForward(); };
  draft_model_.before_forward = [this] { ledger_.BeginGuessing(); };
  MakeWrong(draft_model_.hash(), config.draft_accuracy);
  ledger_.on_token = [this](Record& record) {
    if (rng_.Uniform() < config_.sink_cancel_chance) Cancel(record);
  };
  ledger_.on_answer = [this](const Record& record, const SampleRecord& sample) {
    workload_.Remember(record.request, sample.tokens);
  };
}

// What is live after a failure ends while everything else is still here.
EngineSim::~EngineSim() { engine_.reset(); }

std::unique_ptr<engine::Engine> EngineSim::MakeEngine() {
  // Letters, that its grammars never leave alone.
  if (config_.never_samples) {
    model_.hash().set_never_sampled({base::TokenId{'E'}, base::TokenId{'7'}});
  }
  engine::EngineOptions options;
  options.sequences_max = config_.sequences_max;
  options.waiting_max = config_.waiting_max;
  options.rows_max = config_.rows_max;
  options.prefill_rows_max = config_.prefill_rows_max;
  options.step_target = config_.step_target;
  options.prefix_cache = config_.prefix_cache;
  options.checkpoints_max = config_.checkpoints_max;
  engine::GivePages(options, model_.info(), config_.pages);
  options.synchronous = true;
  options.speculation = engine::Speculation::kOff;
  if (config_.guesses == Guesses::kFake) {
    options.unweighed_drafter = &fake_drafter_;
    options.speculation = engine::Speculation::kAuto;
  } else if (config_.guesses == Guesses::kServer) {
    options.draft_model = &draft_model_;
    options.draft_tokenizer = tokenizer_.get();
    // Of pages as large as the model's, and at times too few.
    const uint64_t pages_bytes = config_.pages * kvcache::PagePool::kAlignment;
    options.draft_kv_budget_bytes =
        pages_bytes / (1 + config_.seed % 3) + kvcache::PagePool::kAlignment;
    options.speculation = engine::Speculation::kAuto;
  }
  auto engine = engine::Engine::Create(model_, *tokenizer_, world_.clock(), options);
  CHECK(engine.ok()) << engine.status().ToString();
  return std::move(engine).value();
}

bool EngineSim::Run() {
  world_.At({0}, [this] { Arrive(); });
  for (;;) {
    StepUntilIdle();
    if (journal_.failed()) return false;
    const bool half_way = arrived_ * 2 >= config_.requests;
    if (config_.drain && half_way && !draining_) Drain();
    if (!world_.RunNext()) break;
  }
  CheckEnd();
  return !journal_.failed();
}

void EngineSim::StepUntilIdle() {
  uint32_t idle_turns = 0;
  while (!journal_.failed()) {
    const uint64_t forwards = ledger_.forwards();
    const bool live = engine_->Step();
    CheckStep();
    if (!live) return;
    if (config_.drain && arrived_ * 2 >= config_.requests && !draining_) Drain();
    if (ledger_.forwards() > forwards) idle_turns = 0;
    if (++idle_turns > kIdleTurnsMax) journal_.Fail("{} steps without a row", idle_turns);
  }
}

void EngineSim::Drain() {
  draining_ = true;
  const base::Instant deadline = world_.now() + Exponential(rng_, config_.patience);
  journal_.Note("drain until {} ms", Duration{deadline.ns}.ms());
  ledger_.Draining(deadline);
  engine_->Drain(deadline);
  if (ledger_.live_samples() > 0) {
    journal_.Fail("{} samples are live after Drain", ledger_.live_samples());
  }
}

void EngineSim::Arrive() {
  const bool burst = rng_.Uniform() < config_.burst_chance;
  uint32_t count = burst ? 1 + static_cast<uint32_t>(rng_.Below(kBurstMax)) : 1;
  for (; count > 0 && arrived_ < config_.requests; --count) {
    ++arrived_;
    Request request = workload_.Next();
    if (rng_.Uniform() < config_.deadline_chance) {
      request.deadline = world_.now() + Exponential(rng_, config_.patience);
    }
    Record& record = ledger_.Open(std::move(request));
    if (config_.guesses == Guesses::kFake) TellDrafter(record);
    Submit(record, kTriesMax);
  }
  if (arrived_ < config_.requests) {
    world_.After(Exponential(rng_, config_.gap), [this] { Arrive(); });
  }
}

void EngineSim::TellDrafter(Record& record) {
  for (uint32_t sample = 0; sample < record.request.samples; ++sample) {
    fake_drafter_.Know(record.request.sampling.seed, sample, record.request.prompt,
                       ledger_.Expected(record, sample).tokens);
  }
}

void EngineSim::Submit(Record& record, uint32_t tries_left) {
  const uint64_t live = ledger_.live_samples();
  const base::Status status = engine_->Submit(record.request, record);
  if (status.ok()) {
    ledger_.Accepted(record);
    // In each step whoever is first in line computes a row at least, however little is reused and
    // however often others begin again.
    forwards_allowed_ = ledger_.forwards() + kForwardsSlack + kBeginnings * ledger_.live_rows();
    CancelLater(record);
    return;
  }
  ledger_.Refused();
  journal_.Note("request {}: refused: {}", record.id(), status.ToString());
  const bool batch = record.request.priority == engine::Priority::kBatch;
  const uint32_t room =
      batch ? std::max(engine::kSamplesMax, config_.waiting_max / 4 * 3) : config_.waiting_max;
  const bool full = live + record.request.samples > room;
  if (status.code() != (draining_ ? base::Code::kUnavailable : base::Code::kOverloaded) ||
      (!draining_ && !full)) {
    return journal_.Fail("request {} refused without reason: {}", record.id(), status.ToString());
  }
  const uint32_t retry_ms = status.retry_after_ms();
  if (retry_ms == 0 || retry_ms > kRetryMsMax) {
    return journal_.Fail("request {} told to come back in {} ms", record.id(), retry_ms);
  }
  if (tries_left == 0) return;
  world_.After(base::Milliseconds(retry_ms),
               [this, &record, tries_left] { Submit(record, tries_left - 1); });
}

void EngineSim::CancelLater(Record& record) {
  if (rng_.Uniform() >= config_.cancel_chance) return;
  world_.After(Exponential(rng_, config_.patience), [this, &record] { Cancel(record); });
}

void EngineSim::Cancel(Record& record) {
  ledger_.Cancelled(record);
  engine_->Cancel(record.request.id);
}

void EngineSim::BeginForward() {
  ledger_.BeginForward();
  const engine::EngineStats stats = engine_->stats();
  if (stats.running + stats.waiting > ledger_.live_samples()) {
    journal_.Fail("{} samples run and {} wait, but {} are live", stats.running, stats.waiting,
                  ledger_.live_samples());
  }
  if (ledger_.forwards() > forwards_allowed_) {
    journal_.Fail("{} samples are live {} forwards after the last arrival", ledger_.live_samples(),
                  ledger_.forwards());
  }
}

void EngineSim::CheckStep() {
  engine_->CheckPages();
  const engine::EngineStats stats = engine_->stats();
  // Those of each priority that lost all seats to a higher one wait again.
  if (stats.running > config_.sequences_max ||
      stats.waiting > config_.waiting_max + 3 * config_.sequences_max) {
    journal_.Fail("{} samples run and {} wait", stats.running, stats.waiting);
  }
}

void EngineSim::CheckEnd() {
  stats_ = engine_->stats();
  const LedgerCounts& counts = ledger_.counts();
  const uint64_t errors = counts.overdue + counts.broken + counts.over_limit;
  if (ledger_.live_samples() > 0) {
    journal_.Fail("{} samples never ended", ledger_.live_samples());
  }
  if (stats_.pages_used + stats_.running + stats_.waiting > 0) {
    journal_.Fail("nothing is live, but {} pages are used, {} samples run, {} wait",
                  stats_.pages_used, stats_.running, stats_.waiting);
  }
  if (stats_.requests != counts.accepted || stats_.requests_refused != counts.refused ||
      stats_.samples_stop != counts.stopped || stats_.samples_length != counts.by_length ||
      stats_.samples_cancelled != counts.cancelled || stats_.samples_error != errors) {
    journal_.Fail(
        "the engine counts {} requests, samples {} + {} + {} + {}; there were {}, {} + {} "
        "+ {} + {}",
        stats_.requests, stats_.samples_stop, stats_.samples_length, stats_.samples_cancelled,
        stats_.samples_error, counts.accepted, counts.stopped, counts.by_length, counts.cancelled,
        errors);
  }
}

}  // namespace plumb::sim
