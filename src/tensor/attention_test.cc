// tensor/attention_test.cc: paged attention against the judge, against softmax in double, and its
// independence of chunks, batch mates, threads and stale slots.
#include "tensor/attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensor/cpu_features.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;

// A sequence's inputs, pages full of NaN, and its attention computed in chunks.
class Fixture {
 public:
  Fixture(uint32_t heads, uint32_t kv_heads, uint32_t head_dim, uint32_t tokens, uint32_t window,
          uint64_t seed, KvFormat format = KvFormat::kF16)
      : layout_{.layers = 2, .kv_heads = kv_heads, .head_dim = head_dim, .format = format},
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
  std::vector<float> Run(Compute compute, uint32_t chunk, bool share = false) const {
    std::vector<std::vector<std::byte>> storage(
        (tokens_ + kPageTokens - 1) / kPageTokens,
        std::vector<std::byte>(layout_.page_bytes(), std::byte{0xff}));
    std::vector<std::byte*> pages;
    for (auto& page : storage) pages.push_back(page.data());
    AttentionScratch scratch =
        AttentionScratch::Allocate(layout_, shape_.heads, tokens_, compute.pool.threads()).value();
    const size_t q_row = size_t{shape_.heads} * layout_.head_dim;
    const size_t kv_row = size_t{layout_.kv_heads} * layout_.head_dim;
    std::vector<float> out(tokens_ * q_row, std::nanf(""));
    for (uint32_t first = 0; first < tokens_; first += chunk) {
      const AttentionSequence sequence = {
          .pages = pages, .position = first, .rows = std::min(chunk, tokens_ - first)};
      StoreKeysValues(compute, layout_, 1, {&sequence, 1}, &keys_[first * kv_row],
                      &values_[first * kv_row]);
      const float* queries = &queries_[first * q_row];
      float* to = &out[first * q_row];
      if (share) {
        Attend(compute, layout_, 1, shape_, {&sequence, 1}, queries, to, scratch);
      } else {
        Attend(compute, layout_, 1, shape_, {&sequence, 1}, queries, to);
      }
    }
    return out;
  }

  // Dimension d of a token's key or value, as a page holds it.
  double Stored(const std::vector<float>& x, uint32_t token, uint32_t kv_head, uint32_t d) const {
    const float* row = &x[(size_t{token} * layout_.kv_heads + kv_head) * layout_.head_dim];
    if (layout_.format == KvFormat::kF16) return HalfToFloat(FloatToHalf(row[d]));
    double largest = 0;
    for (uint32_t i = 0; i < layout_.head_dim; ++i) {
      largest = std::max(largest, std::fabs(double{row[i]}));
    }
    return std::nearbyint(row[d] / largest * 127) * largest / 127;
  }

  // One row and head by the textbook formula in double, over the keys and values as stored or, for
  // `rounded` = false, as they were before.
  std::vector<double> Exact(uint32_t row, uint32_t head, bool rounded = true) const {
    const uint32_t dim = layout_.head_dim;
    const uint32_t kv_head = head / (shape_.heads / layout_.kv_heads);
    const uint32_t begin =
        shape_.window != 0 && row + 1 > shape_.window ? row + 1 - shape_.window : 0;
    auto stored = [&](const std::vector<float>& x, uint32_t token, uint32_t d) -> double {
      if (rounded) return Stored(x, token, kv_head, d);
      return x[(size_t{token} * layout_.kv_heads + kv_head) * dim + d];
    };
    std::vector<double> out(dim);
    double sum = 0;
    for (uint32_t token = begin; token <= row; ++token) {
      double score = 0;
      for (uint32_t d = 0; d < dim; ++d) {
        score += double{queries_[(size_t{row} * shape_.heads + head) * dim + d]} *
                 stored(keys_, token, d);
      }
      score *= shape_.scale;
      const double weight = std::exp(score);
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

// Every target against the judge, the whole sequence at once and row by row (which reads pages in
// another way), the latter with its pages shared out.
void ExpectEqualsJudge(const Fixture& fixture, ThreadPool& pool, const std::string& what) {
  const auto expected = fixture.Run({pool, *AllKernels()[0]}, fixture.tokens_);
  for (const KernelTable* table : AllKernels()) {
    if (table->name == "scalar") continue;
    ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, *table}, fixture.tokens_)), "")
        << table->name << " " << what;
    ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, *table}, 1, true)), "")
        << table->name << " row by row, " << what;
  }
}

class AttentionOf : public ::testing::TestWithParam<KvFormat> {};

