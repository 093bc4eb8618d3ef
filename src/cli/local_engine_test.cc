// cli/local_engine_test.cc
// From files to answers, and from one set of weights to another while it runs, on tiny models.
#include "cli/local_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bounded_queue.h"
#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

using base::Code;
using base::TokenId;
using testing::HasSubstr;

constexpr uint32_t kF16 = 1;

struct Told {
  std::vector<TokenId> tokens;
  uint32_t version = 0;
  bool operator==(const Told&) const = default;
};

class Sink final : public engine::EventSink {
 public:
  void OnEvent(engine::TokenEvent event) override { CHECK(events_.Push(std::move(event))); }
  void WaitBegun() { first_ = *events_.Pop(); }
  Told Wait() {
    Told told;
    while (true) {
      const engine::TokenEvent event = first_ ? *std::exchange(first_, {}) : *events_.Pop();
      told.tokens.insert(told.tokens.end(), event.tokens.begin(), event.tokens.end());
      if (!event.finish) continue;
      told.version = event.finish->weights_version;
      return told;
    }
  }

 private:
  base::BoundedQueue<engine::TokenEvent> events_{1000};
  std::optional<engine::TokenEvent> first_;
};

class LocalEngineTest : public testing::Test {
 protected:
  LocalEngineTest() {
    settings_.threads = 2;
    settings_.sequences = 4;
    settings_.kv_memory = 8u << 20;
  }
  ModelReference Store(const std::string& name, const model::TinyModelSpec& spec) const {
    EXPECT_TRUE(base::WriteFileAtomic(folder_.File(name), model::TinyModel(spec)).ok());
    return {nullptr, folder_.File(name), name};
  }
  std::unique_ptr<LocalEngine> Load(EngineModels models) const {
    auto local = LocalEngine::Load(std::move(models), settings_, {.clock = clock_}, NoProgress());
    EXPECT_TRUE(local.ok()) << local.status().ToString();
    return local.ok() ? std::move(local).value() : nullptr;
  }
  base::Status Submit(LocalEngine& local, uint32_t tokens, Sink& sink) {
    engine::Request request{};
    request.id = engine::RequestId{++last_id_};
    for (uint32_t i = 0; i < 200; ++i) request.prompt.push_back(TokenId{(7 * i) % 250});
    request.sampling.tokens_max = tokens;
    request.sampling.ignore_end = true;
    request.sampling.seed = 5;
    return local.engine().Submit(std::move(request), sink);
  }
  Told Ask(LocalEngine& local, uint32_t tokens = 24) {
    Sink sink;
    const base::Status status = Submit(local, tokens, sink);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return status.ok() ? sink.Wait() : Told{};
  }
  base::Status Replace(LocalEngine& local, const ModelReference& reference) {
    return local.Replace(
        reference, clock_.Now() + base::Seconds(60),
        [&](uint32_t version, const std::string& name) { announced_.emplace_back(version, name); });
  }

  base::ScratchFolder folder_;
  base::SystemClock clock_;
  EngineSettings settings_;
  std::vector<std::pair<uint32_t, std::string>> announced_;
  uint64_t last_id_ = 0;
};

TEST_F(LocalEngineTest, OtherWeightsAnswerAsIfTheyHadBeenThereFromTheStart) {
  const ModelReference first = Store("first.gguf", {.types = {kF16}, .seed = 1});
  const ModelReference second = Store("second.gguf", {.types = {kF16}, .seed = 2});
  const auto local = Load({first, {}});
  const auto fresh = Load({second, {}});
  ASSERT_TRUE(local && fresh);
  const Told before = Ask(*local);
  EXPECT_EQ(before, Ask(*local)) << "the second time from cached pages";
  const std::string old_name = local->fingerprint();
  ASSERT_TRUE(Replace(*local, second).ok());
  const Told after = Ask(*local);
  EXPECT_EQ(after.tokens, Ask(*fresh).tokens);
  EXPECT_NE(after.tokens, before.tokens);
  EXPECT_EQ(before.version, 1u);
  EXPECT_EQ(after.version, 2u);
  EXPECT_EQ(local->fingerprint(), fresh->fingerprint());
  EXPECT_NE(local->fingerprint(), old_name);
  EXPECT_EQ(local->content(), fresh->content());
  ASSERT_EQ(announced_.size(), 1u);
  EXPECT_EQ(announced_[0], (std::pair{2u, local->fingerprint()}));
  ASSERT_TRUE(Replace(*local, first).ok());
  EXPECT_EQ(Ask(*local).tokens, before.tokens) << "and no page of the others is reused";
}

TEST_F(LocalEngineTest, WhatHasBegunEndsOnTheOldWeightsAndThenTheOthersAnswer) {
  const auto local = Load({Store("first.gguf", {.types = {kF16}, .seed = 1}), {}});
  ASSERT_TRUE(local);
  const Told expected = Ask(*local, 400);
  Sink sink;
  ASSERT_TRUE(Submit(*local, 400, sink).ok());
  sink.WaitBegun();
  // Nothing else wakes the engine when it has ended.
  ASSERT_TRUE(Replace(*local, Store("second.gguf", {.types = {kF16}, .seed = 2})).ok());
  EXPECT_EQ(sink.Wait(), expected);
  EXPECT_EQ(Ask(*local, 24).version, 2u);
}

