// tensor/attention_test.cc: paged attention against the judge, against softmax in double, and its
// independence of chunks, batch mates, threads and stale slots.
#include "tensor/attention.h"

#include <gtest/gtest.h>

#include "tensor/cpu_features.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;

// A sequence's inputs, pages full of NaN, and its attention computed in chunks.
class Fixture {
 public:
  Fixture(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t tokens, uint32_t window,
          uint64_t seed)
      : layout_{.layers = 2, .kv_heads = kv_heads, .head_dim = head_dim},
        shape_{.heads = heads, .scale = 0.125f, .window = window},
        tokens_(tokens) {
    base::Rng rng(seed);
    auto fill = [&](std::vector<float>& values, uint32_t row) {
      values.resize(size_t{tokens} * row);
      for (float& value : values) value = test::RandomFloat(rng, 3.0f);
    };
    fill(queries_, heads * head_dim);
    fill(keys_, kv_heads * head_dim);
    fill(values_, kv_heads * head_dim);
  }

  // Rows [0, tokens) in chunks of `chunk`, with every slot NaN before it is written.
  std::vector<float> Run(Compute compute, uint32_t chunk) const {
    std::vector<std::vector<std::byte>> storage(
        (tokens_ + kPageTokens - 1) / kPageTokens,
        std::vector<std::byte>(layout_.page_bytes(), std::byte{0xff}));
    std::vector<std::byte*> pages;
    for (auto& page : storage) pages.push_back(page.data());
    const size_t q_row = size_t{shape_.heads} * layout_.head_dim;
    const size_t kv_row = size_t{layout_.kv_heads} * layout_.head_dim;
    std::vector<float> out(tokens_ * q_row);
    for (uint32_t first = 0; first < tokens_; first += chunk) {
      const AttentionSequence sequence = {
          .pages = pages, .position = first, .rows = std::min(chunk, tokens_ - first)};
      StoreKeysValues(compute, layout_, 1, {&sequence, 1}, &keys_[first * kv_row],
                      &values_[first * kv_row]);
      Attend(compute, layout_, 1, shape_, {&sequence, 1}, &queries_[first * q_row],
             &out[first * q_row]);
    }
    return out;
  }

  // One row and head by the textbook formula in double, with keys and values rounded to f16.
  std::vector<double> Exact(uint32_t row, uint32_t head) const {
    const uint32_t dim = layout_.head_dim;
    const uint32_t kv_head = head / (shape_.heads / layout_.kv_heads);
    const uint32_t begin =
        shape_.window != 0 && row + 1 > shape_.window ? row + 1 - shape_.window : 0;
    auto stored = [&](const std::vector<float>& x, uint32_t token, uint32_t d) {
      return HalfToFloat(FloatToHalf(x[(size_t{token} * layout_.kv_heads + kv_head) * dim + d]));
    };
    std::vector<double> out(dim);
    double sum = 0;
    for (uint32_t token = begin; token <= row; ++token) {
      double score = 0;
      for (uint32_t d = 0; d < dim; ++d) {
        score += double{queries_[(size_t{row} * shape_.heads + head) * dim + d]} *
                 stored(keys_, token, d);
      }
      const double weight = std::exp(score * shape_.scale);
      sum += weight;
      for (uint32_t d = 0; d < dim; ++d) out[d] += weight * stored(values_, token, d);
    }
    for (double& value : out) value /= sum;
    return out;
  }

  const KvLayout layout_;
  const AttentionShape shape_;
  const uint32_t tokens_;
  std::vector<float> queries_, keys_, values_;
};

TEST(Attention, EqualsTheJudgeAcrossPageBoundaries) {
  ThreadPool pool({.threads = 2});
  struct Shape {
    uint32_t heads, kv_heads, head_dim;
  };
  for (const Shape& s : {Shape{9, 3, 64}, {4, 4, 16}, {7, 1, 32}, {2, 1, 80}, {1, 1, 256}}) {
    for (const uint32_t tokens : {1u, 17u, 127u, 128u, 129u, 300u}) {
      for (const uint32_t window : {0u, 1u, 50u, 200u}) {
        if (window > tokens) continue;  // the same as none
        const Fixture fixture(s.heads, s.kv_heads, s.head_dim, tokens, window, tokens);
        const auto expected = fixture.Run({pool, *AllKernels()[0]}, tokens);
        for (const KernelTable* table : AllKernels()) {
          if (table->name == "scalar") continue;
          ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, *table}, tokens)), "")
              << table->name << " " << s.heads << "/" << s.kv_heads << " x " << s.head_dim << ", "
              << tokens << " tokens, window " << window;
        }
      }
    }
  }
}

