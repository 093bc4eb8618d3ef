// engine/fair_share.cc
// A sorted vector of accounts: few tenants are here at once, and order must not depend on hashes.
#include "engine/fair_share.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace plumb::engine {

FairShare::FairShare(uint32_t sequences_max) {
  accounts_.reserve(size_t{sequences_max} + kDebtorsMax + 1);
}

void FairShare::Add(const Sequence& sequence) {
  if (!IsAt(PlaceOf(sequence), sequence)) {
    Forget();
    CHECK(accounts_.size() < accounts_.capacity()) << accounts_.size() << " tenants";
    accounts_.insert(accounts_.begin() + static_cast<ptrdiff_t>(PlaceOf(sequence)),
                     {.priority = sequence.priority, .tenant = sequence.tenant});
  }
  ++accounts_[Find(sequence)].sequences;
}

void FairShare::Remove(const Sequence& sequence) {
  const size_t place = Find(sequence);
  Account& account = accounts_[place];
  CHECK(account.sequences > account.waiting) << "a waiting sequence is taken out of it first";
  --account.sequences;
  if (account.sequences > 0 || account.served > Level(account.priority)) return;
  accounts_.erase(accounts_.begin() + static_cast<ptrdiff_t>(place));
}

void FairShare::Wait(const Sequence& sequence) {
  Account& account = accounts_[Find(sequence)];
  // Who waits already keeps its place, which is what makes up for having waited.
  if (account.waiting == 0) account.served = std::max(account.served, Level(account.priority));
  ++account.waiting;
  CHECK(account.waiting <= account.sequences);
}

void FairShare::EndWait(const Sequence& sequence) {
  Account& account = accounts_[Find(sequence)];
  CHECK(account.waiting > 0);
  --account.waiting;
}

void FairShare::Charge(const Sequence& sequence, double work) {
  CHECK(work >= 0) << work;
  accounts_[Find(sequence)].served += work;
}

double FairShare::Served(const Sequence& sequence) const {
  return accounts_[Find(sequence)].served;
}

size_t FairShare::PlaceOf(const Sequence& sequence) const {
  const auto place = std::lower_bound(
      accounts_.begin(), accounts_.end(), sequence, [](const Account& a, const Sequence& b) {
        return std::pair(a.priority, a.tenant) < std::pair(b.priority, b.tenant);
      });
  return static_cast<size_t>(place - accounts_.begin());
}

bool FairShare::IsAt(size_t place, const Sequence& sequence) const {
  return place < accounts_.size() && accounts_[place].priority == sequence.priority &&
         accounts_[place].tenant == sequence.tenant;
}

size_t FairShare::Find(const Sequence& sequence) const {
  const size_t place = PlaceOf(sequence);
  CHECK(IsAt(place, sequence)) << "tenant " << sequence.tenant << " has no account";
  return place;
}

double FairShare::Level(Priority priority) const {
  double least_waiting = 0, most = 0;
  bool somebody_waits = false;
  for (const Account& account : accounts_) {
    if (account.priority != priority) continue;
    most = std::max(most, account.served);
    if (account.waiting == 0) continue;
    least_waiting = somebody_waits ? std::min(least_waiting, account.served) : account.served;
    somebody_waits = true;
  }
  return somebody_waits ? least_waiting : most;
}

void FairShare::Forget() {
  const std::array<double, 3> levels = {Level(Priority::kInteractive), Level(Priority::kDefault),
                                        Level(Priority::kBatch)};
  std::erase_if(accounts_, [&](const Account& account) {
    return account.sequences == 0 &&
           account.served <= levels[static_cast<size_t>(account.priority)];
  });
  const auto debtors = std::count_if(accounts_.begin(), accounts_.end(),
                                     [](const Account& a) { return a.sequences == 0; });
  if (debtors < static_cast<ptrdiff_t>(kDebtorsMax)) return;
  // Too many to remember: the one that owes least goes.
  accounts_.erase(
      std::min_element(accounts_.begin(), accounts_.end(), [](const Account& a, const Account& b) {
        return std::pair(a.sequences > 0, a.served) < std::pair(b.sequences > 0, b.served);
      }));
}

}  // namespace plumb::engine
