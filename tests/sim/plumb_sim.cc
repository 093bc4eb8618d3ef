// tests/sim/plumb_sim.cc
// The simulation as a program, for one seed seen again or many new ones: plumb_sim [--seed N]
// [--runs K] [--seconds S] [--quiet]. Runs seeds N, N + 1, ... until K are done or S seconds have
// passed; exit code 1 at the first that fails. docs/simulation.md says what is simulated.
#include <charconv>
#include <cstring>
#include <iostream>
#include <string_view>

#include "base/clock.h"
#include "run.h"

namespace plumb::sim {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t runs = 1;
  uint64_t seconds = 0;  // 0: no limit
  bool quiet = false;
};

bool ReadNumber(const char* text, uint64_t& number) {
  const char* end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, number);
  return error == std::errc() && rest == end;
}

bool ReadOptions(int count, char** words, Options& options) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--quiet") {
      options.quiet = true;
      continue;
    }
    uint64_t* number = word == "--seed"      ? &options.seed
                       : word == "--runs"    ? &options.runs
                       : word == "--seconds" ? &options.seconds
                                             : nullptr;
    if (number == nullptr || ++i == count || !ReadNumber(words[i], *number)) return false;
  }
  return true;
}

int Main(int count, char** words) {
  Options options;
  if (!ReadOptions(count, words, options)) {
    std::cerr << "usage: plumb_sim [--seed N] [--runs K] [--seconds S] [--quiet]\n";
    return 2;
  }
  const base::SystemClock clock;
  const base::Instant begin = clock.Now();
  const base::Duration limit = base::Seconds(static_cast<double>(options.seconds));
  Totals totals;
  for (uint64_t run = 0; run < options.runs; ++run) {
    if (options.seconds > 0 && clock.Now() - begin >= limit) break;
    const uint64_t seed = options.seed + run;
    if (!options.quiet) {
      std::cout << "seed " << seed << '\n'
                << SchedulerSimConfig::Draw(seed).ToString() << SimConfig::Draw(seed).ToString();
    }
    std::cout.flush();
    if (!RunSeed(seed, std::cerr, totals)) return 1;
  }
  std::cout << totals << ", " << (clock.Now() - begin).seconds() << " s\n";
  return 0;
}

}  // namespace
}  // namespace plumb::sim

int main(int count, char** words) { return plumb::sim::Main(count, words); }
