// tensor/index_scores_test.cc: scores against the judge, bit for bit, and against double; ranges
// and pages; the choice of the largest against a stable sort.
#include "tensor/index_scores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "tensor/cpu_features.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Queries over the keys of one sequence, which lie in pages at an odd offset.
class Fixture {
 public:
  Fixture(uint32_t heads, uint32_t dim, RowFormat format, uint32_t keys, uint32_t page_keys,
          uint64_t seed, uint32_t queries = 1)
      : shape_{.heads = heads, .dim = dim, .factor = 1.0f / 64, .format = format},
        keys_(keys),
        page_keys_(page_keys),
        rng_(seed) {
    const uint64_t row = RowBytes(format, dim);
    storage_.resize((keys + page_keys - 1) / page_keys,
                    std::vector<std::byte>(kOffset + page_keys * row, std::byte{0xff}));
    for (auto& page : storage_) pages_.push_back(page.data());
    std::vector<float> values(dim);
    for (uint32_t key = 0; key < keys; ++key) {
      for (float& x : values) x = test::RandomFloat(rng_, 2);
      EncodeRow(format, values, KeyAt(key));
    }
    inputs_.resize(size_t{queries} * heads * dim);
    for (float& x : inputs_) x = test::RandomFloat(rng_, 2);
    if (format != RowFormat::kF32) RoundRow(format, inputs_);
    weights_.resize(size_t{queries} * heads);
    for (float& x : weights_) x = test::RandomFloat(rng_, 1);  // of both signs
  }

  std::byte* KeyAt(uint32_t key) {
    return pages_[key / page_keys_] + kOffset +
           key % page_keys_ * RowBytes(shape_.format, shape_.dim);
  }
  const IndexShape& shape() const { return shape_; }
  std::vector<float>& weights() { return weights_; }

  // One list of ranges for each query; scores of all, one after the other.
  std::vector<float> Run(Compute compute, const std::vector<std::vector<KeyRange>>& ranges) {
    std::vector<size_t> firsts = {0};
    for (const auto& list : ranges) {
      size_t count = 0;
      for (const KeyRange& range : list) count += range.end - range.begin;
      firsts.push_back(firsts.back() + count);
    }
    std::vector<float> scores(firsts.back() + 1, 12345.0f);
    std::vector<IndexQuery> batch;
    for (size_t q = 0; q < ranges.size(); ++q) {
      batch.push_back({.query = &inputs_[q * shape_.heads * shape_.dim],
                       .weights = &weights_[q * shape_.heads],
                       .pages = pages_,
                       .offset = kOffset,
                       .page_keys = page_keys_,
                       .ranges = ranges[q],
                       .scores = &scores[firsts[q]]});
    }
    IndexScores(compute, shape_, batch);
    EXPECT_EQ(scores.back(), 12345.0f) << "wrote beyond the keys";
    scores.pop_back();
    return scores;
  }
  std::vector<float> RunAll(Compute compute) { return Run(compute, {{{0, keys_}}}); }

  // The exact score of the first query, and how far f32 may be from it.
  std::pair<double, double> Exact(uint32_t key) {
    std::vector<float> values(shape_.dim);
    DecodeRow(shape_.format, KeyAt(key), values);
    double score = 0, absolute = 0;
    for (uint32_t head = 0; head < shape_.heads; ++head) {
      double dot = 0, size = 0;
      for (uint32_t d = 0; d < shape_.dim; ++d) {
        const double term = double{inputs_[size_t{head} * shape_.dim + d]} * values[d];
        dot += term;
        size += std::fabs(term);
      }
      score += weights_[head] * std::max(dot, 0.0);
      absolute += std::fabs(weights_[head]) * size;
    }
    return {score * shape_.factor,
            absolute * shape_.factor * (shape_.dim + shape_.heads + 2) * 0x1p-24};
  }

 private:
  static constexpr uint64_t kOffset = 13;

  const IndexShape shape_;
  const uint32_t keys_;
  const uint32_t page_keys_;
  base::Rng rng_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<std::byte*> pages_;
  std::vector<float> inputs_;
  std::vector<float> weights_;
};

