// engine/sequence_states.h
// What the running sequences of some models have beside their pages: for each seat a state that the
// model works on, and room for the checkpoints of the two page boundaries passed last, which go to
// the store when the sequence ends. One allocation at start. A sequence has a seat as long as it
// runs. When what is saved: sequence_pages.h. Thread: engine thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/sequence.h"
#include "kvcache/mapped_memory.h"
#include "model/model.h"

namespace plumb::engine {

// A resource type.
class SequenceStates {
 public:
  // For a `model` with states, which must outlive this or be exchanged. `keeps`: there is room for
  // checkpoints. kInvalidArgument (field "sequences_max"): the system refuses the memory.
  static base::Result<std::unique_ptr<SequenceStates>> Create(const model::Model& model,
                                                              uint32_t sequences_max, bool keeps);
  SequenceStates(const SequenceStates&) = delete;
  SequenceStates& operator=(const SequenceStates&) = delete;

  // A seat for a sequence that has none; one is free (CHECK). The state is what its last owner
  // left: the sequence begins at position 0, or by Load.
  void Take(Sequence& sequence);
  void GiveBack(Sequence& sequence);

  // Whether the state has not gone too far past the boundary for a checkpoint of it.
  bool CanSave(const Sequence& sequence, uint32_t boundary) const;
  // The checkpoint of a boundary that it can save; `checkpoint` is written whole.
  void Save(const Sequence& sequence, uint32_t boundary, std::span<std::byte> checkpoint) const;
  // The same into the sequence's own room, at the place of the boundary two pages before.
  void Keep(Sequence& sequence, uint32_t boundary);
  // What lies at a place where sequence.held.kept says that something does.
  std::span<const std::byte> Kept(const Sequence& sequence, size_t place) const;

  // The sequence goes on from the boundary.
  void Load(Sequence& sequence, std::span<const std::byte> checkpoint, uint32_t boundary);

  // Other weights of the same shape, while no sequence has a seat (CHECK).
  void Exchange(const model::Model& model);

  // Memory that a seat takes.
  static uint64_t SeatBytes(const model::ModelInfo& info, bool keeps);

  uint32_t free() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t total() const { return total_; }

  static constexpr uint64_t kAlignment = 64;

 private:
  SequenceStates(const model::Model& model, uint32_t sequences_max, bool keeps,
                 std::unique_ptr<kvcache::MappedMemory> memory);
  std::byte* Room(const Sequence& sequence, size_t place) const;

  const model::Model* model_;
  const uint32_t total_;
  const uint64_t state_stride_bytes_;
  const uint64_t checkpoint_bytes_;
  const uint64_t checkpoint_stride_bytes_;  // 0: no room
  const std::unique_ptr<kvcache::MappedMemory> memory_;
  std::vector<uint32_t> free_;  // a stack of seats
};

}  // namespace plumb::engine
