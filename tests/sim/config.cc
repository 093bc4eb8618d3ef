// tests/sim/config.cc
// The draw, behind tests/sim/config.h. Ranges are chosen so that most runs are short of something:
// pages, seats, queue or time.
#include "config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/random.h"
#include "engine/request.h"

namespace plumb::sim {
namespace {

using base::Milliseconds;

uint32_t Between(base::Rng& rng, uint32_t low, uint32_t high) {
  return low + static_cast<uint32_t>(rng.Below(high - low + 1));
}

template <typename T, size_t n>
T OneOf(base::Rng& rng, const T (&values)[n]) {
  return values[rng.Below(n)];
}

const char* Name(Guesses guesses) {
  switch (guesses) {
    case Guesses::kNone:
      return "none";
    case Guesses::kFake:
      return "fake";
    case Guesses::kServer:
      return "the server's";
  }
  return "?";
}

// 0 as a rule, else up to `most`.
double Sometimes(base::Rng& rng, double most) {
  return rng.Below(2) == 0 ? 0 : rng.Uniform() * most;
}

void DrawEngine(base::Rng& rng, SimConfig& config) {
  // Few pages are short at once; many let thousands of tokens in.
  config.pages = rng.Below(3) == 0 ? Between(rng, 3, 9) : Between(rng, 10, 64);
  config.context_max = OneOf(rng, {300u, 900u, 4000u});
  config.sequences_max = rng.Below(4) == 0 ? Between(rng, 1, 3) : Between(rng, 4, 24);
  config.waiting_max = engine::kSamplesMax + Between(rng, 0, rng.Below(2) == 0 ? 4 : 60);
  config.rows_max = config.sequences_max + Between(rng, 0, 400);
  config.prefill_rows_max = Between(rng, 1, config.rows_max);
  config.step_target = OneOf(rng, {Milliseconds(0), Milliseconds(5), Milliseconds(80)});
  config.prefix_cache = rng.Below(8) != 0;
  config.guesses = OneOf(rng, {Guesses::kNone, Guesses::kFake, Guesses::kServer});
  config.draft_accuracy = OneOf(rng, {0.0, 0.5, 0.9, 1.0});
  config.step_time.fixed = {OneOf(rng, {100'000, 2'000'000, 20'000'000})};
  config.step_time.by_row = {OneOf(rng, {10'000, 100'000, 500'000})};
  config.step_time.by_key_ns = OneOf(rng, {0.0, 5.0, 50.0});
  config.step_time.noise = rng.Uniform() * 0.3;
  config.step_time.slow_chance = Sometimes(rng, 0.05);
  config.step_time.slow_factor = 2 + rng.Uniform() * 50;
}

// For three of eight seeds. From draws of its own, so that the others are as they would be without.
void DrawState(SimConfig& config) {
  if (config.seed % 2 != 0 || config.seed % 8 == 6) return;
  base::Rng rng(config.seed ^ 0x57A7E);
  config.state.window = Between(rng, 2, 20);
  config.state.backtrack_max = Between(rng, 1, 8);
  if (rng.Below(12) > 0) {
    const uint32_t more = OneOf(rng, {0u, 20u, 150u});
    config.state.replay_rows =
        config.state.window + config.state.backtrack_max + Between(rng, 0, more);
  }
  config.checkpoints_max = rng.Below(2) == 0 ? 0 : Between(rng, 1, 8);
  // Reuse begins behind a page and the replayed rows; what is kept at an end is for the next turn.
  config.long_chance = std::max(config.long_chance, 0.1);
  config.turn_chance = std::max(config.turn_chance, 0.5);
  if (rng.Below(2) == 0) config.answer_tokens = 200;
}

void DrawCrowd(base::Rng& rng, SimConfig& config) {
  config.requests = Between(rng, 10, 60);
  config.tenants = Between(rng, 1, 5);
  config.isolations = Between(rng, 1, config.tenants);
  config.gap = {static_cast<int64_t>(rng.Uniform() * 2 *
                                     static_cast<double>(config.step_time.fixed.ns * 20))};
  config.burst_chance = Sometimes(rng, 0.2);
  config.long_chance = Sometimes(rng, 0.2);
  config.own_chance = rng.Uniform();
  config.turn_chance = Sometimes(rng, 0.5);
  config.grammar_chance = Sometimes(rng, 0.4);
  config.prompt_logprobs_chance = Sometimes(rng, 0.1);
  config.answer_tokens = OneOf(rng, {4u, 40u, 40u, 200u});
  config.one_priority = rng.Below(3) == 0;
}

void DrawFaults(base::Rng& rng, SimConfig& config) {
  config.cancel_chance = Sometimes(rng, 0.5);
  config.deadline_chance = Sometimes(rng, 0.5);
  config.patience = {
      static_cast<int64_t>(rng.Uniform() * 200 * static_cast<double>(config.step_time.fixed.ns))};
  config.sink_cancel_chance = Sometimes(rng, 0.005);
  config.bad_logits_chance = Sometimes(rng, 0.01);
  config.drain = rng.Below(8) == 0;
}

}  // namespace

SimConfig SimConfig::Draw(uint64_t seed) {
  SimConfig config;
  config.seed = seed;
  base::Rng rng(seed ^ 0xC0F1);
  DrawEngine(rng, config);
  DrawCrowd(rng, config);
  DrawFaults(rng, config);
  DrawState(config);
  config.never_samples = seed % 8 == 1;
  return config;
}

std::string SimConfig::ToString() const {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "  engine: {} pages, context {}, {} seats, queue {}, {} rows a step ({} of "
                 "prompts), target {} ms, reuse {}, guesses {} ({:.0f} % right)\n",
                 pages, context_max, sequences_max, waiting_max, rows_max, prefill_rows_max,
                 step_target.ms(), prefix_cache, Name(guesses), 100 * draft_accuracy);
  if (never_samples) out += "  two letters stand in no answer\n";
  if (state.window > 0) {
    fmt::format_to(to,
                   "  state: a window of {} rows, {} to take back, {} replayed, {} checkpoints\n",
                   state.window, state.backtrack_max, state.replay_rows, checkpoints_max);
  }
  fmt::format_to(
      to,
      "  step: {} us + {} us a row + {:.0f} ns a key, noise {:.0f} %, {:.1f} % are {:.0f} "
      "times as slow\n",
      step_time.fixed.ns / 1000, step_time.by_row.ns / 1000, step_time.by_key_ns,
      100 * step_time.noise, 100 * step_time.slow_chance, step_time.slow_factor);
  fmt::format_to(to,
                 "  crowd: {} requests, {} tenants with {} keys, one each {:.1f} ms, bursts {:.0f} "
                 "%, long {:.0f} %, own {:.0f} %, turns {:.0f} %, grammars {:.0f} %, answers to {}"
                 "{}\n",
                 requests, tenants, isolations, static_cast<double>(gap.ns) * 1e-6,
                 100 * burst_chance, 100 * long_chance, 100 * own_chance, 100 * turn_chance,
                 100 * grammar_chance, answer_tokens, one_priority ? ", one priority" : "");
  fmt::format_to(to,
                 "  faults: cancel {:.0f} %, deadline {:.0f} %, patience {} ms, cancel by sink "
                 "{:.1f} %, bad logits {:.1f} %{}\n",
                 100 * cancel_chance, 100 * deadline_chance, patience.ms(),
                 100 * sink_cancel_chance, 100 * bad_logits_chance, drain ? ", drain" : "");
  return out;
}

}  // namespace plumb::sim