struct Size {
  uint32_t heads;
  uint32_t dim;
  uint32_t keys;
  uint32_t page_keys;
};
constexpr Size kSizes[] = {{1, 32, 1, 128},   {3, 64, 15, 4},   {8, 96, 16, 128},
                           {32, 128, 17, 64}, {5, 32, 31, 7},   {32, 128, 33, 128},
                           {6, 64, 255, 64},  {9, 32, 256, 64}, {2, 32, 257, 64},
                           {4, 32, 1025, 1},  {7, 512, 40, 16}, {11, 128, 700, 128}};

TEST(IndexScores, EqualTheJudge) {
  ThreadPool pool({.threads = 1});
  uint64_t seed = 80;
  for (const Size& size : kSizes) {
    for (const RowFormat format :
         {RowFormat::kF4Group32, RowFormat::kF32, RowFormat::kF8Group32, RowFormat::kF4Group16}) {
      Fixture fixture(size.heads, size.dim, format, size.keys, size.page_keys, ++seed);
      const auto expected = fixture.RunAll({pool, *AllKernels()[0]});
      for (const KernelTable* kernels : AllKernels()) {
        ASSERT_EQ(FirstDifference(expected, fixture.RunAll({pool, *kernels})), "")
            << kernels->name << " heads " << size.heads << " of " << size.dim << ", keys "
            << size.keys;
      }
    }
  }
}

TEST(IndexScores, AreTheFormula) {
  ThreadPool pool({.threads = 1});
  uint64_t seed = 180;
  for (const Size& size : kSizes) {
    for (const RowFormat format : {RowFormat::kF4Group32, RowFormat::kF32}) {
      Fixture fixture(size.heads, size.dim, format, size.keys, size.page_keys, ++seed);
      const auto scores = fixture.RunAll({pool, *AllKernels().back()});
      ASSERT_EQ(scores.size(), size.keys);
      for (uint32_t key = 0; key < size.keys; ++key) {
        const auto [exact, bound] = fixture.Exact(key);
        ASSERT_NEAR(scores[key], exact, bound) << key;
      }
    }
  }
}

TEST(IndexScores, RangesPickKeysAndChangeNoBits) {
  ThreadPool pool({.threads = 1});
  for (const KernelTable* kernels : AllKernels()) {
    Fixture fixture(4, 64, RowFormat::kF4Group32, 3000, 64, 81);
    const auto all = fixture.RunAll({pool, *kernels});
    std::vector<KeyRange> ranges;
    std::vector<float> expected;
    base::Rng rng(82);
    for (uint32_t begin = 3; begin < 3000;) {
      const auto end = std::min<uint32_t>(3000, begin + static_cast<uint32_t>(rng.Below(20)));
      ranges.push_back({begin, end});  // some are empty, some adjacent
      expected.insert(expected.end(), all.begin() + begin, all.begin() + end);
      begin = end + static_cast<uint32_t>(rng.Below(3));
    }
    ASSERT_GT(expected.size(), 2048u);
    EXPECT_EQ(FirstDifference(expected, fixture.Run({pool, *kernels}, {ranges})), "");
  }
}

TEST(IndexScores, ThreadsAndBatchMatesDoNotChangeBits) {
  const KernelTable& kernels = *AllKernels().back();
  Fixture fixture(8, 64, RowFormat::kF4Group32, 5000, 128, 83, 5);
  const std::vector<std::vector<KeyRange>> ranges = {
      {{0, 5000}}, {}, {{7, 9}}, {{0, 1}, {1, 1}, {4, 1030}}, {{100, 1200}, {4000, 4999}}};
  ThreadPool one({.threads = 1});
  const auto expected = fixture.Run({one, kernels}, ranges);
  for (uint32_t threads = 2; threads <= 8; ++threads) {
    ThreadPool pool({.threads = threads});
    EXPECT_EQ(FirstDifference(expected, fixture.Run({pool, kernels}, ranges)), "") << threads;
  }
  const auto alone = fixture.Run({one, kernels}, {ranges[0]});
  EXPECT_EQ(FirstDifference(alone, {expected.begin(), expected.begin() + 5000}), "");
}

