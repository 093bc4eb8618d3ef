// tests/sim/world.cc
// The heap, behind tests/sim/world.h.
#include "world.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plumb::sim {

void World::At(base::Instant when, Event event) {
  CHECK(heap_.size() < kEventsMax) << "events beget events";
  heap_.push({std::max(when, now()), next_sequence_++, std::move(event)});
}

void World::RunUntil(base::Instant when) {
  CHECK(when >= now()) << "time does not go back";
  while (!heap_.empty() && heap_.top().when <= when) RunNext();
  clock_.now_ = std::max(when, now());
}

bool World::RunNext() {
  if (heap_.empty()) return false;
  const Entry next = heap_.top();
  heap_.pop();
  clock_.now_ = std::max(next.when, now());
  next.event();
  return true;
}

}  // namespace plumb::sim
