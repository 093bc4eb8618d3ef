// api/testing/fake_answer.h
// Tests only. What the fake generator is to answer: tokens as a script says, or where an embedding
// is asked for, numbers that tell which prompt they are of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/testing/fake_cache.h"
#include "base/check.h"
#include "base/status.h"
#include "base/unit_vector.h"
#include "engine/request.h"
#include "text/detokenizer.h"
#include "text/grammar.h"
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
             const engine::Request& request)
      : answer(std::move(fake_answer)),
        stop_strings(request.sampling.stop),
        detokenizer(tokenizer),
        matcher(request.sampling.stop),
        grammar(request.grammar ? request.grammar->NewState() : nullptr),
        mask((tokenizer.size() + 31) / 32) {}
  FakeAnswer answer;
  std::vector<std::string> stop_strings;
  FakeCache::Use cache_use = {};
  text::Detokenizer detokenizer;
  text::StopMatcher matcher;
  std::unique_ptr<text::GrammarState> grammar;
  std::vector<uint32_t> mask;
  size_t scripted = 0;  // of answer.tokens, how many it has had its way with or been kept from
  size_t events = 0;
  uint32_t sent = 0;
  bool finished = false;
};

// The next token that the script wants, or where the grammar forbids it, the first one that it
// allows: what a model does whose logits are the script. One that wants to end goes on wanting.
inline base::TokenId NextToken(FakeSample& sample, const text::Tokenizer& tokenizer) {
  const base::TokenId wanted = sample.answer.tokens[sample.scripted];
  const auto allows = [&](uint32_t token) { return sample.mask[token / 32] >> (token % 32) & 1; };
  ++sample.scripted;
  if (sample.grammar == nullptr) return wanted;
  CHECK(sample.grammar->FillMask(sample.mask).ok()) << "grammars of tests are small";
  uint32_t token = base::Index(wanted);
  if (!allows(token)) {
    const auto ends = tokenizer.end_tokens();
    if (std::find(ends.begin(), ends.end(), wanted) != ends.end()) --sample.scripted;
    for (token = 0; !allows(token);) ++token;
  }
  CHECK(sample.grammar->Accept(base::TokenId{token}).ok()) << "the mask allows it";
  return base::TokenId{token};
}

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
