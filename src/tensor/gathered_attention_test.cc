// tensor/gathered_attention_test.cc: attention over lists of rows against the judge, bit for bit,
// and against softmax in double; sinks, borders of blocks, threads, values that are not finite.
#include "tensor/gathered_attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensor/cpu_features.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Size {
  uint32_t heads;
  uint32_t head_dim;
  uint32_t window;
  uint32_t selected;
};

// Some queries with lists of their own, over rows at odd addresses.
class Fixture {
 public:
  Fixture(Size size, RowFormat window, RowFormat selected, uint32_t queries, uint64_t seed)
      : size_(size),
        shape_{.heads = size.heads,
               .head_dim = size.head_dim,
               .scale = 1 / std::sqrt(static_cast<float>(size.head_dim)),
               .window = window,
               .selected = selected},
        rng_(seed) {
    for (uint32_t head = 0; head < size.heads; ++head) {
      sinks_.push_back(test::RandomFloat(rng_, 4));
    }
    inputs_.resize(queries * row());
    for (float& x : inputs_) x = test::RandomFloat(rng_, 3);
    window_ = MakeRows(window, size.window + queries);
    selected_ = MakeRows(selected, size.selected + queries);
    // Lists overlap, but no two are equal.
    for (uint32_t q = 0; q < queries; ++q) {
      lists_.push_back(
          {Pick(window_, window, q, size.window), Pick(selected_, selected, q, size.selected)});
    }
  }

  size_t row() const { return size_t{size_.heads} * size_.head_dim; }
  size_t queries() const { return lists_.size(); }
  std::vector<float>& sinks() { return sinks_; }
  std::vector<float>& inputs() { return inputs_; }

  std::vector<float> Run(Compute compute) {
    shape_.sinks = sinks_.data();
    std::vector<float> out(inputs_.size(), std::nanf(""));
    std::vector<GatheredQuery> batch;
    for (size_t q = 0; q < queries(); ++q) batch.push_back(QueryAt(q, out));
    AttendGathered(compute, shape_, batch);
    return out;
  }
  // The same, each query in a call of its own.
  std::vector<float> RunAlone(Compute compute) {
    shape_.sinks = sinks_.data();
    std::vector<float> out(inputs_.size(), std::nanf(""));
    for (size_t q = 0; q < queries(); ++q) {
      const GatheredQuery query = QueryAt(q, out);
      AttendGathered(compute, shape_, {&query, 1});
    }
    return out;
  }

  struct Exact {
    std::vector<double> out;
    double bound;  // of the error of f32
  };
  // By the textbook formula in double, over the rows as stored.
  Exact ExactHead(size_t q, uint32_t head) const {
    std::vector<std::vector<float>> keys;
    for (const std::byte* p : lists_[q].window) keys.push_back(Decoded(shape_.window, p));
    for (const std::byte* p : lists_[q].selected) keys.push_back(Decoded(shape_.selected, p));
    const float* query = &inputs_[q * row() + size_t{head} * size_.head_dim];
    std::vector<double> scores;
    double largest = sinks_[head], most = 0, norms = 0;
    for (const auto& key : keys) {
      double dot = 0, absolute = 0;
      for (uint32_t d = 0; d < size_.head_dim; ++d) {
        dot += double{query[d]} * key[d];
        absolute += std::fabs(double{query[d]} * key[d]);
        most = std::max(most, std::fabs(double{key[d]}));
      }
      scores.push_back(dot * shape_.scale);
      largest = std::max(largest, scores.back());
      norms = std::max(norms, absolute * shape_.scale);
    }
    double sum = std::exp(sinks_[head] - largest);
    Exact exact = {std::vector<double>(size_.head_dim), 0};
    for (size_t k = 0; k < keys.size(); ++k) {
      const double weight = std::exp(scores[k] - largest);
      sum += weight;
      for (uint32_t d = 0; d < size_.head_dim; ++d) exact.out[d] += weight * keys[k][d];
    }
    for (double& x : exact.out) x /= sum;
    // A score is off by (head_dim / 16 + 6) roundings of its terms' sum, and so are, relatively,
    // its weight and the total; the exponents (up to the spread of scores) and the sums over keys
    // add their own.
    double spread = 0;
    for (const double score : scores) spread = std::max(spread, largest - score);
    const double roundings = 2 * ((size_.head_dim / 16 + 6) * norms + 3 * std::min(spread, 90.0)) +
                             2.0 * static_cast<double>(std::min<size_t>(keys.size(), 64)) +
                             static_cast<double>(keys.size()) / 16 + 12;
    exact.bound = roundings * 0x1p-24 * most;
    return exact;
  }

