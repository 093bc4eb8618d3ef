// api/idempotency.h
// Answers by Idempotency-Key: whoever asks again with the same key and body gets the first answer
// again, and nothing is computed twice. In memory only, bounded: a caller's oldest answer goes
// first where the caller has its share, else the oldest of all. What fails is not kept, nor what
// its caller deletes. Where an answer is gone, its seed is not, which is a function of caller and
// key: the same tokens come again. Source: IETF draft-ietf-httpapi-idempotency-key-header.
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
  // Of one caller, by its isolation key; without keys everybody is one caller.
  uint64_t caller_bytes_max = 32u << 20;
  size_t caller_keys_max = 2048;
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

// A value type.
struct IdempotentRequest {
  base::Hash256 caller;    // engine::Request's isolation
  base::Hash256 id;        // IdempotencyId
  base::Hash256 question;  // HashOfQuestion
  uint64_t number = 0;     // the request's own, no other's
};

// The copy of one answer: the key under which it may be, and the number of the request that it
// answered. Later another may be under the same key.
struct IdempotentCopy {
  base::Hash256 id;
  uint64_t number = 0;
};

class IdempotencyStore;

// An answer while it is written. Destroyed before Keep: its key is free again. A resource type; one
// thread at a time. Lives no longer than its store.
class AnswerCopy {
 public:
  // For the store alone: see its Ask.
  AnswerCopy(IdempotencyStore& store, const IdempotentRequest& request)
      : store_(store), request_(request) {}
  ~AnswerCopy();
  AnswerCopy(const AnswerCopy&) = delete;
  AnswerCopy& operator=(const AnswerCopy&) = delete;

  void Append(std::string_view bytes);
  // The answer is whole: from now on it is given to whoever asks again.
  void Keep(std::string_view content_type);

 private:
  friend class IdempotencyStore;

  IdempotencyStore& store_;
  const IdempotentRequest request_;
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
  // kUnavailable, reason "idempotency_key_in_use": its answer is being written. kQuotaExceeded,
  // kOverloaded: as many requests with keys are running as may be, of this caller or of all.
  base::Result<Claim> Ask(const IdempotentRequest& request);

  // The answer is given to nobody any more; one that is still being written will not be kept. One
  // that is not there any more, whatever its key stands for by now, is no error.
  void Forget(const IdempotentCopy& copy);

  size_t keys() const;
  uint64_t bytes() const;

 private:
  friend class AnswerCopy;
  using Ages = std::list<base::Hash256>;  // of what is kept, the oldest first
  struct Entry {
    base::Hash256 caller;
    base::Hash256 question;
    uint64_t number = 0;
    bool kept = false;
    bool forgotten = false;          // before it was kept
    Ages::iterator age = {};         // in by_age_, once it is kept
    Ages::iterator caller_age = {};  // likewise in its caller's
    std::string content_type;
    std::string body;
    base::Instant kept_at;
  };

  struct Share {  // one caller's
    Ages by_age;
    size_t keys = 0;  // kept or running
    uint64_t bytes = 0;
  };

  bool Grant(const base::Hash256& caller, uint64_t bytes);
  void Keep(AnswerCopy& copy, std::string_view content_type);
  void Release(AnswerCopy& copy);
  base::Status MakeRoom(const base::Hash256& caller) HOLDS(mutex_);
  void Drop(base::Hash256 id) HOLDS(mutex_);  // what is kept
  void DropOld() HOLDS(mutex_);
  void Remove(const base::Hash256& id) HOLDS(mutex_);
  void GiveBack(const base::Hash256& caller, uint64_t bytes) HOLDS(mutex_);

  const IdempotencyLimits limits_;
  const base::Clock& clock_;
  mutable base::Mutex mutex_;
  std::map<base::Hash256, Entry> entries_ GUARDED_BY(mutex_);
  std::map<base::Hash256, Share> shares_ GUARDED_BY(mutex_);  // of callers that have entries
  Ages by_age_ GUARDED_BY(mutex_);                            // of all callers
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace plumb::api