INSTANTIATE_TEST_SUITE_P(Formats, AttentionOf, ::testing::Values(KvFormat::kF16, KvFormat::kQ8),
                         [](const auto& param) {
                           return param.param == KvFormat::kF16 ? "f16" : "q8";
                         });

TEST_P(AttentionOf, EqualsTheJudgeAcrossPageBoundaries) {
  ThreadPool pool({.threads = 2});
  struct Shape {
    uint32_t heads, kv_heads, head_dim;
  };
  for (const Shape& s : {Shape{9, 3, 64}, {4, 4, 16}, {7, 1, 32}, {2, 1, 80}, {1, 1, 256}}) {
    for (const uint32_t tokens : {1u, 17u, 127u, 128u, 129u, 300u}) {
      for (const uint32_t window : {0u, 1u, 50u, 200u}) {
        if (window > tokens) continue;  // the same as none
        const Fixture fixture(s.heads, s.kv_heads, s.head_dim, tokens, window, tokens, GetParam());
        ExpectEqualsJudge(fixture, pool,
                          std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " x " +
                              std::to_string(s.head_dim) + ", " + std::to_string(tokens) +
                              " tokens, window " + std::to_string(window));
      }
    }
  }
}

TEST_P(AttentionOf, EqualsTheJudgeForEveryGroupAndHeadDim) {
  ThreadPool pool({.threads = 3});
  for (uint32_t group = 1; group <= 17; ++group) {
    const Fixture fixture(group, 1, 48, 150, group % 3 * 60, group, GetParam());
    ExpectEqualsJudge(fixture, pool, "group " + std::to_string(group));
  }
  for (const uint32_t head_dim : {16u, 32u, 48u, 64u, 96u, 112u, 128u, 144u, 160u, 256u, 512u}) {
    const Fixture fixture(2, 1, head_dim, 140, 0, head_dim, GetParam());
    ExpectEqualsJudge(fixture, pool, "head_dim " + std::to_string(head_dim));
  }
}

// The last rows of a long context, which few rows see: a decode step and a short chunk.
TEST_P(AttentionOf, EqualsTheJudgeInALongContext) {
  ThreadPool pool({.threads = 4});
  const KvLayout layout = {.layers = 1, .kv_heads = 2, .head_dim = 64, .format = GetParam()};
  constexpr uint32_t kContext = 9000;
  constexpr uint32_t kPages = kContext / kPageTokens + 1;
  base::Rng rng(31);
  std::vector<std::byte> memory(kPages * layout.page_bytes());
  std::vector<std::byte*> pages;
  for (uint32_t i = 0; i < kPages; ++i) pages.push_back(&memory[i * layout.page_bytes()]);
  const auto keys = test::RandomFloats(rng, kContext * 128);
  const auto values = test::RandomFloats(rng, kContext * 128);
  const AttentionSequence all = {.pages = pages, .position = 0, .rows = kContext};
  StoreKeysValues({pool, *AllKernels().back()}, layout, 0, {&all, 1}, keys.data(), values.data());
  for (const uint32_t heads : {2u, 6u, 14u}) {
    for (const uint32_t rows : {1u, 5u}) {
      for (const uint32_t window : {0u, 4096u}) {
        const AttentionShape shape = {.heads = heads, .scale = 0.125f, .window = window};
        const AttentionSequence sequence = {
            .pages = pages, .position = kContext - rows, .rows = rows};
        const auto queries = test::RandomFloats(rng, size_t{rows} * heads * 64);
        std::vector<float> expected(queries.size());
        Attend({pool, *AllKernels()[0]}, layout, 0, shape, {&sequence, 1}, queries.data(),
               expected.data());
        AttentionScratch scratch =
            AttentionScratch::Allocate(layout, heads, kContext, pool.threads()).value();
        for (const KernelTable* table : AllKernels()) {
          std::vector<float> out(queries.size());
          Attend({pool, *table}, layout, 0, shape, {&sequence, 1}, queries.data(), out.data(),
                 scratch);
          ASSERT_EQ(FirstDifference(expected, out), "") << table->name << " " << heads << " heads";
        }
      }
    }
  }
}

TEST_P(AttentionOf, ChunksAndThreadsDoNotChangeBits) {
  for (const KernelTable* table : AllKernels()) {
    // The judge computes one query at a time; a short sequence says enough.
    const Fixture fixture(6, 2, 32, table->name == "scalar" ? 140 : 290, 0, 11, GetParam());
    ThreadPool one({.threads = 1});
    const auto expected = fixture.Run({one, *table}, 300);
    for (uint32_t threads = 1; threads <= 8; ++threads) {
      ThreadPool pool({.threads = threads});
      for (const uint32_t chunk : {1u, 3u, 8u, 100u, 128u}) {
        for (const bool share : {false, true}) {
          ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, *table}, chunk, share)), "")
              << table->name << " " << threads << " threads, chunks of " << chunk;
        }
      }
    }
  }
}