TEST(Attention, ChunksAndThreadsDoNotChangeBits) {
  for (const KernelTable* table : AllKernels()) {
    // The judge computes one query at a time; a short sequence says enough.
    const Fixture fixture(6, 2, 32, table->name == "scalar" ? 140 : 290, 0, 11);
    ThreadPool one({.threads = 1});
    const auto expected = fixture.Run({one, *table}, 300);
    for (const uint32_t threads : {1u, 2u, 3u, 4u}) {
      ThreadPool pool({.threads = threads});
      for (const uint32_t chunk : {1u, 3u, 8u, 100u, 128u}) {
        ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, *table}, chunk)), "")
            << table->name << " " << threads << " threads, chunks of " << chunk;
      }
    }
  }
}

TEST(Attention, IsCloseToSoftmaxInDouble) {
  ThreadPool pool({.threads = 1});
  for (const uint32_t window : {0u, 150u}) {
    const Fixture fixture(4, 2, 64, 300, window, 12);
    const auto out = fixture.Run({pool, *AllKernels().back()}, 300);
    for (const uint32_t row : {0u, 1u, 127u, 128u, 299u}) {
      for (uint32_t head = 0; head < 4; ++head) {
        const auto exact = fixture.Exact(row, head);
        for (uint32_t d = 0; d < 64; ++d) {
          // Scores are off by at most about 64 * |q||k| * scale * 2^-24 < 3e-5, and the weights by
          // that share; values are at most 3.
          ASSERT_NEAR(out[(size_t{row} * 4 + head) * 64 + d], exact[d], 3 * 2 * 3e-5) << row;
        }
      }
    }
  }
}

TEST(Attention, BatchMatesDoNotChangeBits) {
  ThreadPool pool({.threads = 2});
  const KernelTable& kernels = *AllKernels().back();
  const KvLayout layout = {.layers = 1, .kv_heads = 1, .head_dim = 16};
  const AttentionShape shape = {.heads = 2, .scale = 0.25f};
  base::Rng rng(13);
  const uint32_t rows[] = {5, 1, 130};
  std::vector<std::vector<std::byte>> storage(4, std::vector<std::byte>(layout.page_bytes()));
  std::byte* pages[] = {storage[0].data(), storage[1].data(), storage[2].data(), storage[3].data()};
  const AttentionSequence sequences[] = {{.pages = {pages, 1}, .position = 0, .rows = rows[0]},
                                         {.pages = {pages + 1, 1}, .position = 0, .rows = rows[1]},
                                         {.pages = {pages + 2, 2}, .position = 0, .rows = rows[2]}};
  const auto queries = test::RandomFloats(rng, size_t{136} * 32);
  const auto keys = test::RandomFloats(rng, size_t{136} * 16);
  std::vector<float> together(queries.size());
  StoreKeysValues({pool, kernels}, layout, 0, sequences, keys.data(), keys.data());
  Attend({pool, kernels}, layout, 0, shape, sequences, queries.data(), together.data());
  std::vector<float> alone(queries.size());
  size_t row = 0;
  for (const AttentionSequence& sequence : sequences) {
    Attend({pool, kernels}, layout, 0, shape, {&sequence, 1}, &queries[row * 32], &alone[row * 32]);
    row += sequence.rows;
  }
  EXPECT_EQ(FirstDifference(together, alone), "");
}

TEST(AttentionDeathTest, RowsBeyondThePagesAreABug) {
  ThreadPool pool({.threads = 1});
  const KvLayout layout = {.layers = 1, .kv_heads = 1, .head_dim = 16};
  std::vector<std::byte> page(layout.page_bytes());
  std::byte* pages[] = {page.data()};
  const AttentionSequence sequence = {.pages = pages, .position = 127, .rows = 2};
  float x[64] = {};
  EXPECT_DEATH(StoreKeysValues({pool, *AllKernels()[0]}, layout, 0, {&sequence, 1}, x, x),
               "positions in 1 pages");
}

}  // namespace
}  // namespace plumb::tensor
