// kvcache/page_chain_test.cc
// A page's name changes with everything that its bytes depend on, and with nothing else.
#include "kvcache/page_chain.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace plumb::kvcache {
namespace {

using base::Hash256;
using base::TokenId;

constexpr PageLayout kLayout{.page_tokens = 128, .page_bytes = 5000};

std::vector<TokenId> Page(uint32_t first) {
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < 128; ++i) tokens.push_back(TokenId{first + i});
  return tokens;
}

std::string Hex(const Hash256& hash) {
  std::string text;
  for (const uint8_t byte : hash.bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(PageChain, EveryPartOfTheRootChangesIt) {
  const Hash256 none, model = ModelIdentity("weights", "arithmetic");
  Hash256 other;
  other.bytes[31] = 1;
  std::set<Hash256> roots;
  roots.insert(ChainRoot(none, model, kLayout));
  roots.insert(ChainRoot(other, model, kLayout));
  roots.insert(ChainRoot(none, ModelIdentity("weightz", "arithmetic"), kLayout));
  roots.insert(ChainRoot(none, ModelIdentity("weights", "arithmetic 2"), kLayout));
  // The boundary between the two counts, not only their characters.
  roots.insert(ChainRoot(none, ModelIdentity("weightsa", "rithmetic"), kLayout));
  roots.insert(ChainRoot(none, model, {.page_tokens = 64, .page_bytes = 5000}));
  roots.insert(ChainRoot(none, model, {.page_tokens = 128, .page_bytes = 5001}));
  roots.insert(
      ChainRoot(none, model, {.page_tokens = 128, .page_bytes = 5000, .checkpoint_bytes = 1}));
  EXPECT_EQ(roots.size(), 8u);
  EXPECT_EQ(ChainRoot(none, model, kLayout), ChainRoot(none, model, kLayout));
}

TEST(PageChain, EveryTokenAndTheOrderOfPagesChangeIt) {
  const Hash256 root = ChainRoot({}, ModelIdentity("w", "n"), kLayout);
  const std::vector<TokenId> first = Page(0), second = Page(7);
  std::set<Hash256> names{ChainNext(root, first)};
  for (uint32_t i = 0; i < 128; ++i) {
    std::vector<TokenId> changed = first;
    changed[i] = TokenId{base::Index(changed[i]) ^ 0x01000000};
    names.insert(ChainNext(root, changed));
  }
  EXPECT_EQ(names.size(), 129u);
  EXPECT_NE(ChainNext(ChainNext(root, first), second), ChainNext(ChainNext(root, second), first));
}

// The names are a format that other processes and stores will share: they must not drift.
// Recomputed with another BLAKE3 implementation from the description in docs/prefix_cache.md.
TEST(PageChain, TheFormatStaysAsItIs) {
  const Hash256 root = ChainRoot({}, ModelIdentity("w", "n"), kLayout);
  const Hash256 name = ChainNext(root, Page(0));
  EXPECT_EQ(Hex(root), "8c62f9d51b04b2f1aa19cdefd7c63079873f7e3cb223969c535e428f1f4a0ae9");
  EXPECT_EQ(Hex(name), "ace855fc18e58af511904d08b6b23edd6945e62f9371248474500346e5f96d6e");
}

}  // namespace
}  // namespace plumb::kvcache
