// api/live_requests.h
// Owns the requests between acceptance and the generator's last word. A client that leaves
// does not end its request here: it cancels, and the sink stays until the generator confirms, since
// events may still be on their way. Bounded; full is refused at the door.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "api/answer_sink.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/generator.h"

namespace plumb::api {

// A resource type. Thread: any, for every method. No lock is held while calling out.
class LiveRequests {
 public:
  // Borrows the generator.
  LiveRequests(engine::Generator& generator, size_t count_max)
      : generator_(generator), count_max_(count_max) {}

  // An id that no other request of this object has had, nor the kPromptsMax - 1 after it.
  engine::RequestId NextId() {
    return engine::RequestId{next_id_.fetch_add(kPromptsMax) + kPromptsMax};
  }

  // Takes the sink; false when full (the sink is then still the caller's).
  bool Add(engine::RequestId id, std::unique_ptr<AnswerSink>& sink);
  // The sink, borrowed until Remove; nullptr when unknown.
  AnswerSink* Find(engine::RequestId id);
  // Destroys the sink; only once the generator has nothing more to say, or never had it. An unknown
  // id is no error.
  void Remove(engine::RequestId id);

  // Remembers that the client is gone and cancels. An unknown id is no error.
  void ClientLeft(engine::RequestId id);
  bool client_left(engine::RequestId id) const;
  // The generator gets the request, as that many under `id` and the ids after it.
  void Submitting(engine::RequestId id, uint32_t prompts);
  // It has all of them: the client may have left before that, when Cancel could not find them.
  void Submitted(engine::RequestId id);

  // AnswerSink::KeepAlive of each. Under the lock, but it never waits.
  void KeepAlive(const SilenceLimits& silence);

  size_t size() const;
  void CancelAll();
  // False when requests are still live after `timeout`.
  bool WaitEmpty(base::Duration timeout);

 private:
  struct Entry {
    std::unique_ptr<AnswerSink> sink;
    bool client_left = false;
    uint32_t prompts = 1;
  };

  void Cancel(engine::RequestId id, uint32_t prompts);

  engine::Generator& generator_;
  const size_t count_max_;
  std::atomic<uint64_t> next_id_{0};
  mutable base::Mutex mutex_;
  base::Condition emptied_;
  std::unordered_map<uint64_t, Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace plumb::api
