// tests/sim/workload.cc
// Prompts and parameters, behind tests/sim/workload.h.
#include "workload.h"

#include <algorithm>

#include "engine/engine_testing.h"
#include "engine/grammar_testing.h"

namespace plumb::sim {
namespace {

using base::TokenId;
using engine::Request;

constexpr size_t kTurnsMax = 32;
constexpr uint64_t kTexts = 3;  // that everybody begins with
constexpr uint32_t kPage = model::kPageTokens;

std::vector<TokenId> Text(uint64_t seed, size_t count) {
  base::Rng rng(seed);
  std::vector<TokenId> tokens;
  tokens.reserve(count);
  while (tokens.size() < count) {
    tokens.push_back(TokenId{static_cast<uint32_t>(rng.Below(engine::kVocabularySize))});
  }
  return tokens;
}

// Few different pages in any order: the same page comes after different beginnings.
std::vector<TokenId> Mosaic(base::Rng& rng, size_t count) {
  std::vector<TokenId> tokens;
  while (tokens.size() < count) {
    const std::vector<TokenId> page = Text(1000 + rng.Below(2), kPage);
    tokens.insert(tokens.end(), page.begin(), page.end());
  }
  tokens.resize(count);
  return tokens;
}

uint32_t SampleCount(base::Rng& rng) {
  switch (rng.Below(12)) {
    case 0:
      return 2 + static_cast<uint32_t>(rng.Below(3));
    case 1:
      return rng.Below(4) == 0 ? engine::kSamplesMax : 5;
    default:
      return 1;
  }
}

}  // namespace

base::Hash256 IsolationKey(uint32_t number) {
  base::Hash256 key;
  key.bytes[0] = static_cast<uint8_t>(number);
  return key;
}

Workload::Workload(const SimConfig& config, uint32_t context_max)
    : config_(config), context_max_(context_max), rng_(config.seed ^ 0x300D) {}

Request Workload::Next() {
  std::vector<TokenId> prompt = Prompt(PromptLength());
  const bool long_answer = rng_.Below(10) == 0;
  const uint64_t answer_max =
      std::min<uint64_t>(context_max_ - prompt.size(), long_answer ? 400 : config_.answer_tokens);
  Request request =
      engine::RandomRequest(rng_, ++last_id_, 1, static_cast<uint32_t>(1 + rng_.Below(answer_max)));
  request.prompt = std::move(prompt);
  request.samples = SampleCount(rng_);
  request.tenant = rng_.Below(config_.tenants);
  request.isolation = IsolationKey(static_cast<uint32_t>(request.tenant) % config_.isolations);
  if (rng_.Below(4) == 0) request.speculation = static_cast<engine::Speculation>(rng_.Below(5));
  const bool has_draft_model = config_.guesses == Guesses::kServer;
  if (request.speculation == engine::Speculation::kDraft && !has_draft_model) {
    request.speculation = engine::Speculation::kServer;  // it would be refused
  }
  request.prompt_logprobs = rng_.Uniform() < config_.prompt_logprobs_chance;
  if (!config_.one_priority) {
    request.priority = static_cast<engine::Priority>(rng_.Below(3));
  }
  if (long_answer) {  // let it be long
    request.sampling.stop.clear();
    request.sampling.stop_tokens.clear();
    request.sampling.ignore_end = true;
  }
  if (rng_.Uniform() < config_.grammar_chance) {
    engine::FakeGrammarOptions grammar{.seed = rng_.Next(), .end_token = engine::kEndToken};
    if (rng_.Below(2) == 0) grammar.tokens_max = static_cast<uint32_t>(1 + rng_.Below(40));
    if (rng_.Below(8) == 0) grammar.fails_after = static_cast<uint32_t>(rng_.Below(30));
    request.grammar = std::make_shared<engine::FakeGrammar>(grammar);
    request.sampling.ignore_end = false;
  }
  engine::AddHints(request);
  return request;
}

void Workload::Remember(const Request& request, const std::vector<TokenId>& answer) {
  if (turns_.size() == kTurnsMax) turns_.erase(turns_.begin());
  std::vector<TokenId>& turn = turns_.emplace_back(request.prompt);
  turn.insert(turn.end(), answer.begin(), answer.end());
}

uint32_t Workload::PromptLength() {
  const uint32_t most = context_max_ - 1;
  if (rng_.Uniform() < config_.long_chance) {
    return most - static_cast<uint32_t>(rng_.Below(most / 2 + 1));
  }
  // Whole pages, and one more or less, are where mistakes are made.
  uint64_t length = 1 + rng_.Below(rng_.Below(3) == 0 ? 500 : 80);
  if (rng_.Below(6) == 0) length = kPage * (1 + rng_.Below(4)) + rng_.Below(3) - 1;
  return static_cast<uint32_t>(std::clamp<uint64_t>(length, 1, most));
}

std::vector<TokenId> Workload::Prompt(uint32_t length) {
  if (!turns_.empty() && rng_.Uniform() < config_.turn_chance) {
    std::vector<TokenId> turn = turns_[rng_.Below(turns_.size())];
    const auto question = Text(rng_.Next(), 1 + rng_.Below(30));
    turn.insert(turn.end(), question.begin(), question.end());
    if (turn.size() >= context_max_) turn.resize(length);
    return turn;
  }
  if (rng_.Uniform() < config_.own_chance) return Text(rng_.Next(), length);
  std::vector<TokenId> prompt =
      rng_.Below(4) == 0 ? Mosaic(rng_, length) : Text(rng_.Below(kTexts), length);
  // Some end in a question of their own, as long or as short as it comes.
  const size_t own = rng_.Below(2) * rng_.Below(60);
  for (size_t i = length - std::min<size_t>(own, length); i < length; ++i) {
    prompt[i] = TokenId{static_cast<uint32_t>(rng_.Below(engine::kVocabularySize))};
  }
  return prompt;
}

}  // namespace plumb::sim
