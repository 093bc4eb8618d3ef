// engine/model_drafter_test.cc: guesses against the draft model asked for every token on its own,
// whatever was kept of the guesses before; bounds and refusals. With a model equal to the target
// that means that every guess is the token the target samples.
#include "engine/model_drafter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "engine/engine_testing.h"
#include "engine/hash_model.h"
#include "engine/sampler_reference.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kVocabulary = 60;
constexpr uint32_t kCandidates = 50;  // the rest is padding
constexpr uint64_t kPageBytes = kvcache::PagePool::kAlignment;

std::unique_ptr<ModelDrafter> MakeDrafter(model::Model& model, const base::Clock& clock,
                                          ModelDrafterOptions options = {}) {
  auto drafter = ModelDrafter::Create(model, kCandidates, clock, options);
  CHECK(drafter.ok()) << drafter.status().ToString();
  return std::move(drafter).value();
}

std::vector<TokenId> RandomTokens(base::Rng& rng, size_t count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = TokenId{static_cast<uint32_t>(rng.Below(kCandidates))};
  return tokens;
}

SamplingParams RandomSampling(base::Rng& rng) {
  SamplingParams params{.temperature = rng.Below(3) == 0 ? 0.0f : 0.9f, .seed = rng.Next()};
  if (rng.Below(3) == 0) params.top_p = 0.9f;
  if (rng.Below(3) == 0) params.top_k = 10;
  if (rng.Below(3) == 0) params.frequency_penalty = 0.5f;
  if (rng.Below(3) == 0) params.repetition_penalty = 1.3f;
  if (rng.Below(3) == 0) params.logit_bias = {{TokenId{7}, 2.0f}};
  return params;
}

// One sequence: its tokens, its counts, and what the target samples after them.
struct Answer {
  Answer(const SamplingParams& params, uint32_t index, std::vector<TokenId> tokens)
      : sampling(params), sample_index(index), prompt(std::move(tokens)), all(prompt) {
    if (!UsesPenalties(params)) return;
    counts.Reset(kVocabulary);
    for (const TokenId token : prompt) counts.AddPrompt(token);
  }

  // The token that `model` and the reference sampler give after `known`.
  TokenId Next(const HashModel& model, std::span<const TokenId> known) const {
    const std::vector<float> logits = model.LogitsOf(known);
    const NoiseKey key{sampling.seed, sample_index, static_cast<uint32_t>(known.size())};
    return TokenId{
        ReferenceSample(logits, kCandidates, sampling, prompt, known.subspan(prompt.size()), key)};
  }
  void Push(TokenId token) {
    all.push_back(token);
    if (UsesPenalties(sampling)) counts.AddGenerated(token);
  }

  SamplingParams sampling;
  uint32_t sample_index;
  std::vector<TokenId> prompt;
  std::vector<TokenId> all;
  TokenCounts counts;
  std::unique_ptr<DraftState> state;
  Draft draft;
};

Draft* Prepare(Answer& answer, uint32_t max, std::span<const TokenId> ready = {}) {
  answer.draft = {.state = answer.state.get(),
                  .tokens = answer.all,
                  .counts = UsesPenalties(answer.sampling) ? &answer.counts : nullptr,
                  .max = max};
  for (const TokenId token : ready) answer.draft.Append(token, 1, 0);
  return &answer.draft;
}

// The guesses of `drafter` are those of its model, asked for one token after the other.
void ExpectGuessesOf(const HashModel& model, const Answer& answer, uint32_t ready) {
  std::vector<TokenId> known = answer.all;
  for (uint32_t i = 0; i < answer.draft.count; ++i) {
    if (i >= ready) {
      ASSERT_EQ(answer.draft.guesses[i], answer.Next(model, known)) << "guess " << i;
    }
    known.push_back(answer.draft.guesses[i]);
  }
}

void ExpectSameCounts(std::span<const TokenCounts::Entry> a, const TokenCounts& counts) {
  const auto b = counts.entries();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].token, b[i].token);
    EXPECT_EQ(a[i].generated, b[i].generated);
  }
}

