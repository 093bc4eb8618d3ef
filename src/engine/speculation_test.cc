// engine/speculation_test.cc: who is asked, what is chosen, and the economy of it: answers played
// back against a machine whose steps take a known time, with speculation and without.
#include "engine/speculation.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "base/random.h"
#include "engine/hash_model.h"
#include "engine/step_cost.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kVocabulary = 64;

std::unique_ptr<ModelDrafter> MakeModelDrafter(HashModel& model, const base::Clock& clock) {
  auto drafter = ModelDrafter::Create(model, kVocabulary, clock, {.kv_budget_bytes = 16 << 20});
  CHECK(drafter.ok()) << drafter.status().ToString();
  return std::move(drafter).value();
}

std::vector<TokenId> RandomTokens(base::Rng& rng, size_t count) {
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = TokenId{static_cast<uint32_t>(rng.Below(kVocabulary))};
  return tokens;
}

std::vector<TokenId> GuessesOf(const SpeculationState& state) {
  return {state.guesses().begin(), state.guesses().end()};
}

const StepNs kFreeRows = [](uint32_t) { return 1e6; };

TEST(Speculator, BeginsWhatIsAskedFor) {
  base::ManualClock clock;
  HashModel model(kVocabulary, 100);
  const SamplingParams sampling;
  const auto begins = [&](Speculator& speculator, Speculation wanted) {
    return speculator.Begin(wanted, sampling, 0, 50) != nullptr;
  };
  Speculator off({.mode = Speculation::kOff, .sequences_max = 4}, nullptr, clock);
  EXPECT_FALSE(begins(off, Speculation::kServer));
  EXPECT_FALSE(begins(off, Speculation::kOff));
  EXPECT_TRUE(begins(off, Speculation::kNgram)) << "a request may ask for it";
  EXPECT_FALSE(begins(off, Speculation::kDraft)) << "there is no draft model";
  Speculator on({.mode = Speculation::kAuto, .sequences_max = 4}, MakeModelDrafter(model, clock),
                clock);
  EXPECT_TRUE(begins(on, Speculation::kServer));
  EXPECT_FALSE(begins(on, Speculation::kOff));
  EXPECT_TRUE(begins(on, Speculation::kDraft));
}

TEST(Speculator, WhatIsForcedComesFirst) {
  base::ManualClock clock;
  Speculator speculator({.mode = Speculation::kNgram, .sequences_max = 4}, nullptr, clock);
  const auto state = speculator.Begin(Speculation::kServer, {}, 0, 50);
  const std::vector<TokenId> tokens = {TokenId{1}, TokenId{2}, TokenId{3}, TokenId{4}, TokenId{9}};
  const std::vector<TokenId> forced = {TokenId{1}, TokenId{2}, TokenId{3}};
  const SpeculationItem item{.state = state.get(), .tokens = tokens, .max = 4, .forced = forced};
  speculator.Choose({&item, 1}, {.decode_rows = 1, .drafts_max = 64}, kFreeRows);
  EXPECT_EQ(GuessesOf(*state), (std::vector{TokenId{1}, TokenId{2}, TokenId{3}, TokenId{4}}))
      << "and n-grams go on after it";
  speculator.Choose({&item, 1}, {.decode_rows = 1, .drafts_max = 2}, kFreeRows);
  EXPECT_EQ(GuessesOf(*state), (std::vector{TokenId{1}, TokenId{2}})) << "two rows are left";
  const SpeculationItem full{.state = state.get(), .tokens = tokens, .max = 0, .forced = forced};
  speculator.Choose({&full, 1}, {.decode_rows = 1, .drafts_max = 64}, kFreeRows);
  EXPECT_TRUE(state->guesses().empty());
}

TEST(Speculator, TheDraftModelGuessesWhereNoTextRepeats) {
  base::ManualClock clock;
  HashModel model(kVocabulary, 400);
  model.after_row = [](std::span<float> row) {  // a model that is sure of what it says
    *std::max_element(row.begin(), row.end()) += 20;
  };
  for (const Speculation mode : {Speculation::kDraft, Speculation::kAuto}) {
    Speculator speculator({.mode = mode, .sequences_max = 4}, MakeModelDrafter(model, clock),
                          clock);
    base::Rng rng(1);
    const SamplingParams greedy{.temperature = 0};
    const std::vector<TokenId> tokens = {TokenId{1}, TokenId{2}, TokenId{3}};
    const auto state = speculator.Begin(Speculation::kServer, greedy, 0, 50);
    const SpeculationItem item{.state = state.get(), .tokens = tokens, .max = 8};
    speculator.Choose({&item, 1}, {.decode_rows = 1, .drafts_max = 64}, kFreeRows);
    ASSERT_FALSE(state->guesses().empty());
    std::vector<TokenId> known = tokens;
    for (const TokenId guess : state->guesses()) {
      const auto logits = model.LogitsOf(known);
      const auto best = std::max_element(logits.begin(), logits.end());
      EXPECT_EQ(guess, TokenId{static_cast<uint32_t>(best - logits.begin())});
      known.push_back(guess);
    }
  }
}