 private:
  struct List {
    std::vector<const std::byte*> window;
    std::vector<const std::byte*> selected;
  };

  std::vector<std::byte> MakeRows(RowFormat format, uint32_t count) {
    std::vector<std::byte> bytes(count * RowBytes(format, size_.head_dim) + 1);
    std::vector<float> values(size_.head_dim);
    for (uint32_t i = 0; i < count; ++i) {
      for (float& x : values) x = test::RandomFloat(rng_, 2);
      EncodeRow(format, values, bytes.data() + 1 + i * RowBytes(format, size_.head_dim));
    }
    return bytes;
  }
  std::vector<const std::byte*> Pick(const std::vector<std::byte>& rows, RowFormat format,
                                     uint32_t first, uint32_t count) const {
    std::vector<const std::byte*> picked;
    for (uint32_t i = 0; i < count; ++i) {
      picked.push_back(rows.data() + 1 + (first + i) * RowBytes(format, size_.head_dim));
    }
    return picked;
  }
  std::vector<float> Decoded(RowFormat format, const std::byte* p) const {
    std::vector<float> values(size_.head_dim);
    DecodeRow(format, p, values);
    return values;
  }
  GatheredQuery QueryAt(size_t q, std::vector<float>& out) const {
    return {.query = &inputs_[q * row()],
            .out = &out[q * row()],
            .window = lists_[q].window,
            .selected = lists_[q].selected};
  }

  const Size size_;
  GatheredShape shape_;
  base::Rng rng_;
  std::vector<float> sinks_;
  std::vector<float> inputs_;
  std::vector<std::byte> window_;
  std::vector<std::byte> selected_;
  std::vector<List> lists_;
};

constexpr Size kSizes[] = {
    {1, 32, 1, 0},    {3, 64, 0, 1},   {8, 96, 7, 9},    {3, 128, 63, 0},  {3, 128, 64, 0},
    {3, 128, 65, 0},  {8, 32, 63, 1},  {8, 32, 63, 2},   {8, 32, 64, 64},  {64, 64, 128, 65},
    {5, 512, 20, 70}, {2, 32, 0, 63},  {1, 32, 0, 129},  {70, 32, 30, 40}, {13, 64, 128, 200},
    {6, 32, 2, 0},    {7, 160, 3, 66}, {64, 32, 128, 0}, {4, 512, 0, 3},   {9, 32, 200, 130},
};

TEST(GatheredAttention, EqualsTheJudge) {
  ThreadPool pool({.threads = 1});
  uint64_t seed = 70;
  for (const Size& size : kSizes) {
    for (const auto& [window, selected] :
         {std::pair{RowFormat::kF8Group32, RowFormat::kF4Group16},
          std::pair{RowFormat::kF32, RowFormat::kF32},
          std::pair{RowFormat::kF4Group32, RowFormat::kF8Group32}}) {
      Fixture fixture(size, window, selected, 2, ++seed);
      const auto expected = fixture.Run({pool, *AllKernels()[0]});
      for (const KernelTable* kernels : AllKernels()) {
        ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, *kernels})), "")
            << kernels->name << " heads " << size.heads << " of " << size.head_dim << ", keys "
            << size.window << " + " << size.selected;
      }
    }
  }
}

