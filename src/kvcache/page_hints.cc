// kvcache/page_hints.cc
// A list by use for each owner, and a heap by end; behind kvcache/page_hints.h.
#include "kvcache/page_hints.h"

#include <algorithm>

#include "base/check.h"

namespace plumb::kvcache {
namespace {

uint64_t KeyOf(base::Instant end) { return static_cast<uint64_t>(std::max<int64_t>(end.ns, 0)); }

}  // namespace

PageHints::PageHints(uint32_t pages)
    : count_max_(pages / 2), owner_max_((count_max_ + 1) / 2), hints_(pages), ends_(pages) {
  spare_.reserve(count_max_);
  for (uint32_t owner = 0; owner < count_max_; ++owner) accounts_.try_emplace(owner);
  while (!accounts_.empty()) spare_.push_back(accounts_.extract(accounts_.begin()));
}

std::optional<PageId> PageHints::InTheWay(uint64_t owner) const {
  const auto account = accounts_.find(owner);
  if (account != accounts_.end() && account->second.count >= owner_max_) {
    return PageId{account->second.oldest};
  }
  if (count() < count_max_ || count() == 0) return std::nullopt;
  const List* most = nullptr;
  for (const auto& [other, list] : accounts_) {
    if (most != nullptr && list.count < most->count) continue;
    if (most == nullptr || list.count > most->count ||
        hints_[list.oldest].use < hints_[most->oldest].use)
      most = &list;
  }
  return PageId{most->oldest};
}

void PageHints::Give(PageId page, const PageHint& hint, base::Instant now) {
  CHECK(!Has(page)) << "page " << Index(page) << " has a hint";
  CHECK(count() < count_max_ && CountOf(hint.owner) < owner_max_) << "no room for one more hint";
  CHECK(hint.time.ns > 0) << hint.time.ns;
  hints_[Index(page)].given = hint;
  Append(AccountOf(hint.owner), page);
  ends_.Add(page, KeyOf(now + hint.time));
}

void PageHints::Use(PageId page, base::Duration time, base::Instant now) {
  CHECK(Has(page)) << "page " << Index(page) << " has no hint";
  PageHint& hint = hints_[Index(page)].given;
  hint.time = std::max(hint.time, time);
  List& own = AccountOf(hint.owner);
  Unlink(own, page);
  Append(own, page);
  ends_.Change(page, KeyOf(now + hint.time));
}

void PageHints::Take(PageId page) {
  CHECK(Has(page)) << "page " << Index(page) << " has no hint";
  const auto account = accounts_.find(hints_[Index(page)].given.owner);
  Unlink(account->second, page);
  if (account->second.count == 0) spare_.push_back(accounts_.extract(account));
  ends_.Remove(page);
  hints_[Index(page)] = Hint();
}

std::optional<PageId> PageHints::Ended(base::Instant now) const {
  if (ends_.empty() || ends_.KeyOf(ends_.First()) > KeyOf(now)) return std::nullopt;
  return ends_.First();
}

uint32_t PageHints::CountOf(uint64_t owner) const {
  const auto account = accounts_.find(owner);
  return account == accounts_.end() ? 0 : account->second.count;
}

uint64_t PageHints::OwnerOf(PageId page) const {
  CHECK(Has(page)) << "page " << Index(page) << " has no hint";
  return hints_[Index(page)].given.owner;
}

base::Instant PageHints::EndOf(PageId page) const {
  return {static_cast<int64_t>(ends_.KeyOf(page))};
}

PageHints::List& PageHints::AccountOf(uint64_t owner) {
  const auto account = accounts_.find(owner);
  if (account != accounts_.end()) return account->second;
  CHECK(!spare_.empty()) << "more owners than hints";
  Accounts::node_type node = std::move(spare_.back());
  spare_.pop_back();
  node.key() = owner;
  node.mapped() = List();
  return accounts_.insert(std::move(node)).position->second;
}

void PageHints::Append(List& list, PageId page) {
  const uint32_t index = Index(page);
  hints_[index].older = list.newest;
  hints_[index].newer = kNone;
  hints_[index].use = ++uses_;
  (list.newest == kNone ? list.oldest : hints_[list.newest].newer) = index;
  list.newest = index;
  ++list.count;
}

void PageHints::Unlink(List& list, PageId page) {
  CHECK(list.count > 0);
  const Hint& gone = hints_[Index(page)];
  (gone.older == kNone ? list.oldest : hints_[gone.older].newer) = gone.newer;
  (gone.newer == kNone ? list.newest : hints_[gone.newer].older) = gone.older;
  --list.count;
}

void PageHints::CheckInvariants() const {
  CHECK(count() <= count_max_) << count() << " of " << count_max_;
  CHECK(accounts_.size() + spare_.size() == count_max_);
  uint32_t owned = 0;
  for (const auto& [owner, account] : accounts_) {
    uint32_t own = 0;
    uint64_t use = 0;
    for (uint32_t page = account.oldest; page != kNone; page = hints_[page].newer) {
      CHECK(Has(PageId{page}) && hints_[page].given.owner == owner) << "page " << page;
      CHECK(hints_[page].use > use) << "the list of an owner is not by use";
      use = hints_[page].use;
      CHECK(own++ < account.count) << "the list of an owner is longer than its count";
    }
    CHECK(own == account.count && own > 0 && own <= owner_max_) << own << " of " << owner_max_;
    owned += own;
  }
  CHECK(owned == count()) << owned << " of " << count();
}

}  // namespace plumb::kvcache
