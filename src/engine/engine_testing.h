// engine/engine_testing.h
// What the engine's tests share: a byte tokenizer, a sink that collects and checks the order of
// events, and random requests. Read next: engine/oracle_testing.h.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/random.h"
#include "engine/engine.h"
#include "engine/grammar_testing.h"
#include "engine/hash_model.h"
#include "engine/oracle_testing.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// 256 bytes as GPT-2 spells them, an end token, and three pieces of more than one character.
inline std::unique_ptr<text::Tokenizer> MakeTokenizer() {
  text::VocabularySpec spec;
  spec.model = "gpt2";
  spec.pre = "gpt-2";
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool shown = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const uint32_t code = shown ? byte : next++;
    std::string token;
    if (code < 0x80) {
      token += static_cast<char>(code);
    } else {
      token += static_cast<char>(0xC0 | code >> 6);
      token += static_cast<char>(0x80 | (code & 0x3F));
    }
    spec.tokens.push_back(token);
    spec.kinds.push_back(text::TokenKind::kNormal);
  }
  spec.tokens.push_back("<|endoftext|>");
  spec.kinds.push_back(text::TokenKind::kControl);
  for (const char* piece : {"ab", "cd", "abc"}) {
    spec.tokens.push_back(piece);
    spec.kinds.push_back(text::TokenKind::kNormal);
  }
  spec.merges = {"a b", "c d", "ab c"};
  spec.eos = kEndToken;
  spec.add_bos = false;
  auto tokenizer = text::Tokenizer::FromVocabulary(spec);
  CHECK(tokenizer.ok()) << tokenizer.status().ToString();
  CHECK((*tokenizer)->size() == kTokenizerSize);
  return std::move(tokenizer).value();
}

// So many pages, whatever states and checkpoints take besides; of the latter plenty unless it says
// how many.
inline void GivePages(EngineOptions& options, const model::ModelInfo& info, uint32_t pages) {
  if (info.checkpoint_bytes > 0 && options.checkpoints_max == 0) options.checkpoints_max = pages;
  options.kv_budget_bytes = MemoryPlan::BudgetFor(info, options, pages);
}

// A number that only grows, and whoever waits for it. Thread: any.
class Milestones {
 public:
  void Pass() {
    base::MutexLock lock(mutex_);
    ++passed_;
    changed_.NotifyAll();
  }
  void AwaitAtLeast(uint64_t count) {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return passed_ >= count; });
  }
  uint64_t passed() {
    base::MutexLock lock(mutex_);
    return passed_;
  }

 private:
  base::Mutex mutex_;
  base::Condition changed_;
  uint64_t passed_ GUARDED_BY(mutex_) = 0;
};

// Thread: any. Fails the test when a sample goes on after its end.
class Collector final : public EventSink {
 public:
  explicit Collector(const Request& request) : id_(request.id), answers_(request.samples) {}

  void OnEvent(TokenEvent event) override {
    base::MutexLock lock(mutex_);
    EXPECT_EQ(event.request, id_);
    ASSERT_LT(event.sample_index, answers_.size());
    Answer& answer = answers_[event.sample_index];
    EXPECT_FALSE(answer.finish) << "an event after the end";
    answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
    answer.text += event.text;
    for (auto& logprob : event.logprobs) answer.logprobs.push_back(std::move(logprob));
    EXPECT_TRUE(event.prompt_logprobs.empty() || answer.tokens.size() == event.tokens.size())
        << "they come before the first token";
    for (auto& logprob : event.prompt_logprobs) {
      answer.prompt_logprobs.push_back(std::move(logprob));
    }
    EXPECT_TRUE(event.embedding.empty() || event.finish) << "it comes with the end";
    answer.embedding = std::move(event.embedding);
    if (event.finish) {
      answer.finish = std::move(event.finish);
      ++ended_;
    }
    if (on_event) on_event();
    changed_.NotifyAll();
  }

  void WaitForEnd() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return ended_ == answers_.size(); });
  }
  bool Ended() const {
    base::MutexLock lock(mutex_);
    return ended_ == answers_.size();
  }
  size_t TokensSeen() const {
    base::MutexLock lock(mutex_);
    size_t tokens = 0;
    for (const Answer& answer : answers_) tokens += answer.tokens.size();
    return tokens;
  }
  RequestId id() const { return id_; }
  // Once it has ended.
  const Answer& answer(uint32_t sample = 0) const {
    base::MutexLock lock(mutex_);
    return answers_[sample];
  }

  std::function<void()> on_event;

 private:
  const RequestId id_;
  mutable base::Mutex mutex_;
  base::Condition changed_;
  std::vector<Answer> answers_ GUARDED_BY(mutex_);
  size_t ended_ GUARDED_BY(mutex_) = 0;
};

