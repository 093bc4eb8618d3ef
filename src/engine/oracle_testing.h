// engine/oracle_testing.h
// For tests: a request's answer computed alone, without engine, pages, batches or the fast sampler,
// and the comparison of an answer with it. Read next: engine/sampler_reference.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/hash_model.h"
#include "engine/request.h"
#include "engine/sampler_reference.h"
#include "text/detokenizer.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace plumb::engine {

// Of the tokenizer that engine_testing.h makes, and the model that goes with it.
constexpr uint32_t kEndToken = 256;
constexpr uint32_t kTokenizerSize = 260;
constexpr uint32_t kVocabularySize = 300;  // the rest is padding

// One sample's answer, put together.
struct Answer {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<TokenLogprob> logprobs;
  std::vector<TokenLogprob> prompt_logprobs;
  std::vector<float> embedding;
  std::optional<Finish> finish;
};

class Oracle {
 public:
  Oracle(const HashModel& model, const text::Tokenizer& tokenizer)
      : model_(model), tokenizer_(tokenizer) {}

  Answer Run(const Request& request, uint32_t sample) const {
    if (request.pooling != Pooling::kNone) return Embed(request);
    const SamplingParams& params = request.sampling;
    Answer answer;
    std::vector<TokenId> all = request.prompt;
    Finish finish{.reason = FinishReason::kLength};
    bool ended = false;
    if (request.prompt_logprobs && sample == 0) answer.prompt_logprobs = DescribePrompt(request);
    const auto grammar = request.grammar != nullptr ? request.grammar->NewState() : nullptr;
    std::vector<uint32_t> mask(grammar != nullptr ? (kVocabularySize + 31) / 32 : 0);
    while (!ended && answer.tokens.size() < params.tokens_max) {
      const auto logits = model_.LogitsOf(all, model_.ReplayFrom(request.prompt.size()));
      const NoiseKey key{params.seed, sample, static_cast<uint32_t>(all.size())};
      if (grammar != nullptr) {
        if (finish.status = grammar->FillMask(mask); !finish.status.ok()) {
          finish.reason = FinishReason::kError;
          answer.text = Text(answer.tokens.size(), answer.tokens, true);
          break;
        }
      }
      const TokenId token{ReferenceSample(logits, kTokenizerSize, params, request.prompt,
                                          answer.tokens, key, mask, never())};
      if (params.logprobs) answer.logprobs.push_back(Logprob(logits, token, params.top_logprobs));
      all.push_back(token);
      answer.tokens.push_back(token);
      const auto& stops = params.stop_tokens;
      ended = (token == TokenId{kEndToken} && !params.ignore_end) ||
              std::find(stops.begin(), stops.end(), token) != stops.end();
      // The ending token has no text of its own.
      const size_t with_text = answer.tokens.size() - ended;
      if (!ended && grammar != nullptr) {
        CHECK(grammar->Accept(token).ok());
        ended = grammar->Complete();
      }
      if (ended) finish.reason = FinishReason::kStop;
      answer.text =
          Text(with_text, answer.tokens, ended || answer.tokens.size() == params.tokens_max);
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
  std::span<const TokenId> never() const { return model_.info().never_sampled; }

  // By the definition (engine/pooling.h), to the bit.
  Answer Embed(const Request& request) const {
    const std::span<const TokenId> prompt(request.prompt);
    const bool mean = request.pooling == Pooling::kMean;
    std::vector<double> sums(HashModel::kHiddenWidth);
    for (size_t rows = mean ? 1 : prompt.size(); rows <= prompt.size(); ++rows) {
      const uint32_t replay_from = mean ? 0 : model_.ReplayFrom(prompt.size());
      const auto hidden = model_.HiddenOf(prompt.first(rows), replay_from);
      for (size_t i = 0; i < sums.size(); ++i) {
        sums[i] += static_cast<double>(hidden[i]);
      }
    }
    double squares = 0;
    for (const double sum : sums) squares += sum * sum;
    Answer answer;
    for (const double sum : sums) {
      answer.embedding.push_back(static_cast<float>(sum / std::sqrt(squares)));
    }
    answer.finish = Finish{.reason = FinishReason::kStop,
                           .prompt_tokens = static_cast<uint32_t>(prompt.size())};
    return answer;
  }

  std::vector<TokenLogprob> DescribePrompt(const Request& request) const {
    std::vector<TokenLogprob> result;
    for (size_t i = 1; i < request.prompt.size(); ++i) {
      const auto logits = model_.LogitsOf(std::span(request.prompt).first(i));
      result.push_back(Logprob(logits, request.prompt[i], request.sampling.top_logprobs));
    }
    return result;
  }

  std::string Text(size_t count, std::span<const TokenId> tokens, bool whole) const {
    text::Detokenizer detokenizer(tokenizer_);
    std::string text;
    for (const TokenId token : tokens.first(count)) text += detokenizer.Push(token);
    if (whole) text += detokenizer.Finish();
    return text;
  }

  static std::optional<size_t> CutAtStop(std::string& text, const std::vector<std::string>& stops) {
    // As text::StopMatcher: the one that is complete first, of these the one that begins first.
    std::optional<size_t> found;
    size_t place = 0, end = 0;
    for (size_t i = 0; i < stops.size(); ++i) {
      const size_t at = text.find(stops[i]);
      if (at == std::string::npos) continue;
      if (found && std::pair(at + stops[i].size(), at) >= std::pair(end, place)) continue;
      place = at;
      end = at + stops[i].size();
      found = i;
    }
    if (found) text.resize(place);
    return found;
  }

  TokenLogprob Logprob(std::span<const float> logits, TokenId token, uint32_t top_count) const {
    double total = 0;
    for (const float logit : logits) total += std::exp(double{logit});
    TokenLogprob result{
        token, static_cast<float>(logits[base::Index(token)] - std::log(total)), {}};
    const auto order = ReferenceOrder(logits, kTokenizerSize, {}, {}, {}, {}, never());
    for (uint32_t i = 0; i < top_count; ++i) {
      result.top.push_back(
          {TokenId{order[i].token}, static_cast<float>(order[i].logit - std::log(total))});
    }
    return result;
  }

  const HashModel& model_;
  const text::Tokenizer& tokenizer_;
};

inline void ExpectSameLogprobs(const std::vector<TokenLogprob>& actual,
                               const std::vector<TokenLogprob>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const TokenLogprob &a = actual[i], &b = expected[i];
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
  EXPECT_EQ(actual.finish->status.code(), expected.finish->status.code());
  EXPECT_EQ(actual.finish->prompt_tokens, expected.finish->prompt_tokens);
  EXPECT_EQ(actual.finish->completion_tokens, expected.finish->completion_tokens);
  ExpectSameLogprobs(actual.logprobs, expected.logprobs);
  ExpectSameLogprobs(actual.prompt_logprobs, expected.prompt_logprobs);
  EXPECT_EQ(actual.embedding, expected.embedding);
}

}  // namespace plumb::engine
