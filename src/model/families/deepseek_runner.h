// model/families/deepseek_runner.h
// For tests of DeepSeek-V4.1: a model of a tiny checkpoint, and sequences with pages and a state of
// their own that can be run in pieces, taken back, saved and resumed. Twin for other families:
// tiny_runner.h.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/deepseek_checkpoint.h"
#include "model/families/deepseek_v41.h"
#include "model/families/deepseek_v41_tiny.h"
#include "model/families/tiny_runner.h"

namespace plumb::model {

// The files of a folder in memory, as a checkpoint. The files must outlive it.
inline std::unique_ptr<DeepseekCheckpoint> AssembleDeepseek(const HfFiles& files) {
  HfTextFiles text;
  std::optional<std::string> map;
  std::vector<std::unique_ptr<Safetensors>> shards;
  for (const auto& [name, content] : files) {
    if (name == "config.json") text.config = content;
    if (name == "engram_token_map.json") map = content;
    if (!name.ends_with(".safetensors")) continue;
    auto shard = Safetensors::Parse(std::as_bytes(std::span(content)));
    CHECK(shard.ok()) << shard.status().ToString();
    shards.push_back(*std::move(shard));
  }
  auto checkpoint = DeepseekCheckpoint::Assemble("tiny", text, map, std::move(shards));
  CHECK(checkpoint.ok()) << checkpoint.status().ToString();
  return *std::move(checkpoint);
}

struct DeepseekRunOptions {
  uint32_t threads = 1;
  const tensor::KernelTable& kernels = Fastest();
  uint32_t rows_max = 300;
  Roundings roundings = Roundings::kKvq;
  std::optional<uint32_t> replay_rows = 0;  // none: LoadOptions' own
  uint32_t backtrack_rows = 6;
  DeepseekObserver* observer = nullptr;
};

class DeepseekRunner {
 public:
  // `files` must outlive it.
  DeepseekRunner(const HfFiles& files, const DeepseekRunOptions& options)
      : pool_({.threads = options.threads}), checkpoint_(AssembleDeepseek(files)) {
    auto model = LoadDeepseekV41Observed(*checkpoint_,
                                         {.pool = pool_,
                                          .kernels = options.kernels,
                                          .rows_max = options.rows_max,
                                          .logits_rows_max = options.rows_max,
                                          .roundings = options.roundings,
                                          .replay_rows = options.replay_rows,
                                          .backtrack_rows = options.backtrack_rows},
                                         options.observer);
    CHECK(model.ok()) << model.status().ToString();
    model_ = *std::move(model);
  }
  Model& model() { return *model_; }
  uint32_t vocabulary() const { return model_->info().vocabulary_size; }

 private:
  tensor::ThreadPool pool_;
  std::unique_ptr<DeepseekCheckpoint> checkpoint_;
  std::unique_ptr<Model> model_;
};

// Tokens, pages and state of one sequence. Pages and state begin filled with 0xff, which reads as
// NaN, or worse.
struct DeepseekSequence {
  DeepseekSequence(const Model& model, std::vector<TokenId> sequence_tokens, uint32_t from = 0)
      : tokens(std::move(sequence_tokens)),
        state(model.info().state_bytes, std::byte{0xff}),
        replay_from(from) {
    const size_t count = tokens.size() / kPageTokens + 2;  // room for drafts
    memory.assign(count, std::vector<std::byte>(model.info().page_bytes, std::byte{0xff}));
    for (auto& page : memory) pages.push_back(page.data());
  }
  DeepseekSequence(const DeepseekSequence&) = delete;
  DeepseekSequence& operator=(const DeepseekSequence&) = delete;

  // The next `count` tokens as rows, with logits for each row that has them.
  SequenceRows Take(uint32_t count) {
    SequenceRows rows = Rows(std::span(tokens).subspan(done, count));
    done += count;
    rows.upcoming = std::span(tokens).subspan(done, std::min(left(), count));
    return rows;
  }
  // Rows at the place where the sequence is.
  SequenceRows Rows(std::span<const TokenId> some) {
    const auto count = static_cast<uint32_t>(some.size());
    const uint32_t end = done + count;
    return {.tokens = some,
            .position = done,
            .pages = pages,
            .logits_rows = std::min(count, end - std::min(end, replay_from)),
            .state = state.data(),
            .replay_from = replay_from};
  }
  uint32_t left() const { return static_cast<uint32_t>(tokens.size()) - done; }

  std::vector<TokenId> tokens;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> pages;
  std::vector<std::byte> state;
  uint32_t replay_from = 0;
  uint32_t done = 0;
};

// Logits of every row from replay_from on, the tokens given in chunks of `chunk()`.
template <typename Chunk>
std::vector<float> RunDeepseek(Model& model, DeepseekSequence& sequence, Chunk chunk) {
  std::vector<float> all;
  while (sequence.left() > 0) {
    const uint32_t count = std::min<uint32_t>({sequence.left(), chunk(), model.rows_max()});
    const SequenceRows rows[] = {sequence.Take(count)};
    std::vector<float> logits(uint64_t{rows[0].logits_rows} * model.info().vocabulary_size);
    model.Forward(rows, logits);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

// Hidden states of the same rows, likewise.
template <typename Chunk>
std::vector<float> DeepseekHidden(Model& model, DeepseekSequence& sequence, Chunk chunk) {
  std::vector<float> all;
  while (sequence.left() > 0) {
    const uint32_t count = std::min<uint32_t>({sequence.left(), chunk(), model.rows_max()});
    SequenceRows rows[] = {sequence.Take(count)};
    std::vector<float> hidden(uint64_t{std::exchange(rows[0].logits_rows, 0)} *
                              model.info().hidden_width);
    rows[0].hidden = hidden;
    model.Forward(rows, {});
    all.insert(all.end(), hidden.begin(), hidden.end());
  }
  return all;
}

}  // namespace plumb::model
