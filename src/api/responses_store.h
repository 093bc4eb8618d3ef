// api/responses_store.h
// Answers of the Responses API that were asked to be kept: to be read again, and to be gone on
// from. In memory only, so they end with the process. Each caller sees its own and nobody else's;
// what another has kept looks like what never was. Full: a caller's oldest answer goes first where
// the caller has more than its share, else the oldest of all. Read next: api/responses_calls.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/idempotency.h"
#include "api/responses_item.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "engine/request.h"

namespace plumb::api {

struct ResponsesStoreLimits {
  size_t answers_max = 8192;
  uint64_t bytes_max = 256u << 20;
  // Of one caller, by its isolation key; without keys everybody is one caller.
  size_t caller_answers_max = 4096;
  uint64_t caller_bytes_max = 128u << 20;
};

// One answer. A value type; never changes once it is kept.
struct KeptResponse {
  std::string id;
  std::string json;  // the answer's object, as it was given
  ItemList input;    // the conversation that it answers, that of earlier answers included
  ItemList output;
  bool background = false;
  // Of its request's Idempotency-Key, under which there is a copy (api/idempotency.h).
  std::optional<IdempotentCopy> idempotent_copy = std::nullopt;
  // In the background, and there is no answer yet: what the request is to the generator, and what
  // the object becomes when it is cancelled.
  bool running = false;
  engine::RequestId request{};
  std::string cancelled_json = {};
};

// A resource type. Thread: any, for every method; the lock is never held for longer than it takes
// to look through one answer's items.
class ResponsesStore {
 public:
  explicit ResponsesStore(ResponsesStoreLimits limits = {}) : limits_(limits) {}
  ResponsesStore(const ResponsesStore&) = delete;
  ResponsesStore& operator=(const ResponsesStore&) = delete;

  // Keeps it, in place of one with the same id. One that alone is beyond a limit is not kept.
  void Add(const base::Hash256& caller, std::shared_ptr<const KeptResponse> response);
  // The same, but only in place of one that is still running: not of one that was cancelled or
  // removed meanwhile.
  void Replace(const base::Hash256& caller, std::shared_ptr<const KeptResponse> response);
  // Nothing (null): it was never kept, or dropped, or is another caller's.
  std::shared_ptr<const KeptResponse> Find(const base::Hash256& caller,
                                           const std::string& id) const;
  std::shared_ptr<const ResponsesItem> FindItem(const base::Hash256& caller,
                                                const std::string& id) const;
  // False: as above.
  bool Remove(const base::Hash256& caller, const std::string& id);

  size_t answers() const;
  uint64_t bytes() const;

 private:
  struct Shelf {  // one caller's
    std::map<uint64_t, std::shared_ptr<const KeptResponse>> by_age;
    std::unordered_map<std::string, uint64_t> ages;  // of answers by id
    // Of each item in how many answers it stands: a conversation's are counted once.
    std::unordered_map<const ResponsesItem*, uint32_t> uses;
    std::unordered_map<std::string, std::shared_ptr<const ResponsesItem>> items;  // by id
    uint64_t bytes = 0;
  };

  std::shared_ptr<const KeptResponse> FindHeld(const base::Hash256& caller,
                                               const std::string& id) const HOLDS(mutex_);
  void AddHeld(const base::Hash256& caller, std::shared_ptr<const KeptResponse> response)
      HOLDS(mutex_);
  void Take(Shelf& shelf, const ItemList& items) HOLDS(mutex_);
  void Release(Shelf& shelf, const ItemList& items) HOLDS(mutex_);
  void Drop(const base::Hash256& caller, uint64_t age) HOLDS(mutex_);
  void DropWhatIsTooMuch(const base::Hash256& caller) HOLDS(mutex_);

  const ResponsesStoreLimits limits_;
  mutable base::Mutex mutex_;
  std::map<base::Hash256, Shelf> shelves_ GUARDED_BY(mutex_);     // none is empty
  std::map<uint64_t, base::Hash256> callers_ GUARDED_BY(mutex_);  // of every answer, by age
  uint64_t next_age_ GUARDED_BY(mutex_) = 0;
  uint64_t bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace plumb::api
