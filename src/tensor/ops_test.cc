// tensor/ops_test.cc: operations over batches: threads and batch mates change nothing, results are
// what the formulas say.
#include "tensor/ops.h"

#include <gtest/gtest.h>

#include "tensor/cpu_features.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;
using test::RandomFloats;

struct Weights {
  PackedMatrix q, k, gate;
};

Weights MakeWeights(base::Rng& rng, ThreadPool& pool) {
  auto pack = [&](DType dtype, uint32_t outputs) {
    return PackedMatrix::Pack(dtype, outputs, 512, test::RandomMatrix(dtype, outputs, 512, rng),
                              pool)
        .value();
  };
  return {pack(DType::kQ4_1, 500), pack(DType::kQ6_K, 37), pack(DType::kF16, 100)};
}

// Three products of one input, rows [first, first + rows) of x.
std::vector<float> RunLinear(Compute compute, const Weights& weights, const std::vector<float>& x,
                             uint32_t first, uint32_t rows) {
  std::vector<float> q(rows * 500), k(rows * 37), gate(rows * 100);
  auto scratch = Activations::Allocate(rows, 512).value();
  const Product products[] = {{.matrix = &weights.q, .out = q.data()},
                              {.matrix = &weights.k, .out = k.data()},
                              {.matrix = &weights.gate, .out = gate.data()}};
  Linear(compute, x.data() + size_t{first} * 512, rows, 512, scratch, products);
  std::vector<float> all;  // row by row
  for (uint32_t row = 0; row < rows; ++row) {
    all.insert(all.end(), &q[row * 500], &q[row * 500] + 500);
    all.insert(all.end(), &k[row * 37], &k[row * 37] + 37);
    all.insert(all.end(), &gate[row * 100], &gate[row * 100] + 100);
  }
  return all;
}

TEST(Ops, LinearIsTheSameForAnyThreadsAndAnySplitOfRows) {
  base::Rng rng(1);
  ThreadPool one({.threads = 1});
  const Weights weights = MakeWeights(rng, one);
  constexpr uint32_t kRows = 90;
  const auto x = RandomFloats(rng, kRows * 512);
  for (const KernelTable* table : AllKernels()) {
    if (table->name == "scalar") continue;
    const auto expected = RunLinear({one, *table}, weights, x, 0, kRows);
    for (const uint32_t threads : {1u, 2u, 3u, 4u}) {
      ThreadPool pool({.threads = threads});
      ASSERT_EQ(FirstDifference(expected, RunLinear({pool, *table}, weights, x, 0, kRows)), "");
      for (const uint32_t chunk : {1u, 3u, 8u, 17u}) {
        std::vector<float> got;
        for (uint32_t first = 0; first < kRows; first += chunk) {
          const auto part =
              RunLinear({pool, *table}, weights, x, first, std::min(chunk, kRows - first));
          got.insert(got.end(), part.begin(), part.end());
        }
        ASSERT_EQ(FirstDifference(expected, got), "")
            << table->name << " " << threads << " threads, chunks of " << chunk;
      }
    }
  }
}

TEST(Ops, RowFunctionsComputeTheirFormulas) {
  base::Rng rng(2);
  ThreadPool pool({.threads = 3});
  const Compute compute = {pool, *AllKernels().back()};
  constexpr uint32_t kRows = 70;
  constexpr uint32_t kN = 100;
  const auto a = RandomFloats(rng, kRows * kN);
  const auto b = RandomFloats(rng, kRows * kN);
  std::vector<float> norm(a.size()), swiglu(a.size()), sum(a.size());
  RmsNorm(compute, a.data(), kRows, kN, b.data(), 1e-6f, norm.data());
  SwiGlu(compute, a.data(), b.data(), kRows, kN, swiglu.data());
  Add(compute, a.data(), b.data(), kRows, kN, sum.data());
  for (uint32_t row = 0; row < kRows; ++row) {
    double squares = 0;
    for (uint32_t i = 0; i < kN; ++i) squares += double{a[row * kN + i]} * a[row * kN + i];
    const double inverse = 1 / std::sqrt(squares / kN + 1e-6);
    for (uint32_t i = 0; i < kN; ++i) {
      const size_t at = row * kN + i;
      const double gate = a[at];
      const double expected_norm = gate * inverse * b[i];
      const double expected_swiglu = gate / (1 + std::exp(-gate)) * b[at];
      ASSERT_NEAR(norm[at], expected_norm, std::fabs(expected_norm) * 0x1.0p-20);
      ASSERT_NEAR(swiglu[at], expected_swiglu, std::fabs(expected_swiglu) * 0x1.0p-21 + 1e-37);
      ASSERT_EQ(sum[at], a[at] + b[at]);
    }
  }
}

TEST(Ops, RotationKeepsLengthsAndTurnsByPosition) {
  ThreadPool pool({.threads = 2});
  const Compute compute = {pool, *AllKernels().back()};
  const auto table = RotaryTable::Build({.dims = 32, .positions_max = 64}, pool).value();
  base::Rng rng(3);
  const auto x = RandomFloats(rng, 2 * 3 * 32);
  for (const RotaryPairing pairing : {RotaryPairing::kAdjacent, RotaryPairing::kHalves}) {
    auto y = x;
    const uint32_t positions[] = {0, 41};
    Rotate(compute, table, pairing, positions, 3, 32, y.data());
    for (uint32_t i = 0; i < 96; ++i) ASSERT_EQ(x[i], y[i]);  // position 0 turns nothing
    for (uint32_t head = 0; head < 3; ++head) {
      for (uint32_t i = 0; i < 16; ++i) {
        const uint32_t first = 96 + head * 32 + (pairing == RotaryPairing::kHalves ? i : 2 * i);
        const uint32_t second = first + (pairing == RotaryPairing::kHalves ? 16 : 1);
        const double angle = 41 * std::pow(10000.0, -2.0 * i / 32);
        const double c = std::cos(angle);
        const double s = std::sin(angle);
        EXPECT_NEAR(y[first], x[first] * c - x[second] * s, 1e-5);
        EXPECT_NEAR(y[second], x[second] * c + x[first] * s, 1e-5);
      }
    }
  }
}

TEST(Ops, LogSumExpIsCloseToTheTruthAndStable) {
  ThreadPool pool({.threads = 1});
  base::Rng rng(4);
  auto x = RandomFloats(rng, 49152);
  double sum = 0;
  for (const float value : x) sum += std::exp(double{value});
  for (const KernelTable* table : AllKernels()) {
    EXPECT_NEAR(LogSumExp({pool, *table}, x), std::log(sum), 1e-5);
  }
  for (float& value : x) value += 10000.0f;  // exp alone would overflow
  EXPECT_NEAR(LogSumExp({pool, *AllKernels().back()}, x), 10000 + std::log(sum), 2e-3);
}

TEST(OpsDeathTest, MismatchedShapesAreBugs) {
  ThreadPool pool({.threads = 1});
  base::Rng rng(5);
  const auto matrix =
      PackedMatrix::Pack(DType::kF32, 4, 8, test::RandomMatrix(DType::kF32, 4, 8, rng), pool);
  float x[16] = {};
  float out[8];
  Activations scratch;
  const Product product = {.matrix = &*matrix, .out = out};
  EXPECT_DEATH(Linear({pool, *AllKernels()[0]}, x, 1, 16, scratch, {&product, 1}), "4 x 8 for 16");
}

}  // namespace
}  // namespace plumb::tensor
