// engine/sequence_states_test.cc: seats are given once and taken back, checkpoints lie beside each
// other in the sequence's own room. When which is taken: resume_test.cc.
#include "engine/sequence_states.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace plumb::engine {
namespace {

constexpr uint32_t kPage = model::kPageTokens;

// Its state is one number, its checkpoint that number and the position.
class NumberModel final : public model::Model {
 public:
  explicit NumberModel(uint64_t state_bytes = sizeof(uint64_t)) {
    info_.state_bytes = state_bytes;
    info_.checkpoint_bytes = 2 * sizeof(uint64_t);
    info_.replay_rows = 10;
    info_.backtrack_max = 3;
  }
  const model::ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return 1; }
  uint32_t logits_rows_max() const override { return 1; }
  void Forward(std::span<const model::SequenceRows>, std::span<float>) override {}
  void SaveState(const std::byte* state, uint32_t position,
                 std::span<std::byte> checkpoint) const override {
    const uint64_t where = position;
    std::memcpy(checkpoint.data(), state, sizeof where);
    std::memcpy(checkpoint.data() + sizeof where, &where, sizeof where);
  }
  void LoadState(std::span<const std::byte> checkpoint, uint32_t, std::byte* state) const override {
    std::memcpy(state, checkpoint.data(), sizeof(uint64_t));
  }

 private:
  model::ModelInfo info_;
};

uint64_t NumberAt(const std::byte* data) {
  uint64_t number;
  std::memcpy(&number, data, sizeof number);
  return number;
}

void Set(Sequence& sequence, uint64_t number) {
  std::memcpy(sequence.held.data, &number, sizeof number);
}

TEST(SequenceStates, EachSequenceHasASeatOfItsOwn) {
  const NumberModel model;
  const auto states = SequenceStates::Create(model, 3, true).value();
  std::vector<Sequence> sequences(3);
  for (uint64_t i = 0; i < 3; ++i) {
    states->Take(sequences[i]);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(sequences[i].held.data) % SequenceStates::kAlignment, 0u);
    Set(sequences[i], 100 + i);
    sequences[i].computed = sequences[i].held.end = 2 * kPage;
    states->Keep(sequences[i], kPage * 2);
  }
  EXPECT_EQ(states->free(), 0u);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(NumberAt(sequences[i].held.data), 100 + i);
    EXPECT_EQ(NumberAt(states->Kept(sequences[i], 0).data()), 100 + i);
  }
  states->GiveBack(sequences[1]);
  EXPECT_EQ(sequences[1].held.data, nullptr);
  EXPECT_EQ(states->free(), 1u);
  states->Take(sequences[1]);
  for (Sequence& sequence : sequences) states->GiveBack(sequence);
}

TEST(SequenceStates, KeepsTheLastTwoBoundaries) {
  const NumberModel model;
  const auto states = SequenceStates::Create(model, 1, true).value();
  Sequence sequence;
  states->Take(sequence);
  for (uint32_t page = 1; page <= 5; ++page) {
    Set(sequence, page);
    sequence.computed = sequence.held.end = page * kPage;
    states->Keep(sequence, page * kPage);
  }
  EXPECT_EQ(sequence.held.kept[0], 4 * kPage);
  EXPECT_EQ(sequence.held.kept[1], 5 * kPage);
  EXPECT_EQ(NumberAt(states->Kept(sequence, 0).data()), 4u);
  EXPECT_EQ(NumberAt(states->Kept(sequence, 1).data() + sizeof(uint64_t)), 5 * kPage);
  sequence.resume_max = 4 * kPage;
  states->Load(sequence, states->Kept(sequence, 0), 4 * kPage);
  EXPECT_EQ(NumberAt(sequence.held.data), 4u);
  EXPECT_EQ(sequence.held.end, 4 * kPage);
  states->GiveBack(sequence);
}

TEST(SequenceStates, ABoundaryTooFarBehindCannotBeSaved) {
  const NumberModel model;
  const auto states = SequenceStates::Create(model, 1, true).value();
  Sequence sequence;
  states->Take(sequence);
  sequence.computed = kPage;
  sequence.held.end = kPage + 3;
  EXPECT_TRUE(states->CanSave(sequence, kPage));
  sequence.held.end = kPage + 4;
  EXPECT_FALSE(states->CanSave(sequence, kPage));
  states->GiveBack(sequence);
}

TEST(SequenceStates, RefusesMemoryTheSystemDoesNotHave) {
  const NumberModel model(uint64_t{1} << 58);
  for (const uint32_t sequences : {1u, 1u << 20}) {
    const auto states = SequenceStates::Create(model, sequences, false);
    ASSERT_FALSE(states.ok());
    EXPECT_EQ(states.status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(states.status().field(), "sequences_max");
  }
}

TEST(SequenceStatesDeathTest, StopsOnMisuse) {
  const NumberModel model;
  const auto states = SequenceStates::Create(model, 1, true).value();
  Sequence first, second;
  states->Take(first);
  EXPECT_DEATH(states->Take(second), "have seats");
  EXPECT_DEATH(states->GiveBack(second), "no seat");
  EXPECT_DEATH((void)states->Kept(first, 0), "nothing is kept");
  EXPECT_DEATH(states->Exchange(model), "still run");
  states->GiveBack(first);
}

}  // namespace
}  // namespace plumb::engine
