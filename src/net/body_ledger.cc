// net/body_ledger.cc
// See body_ledger.h. A read adds at most a buffer's bytes, so one lock for each read is nothing
// beside the copy of them.
#include "net/body_ledger.h"

#include "base/check.h"
#include "base/share.h"

namespace plumb::net {

BodyLedger::Verdict BodyLedger::Set(uint32_t account, uint64_t before, uint64_t now) {
  if (before == now) return Verdict::kFits;  // most often 0: the body came with its header
  base::MutexLock lock(mutex_);
  CHECK(before <= bytes_) << before << " of " << bytes_;
  bytes_ = bytes_ - before + now;
  uint64_t of_account = 0;
  if (account != 0) {
    const auto held = accounts_.try_emplace(account, 0).first;
    CHECK(before <= held->second) << before << " of " << held->second;
    of_account = held->second = held->second - before + now;
    if (of_account == 0) accounts_.erase(held);
  }
  if (now < before) return Verdict::kFits;
  const base::Share share{.max = bytes_max_, .all = bytes_, .own = of_account};
  if (!base::FitsAll(share)) return Verdict::kAllTooMuch;
  return base::FitsShare(share) ? Verdict::kFits : Verdict::kAccountTooMuch;
}

}  // namespace plumb::net