TEST(ModelDrafter, AnEqualModelGuessesWhatTheTargetSamples) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    base::Rng rng(seed);
    HashModel model(kVocabulary, 4096);
    base::ManualClock clock;
    const auto drafter = MakeDrafter(model, clock);
    Answer answer(RandomSampling(rng), 3, RandomTokens(rng, 1 + rng.Below(300)));
    answer.state = drafter->Begin(answer.sampling, 3, 500);
    uint32_t guessed = 0;
    while (answer.all.size() < answer.prompt.size() + 100) {
      Draft* batch[] = {Prepare(answer, 1 + static_cast<uint32_t>(rng.Below(kDraftsMax)))};
      drafter->DraftFor(batch);
      // What the target does: it keeps guesses as long as they are what it samples, then has one
      // token more.
      uint32_t kept = 0;
      for (;; ++kept) {
        const TokenId token = answer.Next(model, answer.all);
        const bool right = kept < answer.draft.count && answer.draft.guesses[kept] == token;
        answer.Push(token);
        if (!right) break;
      }
      EXPECT_EQ(kept, answer.draft.count) << "seed " << seed << ": a guess was wrong";
      guessed += kept;
    }
    EXPECT_GT(guessed, 20u);
  }
}

TEST(ModelDrafter, GuessesFollowTheTextWhateverWasKept) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    base::Rng rng(seed);
    HashModel model(kVocabulary, 4096);
    base::ManualClock clock;
    const auto drafter = MakeDrafter(model, clock);
    std::vector<std::unique_ptr<Answer>> answers;
    for (uint32_t i = 0; i < 4; ++i) {
      answers.push_back(
          std::make_unique<Answer>(RandomSampling(rng), i, RandomTokens(rng, 1 + rng.Below(200))));
      answers[i]->state = drafter->Begin(answers[i]->sampling, i, 600);
    }
    for (int step = 0; step < 25; ++step) {
      std::vector<Draft*> batch;
      std::vector<uint32_t> ready;
      std::vector<std::vector<TokenCounts::Entry>> entries;
      for (const auto& answer : answers) {
        const auto forced = RandomTokens(rng, rng.Below(3) == 0 ? rng.Below(3) : 0);
        ready.push_back(static_cast<uint32_t>(forced.size()));
        // Not every sequence is guessed for in every step.
        const uint32_t max =
            rng.Below(4) == 0 ? 0 : ready.back() + static_cast<uint32_t>(rng.Below(7));
        if (max < ready.back()) ready.back() = 0;
        batch.push_back(Prepare(*answer, max, std::span(forced).first(ready.back())));
        entries.emplace_back(answer->counts.entries().begin(), answer->counts.entries().end());
      }
      drafter->DraftFor(batch);
      for (size_t i = 0; i < answers.size(); ++i) {
        Answer& answer = *answers[i];
        ExpectSameCounts(entries[i], answer.counts);
        ASSERT_LE(answer.draft.count, std::max(answer.draft.max, ready[i]));
        ASSERT_NO_FATAL_FAILURE(ExpectGuessesOf(model, answer, ready[i])) << "seed " << seed;
        // Some of the guesses come true, then something else comes.
        const uint32_t kept = static_cast<uint32_t>(rng.Below(answer.draft.count + 1));
        for (uint32_t k = 0; k < kept; ++k) answer.Push(answer.draft.guesses[k]);
        answer.Push(RandomTokens(rng, 1)[0]);
      }
    }
  }
}

TEST(ModelDrafter, ALongPromptIsCaughtUpWithInParts) {
  base::Rng rng(1);
  base::ManualClock clock;
  HashModel model(kVocabulary, 4096);
  uint32_t calls = 0;
  model.before_forward = [&] { ++calls; };
  const auto drafter = MakeDrafter(model, clock, {.catch_up_rows_max = 64});
  Answer answer({.temperature = 0}, 0, RandomTokens(rng, 1000));
  answer.state = drafter->Begin(answer.sampling, 0, 1200);
  EXPECT_EQ(drafter->Behind(*answer.state, 1000), 1000u);
  uint32_t steps = 0;
  for (; steps < 100; ++steps) {
    calls = 0;
    const uint32_t behind = drafter->Behind(*answer.state, 1000);
    Draft* batch[] = {Prepare(answer, 1)};
    drafter->DraftFor(batch);
    EXPECT_EQ(calls, 1u);
    if (answer.draft.count > 0) break;
    const uint32_t caught_up = behind - drafter->Behind(*answer.state, 1000);
    EXPECT_GE(caught_up, 1u);
    EXPECT_LE(caught_up, 64u);
  }
  EXPECT_GE(steps, 1000u / 64 - 1);
  ASSERT_EQ(answer.draft.count, 1u);
  ExpectGuessesOf(model, answer, 0);
}

