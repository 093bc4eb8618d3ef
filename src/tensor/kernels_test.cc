// tensor/kernels_test.cc
// Every kernel of every target against the scalar judge, bit for bit, at shapes around the vector
// widths. Products go through Linear, so the cut into items is under test too.
#include <gtest/gtest.h>

#include <numeric>

#include "tensor/cpu_features.h"
#include "tensor/dequantize.h"
#include "tensor/kv_page.h"
#include "tensor/ops.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;
using test::RandomFloats;

// Targets other than the judge.
std::vector<const KernelTable*> Targets() {
  auto tables = AllKernels();
  tables.erase(tables.begin());
  return tables;
}

class Products : public ::testing::TestWithParam<DType> {
 protected:
  std::vector<float> Compute(const KernelTable& kernels, const PackedMatrix& matrix,
                             const std::vector<float>& x, uint32_t rows, const float* bias,
                             bool add) {
    std::vector<float> out(size_t{rows} * matrix.outputs(), 0.25f);
    const Product product = {.matrix = &matrix, .out = out.data(), .bias = bias, .add = add};
    Linear({pool_, kernels}, x.data(), rows, matrix.inputs(), scratch_, {&product, 1});
    return out;
  }

  void ExpectEqualBits(uint32_t outputs, uint32_t inputs, uint32_t rows) {
    const auto bytes = test::RandomMatrix(GetParam(), outputs, inputs, rng_);
    const auto matrix = PackedMatrix::Pack(GetParam(), outputs, inputs, bytes, pool_);
    ASSERT_TRUE(matrix.ok()) << matrix.status().ToString();
    const auto x = RandomFloats(rng_, size_t{rows} * inputs);
    const auto bias = RandomFloats(rng_, outputs);
    const bool with_bias = rng_.Below(2) == 0;
    const bool add = rng_.Below(2) == 0;
    const float* bias_or_null = with_bias ? bias.data() : nullptr;
    const auto expected = Compute(*AllKernels()[0], *matrix, x, rows, bias_or_null, add);
    for (const KernelTable* target : Targets()) {
      const auto got = Compute(*target, *matrix, x, rows, bias_or_null, add);
      ASSERT_EQ(FirstDifference(expected, got), "")
          << target->name << " " << outputs << " x " << inputs << ", " << rows << " rows";
    }
  }

  // By how much packing may change a weight, as a part of the largest of its group: BF16 becomes
  // fixed point with 11 bits below the largest.
  double PackingStep() const { return GetParam() == DType::kBF16 ? 0x1.0p-11 : 0; }
  uint32_t Unit() const { return Traits(GetParam()).block_inputs; }

  base::Rng rng_{7};
  ThreadPool pool_{{.threads = 2}};
  Activations scratch_ = Activations::Allocate(64, 4096).value();
};

TEST_P(Products, EqualTheJudgeForAllRowCounts) {
  for (uint32_t rows = 1; rows <= 17; ++rows) ExpectEqualBits(33, 3 * Unit(), rows);
}

TEST_P(Products, EqualTheJudgeAroundVectorWidths) {
  for (const uint32_t outputs : {1u, 7u, 8u, 9u, 15u, 16u, 17u, 31u, 32u, 48u}) {
    for (const uint32_t blocks : {1u, 2u, 5u, 7u, 8u, 9u, 15u, 16u, 17u}) {
      if (blocks > 5 && Unit() > 32) continue;
      ExpectEqualBits(outputs, blocks * Unit(), 1 + rng_.Below(3));
    }
  }
}

// Around the numbers of rows at which a target changes its way: 12 on AVX2, and 128 to an
// expansion.
TEST_P(Products, EqualTheJudgeAroundManyRows) {
  scratch_ = Activations::Allocate(260, 9 * 256).value();
  for (const uint32_t rows : {11u, 12u, 13u, 127u, 128u, 129u, 137u, 257u}) {
    ExpectEqualBits(17, rows % 2 == 0 ? 256 : 9 * 256, rows);
  }
}

