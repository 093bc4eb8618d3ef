// kvcache/page_chain.cc
// What is hashed, in which order; documented in docs/prefix_cache.md, which other implementations
// would follow. Numbers are little-endian, as everywhere here.
#include "kvcache/page_chain.h"

namespace plumb::kvcache {
namespace {

// Part of every name: a change of what is hashed changes it.
constexpr std::string_view kModelTag = "plumb.model.1";
constexpr std::string_view kRootTag = "plumb.page_chain.1";

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <typename T>
std::span<const std::byte> Bytes(const T& number) {
  return std::as_bytes(std::span(&number, 1));
}

}  // namespace

base::Hash256 ModelIdentity(std::string_view content, std::string_view numerics_id) {
  const uint64_t content_size = content.size(), numerics_size = numerics_id.size();
  return base::Blake3({Bytes(kModelTag), Bytes(content_size), Bytes(content), Bytes(numerics_size),
                       Bytes(numerics_id)});
}

base::Hash256 ChainRoot(const base::Hash256& isolation, const base::Hash256& model,
                        const PageLayout& layout) {
  const uint64_t page_tokens = layout.page_tokens;
  return base::Blake3({Bytes(kRootTag), isolation.view(), model.view(), Bytes(page_tokens),
                       Bytes(layout.page_bytes), Bytes(layout.checkpoint_bytes)});
}

base::Hash256 ChainNext(const base::Hash256& chain, std::span<const base::TokenId> tokens) {
  return base::Blake3({chain.view(), std::as_bytes(tokens)});
}

}  // namespace plumb::kvcache