// An answer that is known beforehand: what is right is what comes next in it.
struct Playback {
  std::vector<TokenId> text;  // prompt and answer
  size_t known;               // tokens of it that were sampled
  std::unique_ptr<SpeculationState> state;
};

struct Machine {
  uint32_t batch = 1;
  double base_ms = 0;    // a step, whatever it holds
  double row_ms = 0;     // each row of it
  double noise = 0;      // of a step's time, at most, either way
  double surcharge = 1;  // steps with guesses take so many times what rows say
};

using MakeText = std::function<std::vector<TokenId>(base::Rng&)>;  // prompt and answer
constexpr uint32_t kPromptTokens = 300, kAnswerTokens = 300;

class Economy {
 public:
  Economy(const Machine& machine, Speculation mode, HashModel* draft_model, uint64_t seed)
      : machine_(machine),
        texts_(seed),
        noise_(seed),
        speculator_({.mode = mode, .sequences_max = machine.batch},
                    draft_model != nullptr ? MakeModelDrafter(*draft_model, clock) : nullptr,
                    clock) {}

  base::ManualClock clock;

  // Tokens per second of `batch` answers at a time, of `rounds` after one another.
  double Run(const MakeText& make_text, int rounds) {
    for (uint32_t i = 0; i < 3; ++i) ComputeRows(i == 0 ? 1 : 256, 0);  // prompts, before
    const base::Instant begin = clock.Now();
    uint64_t tokens = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<Playback> answers(machine_.batch);
      for (Playback& answer : answers) {
        answer = {.text = make_text(texts_), .known = kPromptTokens, .state = nullptr};
        const uint32_t length = static_cast<uint32_t>(answer.text.size());
        answer.state = speculator_.Begin(Speculation::kServer, sampling_, 0, length);
        tokens += length - kPromptTokens;
      }
      while (Step(answers)) {
      }
    }
    return static_cast<double>(tokens) / (clock.Now() - begin).seconds();
  }

 private:
  bool Step(std::vector<Playback>& answers) {
    std::vector<SpeculationItem> items;
    std::vector<Playback*> running;
    for (Playback& answer : answers) {
      if (answer.known == answer.text.size()) continue;
      running.push_back(&answer);
      if (answer.state == nullptr) continue;
      items.push_back({.state = answer.state.get(),
                       .tokens = std::span(answer.text).first(answer.known),
                       .max = static_cast<uint32_t>(answer.text.size() - answer.known - 1)});
    }
    if (running.empty()) return false;
    const uint32_t decode_rows = static_cast<uint32_t>(running.size());
    speculator_.Choose(items, {.decode_rows = decode_rows, .drafts_max = 256},
                       [this, decode_rows](uint32_t drafts) {
                         return static_cast<double>(Predict(decode_rows + drafts).ns);
                       });
    uint32_t drafts = 0;
    for (Playback* answer : running) {
      if (answer->state != nullptr) {
        for (const TokenId guess : answer->state->guesses()) {
          if (guess != answer->text[answer->known]) break;
          ++answer->known;
        }
        drafts += static_cast<uint32_t>(answer->state->guesses().size());
      }
      ++answer->known;
    }
    ComputeRows(decode_rows, drafts);
    return true;
  }

  base::Duration Predict(uint32_t rows) const {
    return cost_.Predict({.rows = rows, .logits_rows = rows});
  }

  void ComputeRows(uint32_t rows, uint32_t drafts) {
    rows += drafts;
    const double noise = 1 + machine_.noise * (2 * noise_.Uniform() - 1);
    const double ms =
        (machine_.base_ms + machine_.row_ms * rows) * noise * (drafts > 0 ? machine_.surcharge : 1);
    const base::Duration elapsed = base::Seconds(ms / 1e3);
    clock.Advance(elapsed);
    speculator_.Observe(drafts, Predict(rows), elapsed);
    cost_.Observe({.rows = rows, .logits_rows = rows}, elapsed);
  }

  const Machine machine_;
  base::Rng texts_, noise_;
  const SamplingParams sampling_{.temperature = 0};
  StepCost cost_;
  Speculator speculator_;
};

