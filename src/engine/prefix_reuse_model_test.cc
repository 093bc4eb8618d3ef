// engine/prefix_reuse_model_test.cc: reuse with real arithmetic. A small model of each kind of
// attention gives the same tokens and log-probabilities, bit for bit, from reused pages as from
// computed ones, copied half pages included.
#include <gtest/gtest.h>

#include "engine/engine_testing.h"
#include "model/load.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"

namespace plumb::engine {
namespace {

constexpr uint32_t kContextMax = 1024;

std::vector<Answer> AnswersOf(model::Model& model, const text::Tokenizer& tokenizer,
                              const std::vector<Request>& requests, bool prefix_cache) {
  const base::ManualClock clock;
  EngineOptions options;
  options.prefix_cache = prefix_cache;
  options.step_target = base::Duration{0};
  // Steps of another size than pages, so that the parts fall everywhere.
  options.prefill_rows_max = prefix_cache ? 50 : 64;
  options.kv_budget_bytes = uint64_t{64} * (model.info().page_bytes + 4096);
  const auto engine = Engine::Create(model, tokenizer, clock, options).value();
  std::vector<Answer> answers;
  for (const Request& request : requests) {
    Collector sink(request);
    EXPECT_TRUE(engine->Submit(request, sink).ok());
    while (engine->Step()) engine->CheckPages();
    for (uint32_t i = 0; i < request.samples; ++i) answers.push_back(sink.answer(i));
  }
  return answers;
}

// A conversation of four turns and a branch: each prompt begins like one before.
std::vector<Request> Conversation(uint32_t tokens) {
  base::Rng rng(11);
  std::vector<TokenId> prompt;
  const auto append = [&](uint32_t count) {
    while (count-- > 0) prompt.push_back(TokenId{static_cast<uint32_t>(rng.Below(tokens))});
  };
  std::vector<Request> requests;
  const auto add = [&](uint32_t samples) {
    Request request{.id = RequestId{requests.size() + 1}, .prompt = prompt, .samples = samples};
    request.sampling = {.temperature = 0.9f,
                        .ignore_end = true,
                        .seed = rng.Next(),
                        .tokens_max = 20,
                        .logprobs = true,
                        .top_logprobs = 5};
    requests.push_back(std::move(request));
  };
  for (const uint32_t turn : {150u, 90u, 128u, 61u}) {
    append(turn);
    add(1);
  }
  prompt.resize(301);  // in the middle of a page
  append(40);
  add(3);
  add(1);                                           // the same again
  prompt[5] = TokenId{base::Index(prompt[5]) ^ 1};  // equal pages after another first one
  add(1);
  return requests;
}

class PrefixReuseModel : public testing::TestWithParam<model::TinyModelSpec> {};

TEST_P(PrefixReuseModel, ReusedPagesGiveTheSameBits) {
  const std::string file = model::TinyModel(GetParam());
  const auto gguf = model::Gguf::Parse(std::as_bytes(std::span(file))).value();
  tensor::ThreadPool pool({.threads = 2});
  const auto model = model::LoadModel(*gguf, {.pool = pool,
                                              .kernels = **tensor::SelectKernels("auto"),
                                              .rows_max = 64,
                                              .logits_rows_max = 8,
                                              .context_max = kContextMax})
                         .value();
  const auto tokenizer = MakeTokenizer();
  const std::vector<Request> requests = Conversation(tokenizer->size());
  const std::vector<Answer> cold = AnswersOf(*model, *tokenizer, requests, false);
  const std::vector<Answer> warm = AnswersOf(*model, *tokenizer, requests, true);
  uint32_t cached = 0;
  ASSERT_EQ(cold.size(), warm.size());
  for (size_t i = 0; i < cold.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "answer " << i);
    EXPECT_EQ(cold[i].finish->cached_tokens, 0u);
    cached += warm[i].finish->cached_tokens;
    EXPECT_EQ(cold[i].tokens, warm[i].tokens);
    ASSERT_EQ(cold[i].logprobs.size(), warm[i].logprobs.size());
    for (size_t token = 0; token < cold[i].logprobs.size(); ++token) {
      const TokenLogprob &a = cold[i].logprobs[token], &b = warm[i].logprobs[token];
      ASSERT_EQ(a.logprob, b.logprob) << token;
      ASSERT_EQ(a.top.size(), b.top.size());
      for (size_t k = 0; k < a.top.size(); ++k) ASSERT_EQ(a.top[k].logprob, b.top[k].logprob);
    }
  }
  // Turns two to four reuse the prompt before (150, 240, 368); each sample of the branch what comes
  // before it; the same again all but one token; nothing after another first page.
  EXPECT_EQ(cached, 150 + 240 + 368 + 3 * 301 + 340u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PrefixReuseModel,
                         testing::Values(model::TinyModelSpec{},
                                         model::TinyModelSpec{.architecture = "qwen2",
                                                              .qkv_bias = true},
                                         model::TinyModelSpec{.architecture = "gemma3",
                                                              .layers = 4,
                                                              .sliding_window = 100,
                                                              .window_period = 2}),
                         [](const auto& kind) { return kind.param.architecture; });

}  // namespace
}  // namespace plumb::engine
