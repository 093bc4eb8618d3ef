// engine/engine_check.cc
// What the pages promise, checked against everybody who refers to them; for simulation and tests.
#include "base/check.h"
#include "engine/engine.h"

namespace plumb::engine {

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
  for (const Sequence* sequence : scheduler_.waiting()) CHECK(sequence->pages.empty());
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