// Speed with speculation over that without, on the same texts.
double Gain(const Machine& machine, const MakeText& make_text, Speculation mode, uint64_t seed,
            HashModel* draft_model = nullptr, double pass_ms = 0) {
  Economy with(machine, mode, draft_model, seed),
      without(machine, Speculation::kOff, nullptr, seed);
  if (draft_model != nullptr) {
    draft_model->before_forward = [&] { with.clock.Advance(base::Seconds(pass_ms / 1e3)); };
  }
  constexpr int kRounds = 4;
  return with.Run(make_text, kRounds) / without.Run(make_text, kRounds);
}

// Nothing recurs but by chance.
std::vector<TokenId> RandomText(base::Rng& rng) {
  return RandomTokens(rng, kPromptTokens + kAnswerTokens);
}

// Every token is followed by one of three: short matches are everywhere, and mostly mislead.
std::vector<TokenId> MisleadingText(base::Rng& rng) {
  std::vector<TokenId> text = {TokenId{0}};
  while (text.size() < kPromptTokens + kAnswerTokens) {
    text.push_back(TokenId{
        static_cast<uint32_t>((base::Index(text.back()) * 7 + rng.Below(3)) % kVocabulary)});
  }
  return text;
}

// The answer is the prompt with a token changed, added or left out about every fortieth.
std::vector<TokenId> EditedText(base::Rng& rng) {
  std::vector<TokenId> text = RandomTokens(rng, kPromptTokens);
  for (size_t place = 0; text.size() < kPromptTokens + kAnswerTokens; ++place) {
    if (rng.Below(40) == 0) text.push_back(RandomTokens(rng, 1)[0]);
    if (rng.Below(80) != 0) text.push_back(text[place % kPromptTokens]);
  }
  return text;
}

// Reading weights takes most of a step: one stream on a CPU.
constexpr Machine kBandwidthBound{.batch = 1, .base_ms = 40, .row_ms = 8, .noise = 0.05};
// Rows take most of it: sixteen streams.
constexpr Machine kComputeBound{.batch = 16, .base_ms = 40, .row_ms = 8, .noise = 0.05};

TEST(SpeculatorEconomy, EditsAreFasterWithOneStream) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_GE(Gain(kBandwidthBound, EditedText, Speculation::kNgram, seed), 2.0) << seed;
  }
}

TEST(SpeculatorEconomy, SixteenStreamsLoseNothing) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const MakeText& text :
         {MakeText(RandomText), MakeText(MisleadingText), MakeText(EditedText)}) {
      EXPECT_GE(Gain(kComputeBound, text, Speculation::kNgram, seed), 0.98) << seed;
    }
  }
}

TEST(SpeculatorEconomy, TextsThatDoNotRepeatLoseNothing) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_GE(Gain(kBandwidthBound, RandomText, Speculation::kNgram, seed), 0.98) << seed;
    EXPECT_GE(Gain(kBandwidthBound, MisleadingText, Speculation::kNgram, seed), 0.98) << seed;
  }
}

TEST(SpeculatorEconomy, StepsThatTakeLongerThanForeseenAreNoticed) {
  // What rows cost is one thing, what steps with guesses really take another.
  Machine machine = kComputeBound;
  machine.surcharge = 1.5;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    EXPECT_GE(Gain(machine, EditedText, Speculation::kNgram, seed), 0.97) << seed;
  }
}

// What the model says greedily after a random prompt.
MakeText TextOf(const HashModel& model) {
  return [&model](base::Rng& rng) {
    std::vector<TokenId> text = RandomTokens(rng, kPromptTokens);
    while (text.size() < kPromptTokens + kAnswerTokens) {
      const auto logits = model.LogitsOf(text);
      const auto best = std::max_element(logits.begin(), logits.end());
      text.push_back(TokenId{static_cast<uint32_t>(best - logits.begin())});
    }
    return text;
  };
}

TEST(SpeculatorEconomy, ADraftModelThatIsRightPays) {
  HashModel model(kVocabulary, 2048);
  EXPECT_GE(Gain(kBandwidthBound, TextOf(model), Speculation::kAuto, 1, &model, 4), 1.5);
}

TEST(SpeculatorEconomy, ADraftModelThatIsWrongCostsLittle) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    HashModel model(kVocabulary, 2048);
    EXPECT_GE(Gain(kBandwidthBound, RandomText, Speculation::kAuto, seed, &model, 4), 0.97) << seed;
    EXPECT_GE(Gain(kComputeBound, RandomText, Speculation::kAuto, seed, &model, 4), 0.97) << seed;
  }
}

}  // namespace
}  // namespace plumb::engine
