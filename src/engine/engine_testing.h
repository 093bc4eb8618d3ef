// engine/engine_testing.h
// What the engine's tests share: a byte tokenizer, a sink that collects and checks the order of
// events, and the oracle: a request's answer computed alone, without engine, pages, batches or fast
// sampler.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"
#include "engine/hash_model.h"
#include "engine/sampler_reference.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace plumb::engine {

constexpr uint32_t kEndToken = 256;
constexpr uint32_t kTokenizerSize = 260;
constexpr uint32_t kVocabularySize = 300;  // the rest is padding

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

// One sample's answer, put together.
struct Answer {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<TokenLogprob> logprobs;
  std::optional<Finish> finish;
};

// Thread: any. Fails the test when a sample goes on after its end.
class Collector final : public EventSink {
 public:
  explicit Collector(const Request& request) : id_(request.id), answers_(request.samples) {}

  void OnEvent(TokenEvent event) override {
    std::lock_guard lock(mutex_);
    EXPECT_EQ(event.request, id_);
    ASSERT_LT(event.sample_index, answers_.size());
    Answer& answer = answers_[event.sample_index];
    EXPECT_FALSE(answer.finish) << "an event after the end";
    answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
    answer.text += event.text;
    for (auto& logprob : event.logprobs) answer.logprobs.push_back(std::move(logprob));
    if (event.finish) {
      answer.finish = std::move(event.finish);
      ++ended_;
    }
    if (on_event) on_event();
    changed_.notify_all();
  }

  void WaitForEnd() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ == answers_.size(); });
  }
  bool Ended() const {
    std::lock_guard lock(mutex_);
    return ended_ == answers_.size();
  }
  size_t TokensSeen() const {
    std::lock_guard lock(mutex_);
    size_t tokens = 0;
    for (const Answer& answer : answers_) tokens += answer.tokens.size();
    return tokens;
  }
  // Once it has ended.
  const Answer& answer(uint32_t sample = 0) const { return answers_[sample]; }

  std::function<void()> on_event;

 private:
  const RequestId id_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Answer> answers_;
  size_t ended_ = 0;
};

class Oracle {
 public:
  Oracle(const HashModel& model, const text::Tokenizer& tokenizer)
      : model_(model), tokenizer_(tokenizer) {}

  Answer Run(const Request& request, uint32_t sample) const {
    const SamplingParams& params = request.sampling;
    Answer answer;
    std::vector<TokenId> all = request.prompt;
    Finish finish{.reason = FinishReason::kLength};
    bool ended = false;
    while (!ended && answer.tokens.size() < params.tokens_max) {
      const auto logits = model_.LogitsOf(all);
      const NoiseKey key{params.seed, sample, static_cast<uint32_t>(all.size())};
      const TokenId token{
          ReferenceSample(logits, kTokenizerSize, params, request.prompt, answer.tokens, key)};
      if (params.logprobs) answer.logprobs.push_back(Logprob(logits, token, params.top_logprobs));
      all.push_back(token);
      answer.tokens.push_back(token);
      const auto& stops = params.stop_tokens;
      ended = (token == TokenId{kEndToken} && !params.ignore_end) ||
              std::find(stops.begin(), stops.end(), token) != stops.end();
      if (ended) finish.reason = FinishReason::kStop;
      // The ending token has no text of its own.
      answer.text = Text(answer.tokens.size() - ended, answer.tokens,
                         ended || answer.tokens.size() == params.tokens_max);
      if (const auto stop = CutAtStop(answer.text, params.stop)) {
        ended = true;
        finish.reason = FinishReason::kStop;
        finish.stop = params.stop[*stop];
      }
    }
    finish.prompt_tokens = static_cast<uint32_t>(request.prompt.size());
    finish.completion_tokens = static_cast<uint32_t>(answer.tokens.size());
    answer.finish = finish;
    return answer;
  }

 private:
  std::string Text(size_t count, std::span<const TokenId> tokens, bool whole) const {
    text::Detokenizer detokenizer(tokenizer_);
    std::string text;
    for (const TokenId token : tokens.first(count)) text += detokenizer.Push(token);
    if (whole) text += detokenizer.Finish();
    return text;
  }

  static std::optional<size_t> CutAtStop(std::string& text, const std::vector<std::string>& stops) {
    std::optional<size_t> found;
    size_t place = std::string::npos;
    for (size_t i = 0; i < stops.size(); ++i) {
      const size_t at = text.find(stops[i]);
      if (at < place) {
        place = at;
        found = i;
      }
    }
    if (found) text.resize(place);
    return found;
  }

  static TokenLogprob Logprob(std::span<const float> logits, TokenId token, uint32_t top_count) {
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    TokenLogprob result{
        token, static_cast<float>(logits[base::Index(token)] - std::log(total)), {}};
    const auto order = ReferenceOrder(logits, kTokenizerSize, {}, {}, {});
    for (uint32_t i = 0; i < top_count; ++i) {
      result.top.push_back(
          {TokenId{order[i].token}, static_cast<float>(order[i].logit - std::log(total))});
    }
    return result;
  }

  const HashModel& model_;
  const text::Tokenizer& tokenizer_;
};

inline void ExpectSameLogprobs(const Answer& actual, const Answer& expected) {
  ASSERT_EQ(actual.logprobs.size(), expected.logprobs.size());
  for (size_t i = 0; i < actual.logprobs.size(); ++i) {
    const TokenLogprob &a = actual.logprobs[i], &b = expected.logprobs[i];
    EXPECT_EQ(a.token, b.token);
    EXPECT_NEAR(a.logprob, b.logprob, 1e-5);
    ASSERT_EQ(a.top.size(), b.top.size());
    for (size_t k = 0; k < a.top.size(); ++k) {
      EXPECT_EQ(a.top[k].token, b.top[k].token);
      EXPECT_NEAR(a.top[k].logprob, b.top[k].logprob, 1e-5);
    }
  }
}

inline void ExpectSameAnswer(const Answer& actual, const Answer& expected) {
  EXPECT_EQ(actual.tokens, expected.tokens);
  EXPECT_EQ(actual.text, expected.text);
  ASSERT_TRUE(actual.finish);
  EXPECT_EQ(actual.finish->reason, expected.finish->reason);
  EXPECT_EQ(actual.finish->stop, expected.finish->stop);
  EXPECT_TRUE(actual.finish->status.ok());
  EXPECT_EQ(actual.finish->prompt_tokens, expected.finish->prompt_tokens);
  EXPECT_EQ(actual.finish->completion_tokens, expected.finish->completion_tokens);
  ExpectSameLogprobs(actual, expected);
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

}  // namespace plumb::engine
