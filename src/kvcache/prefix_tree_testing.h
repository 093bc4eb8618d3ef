// kvcache/prefix_tree_testing.h
// Tests only. A small tree over texts: four letters are a page, a tenant is a root of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/token_id.h"
#include "kvcache/page_chain.h"
#include "kvcache/page_pool.h"
#include "kvcache/prefix_tree.h"

namespace plumb::kvcache {

constexpr uint32_t kPageTokens = 4;
constexpr PageLayout kLayout{.page_tokens = kPageTokens, .page_bytes = 64};

inline base::Hash256 Root(uint8_t tenant) {
  base::Hash256 root;
  root.bytes[0] = tenant;
  return root;
}

inline std::vector<base::TokenId> Tokens(const std::string& text) {
  std::vector<base::TokenId> tokens;
  for (const char letter : text) tokens.push_back(base::TokenId{static_cast<uint8_t>(letter)});
  return tokens;
}

class PrefixTreeTest : public testing::Test {
 protected:
  void Make(uint32_t pages) {
    pool_ = PagePool::Create(kLayout, pages * PagePool::kAlignment).value();
    tree_ = std::make_unique<PrefixTree>(*pool_);
  }

  // A user of the chain of pages of `text`, as the engine is: whole pages sealed, the rest a page
  // of its own.
  struct User {
    std::vector<PageId> pages;
    std::string text;
    base::Hash256 root;
  };
  User Use(const std::string& text, uint8_t tenant = 0) {
    User user{.pages = {}, .text = text, .root = Root(tenant)};
    base::Hash256 chain = user.root;
    for (size_t begin = 0; begin < text.size(); begin += kPageTokens) {
      const std::vector<base::TokenId> tokens = Tokens(text.substr(begin, kPageTokens));
      const base::Hash256 name = ChainNext(chain, tokens);
      if (pool_->free() == 0) tree_->Evict(1);
      PageId page = pool_->Allocate().value();
      if (tokens.size() == kPageTokens) {
        const auto parent = user.pages.empty() ? std::nullopt : std::optional(user.pages.back());
        page = tree_->Seal(page, {parent, chain, tokens}, name);
      }
      user.pages.push_back(page);
      chain = name;
    }
    return user;
  }
  void Leave(User& user, bool tail = true) {
    base::Hash256 chain = user.root;
    std::vector<base::Hash256> chains;
    for (size_t begin = 0; begin < user.text.size(); begin += kPageTokens) {
      chains.push_back(chain);
      chain = ChainNext(chain, Tokens(user.text.substr(begin, kPageTokens)));
    }
    for (; !user.pages.empty(); user.pages.pop_back()) {
      const size_t place = user.pages.size() - 1;
      const std::vector<base::TokenId> tokens =
          Tokens(user.text.substr(place * kPageTokens, kPageTokens));
      if (tail && tokens.size() < kPageTokens) {
        const auto parent = place == 0 ? std::nullopt : std::optional(user.pages[place - 1]);
        tree_->LeaveTail(user.pages.back(), {parent, chains[place], tokens});
      } else {
        tree_->Release(user.pages.back());
      }
    }
    tree_->CheckInvariants();
  }
  void Once(const std::string& text, uint8_t tenant = 0) {
    User user = Use(text, tenant);
    Leave(user);
  }
  bool Holds(const std::string& text, uint8_t tenant = 0) {
    base::Hash256 chain = Root(tenant);
    for (size_t begin = 0; begin < text.size(); begin += kPageTokens) {
      chain = ChainNext(chain, Tokens(text.substr(begin, kPageTokens)));
    }
    return tree_->Find(chain).has_value();
  }
  uint32_t Common(const std::string& text, uint8_t tenant = 0) {
    return tree_->FindPrefix(Root(tenant), Tokens(text)).tokens;
  }

  std::unique_ptr<PagePool> pool_;
  std::unique_ptr<PrefixTree> tree_;
};

}  // namespace plumb::kvcache
