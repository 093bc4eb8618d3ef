// engine/fair_share.h
// Who of several tenants has been served least: a counter of work for each, after the virtual token
// counter of "Fairness in Serving Large Language Models" (Sheng et al., OSDI 2024). A tenant that
// begins to wait starts at the level of those that wait already, so that nobody saves up a claim
// by staying away; one that was served beyond the others stays behind them, also when it leaves
// and comes back. Each priority has counters of its own. Thread: engine thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/sequence.h"

namespace plumb::engine {

// Tenants that have left while they were ahead of those that wait, remembered at most.
constexpr uint32_t kDebtorsMax = 1024;

class FairShare {
 public:
  // As many tenants at once at most as there are sequences.
  explicit FairShare(uint32_t sequences_max);

  // The sequence is here from Add to Remove, and waits from Wait to EndWait meanwhile, any number
  // of times. Only priority and tenant are looked at.
  void Add(const Sequence& sequence);
  void Remove(const Sequence& sequence);
  void Wait(const Sequence& sequence);
  void EndWait(const Sequence& sequence);

  // The sequence's tenant was given so much work, in rows (step_cost.h, KeyPrice).
  void Charge(const Sequence& sequence, double work);
  // What its tenant has been given; only differences within a priority mean something.
  double Served(const Sequence& sequence) const;

  size_t accounts() const { return accounts_.size(); }

 private:
  struct Account {
    Priority priority;
    uint64_t tenant;
    double served = 0;
    uint32_t sequences = 0;
    uint32_t waiting = 0;  // of them
  };

  // Where the account is, or would be.
  size_t PlaceOf(const Sequence& sequence) const;
  bool IsAt(size_t place, const Sequence& sequence) const;
  size_t Find(const Sequence& sequence) const;  // it is there (CHECK)
  // Where one starts that begins to wait: the least served of those that wait; when none does, and
  // so nobody is owed anything, the most served of all. 0 without any.
  double Level(Priority priority) const;
  // Those without sequences whose counter would be lifted anyhow, and more while they are too many.
  void Forget();

  std::vector<Account> accounts_;  // by priority, then tenant
};

}  // namespace plumb::engine