TEST_P(Products, OfNoRowsWriteNothing) {
  const auto bytes = test::RandomMatrix(GetParam(), 33, 2 * Unit(), rng_);
  const auto matrix = PackedMatrix::Pack(GetParam(), 33, 2 * Unit(), bytes, pool_);
  for (const KernelTable* table : AllKernels()) {
    std::vector<float> out(33, 7.0f);
    const Product product = {.matrix = &*matrix, .out = out.data(), .add = true};
    Linear({pool_, *table}, nullptr, 0, 2 * Unit(), scratch_, {&product, 1});
    Linear({pool_, *table}, nullptr, 0, 2 * Unit(), scratch_, {});
    EXPECT_EQ(out, std::vector<float>(33, 7.0f)) << table->name;
  }
}

TEST_P(Products, EqualTheJudgeWhenLarge) { ExpectEqualBits(200, 1536, 40); }

// A weight read back through a product with a unit vector is the dequantised weight, up to
// rounding.
TEST_P(Products, OfUnitVectorsAreTheWeights) {
  const uint32_t inputs = std::max(64u, Unit());
  const uint32_t outputs = 19;
  const auto bytes = test::RandomMatrix(GetParam(), outputs, inputs, rng_);
  const auto matrix = PackedMatrix::Pack(GetParam(), outputs, inputs, bytes, pool_);
  const size_t row_bytes = bytes.size() / outputs;
  std::vector<float> weights(inputs);
  std::vector<float> x(size_t{inputs} * inputs);
  for (uint32_t i = 0; i < inputs; ++i) x[size_t{i} * inputs + i] = 1.0f;
  scratch_ = Activations::Allocate(inputs, inputs).value();
  for (const KernelTable* table : AllKernels()) {
    const auto out = Compute(*table, *matrix, x, inputs, nullptr, false);
    for (uint32_t j = 0; j < outputs; ++j) {
      ASSERT_TRUE(
          DequantizeRow(GetParam(), std::span(bytes).subspan(j * row_bytes, row_bytes), weights)
              .ok());
      float largest = 0;
      for (const float weight : weights) largest = std::fmax(largest, std::fabs(weight));
      for (uint32_t i = 0; i < inputs; ++i) {
        // x becomes 32767 * (1 / 32767): a few roundings of terms at most twice the largest weight.
        ASSERT_NEAR(out[size_t{i} * outputs + j], weights[i], largest * (0x1.0p-20 + PackingStep()))
            << j << " " << i;
      }
    }
  }
}

// A product is off by no more than the quantisation step of the activations allows.
TEST_P(Products, AreWithinTheQuantisationStepOfTheTruth) {
  const uint32_t inputs = 512;
  const auto bytes = test::RandomMatrix(GetParam(), 5, inputs, rng_);
  const auto matrix = PackedMatrix::Pack(GetParam(), 5, inputs, bytes, pool_);
  const auto x = RandomFloats(rng_, inputs);
  std::vector<float> weights(inputs);
  double largest = 0;
  for (const float value : x) largest = std::fmax(largest, std::fabs(value));
  const auto out = Compute(*AllKernels().back(), *matrix, x, 1, nullptr, false);
  for (uint32_t j = 0; j < 5; ++j) {
    const size_t row_bytes = bytes.size() / 5;
    ASSERT_TRUE(
        DequantizeRow(GetParam(), std::span(bytes).subspan(j * row_bytes, row_bytes), weights)
            .ok());
    double largest_weight = 0;
    for (const float weight : weights) {
      largest_weight = std::max(largest_weight, std::fabs(double{weight}));
    }
    double exact = 0;
    double bound = 0;
    for (uint32_t i = 0; i < inputs; ++i) {
      exact += double{weights[i]} * x[i];
      const double step = LayoutOf(GetParam()).quantized() ? largest / double{kQuantMax} / 2 : 0;
      // Half a step for each input, and f32 rounding of a sum of `inputs` terms.
      bound += std::fabs(weights[i]) * (step + std::fabs(x[i]) * inputs * 0x1.0p-24);
      bound += largest_weight * PackingStep() * std::fabs(x[i]);
    }
    EXPECT_NEAR(out[j], exact, bound) << j;
  }
}

