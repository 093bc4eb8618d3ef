// model/families/tiny_runner.h
// For tests: a model of a file in memory, sequences with pages of their own, and ways to run them
// in pieces.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "model/gguf.h"
#include "model/load.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"

namespace plumb::model {

inline const tensor::KernelTable& Fastest() { return **tensor::SelectKernels("auto"); }

// A model of a tiny file, and the means to run it.
class TinyRunner {
 public:
  TinyRunner(const std::string& file, uint32_t threads, const tensor::KernelTable& kernels,
             uint32_t rows_max = 512, tensor::KvFormat kv_format = tensor::KvFormat::kF16)
      : pool_({.threads = threads}) {
    auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    CHECK(gguf.ok()) << gguf.status().ToString();
    auto model = LoadModel(**gguf, {.pool = pool_,
                                    .kernels = kernels,
                                    .rows_max = rows_max,
                                    .logits_rows_max = rows_max,
                                    .kv_format = kv_format});
    CHECK(model.ok()) << model.status().ToString();
    model_ = *std::move(model);
  }
  Model& model() { return *model_; }
  uint32_t vocabulary() const { return model_->info().vocabulary_size; }

 private:
  tensor::ThreadPool pool_;
  std::unique_ptr<Model> model_;
};

// A sequence's tokens and pages; pages begin filled with 0xff, which reads as NaN.
struct TinySequence {
  TinySequence(const Model& model, std::vector<TokenId> sequence_tokens)
      : tokens(std::move(sequence_tokens)) {
    const size_t count = (tokens.size() + kPageTokens - 1) / kPageTokens;
    memory.assign(count, std::vector<std::byte>(model.info().page_bytes, std::byte{0xff}));
    for (auto& page : memory) pages.push_back(page.data());
  }
  // The next `count` tokens as rows, with logits for each.
  SequenceRows Take(uint32_t count) {
    const SequenceRows rows{std::span(tokens).subspan(done, count), done, pages, count};
    done += count;
    return rows;
  }
  uint32_t left() const { return static_cast<uint32_t>(tokens.size()) - done; }

  std::vector<TokenId> tokens;
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> pages;
  uint32_t done = 0;
};

inline std::vector<TokenId> RandomTokens(size_t count, uint32_t vocabulary, uint64_t seed) {
  base::Rng rng(seed);
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<TokenId>(rng.Below(vocabulary)));
  }
  return tokens;
}

// Logits of every position, the prompt given in chunks of `chunk()` tokens.
template <typename Chunk>
std::vector<float> RunAlone(Model& model, const std::vector<TokenId>& tokens, Chunk chunk) {
  TinySequence sequence(model, tokens);
  const uint64_t vocabulary = model.info().vocabulary_size;
  std::vector<float> logits(tokens.size() * vocabulary);
  while (sequence.left() > 0) {
    const uint32_t begin = sequence.done;
    const uint32_t count = std::min<uint32_t>(sequence.left(), chunk());
    const SequenceRows rows[] = {sequence.Take(count)};
    model.Forward(rows, std::span(logits).subspan(begin * vocabulary, count * vocabulary));
  }
  return logits;
}

// Hidden states of every position, likewise.
template <typename Chunk>
std::vector<float> HiddenAlone(Model& model, const std::vector<TokenId>& tokens, Chunk chunk) {
  TinySequence sequence(model, tokens);
  const uint64_t width = model.info().hidden_width;
  std::vector<float> hidden(tokens.size() * width);
  while (sequence.left() > 0) {
    const uint32_t begin = sequence.done;
    const uint32_t count = std::min<uint32_t>(sequence.left(), chunk());
    SequenceRows rows[] = {sequence.Take(count)};
    rows[0].logits_rows = 0;
    rows[0].hidden = std::span(hidden).subspan(begin * width, count * width);
    model.Forward(rows, {});
  }
  return hidden;
}

inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

}  // namespace plumb::model
