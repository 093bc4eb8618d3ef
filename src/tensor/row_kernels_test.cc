// tensor/row_kernels_test.cc
// The row functions: every target against the judge, bit for bit, over widths from 0 on; those of
// the newer families (GeGLU, soft cap, softmax, scaled sums) also against their formulas in double.
// The others' formulas: ops_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tensor/cpu_features.h"
#include "tensor/ops.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;
using test::RandomFloats;

struct RowFunction {
  const char* name;
  uint32_t n_min;
  std::function<void(const KernelTable&, const std::vector<float>& a, const std::vector<float>& b,
                     std::vector<float>& out)>
      run;
};

uint32_t Size(const std::vector<float>& x) { return static_cast<uint32_t>(x.size()); }

const RowFunction kFunctions[] = {
    {"rms_norm", 1,
     [](const KernelTable& k, const auto& a, const auto& b, auto& out) {
       k.rms_norm(a.data(), b.data(), 1e-5f, Size(a), out.data());
     }},
    {"swiglu", 0,
     [](const KernelTable& k, const auto& a, const auto& b, auto& out) {
       k.swiglu(a.data(), b.data(), Size(a), out.data());
     }},
    {"add", 0,
     [](const KernelTable& k, const auto& a, const auto& b, auto& out) {
       k.add(a.data(), b.data(), Size(a), out.data());
     }},
    {"log_sum_exp", 1,
     [](const KernelTable& k, const auto& a, const auto&, auto& out) {
       out[0] = k.log_sum_exp(a.data(), a.size());
     }},
    {"geglu", 0,
     [](const KernelTable& k, const auto& a, const auto& b, auto& out) {
       k.geglu(a.data(), b.data(), Size(a), out.data());
     }},
    {"add_scaled", 0,
     [](const KernelTable& k, const auto& a, const auto& b, auto& out) {
       out = b;
       k.add_scaled(a.data(), 0.3f, Size(a), out.data());
     }},
    {"soft_cap", 0,
     [](const KernelTable& k, const auto& a, const auto&, auto& out) {
       k.soft_cap(a.data(), 30.0f, a.size(), out.data());
     }},
    {"softmax", 1,
     [](const KernelTable& k, const auto& a, const auto&, auto& out) {
       k.softmax(a.data(), a.size(), out.data());
     }},
};

TEST(RowKernels, EqualTheJudgeAtEveryWidth) {
  base::Rng rng(21);
  std::vector<uint32_t> widths(70);
  std::iota(widths.begin(), widths.end(), 0u);
  for (const uint32_t large : {100u, 576u, 2048u, 4099u, 131071u}) widths.push_back(large);
  for (const RowFunction& function : kFunctions) {
    for (const uint32_t n : widths) {
      if (n < function.n_min) continue;
      const auto a = RandomFloats(rng, n);
      const auto b = RandomFloats(rng, n);
      std::vector<float> expected(n, 7.0f);
      function.run(*AllKernels()[0], a, b, expected);
      for (const KernelTable* target : AllKernels()) {
        std::vector<float> got(n, 7.0f);
        function.run(*target, a, b, got);
        ASSERT_EQ(FirstDifference(expected, got), "") << function.name << target->name << n;
      }
    }
  }
}

// Where exp overflows or vanishes: the functions reach their limits, as in the judge.
TEST(RowKernels, ReachTheirLimits) {
  const std::vector<float> hard = {0.0f,  -0.0f,  1e-30f, -1e-30f, 88.0f, -88.0f, 200.0f, -200.0f,
                                   1e15f, -1e15f, 3e38f,  -3e38f,  1e-3f, -1e-3f, 12.0f,  -12.0f};
  const std::vector<float> ones(hard.size(), 1.0f);
  for (const KernelTable* table : AllKernels()) {
    std::vector<float> gelu(hard.size()), capped(hard.size());
    table->geglu(hard.data(), ones.data(), Size(hard), gelu.data());
    table->soft_cap(hard.data(), 30.0f, hard.size(), capped.data());
    for (size_t i = 0; i < hard.size(); ++i) {
      const float x = hard[i];
      if (x >= 20) {
        EXPECT_EQ(gelu[i], x) << table->name;
      }
      if (x <= -20) {
        EXPECT_EQ(gelu[i], 0.0f) << table->name << x;
      }
      if (std::fabs(x) >= 1e15f) {
        EXPECT_EQ(capped[i], std::copysign(30.0f, x)) << table->name;
      }
      if (std::fabs(x) <= 1e-30f) {
        EXPECT_EQ(capped[i], 0.0f) << table->name;
      }
    }
    for (size_t i = 0; i < hard.size(); ++i) {  // lane by lane, the remainder loop
      float one = 0;
      table->geglu(&hard[i], ones.data(), 1, &one);
      EXPECT_EQ(std::bit_cast<uint32_t>(one), std::bit_cast<uint32_t>(gelu[i])) << table->name;
      table->soft_cap(&hard[i], 30.0f, 1, &one);
      EXPECT_EQ(std::bit_cast<uint32_t>(one), std::bit_cast<uint32_t>(capped[i])) << table->name;
    }
  }
}

