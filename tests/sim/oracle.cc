// tests/sim/oracle.cc
// Behind tests/sim/oracle.h. Penalties ask only whether a token stands in the prompt, so each of
// its tokens is handed over once.
#include "oracle.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "engine/noise.h"
#include "engine/oracle_testing.h"
#include "engine/sampler_reference.h"
#include "text/detokenizer.h"
#include "text/grammar.h"

namespace plumb::sim {
namespace {

using base::TokenId;
using engine::FinishReason;
using engine::Request;
using engine::SamplingParams;
using engine::TokenLogprob;

TokenLogprob Logprob(std::span<const float> logits, TokenId token, uint32_t top_count,
                     std::span<const TokenId> never) {
  double total = 0;
  for (const float logit : logits) total += std::exp(double{logit});
  const double log_total = std::log(total);
  TokenLogprob result{token, static_cast<float>(logits[base::Index(token)] - log_total), {}};
  if (top_count == 0) return result;
  const auto order = engine::ReferenceOrder(logits, engine::kTokenizerSize, {}, {}, {}, {}, never);
  for (uint32_t i = 0; i < top_count; ++i) {
    result.top.push_back({TokenId{order[i].token}, static_cast<float>(order[i].logit - log_total)});
  }
  return result;
}

bool UsesPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

std::vector<TokenId> Once(std::vector<TokenId> tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

bool IsEnd(const SamplingParams& params, TokenId token) {
  if (token == TokenId{engine::kEndToken} && !params.ignore_end) return true;
  return std::find(params.stop_tokens.begin(), params.stop_tokens.end(), token) !=
         params.stop_tokens.end();
}

// The stop string that is complete first in what is new of the text (of these the one that begins
// first, as text::StopMatcher has it), cut off; `from`: where what is new begins.
std::optional<std::string> CutAtStop(std::string& text, size_t from, const SamplingParams& params) {
  size_t place = 0, end = 0;
  const std::string* found = nullptr;
  for (const std::string& stop : params.stop) {
    const size_t at = text.find(stop, from < stop.size() ? 0 : from - stop.size());
    if (at == std::string::npos) continue;
    if (found != nullptr && std::pair(at + stop.size(), at) >= std::pair(end, place)) continue;
    place = at;
    end = at + stop.size();
    found = &stop;
  }
  if (found == nullptr) return std::nullopt;
  text.resize(place);
  return *found;
}

}  // namespace

ExpectedAnswer Oracle::Run(const Request& request, uint32_t sample) const {
  const SamplingParams& params = request.sampling;
  const std::span<const TokenId> never = model_.info().never_sampled;
  // Without penalties it does not matter what came before, and looking for it takes long.
  const bool penalties = UsesPenalties(params);
  const std::vector<TokenId> prompt_once =
      penalties ? Once(request.prompt) : std::vector<TokenId>{};
  const auto grammar = request.grammar ? request.grammar->NewState() : nullptr;
  std::vector<uint32_t> mask(grammar ? (engine::kVocabularySize + 31) / 32 : 0);
  std::vector<TokenId> all = request.prompt;
  const uint32_t replay_from = model_.ReplayFrom(request.prompt.size());
  text::Detokenizer detokenizer(tokenizer_);
  ExpectedAnswer answer;
  bool ended = false;
  while (!ended && answer.tokens.size() < params.tokens_max) {
    if (grammar && !grammar->FillMask(mask).ok()) {
      answer.reason = FinishReason::kError;
      answer.text += detokenizer.Finish();
      return answer;
    }
    const std::vector<float> logits = model_.LogitsOf(all, replay_from);
    const engine::NoiseKey key{params.seed, sample, static_cast<uint32_t>(all.size())};
    const std::span<const TokenId> before = answer.tokens;
    const TokenId token{engine::ReferenceSample(logits, engine::kTokenizerSize, params, prompt_once,
                                                before.first(penalties ? before.size() : 0), key,
                                                mask, never)};
    if (params.logprobs)
      answer.logprobs.push_back(Logprob(logits, token, params.top_logprobs, never));
    all.push_back(token);
    answer.tokens.push_back(token);

    const size_t text_before = answer.text.size();
    ended = IsEnd(params, token);
    if (!ended) {  // an ending token has no text, and grammars do not see it
      answer.text += detokenizer.Push(token);
      if (grammar) CHECK(grammar->Accept(token).ok());
      ended = grammar && grammar->Complete();
    }
    if (ended) answer.reason = FinishReason::kStop;
    if (ended || answer.tokens.size() == params.tokens_max) answer.text += detokenizer.Finish();
    answer.stop = CutAtStop(answer.text, text_before, params);
    if (!answer.stop) continue;
    ended = true;
    answer.reason = FinishReason::kStop;
  }
  return answer;
}

std::string Oracle::TextOf(const std::vector<TokenId>& tokens) const {
  text::Detokenizer detokenizer(tokenizer_);
  std::string text;
  for (const TokenId token : tokens) text += detokenizer.Push(token);
  return text + detokenizer.Finish();
}

std::vector<TokenLogprob> Oracle::PromptLogprobs(const Request& request) const {
  std::vector<TokenLogprob> result;
  const std::span<const TokenId> prompt(request.prompt);
  for (size_t place = 1; place < prompt.size(); ++place) {
    result.push_back(Logprob(model_.LogitsOf(prompt.first(place)), prompt[place],
                             request.sampling.top_logprobs, model_.info().never_sampled));
  }
  return result;
}

}  // namespace plumb::sim
