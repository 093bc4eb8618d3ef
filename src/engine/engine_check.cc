// engine/engine_check.cc
// What the pages promise, checked against everybody who refers to them; for simulation and tests.
#include "base/check.h"
#include "engine/engine.h"

namespace plumb::engine {
namespace {

// Each running sequence has a seat, and no other has it.
void CheckStates(const SequenceStates& states, std::span<Sequence* const> running) {
  std::vector<bool> taken(states.total(), false);
  for (const Sequence* sequence : running) {
    const HeldState& held = sequence->held;
    CHECK(held.data != nullptr && !taken[held.seat]) << "seat " << held.seat;
    taken[held.seat] = true;
    CHECK(held.end >= sequence->computed) << held.end << " of " << sequence->computed;
    for (const uint32_t boundary : held.kept) CHECK(boundary <= sequence->computed) << boundary;
  }
  CHECK(states.free() + running.size() == states.total()) << states.free() << " seats are free";
}

}  // namespace

void Engine::CheckPages() const {
  std::vector<uint32_t> references(pool_->total(), 0);
  for (const Sequence* sequence : scheduler_.running()) {
    CHECK(sequence->pages.size() >= pool_->layout().PagesFor(sequence->computed));
    for (size_t place = 0; place < sequence->pages.size(); ++place) {
      const kvcache::PageId page = sequence->pages[place];
      ++references[kvcache::Index(page)];
      CHECK(sequence->page_data[place] == pool_->Data(page).data());
      CHECK(tree_ == nullptr || tree_->IsStored(page) == (place < sequence->sealed));
    }
  }
  for (const Sequence* sequence : scheduler_.waiting()) {
    CHECK(sequence->pages.empty() && sequence->held.data == nullptr);
  }
  if (states_ != nullptr) CheckStates(*states_, scheduler_.running());
  uint32_t free = 0;
  for (uint32_t page = 0; page < pool_->total(); ++page) {
    const bool stored = tree_ != nullptr && tree_->IsStored(kvcache::PageId{page});
    CHECK(pool_->references(kvcache::PageId{page}) == references[page] + stored) << "page " << page;
    free += references[page] + stored == 0;
  }
  CHECK(free == pool_->free());
  if (tree_ != nullptr) tree_->CheckInvariants();
}

}  // namespace plumb::engine