// Values of a group down to 1/8 of its largest keep every bit, whatever their exponents.
TEST(Kernels, BFloatsOfLikeSizeArePackedWithoutLoss) {
  base::Rng rng(9);
  ThreadPool pool({.threads = 1});
  constexpr uint32_t kInputs = 32;
  auto scratch = Activations::Allocate(kInputs, kInputs).value();
  std::vector<float> x(kInputs * kInputs);
  for (uint32_t i = 0; i < kInputs; ++i) x[i * kInputs + i] = kQuantMax;  // a scale of exactly 1
  for (const uint32_t exponent : {11u, 30u, 120u, 127u, 200u, 230u}) {
    std::vector<std::byte> bytes(2 * kInputs);
    std::vector<float> weights(kInputs);
    for (uint32_t i = 0; i < kInputs; ++i) {
      const uint32_t below = i == 0 ? 0 : static_cast<uint32_t>(rng.Below(4));
      const auto bits = static_cast<uint16_t>((exponent - std::min(below, exponent - 1)) << 7 |
                                              rng.Below(128) | rng.Below(2) << 15);
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
      weights[i] = BFloat16ToFloat(bits);
    }
    const auto matrix = PackedMatrix::Pack(DType::kBF16, 1, kInputs, bytes, pool);
    for (const KernelTable* table : AllKernels()) {
      std::vector<float> out(kInputs);
      const Product product = {.matrix = &*matrix, .out = out.data()};
      Linear({pool, *table}, x.data(), kInputs, kInputs, scratch, {&product, 1});
      for (uint32_t i = 0; i < kInputs; ++i) {
        ASSERT_EQ(out[i], weights[i] * kQuantMax) << table->name << " " << exponent << " " << i;
      }
    }
  }
}

TEST(Kernels, BFloatsThatFillNoGroupAreWidened) {
  base::Rng rng(10);
  ThreadPool pool({.threads = 1});
  const auto bytes = test::RandomMatrix(DType::kBF16, 3, 33, rng);
  const auto matrix = PackedMatrix::Pack(DType::kBF16, 3, 33, bytes, pool);
  ASSERT_TRUE(matrix.ok());
  EXPECT_EQ(matrix->dtype(), DType::kF32);
  std::vector<float> x(33);
  x[32] = 1;
  std::vector<float> out(3);
  Activations none;
  const Product product = {.matrix = &*matrix, .out = out.data()};
  Linear({pool, *AllKernels().back()}, x.data(), 1, 33, none, {&product, 1});
  for (uint32_t j = 0; j < 3; ++j) {
    EXPECT_EQ(out[j], BFloat16ToFloat(LoadU16(bytes.data() + 2 * (33 * j + 32))));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, Products, ::testing::ValuesIn(test::kAllTypes),
                         [](const auto& param) { return std::string(Name(param.param)); });

TEST(Kernels, QuantisingEqualsTheJudge) {
  base::Rng rng(3);
  for (const uint32_t inputs : {32u, 64u, 576u}) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> x = RandomFloats(rng, inputs);
      // Rows of zeros, of subnormals, of huge values and of ties are special.
      const float factor[] = {1.0f, 0.0f, 1e-38f, 1e-31f, 1e36f};
      for (float& value : x) value *= factor[round % 5];
      if (round % 7 == 0) {
        for (uint32_t i = 0; i < inputs; ++i) x[i] = static_cast<float>(i) - 0.5f;
        x[inputs - 1] = kQuantMax;
      }
      if (round % 11 == 0) x[rng.Below(inputs)] = round % 2 == 0 ? INFINITY : NAN;
      const uint32_t tile_rows = 1 + round % 8;
      auto run = [&](const KernelTable& table) {
        std::vector<int16_t> quants(size_t{inputs} * tile_rows);
        std::vector<float> numbers(size_t{inputs} / 32 * tile_rows * 4 + 1);
        table.quantize({.x = x.data(),
                        .inputs = inputs,
                        .tile_rows = tile_rows,
                        .quants = quants.data(),
                        .groups = reinterpret_cast<ActivationGroup*>(numbers.data()),
                        .scale = &numbers.back()});
        if (std::isnan(numbers.back())) numbers.back() = -1;  // any payload will do
        return std::pair(quants, numbers);
      };
      const auto expected = run(*AllKernels()[0]);
      for (const KernelTable* target : Targets()) {
        const auto got = run(*target);
        ASSERT_EQ(expected.first, got.first) << target->name << " " << round;
        ASSERT_EQ(FirstDifference(expected.second, got.second), "") << target->name << round;
      }
    }
  }
}