TEST(ModelDrafter, AQuickModelCatchesUpFaster) {
  base::Rng rng(1);
  base::ManualClock clock;
  HashModel model(kVocabulary, 4096);
  model.before_forward = [&] { clock.Advance({1000}); };
  const auto drafter = MakeDrafter(model, clock, {.catch_up_rows_max = 256});
  Answer answer({.temperature = 0}, 0, RandomTokens(rng, 600));
  answer.state = drafter->Begin(answer.sampling, 0, 800);
  std::vector<uint32_t> parts;
  while (answer.draft.count == 0) {
    const uint32_t behind = drafter->Behind(*answer.state, 600);
    Draft* batch[] = {Prepare(answer, 1)};
    drafter->DraftFor(batch);
    parts.push_back(behind - drafter->Behind(*answer.state, 600));
    ASSERT_LE(parts.size(), 10u);
  }
  EXPECT_LT(parts[0], 64u) << "nothing was measured yet";
  EXPECT_EQ(parts[1], 256u);
}

TEST(ModelDrafter, WithoutPagesThereAreNoGuesses) {
  base::Rng rng(1);
  base::ManualClock clock;
  HashModel model(kVocabulary, 4096);
  const auto drafter = MakeDrafter(model, clock, {.kv_budget_bytes = 3 * kPageBytes});
  ASSERT_EQ(drafter->pages_total(), 3u);
  Answer a({.temperature = 0}, 0, RandomTokens(rng, 200));
  Answer b({.temperature = 0}, 0, RandomTokens(rng, 200));
  a.state = drafter->Begin(a.sampling, 0, 400);
  b.state = drafter->Begin(b.sampling, 0, 400);
  for (int step = 0; step < 20; ++step) {
    Draft* batch[] = {Prepare(a, 2), Prepare(b, 2)};
    drafter->DraftFor(batch);
  }
  EXPECT_EQ(a.draft.count, 2u);
  EXPECT_EQ(b.draft.count, 0u);
  EXPECT_TRUE(drafter->Serves(*a.state));
  EXPECT_FALSE(drafter->Serves(*b.state)) << "it holds no page that it cannot use";
  EXPECT_EQ(drafter->pages_free(), 1u);
  a.state.reset();
  EXPECT_EQ(drafter->pages_free(), 3u) << "every page back";
  b.state.reset();
  Answer c({.temperature = 0}, 0, RandomTokens(rng, 10));
  c.state = drafter->Begin(c.sampling, 0, 400);
  Draft* batch[] = {Prepare(c, 2)};
  drafter->DraftFor(batch);
  EXPECT_EQ(c.draft.count, 2u);
}

TEST(ModelDrafter, ATextBeyondTheModelIsNotGuessedFor) {
  base::Rng rng(1);
  base::ManualClock clock;
  HashModel model(kVocabulary, 100);
  const auto drafter = MakeDrafter(model, clock);
  Answer strange({.temperature = 0}, 0, {TokenId{1}, TokenId{kVocabulary}, TokenId{2}});
  strange.state = drafter->Begin(strange.sampling, 0, 100);
  Answer full({.temperature = 0}, 0, RandomTokens(rng, 99));
  full.state = drafter->Begin(full.sampling, 0, 300);
  Answer fits({.temperature = 0}, 0, RandomTokens(rng, 30));
  fits.state = drafter->Begin(fits.sampling, 0, 100);
  for (int step = 0; step < 8; ++step) {
    Draft* batch[] = {Prepare(strange, 4), Prepare(full, 4), Prepare(fits, 4)};
    drafter->DraftFor(batch);
  }
  EXPECT_EQ(strange.draft.count, 0u);
  EXPECT_FALSE(drafter->Serves(*strange.state));
  EXPECT_EQ(full.draft.count, 0u);
  EXPECT_FALSE(drafter->Serves(*full.state));
  EXPECT_GT(fits.draft.count, 0u);
  ExpectGuessesOf(model, fits, 0);
}

TEST(ModelDrafter, LogitsThatAreNoNumbersGiveNoGuess) {
  base::ManualClock clock;
  HashModel model(kVocabulary, 100);
  model.after_row = [](std::span<float> row) { row[3] = std::numeric_limits<float>::quiet_NaN(); };
  const auto drafter = MakeDrafter(model, clock);
  Answer answer({.temperature = 0}, 0, {TokenId{1}});
  answer.state = drafter->Begin(answer.sampling, 0, 50);
  Draft* batch[] = {Prepare(answer, 4)};
  drafter->DraftFor(batch);
  EXPECT_EQ(answer.draft.count, 0u);
}