TEST_P(AttentionOf, IsCloseToSoftmaxInDouble) {
  ThreadPool pool({.threads = 1});
  const double bound = GetParam() == KvFormat::kF16 ? 3 * 2 * 3e-5 : 3 * 2 * 1e-4;
  for (const uint32_t window : {0u, 150u}) {
    const Fixture fixture(4, 2, 64, 300, window, 12, GetParam());
    const auto out = fixture.Run({pool, *AllKernels().back()}, 300);
    for (const uint32_t row : {0u, 1u, 127u, 128u, 299u}) {
      for (uint32_t head = 0; head < 4; ++head) {
        const auto exact = fixture.Exact(row, head);
        for (uint32_t d = 0; d < 64; ++d) {
          // Scores are off by at most about 64 * |q||k| * scale * 2^-24 < 3e-5 (for q8: q by
          // 3 / 65534, 64 * 3 * 3 / 65534 * scale in the worst case, a tenth of it at random),
          // and the weights by that share; values are at most 3.
          ASSERT_NEAR(out[(size_t{row} * 4 + head) * 64 + d], exact[d], bound) << row;
        }
      }
    }
  }
}

// A NaN in a value, or a later key, must not reach queries that do not see it.
TEST_P(AttentionOf, LaterTokensCannotReachEarlierQueries) {
  ThreadPool pool({.threads = 1});
  for (const KernelTable* table : AllKernels()) {
    Fixture fixture(4, 2, 32, 140, 0, 41, GetParam());
    const auto expected = fixture.Run({pool, *table}, 140);
    constexpr uint32_t kBroken = 133;
    for (uint32_t d = 0; d < 64; ++d) {
      fixture.keys_[kBroken * 64 + d] = std::nanf("");
      fixture.values_[kBroken * 64 + d] = std::numeric_limits<float>::infinity();
    }
    const auto out = fixture.Run({pool, *table}, 140);
    const size_t before = size_t{kBroken} * 4 * 32;
    EXPECT_EQ(FirstDifference({expected.begin(), expected.begin() + before},
                              {out.begin(), out.begin() + before}),
              "")
        << table->name;
    EXPECT_TRUE(std::isnan(out[before])) << table->name;
  }
}

// What eight bits cost: the root of the mean squared error over that of the result. Keys and values
// here are uniform, the hardest case for the 254 steps of a token's largest magnitude: each is off
// by 1 / 127 / sqrt(12) of it at most, 0.4 % of its own root mean square.
TEST(Attention, EightBitsStayWithinTheirRounding) {
  ThreadPool pool({.threads = 1});
  const Fixture fixture(6, 2, 64, 500, 0, 51, KvFormat::kQ8);
  const auto out = fixture.Run({pool, *AllKernels().back()}, 500);
  double error = 0, size = 0;
  for (const uint32_t row : {50u, 200u, 499u}) {
    for (uint32_t head = 0; head < 6; ++head) {
      const auto exact = fixture.Exact(row, head, false);
      for (uint32_t d = 0; d < 64; ++d) {
        const double difference = out[(size_t{row} * 6 + head) * 64 + d] - exact[d];
        error += difference * difference;
        size += exact[d] * exact[d];
      }
    }
  }
  EXPECT_LT(std::sqrt(error / size), 0.02);
  EXPECT_GT(std::sqrt(error / size), 0.0);
  RecordProperty("relative_error", std::to_string(std::sqrt(error / size)));
}

TEST(KvLayout, EightBitsHalveAPage) {
  const KvLayout half = {.layers = 30, .kv_heads = 3, .head_dim = 64};
  const KvLayout quant = {.layers = 30, .kv_heads = 3, .head_dim = 64, .format = KvFormat::kQ8};
  EXPECT_EQ(half.page_bytes(), 30u * 3 * 2 * 64 * 128 * 2);
  EXPECT_EQ(quant.page_bytes(), 30u * 3 * (2 * 64 * 128 + 2 * 128 * 4));
  for (const KvLayout& layout : {half, quant}) {
    EXPECT_EQ(layout.keys_offset(0, 0), 0u);
    EXPECT_EQ(layout.keys_offset(1, 0), layout.page_bytes() / 30);
    EXPECT_EQ(layout.value_scales_offset(29, 2) + layout.scale_bytes(), layout.page_bytes());
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
