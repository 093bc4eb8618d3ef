// api/testing/fake_cache.h
// Tests only. What the fake generator tells of its cache: it keeps what requests have hints for, to
// the token, for ever, and nothing else; and finds it again in requests of the same isolation key.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/request.h"

namespace plumb::api::testing {

class FakeCache {
 public:
  // As of engine::Finish.
  struct Use {
    uint32_t cached_tokens = 0;
    std::array<uint32_t, engine::kHintsMax> stored_tokens{};
  };

  Use Take(const engine::Request& request) {
    Use use;
    for (const Kept& kept : kept_) {
      if (kept.isolation != request.isolation) continue;
      const auto end = std::ranges::mismatch(request.prompt, kept.tokens).in1;
      const auto common = static_cast<uint32_t>(end - request.prompt.begin());
      use.cached_tokens = std::max(use.cached_tokens, common);
    }
    const auto length = static_cast<uint32_t>(request.prompt.size());
    use.cached_tokens = std::min(use.cached_tokens, length - 1);
    for (uint32_t token = use.cached_tokens; token < length; ++token) {
      const engine::RetentionHint* longest = nullptr;
      for (const engine::RetentionHint& hint : request.hints) {
        if (token >= hint.tokens) continue;
        if (longest == nullptr || hint.time > longest->time) longest = &hint;
      }
      if (longest != nullptr) ++use.stored_tokens[longest - request.hints.data()];
    }
    for (const engine::RetentionHint& hint : request.hints) {
      const auto begin = request.prompt.begin();
      kept_.push_back({request.isolation, {begin, begin + hint.tokens}});
    }
    return use;
  }

 private:
  struct Kept {
    base::Hash256 isolation;
    std::vector<base::TokenId> tokens;
  };
  std::vector<Kept> kept_;
};

}  // namespace plumb::api::testing
