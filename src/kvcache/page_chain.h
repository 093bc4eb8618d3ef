// kvcache/page_chain.h
// The name of a page: a chain of BLAKE3-256 over everything that its bytes depend on (DESIGN, "One
// identity"). The root covers whose page it is, which model and arithmetic wrote it, and its
// format; each link, the 128 tokens of a page. So two pages with one name hold the same bytes, and
// two tenants never meet under one name.
#pragma once

#include <span>
#include <string_view>

#include "base/hash.h"
#include "base/token_id.h"
#include "kvcache/page_pool.h"

namespace plumb::kvcache {

// What wrote the pages: `content` names every byte of the weights, `numerics_id` the arithmetic and
// the format of keys and values.
base::Hash256 ModelIdentity(std::string_view content, std::string_view numerics_id);

// The chain before its first page. `isolation`: only requests with an equal one share pages.
base::Hash256 ChainRoot(const base::Hash256& isolation, const base::Hash256& model,
                        const PageLayout& layout);

// The chain after a page of `tokens`; all of them, in order.
base::Hash256 ChainNext(const base::Hash256& chain, std::span<const base::TokenId> tokens);

}  // namespace plumb::kvcache
