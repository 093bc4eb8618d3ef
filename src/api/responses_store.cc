// api/responses_store.cc
// See responses_store.h.
#include "api/responses_store.h"

#include <utility>

#include "base/check.h"

namespace plumb::api {

namespace {

// What an answer takes besides its items.
uint64_t OwnBytes(const KeptResponse& response) {
  constexpr uint64_t kEntryBytes = 512;
  const size_t places = response.input.size() + response.output.size();
  return kEntryBytes + response.id.size() + response.json.size() + response.cancelled_json.size() +
         places * sizeof(ItemList::value_type);
}

}  // namespace

void ResponsesStore::Take(Shelf& shelf, const ItemList& items) {
  for (const auto& item : items) {
    if (++shelf.uses[item.get()] > 1) continue;
    shelf.bytes += item->bytes();
    bytes_ += item->bytes();
    shelf.items[item->id] = item;  // of two with one id, the newer
  }
}

void ResponsesStore::Release(Shelf& shelf, const ItemList& items) {
  for (const auto& item : items) {
    const auto use = shelf.uses.find(item.get());
    CHECK(use != shelf.uses.end()) << "an item that was never taken: " << item->id;
    if (--use->second > 0) continue;
    shelf.uses.erase(use);
    shelf.bytes -= item->bytes();
    bytes_ -= item->bytes();
    const auto found = shelf.items.find(item->id);
    if (found != shelf.items.end() && found->second == item) shelf.items.erase(found);
  }
}

void ResponsesStore::Add(const base::Hash256& caller,
                         std::shared_ptr<const KeptResponse> response) {
  base::MutexLock lock(mutex_);
  AddHeld(caller, std::move(response));
}

void ResponsesStore::Replace(const base::Hash256& caller,
                             std::shared_ptr<const KeptResponse> response) {
  base::MutexLock lock(mutex_);
  const auto old = FindHeld(caller, response->id);
  if (old != nullptr && old->running) AddHeld(caller, std::move(response));
}

void ResponsesStore::AddHeld(const base::Hash256& caller,
                             std::shared_ptr<const KeptResponse> response) {
  if (const auto shelf = shelves_.find(caller); shelf != shelves_.end()) {
    const auto old = shelf->second.ages.find(response->id);
    if (old != shelf->second.ages.end()) Drop(caller, old->second);
  }
  Shelf& shelf = shelves_[caller];
  const uint64_t age = next_age_++;
  shelf.ages[response->id] = age;
  shelf.bytes += OwnBytes(*response);
  bytes_ += OwnBytes(*response);
  Take(shelf, response->input);
  Take(shelf, response->output);
  shelf.by_age.emplace(age, std::move(response));
  callers_.emplace(age, caller);
  DropWhatIsTooMuch(caller);
}

void ResponsesStore::DropWhatIsTooMuch(const base::Hash256& caller) {
  for (;;) {
    const auto shelf = shelves_.find(caller);
    if (shelf == shelves_.end()) break;
    if (shelf->second.by_age.size() <= limits_.caller_answers_max &&
        shelf->second.bytes <= limits_.caller_bytes_max)
      break;
    Drop(caller, shelf->second.by_age.begin()->first);
  }
  while (callers_.size() > limits_.answers_max || bytes_ > limits_.bytes_max) {
    const auto oldest = *callers_.begin();
    Drop(oldest.second, oldest.first);
  }
}

void ResponsesStore::Drop(const base::Hash256& caller, uint64_t age) {
  const auto found = shelves_.find(caller);
  CHECK(found != shelves_.end()) << "an answer of nobody";
  Shelf& shelf = found->second;
  const auto entry = shelf.by_age.find(age);
  CHECK(entry != shelf.by_age.end()) << "no answer of age " << age;
  const std::shared_ptr<const KeptResponse> response = entry->second;
  Release(shelf, response->input);
  Release(shelf, response->output);
  shelf.bytes -= OwnBytes(*response);
  bytes_ -= OwnBytes(*response);
  shelf.ages.erase(response->id);
  shelf.by_age.erase(entry);
  callers_.erase(age);
  if (!shelf.by_age.empty()) return;
  CHECK(shelf.bytes == 0 && shelf.uses.empty() && shelf.items.empty())
      << "an empty shelf holds " << shelf.bytes << " bytes";
  shelves_.erase(found);
}

std::shared_ptr<const KeptResponse> ResponsesStore::Find(const base::Hash256& caller,
                                                         const std::string& id) const {
  base::MutexLock lock(mutex_);
  return FindHeld(caller, id);
}

std::shared_ptr<const KeptResponse> ResponsesStore::FindHeld(const base::Hash256& caller,
                                                             const std::string& id) const {
  const auto shelf = shelves_.find(caller);
  if (shelf == shelves_.end()) return nullptr;
  const auto age = shelf->second.ages.find(id);
  return age == shelf->second.ages.end() ? nullptr : shelf->second.by_age.at(age->second);
}

std::shared_ptr<const ResponsesItem> ResponsesStore::FindItem(const base::Hash256& caller,
                                                              const std::string& id) const {
  base::MutexLock lock(mutex_);
  const auto shelf = shelves_.find(caller);
  if (shelf == shelves_.end()) return nullptr;
  const auto item = shelf->second.items.find(id);
  return item == shelf->second.items.end() ? nullptr : item->second;
}

bool ResponsesStore::Remove(const base::Hash256& caller, const std::string& id) {
  base::MutexLock lock(mutex_);
  const auto shelf = shelves_.find(caller);
  if (shelf == shelves_.end()) return false;
  const auto age = shelf->second.ages.find(id);
  if (age == shelf->second.ages.end()) return false;
  Drop(caller, age->second);
  return true;
}

size_t ResponsesStore::answers() const {
  base::MutexLock lock(mutex_);
  return callers_.size();
}

uint64_t ResponsesStore::bytes() const {
  base::MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace plumb::api
