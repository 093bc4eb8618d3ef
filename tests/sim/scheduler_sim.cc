// tests/sim/scheduler_sim.cc
// The crowd and the stand-in for a model, behind tests/sim/scheduler_sim.h. The rules that are
// checked: scheduler_rules.cc.
#include "scheduler_sim.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "engine/drafter.h"
#include "kvcache/page_chain.h"

namespace plumb::sim {
namespace {

using base::TokenId;
using engine::PlannedRows;
using engine::Sequence;
using engine::SequenceState;

constexpr uint32_t kPageTokens = 16;
constexpr uint32_t kVocabulary = 50;
constexpr uint64_t kTexts = 3;
constexpr uint64_t kStepsSlack = 100;
constexpr uint64_t kBeginnings = 3;  // of a sequence, as preemption goes: a generous mean

uint64_t Mix(uint64_t z) { return base::Rng(z).Next(); }

// What a token's slot holds, after the one before it.
uint64_t Next(uint64_t before, TokenId token, uint64_t place, uint32_t isolation) {
  return Mix(before ^ Mix(place << 32 | uint64_t{isolation} << 24 | base::Index(token)));
}

// The same under every key, so that their pages would be taken for equal.
TokenId TextToken(uint64_t text, uint64_t place) {
  return TokenId{static_cast<uint32_t>(Mix(text << 32 | place) % kVocabulary)};
}

// What the model says after so many tokens.
TokenId Answer(const std::vector<TokenId>& tokens, uint32_t length) {
  const uint64_t last = base::Index(tokens[length - 1]), first = base::Index(tokens[0]);
  return TokenId{static_cast<uint32_t>(Mix(last << 40 | first << 32 | length) % kVocabulary)};
}

uint32_t Between(base::Rng& rng, uint32_t low, uint32_t high) {
  return low + static_cast<uint32_t>(rng.Below(high - low + 1));
}

std::unique_ptr<kvcache::PagePool> MakePool(uint32_t pages) {
  return kvcache::PagePool::Create(
             {.page_tokens = kPageTokens, .page_bytes = kPageTokens * sizeof(uint64_t)},
             pages * kvcache::PagePool::kAlignment)
      .value();
}

// One tenant asks for far more than the others, and all have somebody waiting most of the time: who
// comes first would be served first, were it not for fairness.
void MakeUnfair(base::Rng& rng, SchedulerSimConfig& config) {
  config.one_priority = true;
  config.tenants = Between(rng, 2, 3);
  config.flood = 0.7 + 0.25 * rng.Uniform();
  config.limits.sequences_max = std::min(config.limits.sequences_max, Between(rng, 1, 4));
  config.limits.waiting_max = Between(rng, 40, 60);
  config.sequences = 300;
  config.length_max = std::min(config.length_max, 60u);
  config.arrival_chance = 0.95;
  config.removal_chance = 0;
}

}  // namespace

SchedulerSimConfig SchedulerSimConfig::Draw(uint64_t seed) {
  base::Rng rng(seed ^ 0x5C);
  SchedulerSimConfig config{.seed = seed};
  config.pages = Between(rng, 4, rng.Below(2) == 0 ? 12 : 60);
  config.limits.sequences_max = Between(rng, 1, 12);
  config.limits.rows_max = config.limits.sequences_max + Between(rng, 0, 100);
  config.limits.logits_rows_max = config.limits.sequences_max + Between(rng, 0, 20);
  config.limits.prefill_rows_max = Between(rng, 1, config.limits.rows_max);
  config.limits.waiting_max = Between(rng, 4, 60);
  config.limits.step_target = base::Milliseconds(rng.Below(2) == 0 ? 0 : 20);
  config.prefix_cache = rng.Below(6) != 0;
  config.sequences = Between(rng, 50, 300);
  config.tenants = Between(rng, 1, 4);
  config.isolations = Between(rng, 1, config.tenants);
  config.flood = rng.Below(2) == 0 ? 0 : 0.5 + 0.45 * rng.Uniform();
  config.length_max = std::min(config.pages * kPageTokens, Between(rng, 10, 300));
  config.arrival_chance = rng.Below(2) == 0 ? 0.9 : 0.05 + 0.9 * rng.Uniform();
  config.removal_chance = rng.Below(2) == 0 ? 0 : rng.Uniform() * 0.1;
  config.draft_chance = rng.Below(2) == 0 ? 0 : rng.Uniform();
  config.draft_accuracy = rng.Uniform();
  config.one_priority = rng.Below(3) == 0;
  if (rng.Below(3) == 0) MakeUnfair(rng, config);
  return config;
}

std::string SchedulerSimConfig::ToString() const {
  return fmt::format(
      "  scheduler: {} pages, {} seats, {} rows a step ({} of prompts, {} with logits), queue {}, "
      "reuse {}, {} sequences of up to {} tokens, {} tenants with {} keys, {:.0f} % of one{}; "
      "drafts {:.0f} % ({:.0f} % right), {:.1f} % removed a step\n",
      pages, limits.sequences_max, limits.rows_max, limits.prefill_rows_max, limits.logits_rows_max,
      limits.waiting_max, prefix_cache, sequences, length_max, tenants, isolations, 100 * flood,
      one_priority ? ", one priority" : "", 100 * draft_chance, 100 * draft_accuracy,
      100 * removal_chance);
}

SchedulerSim::SchedulerSim(const SchedulerSimConfig& config)
    : config_(config),
      rng_(config.seed ^ 0x5EED),
      pool_(MakePool(config.pages)),
      tree_(config.prefix_cache ? std::make_unique<kvcache::PrefixTree>(*pool_) : nullptr),
      scheduler_(config.limits, *pool_, tree_.get()),
      by_order_(config.sequences),
      served_(config.tenants),
      races_(size_t{config.tenants} * config.tenants) {}

SchedulerSim::~SchedulerSim() {
  for (SimSequence* sequence : by_order_) {
    if (sequence != nullptr) scheduler_.Remove(sequence->sequence);
  }
}

bool SchedulerSim::Run() {
  for (;;) {
    // In bursts, as far as the queue goes.
    while (all_.size() < config_.sequences && rng_.Uniform() < config_.arrival_chance &&
           scheduler_.waiting().size() < config_.limits.waiting_max) {
      Add();
    }
    if (rng_.Uniform() < config_.removal_chance) RemoveOne();
    if (scheduler_.running().empty() && scheduler_.waiting().empty()) {
      if (all_.size() == config_.sequences) break;
      continue;
    }
    for (Sequence* sequence : scheduler_.running()) Guess(Of(*sequence));
    const engine::StepPlan& plan = scheduler_.Plan();
    CheckPlan(plan);
    CheckPriorities();
    CheckFairness();
    Forward(plan);
    if (++steps_ > steps_allowed_) Fail("sequences are left long after the last one came");
    if (!failure_.empty()) return false;
  }
  CheckPages();
  if (pool_->free() + (tree_ ? tree_->idle() : 0) != pool_->total()) Fail("pages are lost");
  return failure_.empty();
}

void SchedulerSim::Add() {
  SimSequence& added = all_.emplace_back();
  Sequence& sequence = added.sequence;
  sequence.order = all_.size() - 1;
  by_order_[sequence.order] = &added;
  sequence.length_max = Between(rng_, 2, config_.length_max);
  sequence.length = Between(rng_, 1, sequence.length_max - 1);
  sequence.tenant = rng_.Uniform() < config_.flood ? 0 : rng_.Below(config_.tenants);
  if (!config_.one_priority) sequence.priority = static_cast<engine::Priority>(rng_.Below(3));
  added.isolation = static_cast<uint32_t>(sequence.tenant % config_.isolations);

  added.tokens.resize(sequence.length_max + engine::kDraftsMax);
  const uint64_t text = rng_.Below(kTexts);
  const uint32_t own = rng_.Below(2) == 0 ? 0 : Between(rng_, 0, sequence.length);
  for (uint32_t place = 0; place < sequence.length; ++place) {
    const bool shared = place + own < sequence.length;
    added.tokens[place] = TextToken(shared ? text : kTexts + sequence.order, place);
    added.slots.push_back(
        Next(place == 0 ? 0 : added.slots.back(), added.tokens[place], place, added.isolation));
  }
  sequence.tokens = added.tokens.data();
  if (tree_ != nullptr) {
    base::Hash256 key;
    key.bytes[0] = static_cast<uint8_t>(added.isolation);
    sequence.chain.push_back(kvcache::ChainRoot(key, {}, pool_->layout()));
    for (uint32_t end = kPageTokens; end <= sequence.length; end += kPageTokens) {
      sequence.chain.push_back(kvcache::ChainNext(
          sequence.chain.back(), {sequence.tokens + end - kPageTokens, kPageTokens}));
    }
  }
  scheduler_.Add(sequence);
  steps_allowed_ = steps_ + kStepsSlack;
  for (const SimSequence* live : by_order_) {
    if (live != nullptr) steps_allowed_ += kBeginnings * live->sequence.length_max;
  }
}

void SchedulerSim::RemoveOne() {
  const auto running = scheduler_.running(), waiting = scheduler_.waiting();
  const size_t count = running.size() + waiting.size();
  if (count == 0) return;
  const size_t place = rng_.Below(count);
  Sequence& sequence = *(place < running.size() ? running[place] : waiting[place - running.size()]);
  by_order_[sequence.order] = nullptr;
  scheduler_.Remove(sequence);
}

void SchedulerSim::Guess(SimSequence& guessed) {
  Sequence& sequence = guessed.sequence;
  if (!sequence.decoding() || rng_.Uniform() >= config_.draft_chance) return;
  const uint32_t room = sequence.length_max - sequence.length - 1;
  sequence.drafts = std::min(room, Between(rng_, 0, engine::kDraftsMax));
  for (uint32_t i = 0; i < sequence.drafts; ++i) {
    const uint32_t place = sequence.length + i;
    guessed.tokens[place] = Answer(guessed.tokens, place);
    if (rng_.Uniform() < config_.draft_accuracy) continue;
    guessed.tokens[place] =
        TokenId{(base::Index(guessed.tokens[place]) + 1 + Between(rng_, 0, 9)) % kVocabulary};
  }
}

void SchedulerSim::Forward(const engine::StepPlan& plan) {
  for (const PlannedRows& item : plan.items) Compute(item);
  const base::Duration elapsed = Elapsed(plan);
  std::vector<Sequence*> ended;
  for (const PlannedRows& item : plan.items) {
    Sample(item);
    if (item.sequence->length == item.sequence->length_max) ended.push_back(item.sequence);
  }
  scheduler_.Commit(elapsed);
  CheckPages();
  for (Sequence* sequence : ended) {
    scheduler_.Remove(*sequence);
    by_order_[sequence->order] = nullptr;
  }
}

void SchedulerSim::Compute(const PlannedRows& item) {
  SimSequence& sequence = Of(*item.sequence);
  for (uint32_t place = 0; place < item.position; ++place) {
    uint64_t slot;
    std::memcpy(&slot, Slot(sequence, place), sizeof slot);
    if (slot == sequence.slots[place]) continue;
    return Fail(fmt::format("sequence {} reads at {} of {} what is not its own",
                            item.sequence->order, place, item.position));
  }
  uint64_t before = item.position == 0 ? 0 : sequence.slots[item.position - 1];
  for (uint32_t place = item.position; place < item.position + item.rows; ++place) {
    before = Next(before, sequence.tokens[place], place, sequence.isolation);
    std::memcpy(Slot(sequence, place), &before, sizeof before);
  }
  const double price = scheduler_.cost().KeyPrice();
  const auto work = [price](uint32_t position, uint32_t rows) {
    return rows + price * static_cast<double>(engine::KeysOf(position, rows));
  };
  served_[item.sequence->tenant] += work(item.position, item.rows);
  sequence.work += work(item.position, item.rows);
  dearest_ = std::max({dearest_, work(0, config_.length_max), sequence.work});
}

void SchedulerSim::Sample(const PlannedRows& item) {
  SimSequence& sequence = Of(*item.sequence);
  Sequence& counted = *item.sequence;
  const uint32_t known = counted.length;
  for (uint32_t row = 0; row < item.logits_rows; ++row) {
    const TokenId token = Answer(sequence.tokens, known + row);
    const bool kept = row + 1 < item.logits_rows && sequence.tokens[known + row] == token;
    sequence.tokens[known + row] = token;
    sequence.slots.push_back(Next(sequence.slots.back(), token, known + row, sequence.isolation));
    ++counted.length;
    kept_drafts_ += kept;
    if (!kept) break;
  }
}

std::byte* SchedulerSim::Slot(const SimSequence& sequence, size_t place) const {
  return sequence.sequence.page_data[place / kPageTokens] + place % kPageTokens * sizeof(uint64_t);
}

base::Duration SchedulerSim::Elapsed(const engine::StepPlan& plan) {
  double us = 1000 + 50 * plan.rows;
  for (const PlannedRows& item : plan.items) us += 0.1 * item.rows * item.position;
  us *= 0.8 + 0.4 * rng_.Uniform();
  if (rng_.Below(50) == 0) us *= 30;
  return {static_cast<int64_t>(us * 1000)};
}

void SchedulerSim::Fail(std::string what) {
  if (!failure_.empty()) return;
  failure_ = fmt::format("step {}: {}", steps_, what);
}

}  // namespace plumb::sim
