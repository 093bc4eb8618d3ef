// tests/sim/scheduler_rules.cc
// What must hold of every plan and of the pages after it, behind tests/sim/scheduler_sim.h.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <vector>

#include "base/check.h"
#include "scheduler_sim.h"

namespace plumb::sim {
namespace {

using engine::PlannedRows;
using engine::Sequence;
using engine::SequenceState;

// Steps that a plan may take to make room for a higher priority: one to preempt, one to admit.
constexpr uint32_t kBlockedStepsMax = 2;

}  // namespace

void SchedulerSim::CheckPlan(const engine::StepPlan& plan) {
  std::set<const Sequence*> seen;
  uint32_t rows = 0, logits_rows = 0;
  for (const PlannedRows& item : plan.items) {
    const Sequence& sequence = *item.sequence;
    const uint32_t end = item.position + item.rows;
    // Logits for the last known token and each draft, or for none while the prompt goes on.
    const uint32_t wanted = end < sequence.length ? 0 : 1 + sequence.drafts;
    const bool good = seen.insert(&sequence).second && item.rows > 0 &&
                      sequence.state == SequenceState::kRunning &&
                      item.position == sequence.computed &&
                      end <= sequence.length + sequence.drafts && item.logits_rows == wanted &&
                      (wanted == 0 || end == sequence.length + sequence.drafts) &&
                      sequence.length + sequence.drafts < sequence.length_max &&
                      sequence.pages.size() >= pool_->layout().PagesFor(end) &&
                      sequence.pages.size() == sequence.page_data.size();
    if (!good) {
      Fail(
          fmt::format("sequence {} of {} tokens and {} drafts: rows [{}, {}), {} with logits, on "
                      "{} pages",
                      sequence.order, sequence.length, sequence.drafts, item.position, end,
                      item.logits_rows, sequence.pages.size()));
    }
    rows += item.rows;
    logits_rows += item.logits_rows;
  }
  if (rows != plan.rows || logits_rows != plan.logits_rows || rows == 0 ||
      rows > config_.limits.rows_max || logits_rows > config_.limits.logits_rows_max) {
    Fail(fmt::format("a plan of {} rows, {} with logits, says {} and {}", rows, logits_rows,
                     plan.rows, plan.logits_rows));
  }
  if (scheduler_.running().size() > config_.limits.sequences_max) Fail("more run than have seats");
}

void SchedulerSim::CheckPages() {
  std::vector<uint32_t> references(pool_->total(), 0);
  for (const Sequence* sequence : scheduler_.running()) {
    for (const kvcache::PageId page : sequence->pages) ++references[kvcache::Index(page)];
    if (sequence->computed >= sequence->length) Fail("nothing is left to compute");
  }
  for (const Sequence* sequence : scheduler_.waiting()) {
    if (!sequence->pages.empty())
      Fail(fmt::format("sequence {} waits with pages", sequence->order));
  }
  uint32_t free = 0;
  for (uint32_t page = 0; page < pool_->total(); ++page) {
    references[page] += tree_ != nullptr && tree_->IsStored(kvcache::PageId{page});
    const uint32_t counted = pool_->references(kvcache::PageId{page});
    if (counted != references[page]) {
      Fail(fmt::format("page {} counts {} references and has {}", page, counted, references[page]));
    }
    free += references[page] == 0;
  }
  if (free != pool_->free()) Fail(fmt::format("{} pages are free, not {}", free, pool_->free()));
  if (tree_ != nullptr) tree_->CheckInvariants();
}

// Nobody waits for long while a lower priority holds a seat and pages that would do: those that its
// own and higher priorities may take in the end are left out.
void SchedulerSim::CheckPriorities() {
  const kvcache::PageLayout& layout = pool_->layout();
  for (const Sequence* waiting : scheduler_.waiting()) {
    SimSequence& blocked = *by_order_[waiting->order];
    uint32_t seats = 0, pages = layout.PagesFor(waiting->length_max);
    bool lower_runs = false, first = true;
    for (const Sequence* running : scheduler_.running()) {
      lower_runs = lower_runs || running->priority > waiting->priority;
      if (running->priority > waiting->priority) continue;
      ++seats;
      pages += layout.PagesFor(running->length_max);
    }
    // Others of its priority may go before it.
    for (const Sequence* other : scheduler_.waiting()) {
      first = first && (other == waiting || other->priority > waiting->priority);
    }
    const bool in_vain =
        first && lower_runs && seats < config_.limits.sequences_max && pages <= pool_->total();
    blocked.blocked_steps = in_vain ? blocked.blocked_steps + 1 : 0;
    if (blocked.blocked_steps > kBlockedStepsMax) {
      Fail(fmt::format("sequence {} of priority {} waits, and lower ones run", waiting->order,
                       static_cast<int>(waiting->priority)));
    }
  }
}

// Tenants of one priority that both have somebody waiting are served alike: they differ by no more
// than what all seats may hold when the one comes, and then again before the other's turn. What a
// seat may hold is what a sequence takes in all: with one token in seventeen rows right, as guesses
// go, that is many times its length.
void SchedulerSim::CheckFairness() {
  if (!config_.one_priority) return;
  std::vector<bool> waits(config_.tenants, false);
  for (const Sequence* waiting : scheduler_.waiting()) waits[waiting->tenant] = true;
  const double bound = 3 * config_.limits.sequences_max * dearest_ + config_.limits.rows_max;
  for (uint32_t a = 0; a < config_.tenants; ++a) {
    for (uint32_t b = a + 1; b < config_.tenants; ++b) {
      Race& race = races_[size_t{a} * config_.tenants + b];
      const bool on = waits[a] && waits[b];
      if (!on || !race.on) race = {on, served_[a], served_[b]};
      const double first = served_[a] - race.first, second = served_[b] - race.second;
      if (std::abs(first - second) <= bound) continue;
      Fail(fmt::format("tenants {} and {} both wait, but were served {:.0f} and {:.0f} rows", a, b,
                       first, second));
    }
  }
}

}  // namespace plumb::sim
