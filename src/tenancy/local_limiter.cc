// tenancy/local_limiter.cc
// See local_limiter.h.
#include "tenancy/local_limiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace plumb::tenancy {

using base::Duration;
using base::Instant;
using base::Status;

namespace {

// Nanoseconds of a minute: limit * this stays below 2^63 for every limit.
constexpr int64_t kUnitsPerPiece = 60'000'000'000;
static_assert(kLimitMax <= INT64_MAX / kUnitsPerPiece);
// Nobody knows when one of a key's requests ends.
constexpr Duration kConcurrentRetry = base::Milliseconds(1000);

Status Exceeded(std::string message, std::string reason, Duration retry) {
  const int64_t ms = std::clamp<int64_t>((retry.ns + 999'999) / 1'000'000, 1, UINT32_MAX);
  return Status(base::Code::kQuotaExceeded, std::move(message))
      .WithReason(std::move(reason))
      .WithRetryAfterMs(static_cast<uint32_t>(ms));
}

// What must be there for so many to be taken.
uint64_t Wanted(uint64_t pieces, uint32_t limit, const Reservation& held) {
  return held.batch ? std::min<uint64_t>(limit, pieces + limit / 2) : pieces;
}

}  // namespace

LocalLimiter::Bucket::Bucket(uint32_t limit, Instant now)
    : limit_(limit), units_(capacity()), filled_(now) {}

int64_t LocalLimiter::Bucket::capacity() const { return limit_ * kUnitsPerPiece; }

void LocalLimiter::Bucket::Fill(Instant now) {
  const int64_t elapsed = std::clamp<int64_t>((now - filled_).ns, 0, kUnitsPerPiece);
  filled_ = std::max(filled_, now);
  units_ += std::min(elapsed * limit_, capacity() - units_);
}

bool LocalLimiter::Bucket::Holds(uint64_t pieces) const {
  return limit_ == 0 || pieces <= static_cast<uint64_t>(units_ / kUnitsPerPiece);
}

void LocalLimiter::Bucket::Take(uint64_t pieces) {
  CHECK(Holds(pieces)) << "taken without asking";
  if (limit_ > 0) units_ -= static_cast<int64_t>(pieces) * kUnitsPerPiece;
}

void LocalLimiter::Bucket::GiveBack(uint64_t pieces) {
  if (limit_ == 0) return;
  CHECK(pieces <= limit_) << "more than was ever taken: " << pieces;
  units_ += std::min(static_cast<int64_t>(pieces) * kUnitsPerPiece, capacity() - units_);
}

Duration LocalLimiter::Bucket::Until(uint64_t pieces) const {
  if (limit_ == 0) return {0};
  const int64_t wanted = static_cast<int64_t>(pieces) * kUnitsPerPiece;
  return {wanted <= units_ ? 0 : (wanted - units_ - 1) / limit_ + 1};
}

LimitState LocalLimiter::Bucket::State() const {
  return {.limit = limit_,
          .remaining = static_cast<uint32_t>(units_ / kUnitsPerPiece),
          .reset = Until(limit_)};
}

LocalLimiter::LocalLimiter(const std::vector<KeyLimits>& limits, const base::Clock& clock)
    : clock_(clock), limits_(limits) {
  CHECK(!limits.empty()) << "limits of nobody";
  const Instant now = clock.Now();
  const base::MutexLock lock(mutex_);
  for (const KeyLimits& one : limits) {
    CHECK(one.requests_per_minute <= kLimitMax && one.tokens_per_minute <= kLimitMax &&
          one.concurrent_requests <= kLimitMax);
    keys_.push_back({.limits = one,
                     .requests = Bucket(one.requests_per_minute, now),
                     .tokens = Bucket(one.tokens_per_minute, now)});
  }
}

uint64_t LocalLimiter::tokens_max(uint32_t caller) const {
  CHECK(caller < limits_.size()) << "caller " << caller;
  const uint32_t limit = limits_[caller].tokens_per_minute;
  return limit > 0 ? limit : UINT64_MAX;
}

LimitReport LocalLimiter::Report(const Key& key) {
  const uint32_t concurrent = key.limits.concurrent_requests;
  return {.requests = key.requests.State(),
          .tokens = key.tokens.State(),
          .concurrent = {.limit = concurrent,
                         .remaining = concurrent - std::min(concurrent, key.running),
                         .reset = {0}}};
}

LocalLimiter::Key& LocalLimiter::FillKey(uint32_t caller) {
  CHECK(caller < keys_.size()) << "caller " << caller;
  Key& key = keys_[caller];
  const Instant now = clock_.Now();
  key.requests.Fill(now);
  key.tokens.Fill(now);
  return key;
}

Limiter::Decision LocalLimiter::Enter(Reservation& held) {
  const base::MutexLock lock(mutex_);
  CHECK(!held.request && held.tokens == 0) << "entered twice";
  Key& key = FillKey(held.caller);
  const KeyLimits& limits = key.limits;
  const uint64_t wanted = Wanted(1, limits.requests_per_minute, held);
  Status status;
  if (!held.batch && limits.concurrent_requests > 0 && key.running >= limits.concurrent_requests) {
    status = Exceeded(fmt::format("this key may have {} requests at once, and has them; wait for "
                                  "one of them to end",
                                  limits.concurrent_requests),
                      "concurrency_limit_exceeded", kConcurrentRetry);
  } else if (!key.requests.Holds(wanted)) {
    status = Exceeded(fmt::format("this key may send {} requests a minute, and has; wait before "
                                  "the next",
                                  limits.requests_per_minute),
                      "rate_limit_exceeded", key.requests.Until(wanted));
  } else {
    key.requests.Take(1);
    ++key.Running(held);
    held.request = true;
  }
  return {std::move(status), Report(key)};
}

Limiter::Decision LocalLimiter::Reserve(Reservation& held, uint64_t tokens) {
  const base::MutexLock lock(mutex_);
  CHECK(held.request && held.tokens == 0) << "reserved twice, or without Enter";
  Key& key = FillKey(held.caller);
  const uint32_t limit = key.limits.tokens_per_minute;
  CHECK(limit == 0 || tokens <= limit) << "more than there ever is: " << tokens;
  const uint64_t wanted = Wanted(tokens, limit, held);
  Status status;
  if (key.tokens.Holds(wanted)) {
    key.tokens.Take(tokens);
    held.tokens = tokens;
  } else {
    status =
        Exceeded(fmt::format("this key has {} tokens a minute; {} are left, and the request may "
                             "take {}, prompt and answer together: wait, or ask for a shorter "
                             "answer",
                             limit, key.tokens.State().remaining, tokens),
                 "rate_limit_exceeded", key.tokens.Until(wanted));
    key.requests.GiveBack(1);
    held.request = false;
  }
  return {std::move(status), Report(key)};
}

void LocalLimiter::Settle(const Reservation& held, const Usage& used) {
  const base::MutexLock lock(mutex_);
  Key& key = FillKey(held.caller);
  CHECK(key.Running(held) > 0) << "settled twice";
  --key.Running(held);
  if (held.request && !used.request) key.requests.GiveBack(1);
  key.tokens.GiveBack(held.tokens - std::min(held.tokens, used.tokens));
}

}  // namespace plumb::tenancy
