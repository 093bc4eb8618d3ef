// tests/golden/v41/v41_golden_test.cc
// DeepSeek-V4.1 against the NumPy reference of this folder (MANIFEST.md): stage by stage in f32;
// with stored formats each stage from the reference's inputs, and end to end on checkpoints that
// are not chaotic; 600 tokens with bounded replay and greedy decoding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/disk.h"
#include "golden_file.h"
#include "golden_model.h"
#include "golden_observer.h"
#include "model/families/deepseek_v41_weights.h"
#include "model/families/engram.h"

namespace plumb::model {
namespace {

// The reference sums in double and rounds once; we sum in f32. Discrete choices have margins of at
// least 4e-5.
constexpr double kF32Error = 1e-4;
// Where a stored code may flip on a tie within one unit of f32, and the network does not amplify.
constexpr double kKvqError = 1e-3;

// A code of F4 that rounds the other way is at most a third of its group's largest value.
constexpr double kFlippedCode = 0.34;

std::string Path(const std::string& name) { return std::string(FOLDER) + "/" + name; }
std::string File(const std::string& name) { return Path(name + ".safetensors"); }

void ExpectStages(const GoldenObserver& observer, double error_max,
                  const std::vector<std::string>& stages) {
  for (const std::string& stage : stages) {
    ASSERT_TRUE(observer.errors().contains(stage)) << stage << " was not seen";
    EXPECT_LT(observer.errors().at(stage), error_max) << stage;
  }
}

TEST(V41Golden, F32StageByStage) {
  const GoldenFile golden(File("goldens_f32"));
  GoldenObserver observer(golden, false);
  GoldenModel model(Path("tiny"), Roundings::kF32, &observer);
  model.Begin(0);
  const auto logits = model.Run(golden.Integers("ids"));
  ExpectStages(observer, kF32Error,
               {"attn_in", "attn_out", "ffn_out", "streams", "pre", "moe_w", "final_hidden"});
  EXPECT_EQ(observer.differing(), 0u);
  EXPECT_GT(observer.choices(), 48u * 14);  // experts of ten layers, four selections, one of blocks
  EXPECT_LT(RelativeError(logits, golden.Floats("logits")), kF32Error);
  for (const uint32_t layer : model.config().KvSources()) {
    const std::string number = std::to_string(layer);
    EXPECT_LT(RelativeError(model.MainRows(layer), golden.Floats("main_kv." + number)), kF32Error);
    EXPECT_LT(RelativeError(model.IndexKeys(layer), golden.Floats("index_k." + number)), kF32Error);
  }
  for (const uint32_t layer : {0u, 2u, 9u}) {
    const auto all = golden.Floats("swa_kv." + std::to_string(layer));
    const auto held = model.WindowRows(layer);
    EXPECT_LT(RelativeError(held, std::span(all).last(held.size())), kF32Error);
  }
}

TEST(V41Golden, RowsOfTheNgramTables) {
  const GoldenFile golden(File("goldens_f32"));
  GoldenModel model(Path("tiny"), Roundings::kF32, nullptr);
  tensor::ThreadPool pool({.threads = 1});
  const auto weights =
      MapDeepseekWeights(model.checkpoint(), model.config(),
                         {.pool = pool, .kernels = **tensor::SelectKernels("auto")});
  ASSERT_TRUE(weights.ok()) << weights.status().ToString();
  const auto addresses = EngramAddresses::Create(model.config(), weights->token_classes);
  ASSERT_TRUE(addresses.ok()) << addresses.status().ToString();
  const std::vector<int32_t> ids = golden.Integers("ids");
  const std::vector<int32_t> wanted = golden.Integers("engram_ids");
  std::vector<int32_t> ours;
  for (uint32_t place = 0; place < 2; ++place) {
    for (size_t i = 0; i < ids.size(); ++i) {
      std::vector<TokenId> recent;
      for (size_t back = 0; back < 4 && back <= i; ++back) recent.push_back(TokenId(ids[i - back]));
      std::vector<uint64_t> rows(addresses->rows_per_token());
      addresses->RowsOf(place, recent, rows);
      ours.insert(ours.end(), rows.begin(), rows.end());
    }
  }
  EXPECT_EQ(ours, wanted);
}

TEST(V41Golden, BoundedReplayGivesTheReferencesRows) {
  for (const auto& [name, roundings] :
       {std::pair("goldens_f32", Roundings::kF32), std::pair("goldens_kvq", Roundings::kKvq)}) {
    const GoldenFile golden(File(name));
    const auto keep = static_cast<uint32_t>(golden.Integers("replay_keep")[0]);
    GoldenModel model(Path("tiny"), roundings, nullptr, keep);
    const auto ids = golden.Integers("ids");
    model.Begin(static_cast<uint32_t>(ids.size()) - keep);
    const auto logits = model.Run(ids);
    const auto wanted = golden.Floats("replay_logits");
    ASSERT_EQ(logits.size(), wanted.size());
    // No code of these ids flips, so stored formats need no wider bound; unstored ones miss it
    // by far.
    EXPECT_LT(RelativeError(logits, wanted), kF32Error) << name;
  }
}

// Each stage is computed from the reference's inputs, so that a code that rounds the other way does
// not travel. One flipped F4 code is a sixth of its group's largest value.
TEST(V41Golden, StoredFormatsStageByStage) {
  const GoldenFile golden(File("stages_kvq"));
  GoldenObserver observer(golden, true);
  GoldenModel model(Path("tiny"), Roundings::kKvq, &observer);
  model.Begin(0);
  const auto logits = model.Run(golden.Integers("ids"));
  ExpectStages(observer, kF32Error,
               {"attn_in", "ffn_out", "streams", "pre", "moe_w", "final_hidden"});
  ExpectStages(observer, kKvqError, {"attn_out"});
  EXPECT_EQ(observer.differing(), 0u);
  EXPECT_LT(RelativeError(logits, golden.Floats("logits")), kF32Error);
  uint64_t values = 0, flipped = 0;
  const auto compare = [&](const std::vector<float>& ours, std::vector<float> theirs) {
    theirs.erase(theirs.begin(), theirs.end() - static_cast<ptrdiff_t>(ours.size()));
    values += ours.size();
    for (size_t i = 0; i < ours.size(); ++i) flipped += ours[i] != theirs[i] ? 1 : 0;
  };
  for (const uint32_t layer : model.config().KvSources()) {
    const std::string number = std::to_string(layer);
    compare(model.MainRows(layer), golden.Floats("main_kv." + number));
    compare(model.IndexKeys(layer), golden.Floats("index_k." + number));
  }
  for (uint32_t layer = 0; layer < model.config().layer_count; ++layer) {
    compare(model.WindowRows(layer), golden.Floats("swa_kv." + std::to_string(layer)));
  }
  EXPECT_GT(values, 10'000u);
  EXPECT_LE(flipped, values / 2000) << "of " << values;
}

// BF16 makes exact ties among index scores, so only the size of the difference means anything.
TEST(V41Golden, FullRoundingsAreNearTheReference) {
  const GoldenFile golden(File("goldens_full"));
  GoldenModel model(Path("tiny"), Roundings::kFull, nullptr);
  model.Begin(0);
  const auto logits = model.Run(golden.Integers("ids"));
  const auto wanted = golden.Floats("logits");
  const uint64_t columns = model.vocabulary();
  std::vector<double> errors;
  for (size_t row = 0; row < wanted.size() / columns; ++row) {
    errors.push_back(RelativeError(std::span(logits).subspan(row * columns, columns),
                                   std::span(wanted).subspan(row * columns, columns)));
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.3);
  EXPECT_LT(errors.front(), 0.05);
}

// ---- 600 tokens ----

// Greedy decoding after the replayed prompt, until the reference's two best logits are nearer than
// `near_tie`; returns how many tokens were compared.
size_t CompareGreedy(GoldenModel& model, const GoldenFile& golden, std::vector<float> logits,
                     float near_tie) {
  const auto greedy = golden.Integers("greedy");
  const auto margins = golden.Floats("greedy_margin");
  for (size_t i = 0; i < greedy.size(); ++i) {
    if (margins[i] < near_tie) return i;
    const auto last = std::span(logits).last(model.vocabulary());
    EXPECT_EQ(Largest(last, model.vocabulary())[0], greedy[i]) << "token " << i;
    logits = model.Run(std::span(greedy).subspan(i, 1));
  }
  return greedy.size();
}

// Returns how many greedy tokens were compared.
size_t CompareLong(const std::string& checkpoint, const std::string& name, Roundings roundings,
                   double error_max) {
  SCOPED_TRACE(name);
  const GoldenFile golden(File(name));
  const auto ids = golden.Integers("ids");
  const auto keep = static_cast<uint32_t>(golden.Integers("replay_keep")[0]);
  GoldenModel model(Path(checkpoint), roundings, nullptr, keep);

  model.Begin(0);
  const auto all = model.Run(ids);
  const auto ours = Largest(all, model.vocabulary());
  const auto argmax = golden.Integers("full_argmax");
  const auto top = golden.Floats("full_top5");  // ascending
  EXPECT_EQ(ours.size(), argmax.size());
  size_t near_ties = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == argmax[i]) continue;
    EXPECT_LT(top[5 * i + 4] - top[5 * i + 3], error_max * top[5 * i + 4]) << "position " << i;
    ++near_ties;
  }
  EXPECT_LE(near_ties, 2u);

