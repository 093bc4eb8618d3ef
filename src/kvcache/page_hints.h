// kvcache/page_hints.h
// Which stored pages somebody wants kept, whose wish that is, and until when (what that does:
// kvcache/prefix_tree.h). Half of all pages at most have a hint, and half of these those of one
// owner. One more takes the place of the least recently used: of the owner's own if it has its
// share, else of the owner that has most, so that who has few keeps them. Sized at the start; no
// call but CheckInvariants allocates. Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "kvcache/page_heap.h"
#include "kvcache/page_pool.h"

namespace plumb::kvcache {

struct PageHint {
  uint64_t owner = 0;      // whose share it counts in; the same for all pages of a chain
  base::Duration time{0};  // how long it holds after the page's last use; > 0
};

// Every call takes O(log pages), InTheWay O(owners) where all are too many.
class PageHints {
 public:
  // For pages below `pages`.
  explicit PageHints(uint32_t pages);

  bool Has(PageId page) const { return ends_.Has(page); }
  // The page whose hint must go before one more of this owner can be given; nothing: there is room.
  std::optional<PageId> InTheWay(uint64_t owner) const;
  // A hint for a page that has none, used now; only where nothing is in the way (CHECK).
  void Give(PageId page, const PageHint& hint, base::Instant now);
  // The page that has one (CHECK) was used: from now on it holds for its time again, or for `time`
  // if that is longer.
  void Use(PageId page, base::Duration time, base::Instant now);
  // Takes it away; the page has one (CHECK).
  void Take(PageId page);
  // A page whose hint has ended by now, the first to end first; nothing: none has.
  std::optional<PageId> Ended(base::Instant now) const;

  uint32_t count() const { return ends_.size(); }
  // Of all, and of one owner. Both 0 where there are too few pages to keep any.
  uint32_t count_max() const { return count_max_; }
  uint32_t owner_max() const { return owner_max_; }
  // The owner's hints now.
  uint32_t CountOf(uint64_t owner) const;
  // Whose the hint of a page that has one (CHECK) is.
  uint64_t OwnerOf(PageId page) const;
  // When the hint of a page that has one (CHECK) ends.
  base::Instant EndOf(PageId page) const;

  // All that is promised here, in O(pages): for tests and simulations.
  void CheckInvariants() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  // An owner's, by use.
  struct List {
    uint32_t oldest = kNone, newest = kNone;
    uint32_t count = 0;
  };
  struct Hint {
    PageHint given;
    uint64_t use = 0;                       // the number of its last one
    uint32_t older = kNone, newer = kNone;  // in its owner's list
  };
  using Accounts = std::map<uint64_t, List>;  // of owners that have hints

  void Append(List& list, PageId page);
  void Unlink(List& list, PageId page);
  List& AccountOf(uint64_t owner);

  const uint32_t count_max_;
  const uint32_t owner_max_;
  std::vector<Hint> hints_;  // [pages]
  PageHeap ends_;            // of pages that have one, by when it ends
  Accounts accounts_;
  std::vector<Accounts::node_type> spare_;  // one for each owner more that there can be
  uint64_t uses_ = 0;
};

}  // namespace plumb::kvcache