TEST(GatheredAttention, IsSoftmaxWithASink) {
  ThreadPool pool({.threads = 1});
  uint64_t seed = 170;
  for (const Size& size : kSizes) {
    Fixture fixture(size, RowFormat::kF8Group32, RowFormat::kF4Group16, 2, ++seed);
    const auto out = fixture.Run({pool, *AllKernels().back()});
    for (size_t q = 0; q < fixture.queries(); ++q) {
      for (uint32_t head = 0; head < size.heads; ++head) {
        const auto exact = fixture.ExactHead(q, head);
        for (uint32_t d = 0; d < size.head_dim; ++d) {
          ASSERT_NEAR(out[q * fixture.row() + size_t{head} * size.head_dim + d], exact.out[d],
                      exact.bound)
              << head << " " << d;
        }
      }
    }
  }
}

// What the model needs: the real shape within 1e-5 of the whole, in norm.
TEST(GatheredAttention, TheRealShapeIsCloseToDouble) {
  ThreadPool pool({.threads = 2});
  Fixture fixture({64, 512, 128, 512}, RowFormat::kF8Group32, RowFormat::kF4Group16, 1, 71);
  const auto out = fixture.Run({pool, *AllKernels().back()});
  for (const uint32_t head : {0u, 31u, 63u}) {
    const auto exact = fixture.ExactHead(0, head);
    double error = 0, size = 0;
    for (uint32_t d = 0; d < 512; ++d) {
      error += std::pow(out[size_t{head} * 512 + d] - exact.out[d], 2);
      size += exact.out[d] * exact.out[d];
    }
    EXPECT_LT(std::sqrt(error / size), 2e-6) << head;
  }
}

TEST(GatheredAttention, ThreadsAndBatchMatesDoNotChangeBits) {
  const KernelTable& kernels = *AllKernels().back();
  for (const uint32_t queries : {1u, 2u, 3u, 5u, 9u}) {
    Fixture fixture({64, 64, 30, 100}, RowFormat::kF8Group32, RowFormat::kF4Group16, queries, 72);
    ThreadPool one({.threads = 1});
    const auto expected = fixture.Run({one, kernels});
    EXPECT_EQ(FirstDifference(expected, fixture.RunAlone({one, kernels})), "");
    for (uint32_t threads = 2; threads <= 8; ++threads) {
      ThreadPool pool({.threads = threads});
      ASSERT_EQ(FirstDifference(expected, fixture.Run({pool, kernels})), "") << threads;
      ASSERT_EQ(FirstDifference(expected, fixture.RunAlone({pool, kernels})), "") << threads;
    }
  }
}

TEST(GatheredAttention, NoKeysGiveZero) {
  ThreadPool pool({.threads = 1});
  for (const KernelTable* kernels : AllKernels()) {
    Fixture fixture({3, 64, 0, 0}, RowFormat::kF8Group32, RowFormat::kF4Group16, 2, 73);
    fixture.sinks() = {0.5f, -kInfinity, 1e30f};
    for (const float x : fixture.Run({pool, *kernels})) EXPECT_EQ(x, 0.0f) << kernels->name;
  }
}

TEST(GatheredAttention, ASinkTakesAllOrNothing) {
  ThreadPool pool({.threads = 1});
  for (const KernelTable* kernels : AllKernels()) {
    Fixture fixture({3, 64, 40, 40}, RowFormat::kF8Group32, RowFormat::kF4Group16, 1, 74);
    fixture.sinks() = {-kInfinity, 1e30f, -1e30f};
    const auto out = fixture.Run({pool, *kernels});
    const auto exact = fixture.ExactHead(0, 0);  // exp(-inf) = 0
    for (uint32_t d = 0; d < 64; ++d) {
      EXPECT_NEAR(out[d], exact.out[d], exact.bound) << kernels->name;
      EXPECT_EQ(out[64 + d], 0.0f) << kernels->name;
    }
    const auto last = fixture.ExactHead(0, 2);
    for (uint32_t d = 0; d < 64; ++d) EXPECT_NEAR(out[128 + d], last.out[d], last.bound);
  }
}