TEST(IndexScores, NaNKeysAreNaNAndTheirNeighboursAreNot) {
  ThreadPool pool({.threads = 1});
  for (const KernelTable* kernels : AllKernels()) {
    Fixture fixture(3, 64, RowFormat::kF4Group32, 50, 16, 84);
    const auto before = fixture.RunAll({pool, *kernels});
    std::vector<float> values(64, 1.0f);
    values[40] = std::nanf("");
    EncodeRow(RowFormat::kF4Group32, values, fixture.KeyAt(21));
    const auto after = fixture.RunAll({pool, *kernels});
    for (uint32_t key = 0; key < 50; ++key) {
      if (key == 21) {
        EXPECT_TRUE(std::isnan(after[key])) << kernels->name;
      } else {
        EXPECT_EQ(after[key], before[key]) << kernels->name << key;
      }
    }
  }
}

TEST(IndexScoresDeathTest, KeysBeyondThePagesAreABug) {
  ThreadPool pool({.threads = 1});
  Fixture fixture(1, 32, RowFormat::kF32, 10, 10, 85);
  const Compute compute = {pool, *AllKernels()[0]};
  EXPECT_DEATH(fixture.Run(compute, {{{0, 11}}}), "11 keys in 1 pages of 10");
  EXPECT_DEATH(fixture.Run(compute, {{{5, 7}, {6, 8}}}), "begin");
}

// ---- SelectLargest ----

std::vector<uint32_t> Select(const std::vector<float>& scores, uint32_t count) {
  std::vector<uint32_t> scratch(scores.size());
  std::vector<uint32_t> chosen(std::min<size_t>(count, scores.size()));
  EXPECT_EQ(SelectLargest(scores, count, scratch, chosen), chosen.size());
  return chosen;
}

std::vector<uint32_t> SelectBySorting(const std::vector<float>& scores, uint32_t count) {
  std::vector<uint32_t> places(scores.size());
  std::iota(places.begin(), places.end(), 0u);
  std::stable_sort(places.begin(), places.end(), [&](uint32_t a, uint32_t b) {
    if (std::isnan(scores[a]) || std::isnan(scores[b]))
      return !std::isnan(scores[a]) && std::isnan(scores[b]);
    return scores[a] > scores[b];
  });
  places.resize(std::min<size_t>(count, places.size()));
  std::sort(places.begin(), places.end());
  return places;
}

TEST(SelectLargest, PrefersTheLowerPlaceAmongEquals) {
  EXPECT_EQ(Select({1, 3, 2, 3, 3}, 2), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(Select({0.0f, -0.0f, 0.0f, -1}, 2), (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(Select({-0.0f, 0.0f}, 1), (std::vector<uint32_t>{0}));
  EXPECT_EQ(Select({7, 7, 7}, 5), (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(Select({}, 5), std::vector<uint32_t>());
  EXPECT_EQ(Select({1, 2}, 0), std::vector<uint32_t>());
}

TEST(SelectLargest, PutsNaNBelowEverything) {
  const float nan = std::nanf("");
  EXPECT_EQ(Select({nan, -kInfinity, nan, 5, -nan}, 2), (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(Select({nan, -kInfinity, nan, 5, -nan}, 4), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(Select({-nan, nan, nan}, 2), (std::vector<uint32_t>{0, 1}));
}

TEST(SelectLargest, EqualsAStableSort) {
  base::Rng rng(86);
  for (int repeat = 0; repeat < 400; ++repeat) {
    std::vector<float> scores(rng.Below(repeat < 350 ? 200 : 5000));
    const uint64_t values = 1 + rng.Below(repeat % 2 == 0 ? 8 : 100000);  // few: many equal ones
    for (float& score : scores) {
      score = (static_cast<float>(rng.Below(values)) - static_cast<float>(values) / 2) / 1024;
      const uint64_t kind = rng.Below(64);
      if (kind == 0) score = std::nanf("");
      if (kind == 1) score = rng.Below(2) == 0 ? kInfinity : -kInfinity;
      if (kind == 2) score = rng.Below(2) == 0 ? 0.0f : -0.0f;
      if (kind == 3) score = std::bit_cast<float>(static_cast<uint32_t>(rng.Next()));
    }
    const auto count = static_cast<uint32_t>(rng.Below(scores.size() + 3));
    ASSERT_EQ(Select(scores, count), SelectBySorting(scores, count)) << repeat;
  }
}

}  // namespace
}  // namespace plumb::tensor
