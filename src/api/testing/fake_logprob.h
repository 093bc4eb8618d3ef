// api/testing/fake_logprob.h
// Tests only. What the fake generator says of a token's probability: any function of the token will
// do. The alternatives are always the first ids.
#pragma once

#include <cstdint>

#include "engine/request.h"

namespace plumb::api::testing {

inline engine::TokenLogprob FakeLogprob(base::TokenId token, uint32_t top_count) {
  engine::TokenLogprob logprob{.token = token,
                               .logprob = -0.125f * static_cast<float>(1 + base::Index(token) % 7),
                               .top = {}};
  for (uint32_t i = 0; i < top_count; ++i)
    logprob.top.push_back({base::TokenId{i}, -static_cast<float>(i) - 0.5f});
  return logprob;
}

}  // namespace plumb::api::testing