// Scores beyond exp's range on either side of their block's maximum.
TEST(GatheredAttention, GreatScoresStayFinite) {
  ThreadPool pool({.threads = 1});
  Fixture fixture({4, 64, 70, 70}, RowFormat::kF8Group32, RowFormat::kF4Group16, 1, 75);
  for (float& x : fixture.inputs()) x *= 1000;
  const auto expected = fixture.Run({pool, *AllKernels()[0]});
  for (const float x : expected) ASSERT_TRUE(std::isfinite(x));
  for (const KernelTable* kernels : AllKernels()) {
    EXPECT_EQ(FirstDifference(expected, fixture.Run({pool, *kernels})), "") << kernels->name;
  }
}

// A row, a query or a sink that is NaN is not hidden, and stays within its query or head.
TEST(GatheredAttention, NaNStaysNaNWhereItWas) {
  ThreadPool pool({.threads = 1});
  for (const KernelTable* kernels : AllKernels()) {
    Fixture fixture({6, 64, 70, 70}, RowFormat::kF8Group32, RowFormat::kF4Group16, 2, 76);
    fixture.inputs()[2 * 64 + 5] = std::nanf("");
    fixture.sinks()[4] = std::nanf("");
    const auto out = fixture.Run({pool, *kernels});
    for (uint32_t query = 0; query < 2; ++query) {
      for (uint32_t head = 0; head < 6; ++head) {
        const bool nan = head == 4 || (query == 0 && head == 2);
        for (uint32_t d = 0; d < 64; ++d) {
          EXPECT_EQ(std::isnan(out[query * fixture.row() + head * 64 + d]), nan)
              << kernels->name << query << head << d;
        }
      }
    }
  }
}

TEST(GatheredAttention, ARowOfNaNReachesEveryHead) {
  ThreadPool pool({.threads = 1});
  const GatheredShape shape = {.heads = 5,
                               .head_dim = 32,
                               .scale = 1,
                               .window = RowFormat::kF8Group32,
                               .selected = RowFormat::kF4Group16};
  std::vector<float> query(5 * 32, 0.25f), sinks(5), values(32, 1.0f);
  std::vector<std::byte> good(RowBytes(shape.window, 32)), bad(RowBytes(shape.window, 32));
  EncodeRow(shape.window, values, good.data());
  values[7] = kInfinity;
  EncodeRow(shape.window, values, bad.data());
  for (const KernelTable* kernels : AllKernels()) {
    for (uint32_t at = 0; at < 70; ++at) {
      std::vector<const std::byte*> rows(70, good.data());
      rows[at] = bad.data();
      std::vector<float> out(5 * 32);
      GatheredShape with_sinks = shape;
      with_sinks.sinks = sinks.data();
      const GatheredQuery asked = {.query = query.data(), .out = out.data(), .window = rows};
      AttendGathered({pool, *kernels}, with_sinks, {&asked, 1});
      for (const float x : out) EXPECT_TRUE(std::isnan(x)) << kernels->name << at;
    }
  }
}

TEST(GatheredAttentionDeathTest, ShapesThatNoKernelHasAreBugs) {
  ThreadPool pool({.threads = 1});
  const float sink = 0;
  const Compute compute = {pool, *AllKernels()[0]};
  EXPECT_DEATH(
      AttendGathered(compute, {.heads = 1, .head_dim = 48, .scale = 1, .sinks = &sink}, {}), "48");
  EXPECT_DEATH(AttendGathered(compute, {.heads = 1, .head_dim = 32, .scale = 1}, {}), "sinks");
  EXPECT_DEATH(AttendGathered(compute, {.heads = 1, .head_dim = 32, .sinks = &sink}, {}), "scale");
}

}  // namespace
}  // namespace plumb::tensor