TEST(ModelDrafter, MeasuresAPassOverManySequences) {
  base::Rng rng(1);
  base::ManualClock clock;
  HashModel model(kVocabulary, 400);
  model.before_forward = [&] { clock.Advance(base::Milliseconds(5)); };
  const auto drafter = MakeDrafter(model, clock);
  EXPECT_EQ(drafter->PassNs(1), 0);
  Answer answer({.temperature = 0}, 0, RandomTokens(rng, 4));
  answer.state = drafter->Begin(answer.sampling, 0, 100);
  for (int step = 0; step < 10; ++step) {
    Draft* batch[] = {Prepare(answer, 6)};
    drafter->DraftFor(batch);
    answer.Push(answer.draft.count > 0 ? answer.draft.guesses[0] : TokenId{1});
  }
  EXPECT_NEAR(drafter->PassNs(1), 5e6, 1);
  EXPECT_NEAR(drafter->PassNs(16), 5e6, 1) << "the nearest there is";
}

TEST(ModelDrafter, LearnsHowOftenItIsRight) {
  base::Rng rng(1);
  base::ManualClock clock;
  HashModel model(kVocabulary, 400);
  const auto drafter = MakeDrafter(model, clock);
  Answer answer({.temperature = 0}, 0, RandomTokens(rng, 4));
  answer.state = drafter->Begin(answer.sampling, 0, 100);
  Draft* batch[] = {Prepare(answer, 1)};
  drafter->DraftFor(batch);
  ASSERT_EQ(answer.draft.count, 1u);
  const float before = answer.draft.confidence[0];
  for (int i = 0; i < 2000; ++i) drafter->Learn(*answer.state, answer.draft.kind[0], false);
  Prepare(answer, 1);
  drafter->DraftFor(batch);
  ASSERT_EQ(answer.draft.count, 1u);
  EXPECT_LT(answer.draft.confidence[0], before / 4);
}

TEST(ModelDrafter, ModelsThatCannotDraftAreRefused) {
  base::ManualClock clock;
  HashModel few_rows(kVocabulary, 100, 8);
  const auto refused = ModelDrafter::Create(few_rows, kCandidates, clock, {});
  EXPECT_EQ(refused.status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(refused.status().field(), "draft_model");
  HashModel stateful(kVocabulary, 100, 4096, 256, {.window = 4, .backtrack_max = 2});
  EXPECT_EQ(ModelDrafter::Create(stateful, kCandidates, clock, {}).status().field(), "draft_model");
  HashModel model(kVocabulary, 100);
  EXPECT_EQ(ModelDrafter::Create(model, kCandidates, clock, {.kv_budget_bytes = 1}).status().code(),
            base::Code::kInvalidArgument);
}

std::unique_ptr<text::Tokenizer> TokenizerWith(const std::vector<std::string>& pieces) {
  text::VocabularySpec spec{.model = "gpt2", .pre = "gpt-2"};
  for (char c = 'a'; c <= 'z'; ++c) spec.tokens.emplace_back(1, c);
  spec.tokens.insert(spec.tokens.end(), pieces.begin(), pieces.end());
  for (const std::string& token : spec.tokens) {
    spec.kinds.push_back(token[0] == '<' ? text::TokenKind::kControl : text::TokenKind::kNormal);
  }
  spec.add_bos = false;
  auto tokenizer = text::Tokenizer::FromVocabulary(spec);
  CHECK(tokenizer.ok()) << tokenizer.status().ToString();
  return std::move(tokenizer).value();
}

TEST(ModelDrafter, TokensMustBeTheTargets) {
  const auto target = TokenizerWith({"ab", "cd", "<end>"});
  EXPECT_TRUE(CheckSameTokens(*TokenizerWith({"ab", "cd", "<end>"}), *target).ok());
  EXPECT_TRUE(CheckSameTokens(*TokenizerWith({"ab", "cd", "<end>", "<pad>"}), *target).ok());
  const base::Status other = CheckSameTokens(*TokenizerWith({"ab", "ce", "<end>"}), *target);
  EXPECT_EQ(other.code(), base::Code::kInvalidArgument);
  EXPECT_EQ(other.field(), "draft_model");
  std::vector<std::string> many = {"ab", "cd", "<end>"};
  for (int i = 0; i < 2000; ++i) many.push_back("<" + std::to_string(i) + ">");
  EXPECT_EQ(CheckSameTokens(*TokenizerWith(many), *target).code(), base::Code::kInvalidArgument);
}

}  // namespace
}  // namespace plumb::engine
