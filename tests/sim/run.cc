// tests/sim/run.cc
// Behind tests/sim/run.h. A failed CHECK aborts; the handler of that signal still tells the run.
#include "run.h"

#include <csignal>
#include <iostream>

#include "base/check.h"

namespace plumb::sim {
namespace {

// A signal handler has no other way to its run.
uint64_t seed_in_progress = 0;
const EngineSim* run_in_progress = nullptr;

void Report(std::ostream& out, const SimConfig& config, const Journal& journal) {
  out << "seed " << config.seed << '\n' << config.ToString() << journal.ToString();
  out << "again: plumb_sim --seed " << config.seed << std::endl;
}

// Not for a handler in general; but abort is called by our own code, between two statements of it.
void TellAborted(int) {
  std::signal(SIGABRT, SIG_DFL);
  const SimConfig config = SimConfig::Draw(seed_in_progress);
  if (run_in_progress != nullptr) return Report(std::cerr, config, run_in_progress->journal());
  std::cerr << "seed " << seed_in_progress << '\n'
            << SchedulerSimConfig::Draw(seed_in_progress).ToString();
  std::cerr << "again: plumb_sim --seed " << seed_in_progress << std::endl;
}

}  // namespace

void Totals::Add(const EngineSim& run) {
  ++runs;
  forwards += run.forwards();
  const LedgerCounts& other = run.counts();
  counts.accepted += other.accepted;
  counts.refused += other.refused;
  counts.samples += other.samples;
  counts.stopped += other.stopped;
  counts.by_length += other.by_length;
  counts.cancelled += other.cancelled;
  counts.overdue += other.overdue;
  counts.broken += other.broken;
  counts.over_limit += other.over_limit;
  counts.tokens += other.tokens;
  counts.cached_tokens += other.cached_tokens;
  counts.stored_tokens += other.stored_tokens;
  preemptions += run.stats().preemptions;
  evictions += run.stats().page_evictions;
  hinted_evictions += run.stats().hinted_evictions;
  prefix_hits += run.stats().prefix_hits;
  if (run.stateful()) {
    ++state_runs;
    resumes += run.stats().prefix_hits;
    checkpoint_evictions += run.stats().checkpoint_evictions;
  }
  drafts_kept += run.stats().drafts_kept;
  drafts_in_vain += run.stats().draft_rows - run.stats().drafts_kept;
}

void Totals::Add(const SchedulerSim& run) {
  scheduler_steps += run.steps();
  scheduler_preemptions += run.preemptions();
  scheduler_drafts_kept += run.kept_drafts();
  reused_tokens += run.reused_tokens();
}

std::ostream& operator<<(std::ostream& out, const Totals& totals) {
  const LedgerCounts& counts = totals.counts;
  return out << totals.runs << " runs, " << totals.forwards << " forwards: " << counts.accepted
             << " requests (" << counts.refused << " refusals), " << counts.samples << " samples ("
             << counts.stopped << " stopped, " << counts.by_length << " by length, "
             << counts.cancelled << " cancelled, " << counts.overdue << " overdue, "
             << counts.broken << " broken, " << counts.over_limit << " over a grammar's limit), "
             << counts.tokens << " tokens, " << counts.cached_tokens << " cached, "
             << totals.prefix_hits << " hits, " << totals.preemptions << " preemptions, "
             << totals.evictions << " evictions, " << totals.drafts_kept << " drafts kept and "
             << totals.drafts_in_vain << " in vain; " << totals.state_runs
             << " with states: " << totals.resumes << " hits, " << totals.checkpoint_evictions
             << " checkpoints evicted; scheduler alone: " << totals.scheduler_steps << " steps, "
             << totals.scheduler_preemptions << " preemptions, " << totals.scheduler_drafts_kept
             << " drafts kept, " << totals.reused_tokens << " tokens reused";
}

bool RunSeed(uint64_t seed, std::ostream& out, Totals& totals) {
  seed_in_progress = seed;
  run_in_progress = nullptr;
  std::signal(SIGABRT, TellAborted);
  const SchedulerSimConfig scheduler_config = SchedulerSimConfig::Draw(seed);
  SchedulerSim scheduler_run(scheduler_config);
  const bool scheduled = scheduler_run.Run();
  if (!scheduled) {
    out << "seed " << seed << '\n'
        << scheduler_config.ToString() << scheduler_run.failure() << "\nagain: plumb_sim --seed "
        << seed << std::endl;
    return false;
  }
  totals.Add(scheduler_run);

  const SimConfig config = SimConfig::Draw(seed);
  EngineSim run(config);
  run_in_progress = &run;
  const bool good = run.Run();
  if (!good) Report(out, config, run.journal());
  run_in_progress = nullptr;
  totals.Add(run);
  return good;
}

}  // namespace plumb::sim