inline std::vector<TokenId> RandomTokens(uint64_t seed, size_t count) {
  base::Rng rng(seed);
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    tokens.push_back(TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))});
  }
  return tokens;
}

// A request of `prompt_tokens` + `tokens_max` tokens with parameters of every kind.
inline Request RandomRequest(base::Rng& rng, uint64_t id, uint32_t prompt_tokens,
                             uint32_t tokens_max) {
  Request request{.id = RequestId{id}};
  for (uint32_t i = 0; i < prompt_tokens; ++i) {
    request.prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(kVocabularySize))});
  }
  SamplingParams& params = request.sampling;
  params.temperature = rng.Below(3) == 0 ? 0.0f : 0.8f;
  params.seed = rng.Next();
  params.tokens_max = tokens_max;
  params.ignore_end = rng.Below(2) == 0;
  if (rng.Below(3) == 0) params.top_p = 0.9f;
  if (rng.Below(3) == 0) params.top_k = 20;
  if (rng.Below(4) == 0) params.min_p = 0.02f;
  if (rng.Below(3) == 0) params.presence_penalty = 1.0f;
  if (rng.Below(3) == 0) params.frequency_penalty = 0.7f;
  if (rng.Below(3) == 0) params.repetition_penalty = 1.2f;
  if (rng.Below(4) == 0) params.logit_bias = {{TokenId{'a'}, 3.0f}, {TokenId{'b'}, 3.0f}};
  if (rng.Below(4) == 0) params.stop_tokens = {TokenId{'~'}};
  const auto letter = [&] { return static_cast<char>('a' + rng.Below(6)); };
  for (uint64_t stops = rng.Below(4); stops > 0; --stops) {
    std::string stop(1, letter());
    for (uint64_t length = rng.Below(3); length > 0; --length) stop += letter();
    params.stop.push_back(stop);
  }
  params.logprobs = rng.Below(3) == 0;
  if (params.logprobs) params.top_logprobs = static_cast<uint32_t>(rng.Below(6));
  request.samples = rng.Below(6) == 0 ? 3 : 1;
  return request;
}

// Hints of any kind, a function of the request alone.
inline void AddHints(Request& request) {
  base::Rng rng(request.sampling.seed);
  for (uint64_t count = rng.Below(kHintsMax + 1); count > 0; --count) {
    request.hints.push_back(
        {.tokens = static_cast<uint32_t>(rng.Below(request.prompt.size() + 1)),
         .time = base::Milliseconds(static_cast<int64_t>(1 + rng.Below(2000)))});
  }
}

// What the engine has beyond plain answers, at random: embeddings, grammar, prompt
// log-probabilities, priority, tenant, speculation, hints. Such answers still are those of the
// oracle.
inline void AddFeatures(base::Rng& rng, Request& request) {
  AddHints(request);
  request.priority = static_cast<Priority>(rng.Below(3));
  request.tenant = rng.Below(3);
  request.isolation.bytes[0] = static_cast<uint8_t>(request.tenant);
  request.speculation = static_cast<Speculation>(rng.Below(5));
  if (request.speculation == Speculation::kDraft) request.speculation = Speculation::kServer;
  if (rng.Below(5) == 0) {
    request.pooling = rng.Below(3) == 0 ? Pooling::kLast : Pooling::kMean;
    request.samples = 1;
    request.sampling = {.tokens_max = 0};
    return;
  }
  request.prompt_logprobs = rng.Below(5) == 0;
  if (rng.Below(3) > 0) return;
  FakeGrammarOptions grammar{.seed = rng.Next(), .end_token = kEndToken};
  if (rng.Below(2) == 0) grammar.tokens_max = static_cast<uint32_t>(1 + rng.Below(40));
  if (rng.Below(8) == 0) grammar.fails_after = static_cast<uint32_t>(rng.Below(30));
  request.grammar = std::make_shared<FakeGrammar>(grammar);
  request.sampling.ignore_end = false;
}

}  // namespace plumb::engine
