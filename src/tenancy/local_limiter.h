// tenancy/local_limiter.h
// Limits of one process. Requests and tokens are buckets that hold a minute's worth and fill
// evenly, in whole numbers, so that a limit of N lets exactly N pass at once, whatever N is.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "tenancy/limiter.h"

namespace plumb::tenancy {

// A resource type. Thread: any.
class LocalLimiter final : public Limiter {
 public:
  // The limits of each key, by its index; at least one. No limit is above kLimitMax. Borrows the
  // clock.
  LocalLimiter(const std::vector<KeyLimits>& limits, const base::Clock& clock);

  uint64_t tokens_max(uint32_t caller) const override;
  Decision Enter(Reservation& held) override;
  Decision Reserve(Reservation& held, uint64_t tokens) override;
  void Settle(const Reservation& held, const Usage& used) override;

 private:
  // Counted in units of which kUnitsPerPiece are one request or token, so that a nanosecond adds
  // `limit` of them. A limit of 0 takes everything.
  class Bucket {
   public:
    Bucket(uint32_t limit, base::Instant now);
    void Fill(base::Instant now);
    bool Holds(uint64_t pieces) const;  // whether it has so many now
    void Take(uint64_t pieces);
    void GiveBack(uint64_t pieces);
    base::Duration Until(uint64_t pieces) const;  // that Holds says so; at most `limit`
    LimitState State() const;

   private:
    int64_t capacity() const;
    uint32_t limit_;
    int64_t units_;
    base::Instant filled_;
  };
  struct Key {
    KeyLimits limits;
    Bucket requests;
    Bucket tokens;
    uint32_t running = 0;
    uint32_t lines = 0;  // of batches
    uint32_t& Running(const Reservation& held) { return held.batch ? lines : running; }
  };
  static LimitReport Report(const Key& key);
  Key& FillKey(uint32_t caller) HOLDS(mutex_);

  const base::Clock& clock_;
  const std::vector<KeyLimits> limits_;
  mutable base::Mutex mutex_;
  std::vector<Key> keys_ GUARDED_BY(mutex_);
};

}  // namespace plumb::tenancy
