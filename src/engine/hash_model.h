// engine/hash_model.h
// A model without arithmetic, for tests and simulations: a page holds for each token a hash of it
// and all before it, as keys and values depend on those; logits are a function of all hashes up to
// the row. A wrong, stale, foreign or missing page, one after another beginning, a wrong position
// or a row computed twice differently changes the output at once. It may have a state besides
// (hash_window.h), which pages and logits then depend on too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/hash_window.h"
#include "model/model.h"

namespace plumb::engine {

class HashModel final : public model::Model {
 public:
  using TokenId = base::TokenId;
  static constexpr uint32_t kHiddenWidth = 5;

  HashModel(uint32_t vocabulary_size, uint32_t context_max, uint32_t rows_max = 4096,
            uint32_t logits_rows_max = 256, const HashStateShape& state = {})
      : state_(state), rows_max_(rows_max), logits_rows_max_(logits_rows_max) {
    info_.architecture = "hash";
    info_.vocabulary_size = vocabulary_size;
    info_.context_max = context_max;
    info_.hidden_width = kHiddenWidth;
    info_.page_bytes = model::kPageTokens * sizeof(uint64_t);
    info_.numerics_id = "hash";
    if (!stateful()) return;
    CHECK(state.window >= 2 && state.backtrack_max >= 1 && state.window < model::kPageTokens);
    CHECK(state.replay_rows == 0 || state.replay_rows >= state.window + state.backtrack_max);
    info_.state_bytes = HashWindow::StateBytes(state);
    info_.checkpoint_bytes = HashWindow::CheckpointBytes(state);
    info_.replay_rows = state.replay_rows;
    info_.backtrack_max = state.backtrack_max;
  }

  // Other weights: other logits for the same tokens, and other bytes in pages.
  void set_salt(uint64_t salt) { salt_ = salt; }

  void set_never_sampled(std::vector<TokenId> tokens) { info_.never_sampled = std::move(tokens); }

  // Called at the start of each Forward, with each sequence in it, and with each row of logits or
  // of hidden states; for faults and for stopping in the middle of a step.
  std::function<void()> before_forward;
  std::function<void(const model::SequenceRows&)> on_sequence;
  std::function<void(std::span<float>)> after_row;
  std::function<void(std::span<float>)> after_hidden;

  const model::ModelInfo& info() const override { return info_; }
  uint32_t rows_max() const override { return rows_max_; }
  uint32_t logits_rows_max() const override { return logits_rows_max_; }

  void Forward(std::span<const model::SequenceRows> sequences, std::span<float> logits) override {
    if (before_forward) before_forward();
    size_t rows = 0, logits_rows = 0;
    for (const model::SequenceRows& sequence : sequences) {
      if (on_sequence) on_sequence(sequence);
      rows += sequence.tokens.size();
      const size_t end = sequence.position + sequence.tokens.size();
      CHECK(!sequence.tokens.empty() && end <= info_.context_max);
      CHECK(sequence.pages.size() * model::kPageTokens >= end) << "pages do not cover the rows";
      const size_t hidden_rows = sequence.hidden.size() / kHiddenWidth;
      CHECK(hidden_rows * kHiddenWidth == sequence.hidden.size());
      CHECK(hidden_rows == 0 || sequence.logits_rows == 0);
      const size_t wanted = sequence.logits_rows + hidden_rows;
      CHECK(wanted == 0 || end - wanted >= sequence.replay_from) << "wanted before the replay";
      CHECK((sequence.state != nullptr) == stateful());
      if (stateful()) Enter(sequence);
      for (size_t i = 0; i < sequence.tokens.size(); ++i) {
        const uint64_t position = sequence.position + i;
        CHECK(base::Index(sequence.tokens[i]) < info_.vocabulary_size);
        const uint64_t before = position == 0 ? 0 : Read(sequence, position - 1);
        const HashRow row = ComputeRow(sequence, before, i);
        Write(sequence, position, row.page);
        if (i + wanted < sequence.tokens.size()) continue;
        const uint64_t digest = Digest(sequence, position) ^ row.upper;
        if (hidden_rows > 0) {
          const size_t place = i + hidden_rows - sequence.tokens.size();
          FillHidden(digest, sequence.hidden.subspan(place * kHiddenWidth, kHiddenWidth));
        } else {
          FillRow(digest,
                  logits.subspan(logits_rows++ * info_.vocabulary_size, info_.vocabulary_size));
        }
      }
    }
    CHECK(rows <= rows_max_ && logits_rows <= logits_rows_max_);
    CHECK(logits.size() == logits_rows * info_.vocabulary_size) << logits.size();
  }

  void SaveState(const std::byte* state, uint32_t position,
                 std::span<std::byte> checkpoint) const override {
    HashWindow(state_, const_cast<std::byte*>(state)).Save(position, checkpoint);
  }
  void LoadState(std::span<const std::byte> checkpoint, uint32_t position,
                 std::byte* state) const override {
    HashWindow(state_, state).Load(checkpoint, position);
  }

  // model::SequenceRows::replay_from of a request.
  uint32_t ReplayFrom(size_t prompt_tokens) const {
    const auto prompt = static_cast<uint32_t>(prompt_tokens);
    return state_.replay_rows == 0 ? 0 : prompt - std::min(prompt, state_.replay_rows);
  }

