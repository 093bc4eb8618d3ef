// net/body_ledger.h
// Internal to net. The memory of bodies that are being received, over all connections of a server,
// announced or come:
// how much all of it may be, and how much one caller may have of it (base/share.h), so that no
// caller's uploads, nor those of several, leave the others without. Read next:
// net/http_connection.h.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"

namespace plumb::net {

// Thread: any.
class BodyLedger {
 public:
  explicit BodyLedger(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  enum class Verdict {
    kFits,
    kAllTooMuch,      // more than bytes_max together
    kAccountTooMuch,  // of this account, more than is left for all others
  };
  // One connection's bytes, `before` until now, become `now`; they are counted whatever the
  // verdict, and a connection that is refused sets them to 0. Account 0 is nobody's: it has no
  // share. `before` is what this connection set last, of the same account.
  Verdict Set(uint32_t account, uint64_t before, uint64_t now);

 private:
  const uint64_t bytes_max_;
  base::Mutex mutex_;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
  // Only accounts that have some: at most one for each connection.
  std::unordered_map<uint32_t, uint64_t> accounts_ GUARDED_BY(mutex_);
};

}  // namespace plumb::net
