// api/live_requests.cc
// See live_requests.h.
#include "api/live_requests.h"

#include <utility>
#include <vector>

#include "base/check.h"

namespace plumb::api {

using engine::RequestId;

namespace {
uint64_t Key(RequestId id) { return static_cast<uint64_t>(id); }
}  // namespace

bool LiveRequests::Add(RequestId id, std::unique_ptr<AnswerSink>& sink) {
  base::MutexLock lock(mutex_);
  if (entries_.size() >= count_max_) return false;
  const bool added = entries_.emplace(Key(id), Entry{.sink = std::move(sink)}).second;
  CHECK(added) << "request id used twice: " << Key(id);
  return true;
}

AnswerSink* LiveRequests::Find(RequestId id) {
  base::MutexLock lock(mutex_);
  const auto entry = entries_.find(Key(id));
  return entry == entries_.end() ? nullptr : entry->second.sink.get();
}

// The entry goes last, so that WaitEmpty also waits for the sink's destruction. Notified under the
// lock: the waiter may destroy this object as soon as it has it.
void LiveRequests::Remove(RequestId id) {
  std::unique_ptr<AnswerSink> removed;
  {
    base::MutexLock lock(mutex_);
    const auto entry = entries_.find(Key(id));
    if (entry == entries_.end()) return;
    removed = std::move(entry->second.sink);
  }
  removed.reset();
  base::MutexLock lock(mutex_);
  entries_.erase(Key(id));
  if (entries_.empty()) emptied_.NotifyAll();
}

void LiveRequests::Cancel(RequestId id, uint32_t prompts) {
  for (uint32_t i = 0; i < prompts; ++i) generator_.Cancel(RequestId{Key(id) + i});
}

void LiveRequests::ClientLeft(RequestId id) {
  uint32_t prompts = 0;
  {
    base::MutexLock lock(mutex_);
    const auto entry = entries_.find(Key(id));
    if (entry == entries_.end()) return;
    entry->second.client_left = true;
    if (entry->second.sink != nullptr) entry->second.sink->Withdraw();
    prompts = entry->second.prompts;
  }
  Cancel(id, prompts);
}

bool LiveRequests::client_left(RequestId id) const {
  base::MutexLock lock(mutex_);
  const auto entry = entries_.find(Key(id));
  return entry != entries_.end() && entry->second.client_left;
}

void LiveRequests::Submitting(RequestId id, uint32_t prompts) {
  base::MutexLock lock(mutex_);
  const auto entry = entries_.find(Key(id));
  if (entry != entries_.end()) entry->second.prompts = prompts;
}

void LiveRequests::Submitted(RequestId id) {
  if (client_left(id)) ClientLeft(id);
}

void LiveRequests::KeepAlive(const SilenceLimits& silence) {
  base::MutexLock lock(mutex_);
  for (const auto& [key, entry] : entries_)
    if (entry.sink != nullptr) entry.sink->KeepAlive(silence);
}

size_t LiveRequests::size() const {
  base::MutexLock lock(mutex_);
  return entries_.size();
}

void LiveRequests::CancelAll() {
  std::vector<std::pair<RequestId, uint32_t>> live;
  {
    base::MutexLock lock(mutex_);
    for (auto& [key, entry] : entries_) {
      entry.client_left = true;
      live.emplace_back(RequestId{key}, entry.prompts);
    }
  }
  for (const auto& [id, prompts] : live) Cancel(id, prompts);
}

bool LiveRequests::WaitEmpty(base::Duration timeout) {
  base::MutexLock lock(mutex_);
  return emptied_.WaitFor(lock, timeout, [&]() HOLDS(mutex_) { return entries_.empty(); });
}

}  // namespace plumb::api
