// tenancy/limiter.h
// How much each key may ask for: requests and tokens a minute, and requests at once. Reserve, then
// settle: what a request may take at most is taken before its first token is computed, so that
// requests that come together cannot all pass on what only one of them may have; at its end what it
// did not use is given back. Read next: tenancy/local_limiter.h.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/status.h"

namespace plumb::tenancy {

// Of one key; 0 is no limit.
struct KeyLimits {
  uint32_t requests_per_minute = 0;
  uint32_t tokens_per_minute = 0;    // of prompts and answers together
  uint32_t concurrent_requests = 0;  // accepted and not yet ended, lines of batches aside
  bool any() const { return requests_per_minute + tokens_per_minute + concurrent_requests > 0; }
  friend bool operator==(const KeyLimits&, const KeyLimits&) = default;
};
// Most of each of them.
constexpr uint32_t kLimitMax = 100'000'000;

// One limit as its key's caller is told of it; limit 0: there is none.
struct LimitState {
  uint32_t limit = 0;
  uint32_t remaining = 0;
  base::Duration reset;  // until `remaining` is `limit` when nothing more is asked for
};
struct LimitReport {
  LimitState requests;
  LimitState tokens;
  LimitState concurrent;  // its reset is zero: nobody knows
};

// What a request holds of its caller's limits. A value type; filled by Enter and Reserve.
struct Reservation {
  uint32_t caller = 0;  // index of the key; 0 where there are no keys
  // A line of a batch, which can wait: passes only where half of each limit is left to its caller's
  // other requests, or all of it is there, and takes no place among those at once.
  bool batch = false;
  bool request = false;
  uint64_t tokens = 0;
};

// What of it was used. A request that was refused for our lack of room counts for nothing.
struct Usage {
  bool request = true;
  uint64_t tokens = 0;
};

// Thread: any, for every method; nothing blocks.
class Limiter {
 public:
  virtual ~Limiter() = default;

  // What was decided, and what the caller has left after it. A refusal takes nothing.
  struct Decision {
    base::Status status;
    LimitReport report;
  };

  // The most tokens that one request of the caller can ever reserve; UINT64_MAX without a limit.
  virtual uint64_t tokens_max(uint32_t caller) const = 0;

  // One more request of `held.caller`, before it is read. kQuotaExceeded, with retry_after_ms and
  // the reason "rate_limit_exceeded" or "concurrency_limit_exceeded".
  virtual Decision Enter(Reservation& held) = 0;
  // After Enter, once: so many tokens at most, all of them or none. kQuotaExceeded, as above: the
  // request itself is given back, too, and waits only for Settle. CHECK: more than tokens_max.
  virtual Decision Reserve(Reservation& held, uint64_t tokens) = 0;
  // Once for each Enter that was ok: gives back what was not used, and the place among those at
  // once. More than was reserved counts as what was reserved.
  virtual void Settle(const Reservation& held, const Usage& used) = 0;
};

}  // namespace plumb::tenancy
