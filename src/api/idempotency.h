// api/idempotency.h
// Answers by Idempotency-Key: whoever asks again with the same key and body gets the first answer
// again, and nothing is computed twice. In memory only, bounded, the oldest answer goes first. What
// fails is not kept, so that it may be tried again. Where an answer is gone, its seed is not:
// it is a function of caller and key, so the same tokens come again.
// Source: IETF draft-ietf-httpapi-idempotency-key-header (409 and 422).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/result.h"
#include "net/http.h"

namespace plumb::api {

constexpr size_t kIdempotencyKeyBytesMax = 255;

struct IdempotencyLimits {
  uint64_t bytes_max = 64u << 20;        // answers kept, and those being written
  uint64_t answer_bytes_max = 4u << 20;  // one above it is given, and not kept
  size_t keys_max = 4096;                // kept or running
  base::Duration age_max = base::Seconds(24 * 3600);
};

// The header's value; nothing when absent. kInvalidArgument, field "Idempotency-Key": empty, too
// long, not of visible ASCII characters.
base::Result<std::optional<std::string>> IdempotencyKeyOf(const net::HttpHeaders& headers);

// What a key stands for, among all callers. `isolation`: engine::Request.
base::Hash256 IdempotencyId(const base::Hash256& isolation, std::string_view key);
// The seed of a request that gives none.
uint64_t SeedOf(const base::Hash256& id);
// Of what was asked: requests with the same one are the same.
base::Hash256 HashOfQuestion(std::string_view route, std::string_view body);

class IdempotencyStore;

// An answer while it is written. Destroyed before Keep: its key is free again. A resource type; one
// thread at a time. Lives no longer than its store.
class AnswerCopy {
 public:
  // For the store alone: see its Ask.
  AnswerCopy(IdempotencyStore& store, const base::Hash256& id) : store_(store), id_(id) {}
  ~AnswerCopy();
  AnswerCopy(const AnswerCopy&) = delete;
  AnswerCopy& operator=(const AnswerCopy&) = delete;

  void Append(std::string_view bytes);
  // The answer is whole: from now on it is given to whoever asks again.
  void Keep(std::string_view content_type);

 private:
  friend class IdempotencyStore;

  IdempotencyStore& store_;
  const base::Hash256 id_;
  std::string body_;
  uint64_t granted_ = 0;  // bytes that the store has set aside for it
  bool too_large_ = false;
  bool kept_ = false;
};

// A resource type. Thread: any, for every method.
class IdempotencyStore {
 public:
  // Borrows the clock.
  IdempotencyStore(IdempotencyLimits limits, const base::Clock& clock)
      : limits_(limits), clock_(clock) {}
  ~IdempotencyStore();
  IdempotencyStore(const IdempotencyStore&) = delete;
  IdempotencyStore& operator=(const IdempotencyStore&) = delete;

  // One of both: the answer that there was, or the way to keep the one that there will be.
  struct Claim {
    std::optional<net::HttpResponse> answer;
    std::unique_ptr<AnswerCopy> copy;
  };
  // kInvalidArgument, reason "idempotency_key_reused": the key stood for another question.
  // kUnavailable, reason "idempotency_key_in_use": its answer is being written. kOverloaded: as
  // many requests with keys are running as may be.
  base::Result<Claim> Ask(const base::Hash256& id, const base::Hash256& question);

  size_t keys() const;
  uint64_t bytes() const;

 private:
  friend class AnswerCopy;
  struct Entry {
    base::Hash256 question;
    bool kept = false;
    std::string content_type;
    std::string body;
    base::Instant kept_at;
  };

  bool Grant(uint64_t bytes);
  void Keep(AnswerCopy& copy, std::string_view content_type);
  void Release(AnswerCopy& copy);
  void DropOldest() HOLDS(mutex_);
  void DropOld() HOLDS(mutex_);

  const IdempotencyLimits limits_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::map<base::Hash256, Entry> entries_ GUARDED_BY(mutex_);
  std::list<base::Hash256> by_age_ GUARDED_BY(mutex_);  // those that are kept, the oldest first
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace plumb::api
