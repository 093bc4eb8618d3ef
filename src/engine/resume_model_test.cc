// engine/resume_model_test.cc: going on from checkpoints with real arithmetic. A small
// DeepSeek-V4.1 gives the same tokens and log-probabilities, bit for bit, cold as from a
// checkpoint, with guesses and without, however its rows are cut and whoever is preempted. Hash
// models: resume_test.cc.
#include <gtest/gtest.h>

#include "engine/drafter_testing.h"
#include "engine/engine_testing.h"
#include "model/families/deepseek_runner.h"

namespace plumb::engine {
namespace {

struct Setting {
  bool prefix_cache = false;
  uint32_t prefill_rows_max = 64;
  uint32_t pages = 64;
  Drafter* drafter = nullptr;
  bool at_once = false;  // all requests beside each other
};

struct Outcome {
  std::vector<Answer> answers;
  EngineStats stats;
};

Outcome AnswersOf(model::Model& model, const text::Tokenizer& tokenizer,
                  const std::vector<Request>& requests, const Setting& setting) {
  const base::ManualClock clock;
  EngineOptions options;
  options.prefix_cache = setting.prefix_cache;
  options.step_target = base::Duration{0};
  options.prefill_rows_max = setting.prefill_rows_max;
  options.sequences_max = 8;
  GivePages(options, model.info(), setting.pages);
  options.unweighed_drafter = setting.drafter;
  options.speculation = Speculation::kOff;
  const auto engine = Engine::Create(model, tokenizer, clock, options).value();
  std::vector<std::unique_ptr<Collector>> sinks;
  const auto run_dry = [&] {
    while (engine->Step()) engine->CheckPages();
  };
  for (const Request& request : requests) {
    sinks.push_back(std::make_unique<Collector>(request));
    EXPECT_TRUE(engine->Submit(request, *sinks.back()).ok());
    if (!setting.at_once) run_dry();
  }
  run_dry();
  Outcome outcome{.answers = {}, .stats = engine->stats()};
  for (size_t i = 0; i < requests.size(); ++i) {
    for (uint32_t sample = 0; sample < requests[i].samples; ++sample) {
      outcome.answers.push_back(sinks[i]->answer(sample));
    }
  }
  return outcome;
}

// A conversation of four turns, a branch, and its samples: each prompt begins like one before.
std::vector<Request> Conversation(uint32_t tokens) {
  base::Rng rng(11);
  std::vector<TokenId> prompt;
  std::vector<Request> requests;
  const auto ask = [&](uint32_t count, uint32_t samples) {
    while (count-- > 0) prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(tokens))});
    Request request{.id = RequestId{requests.size() + 1}, .prompt = prompt, .samples = samples};
    request.sampling = {.temperature = 0.8f,
                        .ignore_end = true,
                        .seed = rng.Next(),
                        .tokens_max = 20,
                        .logprobs = true,
                        .top_logprobs = 3};
    requests.push_back(std::move(request));
  };
  for (const uint32_t turn : {150u, 90u, 128u, 61u}) ask(turn, 1);
  prompt.resize(301);
  ask(40, 3);
  ask(0, 1);
  return requests;
}

// Answers of more than a page each: a pool that takes their prompts runs out while they grow.
std::vector<Request> LongAnswers(uint32_t tokens) {
  base::Rng rng(12);
  std::vector<Request> requests;
  for (uint32_t i = 0; i < 4; ++i) {
    Request request{.id = RequestId{i + 1}};
    for (uint32_t count = 100 + 20 * i; count > 0; --count) {
      request.prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(tokens))});
    }
    request.sampling = {.temperature = 0.8f,
                        .ignore_end = true,
                        .seed = rng.Next(),
                        .tokens_max = 180,
                        .logprobs = true};
    requests.push_back(std::move(request));
  }
  return requests;
}

void ExpectSameBits(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.answers.size(), b.answers.size());
  for (size_t i = 0; i < a.answers.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "answer " << i);
    ASSERT_EQ(a.answers[i].tokens, b.answers[i].tokens);
    const auto &x = a.answers[i].logprobs, &y = b.answers[i].logprobs;
    ASSERT_EQ(x.size(), y.size());
    for (size_t token = 0; token < x.size(); ++token) {
      ASSERT_EQ(x[token].logprob, y[token].logprob) << token;
      for (size_t k = 0; k < x[token].top.size(); ++k) {
        ASSERT_EQ(x[token].top[k].logprob, y[token].top[k].logprob);
      }
    }
  }
}

TEST(ResumeModel, ADeepseekGivesTheSameBitsFromItsCheckpoints) {
  const auto tokenizer = MakeTokenizer();
  const model::DeepseekTinySpec spec{.vocabulary = 320, .window = 20, .engram_classes = 80};
  const model::HfFiles files = model::DeepseekTinyFiles(model::MakeDeepseekTiny(spec));
  model::DeepseekRunner runner(files, {.roundings = model::Roundings::kKvq, .replay_rows = 30});
  model::Model& model = runner.model();
  ASSERT_GT(model.info().checkpoint_bytes, 0u);
  const std::vector<Request> requests = Conversation(tokenizer->size());
  const Outcome cold = AnswersOf(model, *tokenizer, requests, {});
  EXPECT_EQ(cold.stats.cached_tokens, 0u);

  FakeDrafter drafter(3, 7, tokenizer->size());
  size_t next = 0;
  for (const Request& request : requests) {
    for (uint32_t sample = 0; sample < request.samples; ++sample) {
      drafter.Know(request.sampling.seed, sample, request.prompt, cold.answers[next++].tokens);
    }
  }
  const Outcome warm = AnswersOf(model, *tokenizer, requests, {.prefix_cache = true});
  ExpectSameBits(cold, warm);
  EXPECT_GT(warm.stats.cached_tokens, 1000u);
  const Outcome guessed = AnswersOf(
      model, *tokenizer, requests,
      {.prefix_cache = true, .prefill_rows_max = 50, .drafter = &drafter, .at_once = true});
  ExpectSameBits(cold, guessed);
  EXPECT_GT(guessed.stats.drafts_kept, 20u);
  EXPECT_GT(guessed.stats.draft_rows, guessed.stats.drafts_kept);
  const Outcome short_of_pages =
      AnswersOf(model, *tokenizer, requests,
                {.prefix_cache = true, .prefill_rows_max = 37, .pages = 6, .at_once = true});
  ExpectSameBits(cold, short_of_pages);

  const std::vector<Request> answers = LongAnswers(tokenizer->size());
  const Outcome alone = AnswersOf(model, *tokenizer, answers, {});
  EXPECT_EQ(alone.stats.preemptions, 0u);
  for (const bool prefix_cache : {false, true}) {
    const Outcome preempted = AnswersOf(
        model, *tokenizer, answers,
        {.prefix_cache = prefix_cache, .prefill_rows_max = 37, .pages = 5, .at_once = true});
    ExpectSameBits(alone, preempted);
    EXPECT_GT(preempted.stats.preemptions, 0u);
  }
}

}  // namespace
}  // namespace plumb::engine