TEST_F(LocalEngineTest, WeightsThatDoNotFitAreRefusedAndTheOldOnesGoOn) {
  const ModelReference first = Store("first.gguf", {.types = {kF16}});
  const auto local = Load({first, {}});
  ASSERT_TRUE(local);
  const Told before = Ask(*local);
  const struct {
    const char* name;
    model::TinyModelSpec spec;
  } kCases[] = {
      {"layers.gguf", {.layers = 3, .types = {kF16}}},
      {"vocabulary.gguf", {.vocabulary = 333, .types = {kF16}}},
      {"context.gguf", {.context = 64, .types = {kF16}}},
  };
  for (const auto& test : kCases) {
    const base::Status status = Replace(*local, Store(test.name, test.spec));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << test.name << ": " << status.ToString();
    EXPECT_EQ(status.field(), "model") << test.name;
  }
  EXPECT_EQ(Replace(*local, {nullptr, folder_.File("none.gguf"), "none"}).code(), Code::kNotFound);
  ASSERT_TRUE(base::WriteFileAtomic(folder_.File("text.gguf"), "no model").ok());
  const base::Status damaged = Replace(*local, {nullptr, folder_.File("text.gguf"), "text"});
  EXPECT_EQ(damaged.code(), Code::kCorrupt);
  EXPECT_THAT(damaged.message(), HasSubstr("text.gguf"));
  EXPECT_EQ(Ask(*local), before);
}

TEST_F(LocalEngineTest, ADraftModelChangesNoAnswer) {
  const ModelReference target = Store("target.gguf", {.types = {kF16}, .seed = 1});
  const ModelReference draft = Store("draft.gguf", {.layers = 1, .types = {kF16}, .seed = 1});
  settings_.speculation = "off";
  const auto plain = Load({target, {}});
  settings_.speculation = "draft:" + draft.path;
  const auto drafted = Load({target, draft});
  ASSERT_TRUE(plain && drafted);
  EXPECT_EQ(Ask(*plain).tokens, Ask(*drafted).tokens);
}

TEST_F(LocalEngineTest, ADraftModelOfOtherTokensIsRefusedByItsFlag) {
  const ModelReference target = Store("target.gguf", {.types = {kF16}});
  const ModelReference draft = Store("draft.gguf", {.vocabulary = 3200, .types = {kF16}});
  settings_.speculation = "draft:" + draft.path;
  const auto local = LocalEngine::Load({target, draft}, settings_, {.clock = clock_}, NoProgress());
  EXPECT_EQ(local.status().field(), "--speculation") << local.status().ToString();
}

TEST_F(LocalEngineTest, SynchronousOrNotTheAnswersAreTheSame) {
  const ModelReference target = Store("target.gguf", {.types = {kF16}});
  const auto beside = Load({target, {}});
  settings_.synchronous = true;
  const auto between = Load({target, {}});
  ASSERT_TRUE(beside && between);
  EXPECT_EQ(Ask(*beside), Ask(*between));
}

TEST_F(LocalEngineTest, FlagsChooseDeepseeksArithmetic) {
  const auto mini = ResolveModel(ModelStore("", ShippedFolders(ThisProgram())), "v41-mini");
  ASSERT_TRUE(mini.ok()) << mini.status().ToString();
  settings_.context = 1024;
  settings_.kv_memory = 64u << 20;
  const auto usual = Load({*mini, {}});
  settings_.numerics = "f32";
  settings_.replay = "off";
  const auto chosen = Load({*mini, {}});
  ASSERT_TRUE(usual && chosen);
  EXPECT_THAT(usual->numerics_id(), testing::StartsWith("d1-kvq-k140"));
  EXPECT_THAT(chosen->numerics_id(), testing::StartsWith("d1-f32-k0"));
  EXPECT_NE(usual->fingerprint(), chosen->fingerprint());
}

TEST_F(LocalEngineTest, FlagsThatTheModelHasNoUseForAreRefusedByName) {
  const auto mini = ResolveModel(ModelStore("", ShippedFolders(ThisProgram())), "v41-mini");
  ASSERT_TRUE(mini.ok()) << mini.status().ToString();
  const ModelReference other = Store("other.gguf", {.types = {kF16}});
  const auto refused = [&](const ModelReference& model) {
    const base::Status status =
        LocalEngine::Load({model, {}}, settings_, {.clock = clock_}, NoProgress()).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(status.field()));
    return status.field();
  };
  settings_.replay = "37";
  EXPECT_EQ(refused(*mini), "--replay") << "less than the window of 32 and 6";
  EXPECT_EQ(refused(other), "--replay");
  settings_.replay.clear();
  settings_.tool_format = "hermes";
  EXPECT_EQ(refused(*mini), "tool-format") << "a format that it would not use";
  settings_.tool_format = "auto";
  settings_.numerics = "kvq";
  EXPECT_EQ(refused(other), "--numerics");
  settings_.numerics.clear();
  settings_.kv_format = "q8";
  EXPECT_EQ(refused(*mini), "--kv-format");
}

}  // namespace
}  // namespace plumb::cli
