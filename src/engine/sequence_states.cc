// engine/sequence_states.cc
// Seats are equal: a state, then kKeptMax checkpoints.
#include "engine/sequence_states.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"
#include "base/check.h"

namespace plumb::engine {
namespace {

uint64_t Aligned(uint64_t bytes) {
  constexpr uint64_t kUnit = SequenceStates::kAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

uint64_t SequenceStates::SeatBytes(const model::ModelInfo& info, bool keeps) {
  return Aligned(info.state_bytes) +
         (keeps ? HeldState::kKeptMax * Aligned(info.checkpoint_bytes) : 0);
}

base::Result<std::unique_ptr<SequenceStates>> SequenceStates::Create(const model::Model& model,
                                                                     uint32_t sequences_max,
                                                                     bool keeps) {
  const model::ModelInfo& info = model.info();
  CHECK(info.state_bytes > 0 && sequences_max > 0 && (!keeps || info.checkpoint_bytes > 0));
  const auto bytes = base::CheckedMul(SeatBytes(info, keeps), sequences_max);
  auto memory = bytes ? kvcache::MappedMemory::Create(*bytes) : nullptr;
  if (memory == nullptr) {
    return base::InvalidArgument(
        "sequences_max", fmt::format("the system refuses the memory of {} sequences, {} bytes each "
                                     "beside their pages; run fewer at once",
                                     sequences_max, SeatBytes(info, keeps)));
  }
  return std::unique_ptr<SequenceStates>(
      new SequenceStates(model, sequences_max, keeps, std::move(memory)));
}

SequenceStates::SequenceStates(const model::Model& model, uint32_t sequences_max, bool keeps,
                               std::unique_ptr<kvcache::MappedMemory> memory)
    : model_(&model),
      total_(sequences_max),
      state_stride_bytes_(Aligned(model.info().state_bytes)),
      checkpoint_bytes_(model.info().checkpoint_bytes),
      checkpoint_stride_bytes_(keeps ? Aligned(model.info().checkpoint_bytes) : 0),
      memory_(std::move(memory)) {
  free_.reserve(sequences_max);
  for (uint32_t seat = sequences_max; seat > 0; --seat) free_.push_back(seat - 1);
}

void SequenceStates::Take(Sequence& sequence) {
  CHECK(sequence.held.data == nullptr) << "sequence " << sequence.order << " has a seat";
  CHECK(!free_.empty()) << "more sequences run than have seats";
  const uint32_t seat = free_.back();
  free_.pop_back();
  const uint64_t seat_bytes = state_stride_bytes_ + HeldState::kKeptMax * checkpoint_stride_bytes_;
  sequence.held = {.data = memory_->data() + seat * seat_bytes, .seat = seat};
}

void SequenceStates::GiveBack(Sequence& sequence) {
  CHECK(sequence.held.data != nullptr) << "sequence " << sequence.order << " has no seat";
  free_.push_back(sequence.held.seat);
  CHECK(free_.size() <= total_);
  sequence.held = {};
}

bool SequenceStates::CanSave(const Sequence& sequence, uint32_t boundary) const {
  CHECK(boundary <= sequence.held.end) << boundary << " of " << sequence.held.end;
  return sequence.held.end - boundary <= model_->info().backtrack_max;
}

void SequenceStates::Save(const Sequence& sequence, uint32_t boundary,
                          std::span<std::byte> checkpoint) const {
  CHECK(CanSave(sequence, boundary) && boundary <= sequence.computed);
  CHECK(checkpoint.size() == checkpoint_bytes_);
  model_->SaveState(sequence.held.data, boundary, checkpoint);
}

void SequenceStates::Keep(Sequence& sequence, uint32_t boundary) {
  const size_t place = boundary / model::kPageTokens % HeldState::kKeptMax;
  Save(sequence, boundary, {Room(sequence, place), checkpoint_bytes_});
  sequence.held.kept[place] = boundary;
}

std::span<const std::byte> SequenceStates::Kept(const Sequence& sequence, size_t place) const {
  CHECK(sequence.held.kept[place] > 0) << "nothing is kept at " << place;
  return {Room(sequence, place), checkpoint_bytes_};
}

void SequenceStates::Load(Sequence& sequence, std::span<const std::byte> checkpoint,
                          uint32_t boundary) {
  CHECK(checkpoint.size() == checkpoint_bytes_);
  CHECK(!sequence.full_pass && boundary <= sequence.resume_max) << boundary;
  model_->LoadState(checkpoint, boundary, sequence.held.data);
  sequence.held.end = boundary;
}

void SequenceStates::Exchange(const model::Model& model) {
  CHECK(free() == total_) << total_ - free() << " sequences still run";
  model_ = &model;
}

std::byte* SequenceStates::Room(const Sequence& sequence, size_t place) const {
  CHECK(checkpoint_stride_bytes_ > 0 && sequence.held.data != nullptr);
  return sequence.held.data + state_stride_bytes_ + place * checkpoint_stride_bytes_;
}

}  // namespace plumb::engine