TEST(Kernels, ValuesThatAreNotFiniteReachTheOutputAsNaN) {
  base::Rng rng(4);
  ThreadPool pool({.threads = 1});
  const auto bytes = test::RandomMatrix(DType::kQ4_1, 16, 64, rng);
  const auto matrix = PackedMatrix::Pack(DType::kQ4_1, 16, 64, bytes, pool);
  auto scratch = Activations::Allocate(1, 64).value();
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<float> x(64, 1.0f);
    x[40] = bad;
    for (const KernelTable* table : AllKernels()) {
      std::vector<float> out(16);
      const Product product = {.matrix = &*matrix, .out = out.data()};
      Linear({pool, *table}, x.data(), 1, 64, scratch, {&product, 1});
      for (const float value : out) EXPECT_TRUE(std::isnan(value)) << table->name;
    }
  }
}

TEST(Kernels, RotationEqualsTheJudge) {
  base::Rng rng(6);
  for (const RotaryPairing pairing : {RotaryPairing::kAdjacent, RotaryPairing::kHalves}) {
    for (const uint32_t dims : {2u, 6u, 8u, 14u, 16u, 18u, 30u, 32u, 34u, 64u, 96u, 128u}) {
      const uint32_t head_dim = dims + (dims % 4 == 0 ? 0 : 10);
      const auto x = RandomFloats(rng, 3 * head_dim);
      const auto cosines = RandomFloats(rng, dims / 2);
      const auto sines = RandomFloats(rng, dims / 2);
      auto expected = x;
      AllKernels()[0]->rotate(expected.data(), 3, head_dim, dims, pairing, cosines.data(),
                              sines.data());
      for (const KernelTable* target : Targets()) {
        auto got = x;
        target->rotate(got.data(), 3, head_dim, dims, pairing, cosines.data(), sines.data());
        ASSERT_EQ(FirstDifference(expected, got), "") << target->name << " " << dims;
      }
    }
  }
}

TEST(Kernels, StoringRoundsAsTheJudgeForHardCases) {
  base::Rng rng(8);
  constexpr uint32_t kDim = 64;
  for (int round = 0; round < 200; ++round) {
    std::vector<float> key(kDim);
    for (float& x : key) {
      // Any bit pattern near the halves: exponents around the subnormal and overflow edges.
      const uint32_t exponent = 96 + static_cast<uint32_t>(rng.Below(52));
      const auto bits = static_cast<uint32_t>(rng.Next());
      x = std::bit_cast<float>((bits & 0x807fffffu) | exponent << 23);
      if (rng.Below(2) == 0) x = std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0xfffff000u);
    }
    auto run = [&](const KernelTable& table) {
      std::vector<std::byte> planes(size_t{4} * kPageTokens * kDim);
      table.store({.key = key.data(),
                   .value = key.data(),
                   .head_dim = kDim,
                   .slot = static_cast<uint32_t>(round % kPageTokens),
                   .keys = planes.data(),
                   .values = planes.data() + planes.size() / 2});
      return planes;
    };
    const auto expected = run(*AllKernels()[0]);
    for (const KernelTable* target : Targets()) ASSERT_EQ(expected, run(*target)) << target->name;
  }
}

}  // namespace
}  // namespace plumb::tensor
