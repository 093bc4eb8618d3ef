// engine/hash_window.h
// The state of a HashModel that has one: what it computed of a sequence's last rows, in two layers
// that each look back a window. The lower one begins at position 0; the upper one at replay_from,
// and it is in checkpoints only when nothing is replayed. Every row chains all before it in its
// layer, so what is stale, lost or another sequence's changes all that follows; what the contract
// of model/model.h rules out is a CHECK here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/check.h"
#include "model/model.h"

namespace plumb::engine {

// What such a model has beside its pages; window == 0: nothing.
struct HashStateShape {
  uint32_t window = 0;  // rows that a row sees of its layer, itself included; >= 2
  uint32_t backtrack_max = 0;
  uint32_t replay_rows = 0;
};

// A row in both layers.
struct HashRow {
  uint64_t place = 0;  // 1 + position; 0: none
  uint64_t page = 0;   // what its page says, to recognise the sequence
  uint64_t lower = 0;
  uint64_t upper = 0;  // 0 before replay_from
};

// A view of a state's bytes.
class HashWindow {
 public:
  HashWindow(const HashStateShape& shape, std::byte* data) : shape_(shape), data_(data) {}

  static uint64_t StateBytes(const HashStateShape& shape) {
    return sizeof(Head) + Slots(shape) * sizeof(HashRow);
  }
  static uint64_t CheckpointBytes(const HashStateShape& shape) {
    return (shape.window - 1) * sizeof(HashRow);
  }

  // Rows from `position` on follow; `page_before`: what the page says of the row before.
  void Enter(uint32_t position, uint32_t replay_from, uint64_t page_before) {
    Head head = Read<Head>(0);
    if (position == 0) {
      std::memset(data_, 0, StateBytes(shape_));
      head = {.replay_from = replay_from};
    } else {
      CHECK(position <= head.end && head.end - position <= shape_.backtrack_max)
          << "rows go on at " << position << ", the state ends at " << head.end;
      if (head.replay_from == kLoaded) {
        CHECK(replay_from >= position) << "replay begins at " << replay_from << " of " << position;
        head.replay_from = replay_from;
      }
      CHECK(head.replay_from == replay_from) << replay_from << " was " << head.replay_from;
      CHECK(At(position - 1).page == page_before) << "another sequence's state, at " << position;
    }
    head.end = position;
    Write(0, head);
  }

  // The row that was computed `back` before `position`, or none before `from`.
  HashRow Before(uint64_t position, uint64_t back, uint64_t from) const {
    return position >= from + back ? At(position - back) : HashRow();
  }
  void Add(uint64_t position, HashRow row) {
    Head head = Read<Head>(0);
    CHECK(position == head.end) << position << " of " << head.end;
    row.place = position + 1;
    Write(Offset(position), row);
    head.end = position + 1;
    Write(0, head);
  }

  void Save(uint32_t position, std::span<std::byte> checkpoint) const {
    const Head head = Read<Head>(0);
    CHECK(position > 0 && position % model::kPageTokens == 0) << position;
    CHECK(position <= head.end && head.end - position <= shape_.backtrack_max)
        << "a checkpoint of " << position << ", the state ends at " << head.end;
    CHECK(checkpoint.size() == CheckpointBytes(shape_));
    for (uint32_t back = 1; back < shape_.window; ++back) {
      HashRow row = Before(position, back, 0);
      if (shape_.replay_rows > 0) row.upper = 0;
      std::memcpy(checkpoint.data() + (back - 1) * sizeof row, &row, sizeof row);
    }
  }
  void Load(std::span<const std::byte> checkpoint, uint32_t position) {
    CHECK(checkpoint.size() == CheckpointBytes(shape_));
    std::memset(data_, 0, StateBytes(shape_));
    Write(0, Head{.end = position, .replay_from = shape_.replay_rows > 0 ? kLoaded : 0});
    for (uint32_t back = 1; back < std::min(shape_.window, position + 1); ++back) {
      HashRow row;
      std::memcpy(&row, checkpoint.data() + (back - 1) * sizeof row, sizeof row);
      // Of whatever boundary it was: a model would not know.
      row.place = position - back + 1;
      Write(Offset(position - back), row);
    }
  }

 private:
  static constexpr uint64_t kLoaded = UINT64_MAX;  // the replay is not known yet
  struct Head {
    uint64_t end = 0;
    uint64_t replay_from = 0;
  };

  static uint64_t Slots(const HashStateShape& shape) {
    return shape.window + uint64_t{shape.backtrack_max};
  }
  uint64_t Offset(uint64_t position) const {
    return sizeof(Head) + position % Slots(shape_) * sizeof(HashRow);
  }
  HashRow At(uint64_t position) const {
    const HashRow row = Read<HashRow>(Offset(position));
    CHECK(row.place == position + 1) << "row " << position << " is not in the state";
    return row;
  }
  template <typename T>
  T Read(uint64_t offset) const {
    T value;
    std::memcpy(&value, data_ + offset, sizeof value);
    return value;
  }
  template <typename T>
  void Write(uint64_t offset, const T& value) {
    std::memcpy(data_ + offset, &value, sizeof value);
  }

  const HashStateShape shape_;
  std::byte* const data_;
};

}  // namespace plumb::engine
