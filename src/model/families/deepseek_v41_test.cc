// model/families/deepseek_v41_test.cc
// The promise of the family: a row's logits and hidden states are the same bits however the tokens
// are split into steps, batched, taken back, resumed from a checkpoint, threaded, and whichever
// kernels run. What the numbers must be: tests/golden/v41.
#include "model/families/deepseek_v41.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "model/families/deepseek_runner.h"

namespace plumb::model {
namespace {

struct FamilyCase {
  const char* name;
  DeepseekTinySpec spec;
  Roundings roundings;
  uint32_t replay_rows = 0;
};

// More of everything, with other places for what is special.
const DeepseekTinySpec kWide = {.hidden = 96,
                                .ratios = {0, 2, 2, 2, 1, 1, 1},
                                .kv_sources = {1, 3, 4},
                                .index_sources = {1, 2, 3, 4, 6},
                                .heads = 6,
                                .head_dim = 64,
                                .rope_dims = 32,
                                .output_groups = 3,
                                .window = 20,
                                .candidate_source = 4,
                                .experts = 12,
                                .experts_used = 5,
                                .streams = 3,
                                .engram_layers = {0, 2, 5},
                                .seed = 9};

const FamilyCase kCases[] = {
    {"f32", {}, Roundings::kF32},
    {"kvq", {}, Roundings::kKvq},
    {"full", {}, Roundings::kFull},
    {"wide_kvq", kWide, Roundings::kKvq},
    {"wide_f32_replay", kWide, Roundings::kF32, 40},
    {"kvq_replay", {}, Roundings::kKvq, 30},
    {"no_engram_no_candidates",
     {.candidate_source = kNoLayer, .engram_layers = {}},
     Roundings::kKvq},
};

class DeepseekExactness : public testing::TestWithParam<FamilyCase> {
 protected:
  DeepseekRunOptions Options() const {
    return {.roundings = GetParam().roundings, .replay_rows = GetParam().replay_rows};
  }
  uint32_t ReplayFrom(size_t prompt) const {
    const uint32_t rows = GetParam().replay_rows;
    return rows == 0 || prompt < rows ? 0 : static_cast<uint32_t>(prompt) - rows;
  }
  std::vector<float> Whole(Model& model, const std::vector<TokenId>& tokens) const {
    DeepseekSequence sequence(model, tokens, ReplayFrom(tokens.size()));
    return RunDeepseek(model, sequence, [] { return 300u; });
  }
  const HfFiles files_ = DeepseekTinyFiles(MakeDeepseekTiny(GetParam().spec));
};

TEST_P(DeepseekExactness, ChunksDoNotChangeABit) {
  DeepseekRunner runner(files_, Options());
  const auto tokens = RandomTokens(170, runner.vocabulary(), 7);
  const auto whole = Whole(runner.model(), tokens);
  ASSERT_FALSE(whole.empty());
  for (const float logit : whole) ASSERT_TRUE(std::isfinite(logit));
  base::Rng rng(11);
  for (const uint32_t bound : {1u, 2u, 9u, 100u}) {
    DeepseekSequence sequence(runner.model(), tokens, ReplayFrom(tokens.size()));
    const auto pieces = RunDeepseek(runner.model(), sequence,
                                    [&] { return static_cast<uint32_t>(1 + rng.Below(bound)); });
    EXPECT_TRUE(SameBits(whole, pieces)) << bound;
  }
}

// After every step some drafts are computed in vain, up to as many as the model allows; they meet
// window slots, open groups, published main rows and index keys that are needed later.
TEST_P(DeepseekExactness, RejectedDraftsLeaveNoTrace) {
  DeepseekRunner runner(files_, Options());
  const auto tokens = RandomTokens(170, runner.vocabulary(), 8);
  const auto whole = Whole(runner.model(), tokens);
  const uint32_t vocabulary = runner.vocabulary();
  base::Rng rng(12);
  DeepseekSequence sequence(runner.model(), tokens, ReplayFrom(tokens.size()));
  std::vector<float> pieces;
  while (sequence.left() > 0) {
    const bool prompt = sequence.done < tokens.size() / 2;
    const uint32_t bound = prompt ? 30 : 3;
    const auto count = std::min(sequence.left(), static_cast<uint32_t>(1 + rng.Below(bound)));
    std::vector<TokenId> some(tokens.begin() + sequence.done,
                              tokens.begin() + sequence.done + count);
    const auto drafts = RandomTokens(rng.Below(7), vocabulary, rng.Next());
    some.insert(some.end(), drafts.begin(), drafts.end());
    const SequenceRows rows[] = {sequence.Rows(some)};
    std::vector<float> logits(uint64_t{rows[0].logits_rows} * vocabulary);
    runner.model().Forward(rows, logits);
    const uint64_t vain = std::min<uint64_t>(drafts.size(), rows[0].logits_rows) * vocabulary;
    pieces.insert(pieces.end(), logits.begin(), logits.end() - static_cast<ptrdiff_t>(vain));
    sequence.done += count;
  }
  EXPECT_TRUE(SameBits(whole, pieces));
}

// Takes rows of random sequences as the next step.
std::vector<SequenceRows> RandomStep(std::vector<std::unique_ptr<DeepseekSequence>>& sequences,
                                     base::Rng& rng, std::vector<uint32_t>& who) {
  std::vector<SequenceRows> step;
  uint32_t room = 60;
  who.clear();
  for (uint32_t i = 0; i < sequences.size(); ++i) {
    DeepseekSequence& sequence = *sequences[i];
    if (sequence.left() == 0 || room == 0 || rng.Below(4) == 0) continue;
    const uint64_t bound = rng.Below(2) == 0 ? 1 : 40;
    const uint32_t count =
        std::min({sequence.left(), room, static_cast<uint32_t>(1 + rng.Below(bound))});
    step.push_back(sequence.Take(count));
    step.back().logits_rows =
        std::min(step.back().logits_rows, static_cast<uint32_t>(rng.Below(count + 1)));
    who.push_back(i);
    room -= count;
  }
  return step;
}

// What each sequence gives alone, for every row from its replay_from on.
struct Alone {
  std::vector<float> logits, hidden;
};

// Steps of random composition until all sequences are through, against each sequence alone; of some
// sequences in a step hidden states are wanted. Returns the number of rows compared.
uint32_t CompareInRandomSteps(Model& model,
                              std::vector<std::unique_ptr<DeepseekSequence>>& sequences,
                              const std::vector<Alone>& alone, uint64_t seed) {
  base::Rng rng(seed);
  const uint64_t vocabulary = model.info().vocabulary_size, width = model.info().hidden_width;
  uint32_t compared = 0;
  std::vector<uint32_t> who;
  while (std::any_of(sequences.begin(), sequences.end(),
                     [](const auto& sequence) { return sequence->left() > 0; })) {
    std::vector<SequenceRows> step = RandomStep(sequences, rng, who);
    if (step.empty()) continue;
    uint32_t wanted = 0;
    for (const SequenceRows& rows : step) wanted += rows.logits_rows;
    compared += wanted;
    std::vector<std::vector<float>> hidden(step.size());
    for (size_t i = 0; i < step.size(); ++i) {
      if (rng.Below(3) > 0) continue;
      hidden[i].resize(step[i].logits_rows * width);
      step[i].hidden = hidden[i];
      wanted -= std::exchange(step[i].logits_rows, 0);
    }
    std::vector<float> logits(wanted * vocabulary);
    model.Forward(step, logits);
    std::span<const float> next = logits;
    for (size_t i = 0; i < step.size(); ++i) {
      const uint64_t rows = sequences[who[i]]->done - step[i].replay_from;  // when any are wanted
      const auto last_of = [&](const std::vector<float>& all, uint64_t row, uint64_t count) {
        return count == 0 ? std::span<const float>()
                          : std::span(all).subspan(rows * row - count, count);
      };
      const Alone& expected = alone[who[i]];
      const uint64_t count = step[i].logits_rows * vocabulary;
      EXPECT_TRUE(SameBits(next.first(count), last_of(expected.logits, vocabulary, count)));
      EXPECT_TRUE(SameBits(hidden[i], last_of(expected.hidden, width, hidden[i].size())));
      next = next.subspan(count);
    }
  }
  return compared;
}

TEST_P(DeepseekExactness, BatchMatesThreadsAndKernelsDoNotChangeABit) {
  DeepseekRunner one(files_, Options());
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Alone> alone;
  for (uint32_t i = 0; i < 4; ++i) {
    prompts.push_back(RandomTokens(10 + 45 * i, one.vocabulary(), i));
    DeepseekSequence sequence(one.model(), prompts.back(), ReplayFrom(prompts.back().size()));
    alone.push_back({Whole(one.model(), prompts.back()),
                     DeepseekHidden(one.model(), sequence, [] { return 300u; })});
    ASSERT_FALSE(alone.back().hidden.empty());
    for (const float value : alone.back().hidden) ASSERT_TRUE(std::isfinite(value));
  }
  for (const tensor::KernelTable* kernels : tensor::AllKernels()) {
    for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
      // The judge is slow, and threads are the same to it.
      if (kernels->name == "scalar" && threads != 2) continue;
      const uint64_t seed = 1000 * threads + kernels->name.size();
      SCOPED_TRACE(testing::Message()
                   << kernels->name << ", " << threads << " threads, seed " << seed);
      DeepseekRunner runner(files_, {.threads = threads,
                                     .kernels = *kernels,
                                     .roundings = GetParam().roundings,
                                     .replay_rows = GetParam().replay_rows});
      std::vector<std::unique_ptr<DeepseekSequence>> sequences;
      for (const auto& tokens : prompts) {
        sequences.push_back(
            std::make_unique<DeepseekSequence>(runner.model(), tokens, ReplayFrom(tokens.size())));
      }
      EXPECT_GT(CompareInRandomSteps(runner.model(), sequences, alone, seed), 30u);
    }
  }
}

// A sealed page holds the same bytes however it was filled.
TEST_P(DeepseekExactness, PagesHoldTheSameBytesHoweverTheyWereFilled) {
  DeepseekRunner runner(files_, Options());
  const auto tokens = RandomTokens(kPageTokens + 30, runner.vocabulary(), 13);
  DeepseekSequence whole(runner.model(), tokens), pieces(runner.model(), tokens);
  RunDeepseek(runner.model(), whole, [] { return 300u; });
  while (pieces.left() > 0) {
    SequenceRows rows[] = {pieces.Take(std::min(pieces.left(), 17u))};
    rows[0].logits_rows = 0;
    runner.model().Forward(rows, {});
  }
  EXPECT_EQ(whole.memory, pieces.memory);
}

// From every page boundary before the replay, or from every one without, with rows computed beyond
// it or not.
TEST_P(DeepseekExactness, ResumesFromACheckpointOfEachPage) {
  DeepseekRunner runner(files_, Options());
  Model& model = runner.model();
  const auto tokens = RandomTokens(3 * kPageTokens + 35, runner.vocabulary(), 14);
  const auto whole = Whole(model, tokens);
  const uint32_t replay_from = ReplayFrom(tokens.size());
  const uint32_t last = GetParam().replay_rows > 0 ? replay_from : 3 * kPageTokens;
  ASSERT_GE(last, 2 * kPageTokens);
  for (uint32_t page = 1; page * kPageTokens <= last; ++page) {
    for (const uint32_t beyond : {0u, 1u, 6u}) {
      DeepseekSequence first(model, tokens, replay_from);
      const uint32_t boundary = page * kPageTokens;
      std::vector<TokenId> some(tokens.begin(), tokens.begin() + boundary);
      const auto vain = RandomTokens(beyond, runner.vocabulary(), 3);
      some.insert(some.end(), vain.begin(), vain.end());
      for (size_t done = 0; done < some.size();) {
        const size_t count = std::min<size_t>(some.size() - done, 100);
        first.done = static_cast<uint32_t>(done);
        SequenceRows rows[] = {first.Rows(std::span(some).subspan(done, count))};
        rows[0].logits_rows = 0;
        model.Forward(rows, {});
        done += count;
      }
      std::vector<std::byte> checkpoint(model.info().checkpoint_bytes);
      model.SaveState(first.state.data(), boundary, checkpoint);

      DeepseekSequence second(model, tokens, replay_from);
      for (uint32_t i = 0; i < page; ++i) second.memory[i] = first.memory[i];
      model.LoadState(checkpoint, boundary, second.state.data());
      second.done = boundary;
      const auto resumed = RunDeepseek(model, second, [] { return 33u; });
      ASSERT_LE(resumed.size(), whole.size());
      // Without replay the rows before have logits too.
      EXPECT_TRUE(
          SameBits({whole.end() - static_cast<ptrdiff_t>(resumed.size()), whole.end()}, resumed))
          << page << " pages, " << beyond << " beyond";
    }
  }
}

// A sequence takes over the memory of another without a trace of it.
TEST_P(DeepseekExactness, PositionZeroBeginsTheStateAnew) {
  DeepseekRunner runner(files_, Options());
  const auto tokens = RandomTokens(60, runner.vocabulary(), 15);
  const auto whole = Whole(runner.model(), tokens);
  DeepseekSequence used(runner.model(), RandomTokens(60, runner.vocabulary(), 16));
  RunDeepseek(runner.model(), used, [] { return 300u; });
  used.tokens = tokens;
  used.done = 0;
  used.replay_from = ReplayFrom(tokens.size());
  EXPECT_TRUE(SameBits(whole, RunDeepseek(runner.model(), used, [] { return 7u; })));
}

INSTANTIATE_TEST_SUITE_P(Families, DeepseekExactness, testing::ValuesIn(kCases),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Deepseek, RefusesAReplayThatDoesNotCoverWindowAndBacktracking) {
  const HfFiles files = DeepseekTinyFiles(MakeDeepseekTiny({}));
  const auto checkpoint = AssembleDeepseek(files);
  tensor::ThreadPool pool({.threads = 1});
  const auto load = [&](uint32_t replay, uint32_t backtrack) {
    return LoadDeepseekV41(*checkpoint, {.pool = pool,
                                         .kernels = Fastest(),
                                         .rows_max = 8,
                                         .logits_rows_max = 8,
                                         .replay_rows = replay,
                                         .backtrack_rows = backtrack})
        .status();
  };
  EXPECT_TRUE(load(12, 6).ok());
  EXPECT_TRUE(load(0, 6).ok());
  const base::Status status = load(11, 6);
  EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
  EXPECT_EQ(status.field(), "replay_rows");
  EXPECT_NE(status.message().find("11"), std::string::npos);
  EXPECT_NE(status.message().find("at least 12"), std::string::npos);
  EXPECT_EQ(load(0, 5000).field(), "backtrack_rows");
}

TEST(Deepseek, ReplaysMoreRowsByDefaultWhereTheWindowAsksForThem) {
  const auto replayed = [](uint32_t window) {
    const HfFiles files = DeepseekTinyFiles(MakeDeepseekTiny({.window = window}));
    DeepseekRunner runner(files, {.rows_max = 8, .replay_rows = std::nullopt});
    return runner.model().info().replay_rows;
  };
  EXPECT_EQ(replayed(6), 140u);
  EXPECT_EQ(replayed(128), 140u);
  EXPECT_EQ(replayed(160), 172u);
}

TEST(Deepseek, TellsTheEngineWhatItNeeds) {
  const HfFiles files = DeepseekTinyFiles(MakeDeepseekTiny({}));
  DeepseekRunner runner(files, {.replay_rows = 20});
  const ModelInfo& info = runner.model().info();
  EXPECT_EQ(info.numerics_id, "d1-kvq-k20");
  EXPECT_EQ(info.replay_rows, 20u);
  EXPECT_EQ(info.backtrack_max, 6u);
  // Three encoder layers, a window of 6 rows of 33 bytes, two token ids.
  EXPECT_EQ(info.checkpoint_bytes, 3u * 6 * 33 + 8);
  EXPECT_GT(info.state_bytes, info.checkpoint_bytes);
  // Without replay, those of all layers.
  DeepseekRunner whole(files, {.replay_rows = 0});
  EXPECT_GT(whole.model().info().checkpoint_bytes, info.checkpoint_bytes);
  EXPECT_EQ((whole.model().info().checkpoint_bytes - 8) % (6 * 33), 0u);
  EXPECT_EQ(info.never_sampled.size(), 1u) << "the place of an image";
}

TEST(DeepseekDeathTest, RefusesWhatItsRingsNoLongerHold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const HfFiles files = DeepseekTinyFiles(MakeDeepseekTiny({}));
  DeepseekRunner runner(files, {});
  const auto tokens = RandomTokens(30, runner.vocabulary(), 1);
  DeepseekSequence sequence(runner.model(), tokens);
  RunDeepseek(runner.model(), sequence, [] { return 30u; });
  const auto run_at = [&](uint32_t position, bool with_state) {
    sequence.done = position;
    SequenceRows rows[] = {sequence.Rows(std::span(tokens).first(1))};
    rows[0].logits_rows = 0;
    if (!with_state) rows[0].state = nullptr;
    runner.model().Forward(rows, {});
  };
  EXPECT_DEATH(run_at(23, true), "newest 30");
  EXPECT_DEATH(run_at(31, true), "position 31");
  EXPECT_DEATH(run_at(24, false), "without state");
  run_at(24, true);
}

}  // namespace
}  // namespace plumb::model