TEST(RowOps, ComputeTheirFormulasForAnyNumberOfThreads) {
  base::Rng rng(22);
  constexpr uint32_t kRows = 90, kN = 101;
  const auto a = RandomFloats(rng, kRows * kN);
  const auto b = RandomFloats(rng, kRows * kN);
  std::vector<float> first_gelu, first_softmax;
  for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
    ThreadPool pool({.threads = threads});
    const Compute compute = {pool, *AllKernels().back()};
    std::vector<float> gelu(a.size()), softmax = a, capped = a;
    GeGlu(compute, a.data(), b.data(), kRows, kN, gelu.data());
    Softmax(compute, kRows, kN, softmax.data());
    SoftCap(compute, 5.0f, kRows, kN, capped.data());
    if (threads == 1) {
      first_gelu = gelu;
      first_softmax = softmax;
    }
    ASSERT_EQ(FirstDifference(first_gelu, gelu), "");
    ASSERT_EQ(FirstDifference(first_softmax, softmax), "");
    for (uint32_t row = 0; row < kRows; ++row) {
      double sum = 0, total = 0;
      for (uint32_t i = 0; i < kN; ++i) sum += std::exp(double{a[row * kN + i]});
      for (uint32_t i = 0; i < kN; ++i) {
        const size_t at = row * kN + i;
        const double g = a[at];
        const double tanh = std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g));
        const double expected = 0.5 * g * (1 + tanh) * b[at];
        // The rounding of exp's argument, at most 2^-22 * 90, is a relative error of the result;
        // double's tanh near -1 is off by 2^-53 of the whole.
        const double slack = std::fabs(g * b[at]) * 0x1p-52;
        ASSERT_NEAR(gelu[at], expected, std::fabs(expected) * 0x1p-15 + slack) << g;
        ASSERT_NEAR(capped[at], 5 * std::tanh(g / 5), 5 * 0x1p-21) << g;
        const double share = std::exp(g) / sum;
        // x - max is at most 80 and so off by 2^-18, a relative error of exp; the rest is 2^-21.
        ASSERT_NEAR(softmax[at], share, share * 0x1p-17 + 1e-37);
        total += softmax[at];
      }
      ASSERT_NEAR(total, 1, 1e-6);
    }
  }
}

TEST(RowOps, GatheredRowsComeBackScaledAndInPlace) {
  base::Rng rng(23);
  ThreadPool pool({.threads = 3});
  const Compute compute = {pool, *AllKernels().back()};
  constexpr uint32_t kN = 37;
  const auto x = RandomFloats(rng, 50 * kN);
  const uint32_t indexes[] = {3, 7, 8, 20, 49, 0};
  const float scales[] = {1, -2, 0.5f, 0, 4, 8};
  std::vector<float> picked(6 * kN), sums(50 * kN, 1.0f);
  GatherRows(compute, x.data(), indexes, kN, picked.data());
  AddScaledRows(compute, picked.data(), scales, indexes, kN, sums.data());
  for (uint32_t row = 0; row < 50; ++row) {
    const auto found = std::find(std::begin(indexes), std::end(indexes), row);
    const float scale = found == std::end(indexes) ? 0.0f : scales[found - std::begin(indexes)];
    for (uint32_t i = 0; i < kN; ++i) {
      ASSERT_EQ(sums[row * kN + i], std::fma(scale, x[row * kN + i], 1.0f)) << row << " " << i;
    }
  }
}

TEST(RowOps, OfNoRowsOrOfNoWidthTouchNothing) {
  ThreadPool pool({.threads = 2});
  const Compute compute = {pool, *AllKernels().back()};
  RmsNorm(compute, nullptr, 0, 8, nullptr, 1e-5f, nullptr);
  SoftCap(compute, 1.0f, 0, 8, nullptr);
  Softmax(compute, 0, 8, nullptr);
  float kept = 7;  // what a row of no width would begin at
  for (const uint32_t rows : {0u, 1u, 100u}) {
    const uint32_t n = rows == 0 ? 8 : 0;
    SwiGlu(compute, &kept, &kept, rows, n, &kept);
    GeGlu(compute, &kept, &kept, rows, n, &kept);
    Add(compute, &kept, &kept, rows, n, &kept);
    SoftCap(compute, 1.0f, rows, n, &kept);
  }
  GatherRows(compute, nullptr, {}, 8, nullptr);
  AddScaledRows(compute, nullptr, {}, {}, 8, nullptr);
  EXPECT_EQ(kept, 7);
}

TEST(RowOpsDeathTest, WrongArgumentsAreBugs) {
  ThreadPool pool({.threads = 1});
  const Compute compute = {pool, *AllKernels()[0]};
  float x[4] = {};
  const uint32_t index[] = {0};
  EXPECT_DEATH(SoftCap(compute, 0.0f, 1, 4, x), "cap > 0");
  EXPECT_DEATH(Softmax(compute, 1, 0, x), "n > 0");
  EXPECT_DEATH(AddScaledRows(compute, x, {}, index, 4, x), "0 for 1");
}

}  // namespace
}  // namespace plumb::tensor
