// api/testing/fake_answer.h
// Tests only. What the fake generator is to answer: tokens as a script says, or where an embedding
// is asked for, numbers that tell which prompt they are of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "api/testing/fake_cache.h"
#include "base/check.h"
#include "base/status.h"
#include "base/unit_vector.h"
#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/stop_matcher.h"
#include "text/tokenizer.h"

namespace plumb::api::testing {

// What one sample is to answer.
struct FakeAnswer {
  // Past the last one the sample waits until it is cancelled. Where an embedding is asked for, that
  // comes instead of them all.
  std::vector<base::TokenId> tokens;
  uint32_t chunk_tokens = 1;          // per event; 0 = all in one
  base::Status failure;               // not ok: instead of the token after the last
  std::vector<uint32_t> chunks = {};  // of the first events, instead of chunk_tokens
};
constexpr uint32_t kFakeDimensions = 4;  // numbers of an embedding
using FakeScript = std::function<FakeAnswer(const engine::Request& request, uint32_t sample_index)>;

// The direction, at length 1, of: how many tokens, a quarter; the first one, -1/256; the last one,
// 1/256; and 1 where the last row alone counts.
inline std::vector<float> FakeEmbedding(const engine::Request& request) {
  const auto id = [](base::TokenId token) { return static_cast<double>(base::Index(token)); };
  const double last = request.pooling == engine::Pooling::kMean ? 0 : 1;
  const double values[] = {static_cast<double>(request.prompt.size()) / 4,
                           id(request.prompt.front()) / -256, id(request.prompt.back()) / 256,
                           last};
  std::vector<float> embedding;
  CHECK(base::AppendUnitVector(values, embedding)) << "a prompt has tokens";
  return embedding;
}

// A sample on its way.
struct FakeSample {
  FakeSample(FakeAnswer fake_answer, const text::Tokenizer& tokenizer,
             std::vector<std::string> stops)
      : answer(std::move(fake_answer)),
        stop_strings(stops),
        detokenizer(tokenizer),
        matcher(std::move(stops)) {}
  FakeAnswer answer;
  std::vector<std::string> stop_strings;
  FakeCache::Use cache_use = {};
  text::Detokenizer detokenizer;
  text::StopMatcher matcher;
  size_t events = 0;
  uint32_t sent = 0;
  bool finished = false;
};

// Ends it: what is held back of its text, and why. One that is given up before its first token has
// run on no weights.
inline void FinishSample(const engine::Request& request, FakeSample& sample,
                         engine::FinishReason reason, engine::TokenEvent& event) {
  const auto output = sample.matcher.Push(sample.detokenizer.Finish());
  event.text += output.text + sample.matcher.Finish();
  const bool good =
      reason == engine::FinishReason::kStop || reason == engine::FinishReason::kLength;
  event.finish = engine::Finish{
      .reason = reason,
      .status = {},
      .stop = {},
      .prompt_tokens = static_cast<uint32_t>(request.prompt.size()),
      .completion_tokens = sample.sent,
      .cached_tokens = sample.cache_use.cached_tokens,
      .stored_tokens = sample.cache_use.stored_tokens,
      .weights_version = good || sample.sent > 0 ? 1u : 0u,
  };
}

}  // namespace plumb::api::testing