  // What Forward gives for the last of `tokens`, from the tokens themselves.
  std::vector<float> LogitsOf(std::span<const TokenId> tokens, uint32_t replay_from = 0) const {
    std::vector<float> logits(info_.vocabulary_size);
    FillRow(DigestOf(tokens, replay_from), logits);
    return logits;
  }
  std::vector<float> HiddenOf(std::span<const TokenId> tokens, uint32_t replay_from = 0) const {
    std::vector<float> hidden(kHiddenWidth);
    FillHidden(DigestOf(tokens, replay_from), hidden);
    return hidden;
  }

 private:
  bool stateful() const { return state_.window > 0; }

  uint64_t DigestOf(std::span<const TokenId> tokens, uint32_t replay_from) const {
    std::vector<HashRow> rows(stateful() ? tokens.size() : 0);
    HashRow row;
    uint64_t digest = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      row = {.page = Next(row.page ^ salt_, tokens[i], i)};
      if (stateful()) {
        const auto before = [&](size_t back, size_t from) {
          return i >= from + back ? rows[i - back] : HashRow();
        };
        rows[i] = row =
            InLayers(row.page, i >= replay_from, before(1, 0), before(state_.window - 1, 0),
                     before(1, replay_from), before(state_.window - 1, replay_from));
      }
      digest = Mix(digest ^ row.page);
    }
    return digest ^ row.upper;
  }
  void Enter(const model::SequenceRows& sequence) const {
    const uint64_t before = sequence.position == 0 ? 0 : Read(sequence, sequence.position - 1);
    HashWindow(state_, sequence.state).Enter(sequence.position, sequence.replay_from, before);
  }
  // Row i of `sequence`, after the page's word of the row before.
  HashRow ComputeRow(const model::SequenceRows& sequence, uint64_t before, size_t i) const {
    const uint64_t position = sequence.position + i;
    const uint64_t own = Next(before ^ salt_, sequence.tokens[i], position);
    if (!stateful()) return {.page = own};
    HashWindow window(state_, sequence.state);
    const uint64_t far = state_.window - 1, from = sequence.replay_from;
    const HashRow row = InLayers(own, position >= from, window.Before(position, 1, 0),
                                 window.Before(position, far, 0), window.Before(position, 1, from),
                                 window.Before(position, far, from));
    window.Add(position, row);
    return row;
  }
  // Both ends of each window: all between has been or will be one.
  static HashRow InLayers(uint64_t own, bool has_upper, const HashRow& near, const HashRow& far,
                          const HashRow& near_upper, const HashRow& far_upper) {
    HashRow row;
    row.lower = Mix(own ^ Mix(near.lower) ^ far.lower);
    row.page = Mix(own ^ row.lower);
    if (has_upper) row.upper = Mix(row.page ^ Mix(near_upper.upper) ^ far_upper.upper);
    return row;
  }
  // SplitMix64's finalizer.
  static uint64_t Mix(uint64_t z) {
    z += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  // What a token's slot holds, after the one before it (0: none).
  static uint64_t Next(uint64_t before, TokenId token, uint64_t position) {
    return Mix(before ^ Mix(position << 32 | base::Index(token)));
  }
  static std::byte* Slot(const model::SequenceRows& sequence, uint64_t position) {
    return sequence.pages[position / model::kPageTokens] +
           position % model::kPageTokens * sizeof(uint64_t);
  }
  static void Write(const model::SequenceRows& sequence, uint64_t position, uint64_t hash) {
    std::memcpy(Slot(sequence, position), &hash, sizeof hash);
  }
  static uint64_t Read(const model::SequenceRows& sequence, uint64_t position) {
    uint64_t hash;
    std::memcpy(&hash, Slot(sequence, position), sizeof hash);
    return hash;
  }
  static uint64_t Digest(const model::SequenceRows& sequence, uint64_t position) {
    uint64_t digest = 0;
    for (uint64_t i = 0; i <= position; ++i) digest = Mix(digest ^ Read(sequence, i));
    return digest;
  }
  // Exponential values: a few tokens stand out, as with a real model. Printable ASCII is likelier,
  // so that most text is characters and some is broken UTF-8.
  void FillRow(uint64_t digest, std::span<float> row) const {
    for (size_t token = 0; token < row.size(); ++token) {
      const double uniform = (static_cast<double>(Mix(digest + token) >> 12) + 0.5) * 0x1.0p-52;
      row[token] =
          static_cast<float>(-2 * std::log(uniform) + (token >= 32 && token < 127 ? 4 : 0));
    }
    if (after_row) after_row(row);
  }
  void FillHidden(uint64_t digest, std::span<float> row) const {
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = static_cast<float>(static_cast<double>(Mix(digest + i) >> 11) * 0x1.0p-52 - 1);
    }
    if (after_hidden) after_hidden(row);
  }

  model::ModelInfo info_;
  const HashStateShape state_;
  uint64_t salt_ = 0;
  const uint32_t rows_max_;
  const uint32_t logits_rows_max_;
};

}  // namespace plumb::engine