  model.Begin(static_cast<uint32_t>(ids.size()) - keep);
  const auto replayed = model.Run(ids);
  EXPECT_LT(RelativeError(replayed, golden.Floats("replay_logits")), error_max);
  // The reference wrote these after decoding.
  const auto expect_prefix = [](const std::vector<float>& rows, const std::vector<float>& wanted,
                                double bound) {
    ASSERT_LE(rows.size(), wanted.size());
    EXPECT_LT(RelativeError(rows, std::span(wanted).first(rows.size())), bound);
  };
  const bool exact = roundings == Roundings::kF32;
  for (const uint32_t layer : model.config().KvSources()) {
    const std::string number = std::to_string(layer);
    expect_prefix(model.MainRows(layer, 16), golden.Floats("main_kv." + number),
                  exact ? error_max : kFlippedCode);
    expect_prefix(model.IndexKeys(layer, 16), golden.Floats("index_k." + number),
                  exact ? error_max : kFlippedCode);
  }
  return CompareGreedy(model, golden, replayed, 2e-3f);
}

TEST(V41Golden, LongPromptsInF32) {
  EXPECT_GT(CompareLong("tiny", "long_f32", Roundings::kF32, kF32Error), 20u);
  EXPECT_GT(CompareLong("damped/tiny", "damped/long_f32", Roundings::kF32, kF32Error), 20u);
}

TEST(V41Golden, LongPromptsWithStoredFormatsWhereNothingIsChaotic) {
  EXPECT_GT(CompareLong("damped/tiny", "damped/long_kvq", Roundings::kKvq, kKvqError), 20u);
}

// ---- the trained checkpoint ----

// How far the largest logit is above the second.
float Margin(std::span<const float> logits) {
  std::vector<float> sorted(logits.begin(), logits.end());
  std::nth_element(sorted.begin(), sorted.begin() + 1, sorted.end(), std::greater<>());
  return sorted[0] - sorted[1];
}

// Greedy decoding until the reference's two best logits are nearer than can be told. Its file holds
// no logits, but the margin between those two, so that is compared besides the ids, to within
// `error_max` of our largest logit. Returns the number of tokens compared.
size_t CompareTrained(GoldenModel& model, const nlohmann::json& prompt, const char* mode,
                      double error_max) {
  const nlohmann::json& wanted = prompt.at("modes").at(mode);
  const auto greedy = wanted.at("greedy_ids").get<std::vector<int32_t>>();
  const auto margins = wanted.at("margins").get<std::vector<float>>();
  constexpr float kNearTie = 0.01f;  // logits are about 20
  model.Begin(0);
  std::vector<float> logits = model.Run(prompt.at("prompt_ids").get<std::vector<int32_t>>());
  for (size_t i = 0; i < greedy.size(); ++i) {
    if (margins[i] < kNearTie) return i;
    const auto last = std::span(logits).last(model.vocabulary());
    EXPECT_EQ(Largest(last, model.vocabulary())[0], greedy[i]) << "token " << i;
    EXPECT_NEAR(Margin(last), margins[i], error_max * last[static_cast<size_t>(greedy[i])])
        << "token " << i;
    if (i + 1 < greedy.size()) logits = model.Run(std::span(greedy).subspan(i, 1));
  }
  return greedy.size();
}

TEST(V41Golden, TrainedCheckpointAnswersAsTheReference) {
  const auto text = base::ReadFile(Path("trained/goldens.json"), 1u << 20);
  ASSERT_TRUE(text.ok());
  const auto goldens = nlohmann::json::parse(*text).at("goldens");
  for (const auto& [mode, roundings] :
       {std::pair("f32", Roundings::kF32), std::pair("kvq", Roundings::kKvq)}) {
    GoldenModel model(Path("trained/ckpt"), roundings, nullptr);
    size_t compared = 0;
    for (const nlohmann::json& prompt : goldens) {
      SCOPED_TRACE(std::string(mode) + " " + prompt.at("name").get<std::string>());
      compared +=
          CompareTrained(model, prompt, mode, roundings == Roundings::kF32 ? kF32Error : kKvqError);
    }
    EXPECT_EQ(goldens.size(), 9u);
    EXPECT_GT(compared, 120u);
  }
}

}  // namespace
}  // namespace plumb::model
