// tensor/block_matrix_test.cc
// Products with matrices as stored: every target against the scalar judge, bit for bit, at shapes
// around groups, tiles and cuts; what the judge itself computes, code by code; and where bytes end.
#include "tensor/block_matrix.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "tensor/block_task.h"
#include "tensor/cpu/tables.h"
#include "tensor/cpu_features.h"
#include "tensor/small_float.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

using test::FirstDifference;
using test::RandomFloats;
constexpr float kUntouched = 0.25f;

// AllKernels, and the products of AVX-512 processors that have less than this one.
std::vector<const KernelTable*> Tables() {
  std::vector<const KernelTable*> tables = AllKernels();
  if (!DetectCpu().vbmi) return tables;
  using enum F8Widening;
  for (const auto way : {kConversions, kTables, kShifts}) tables.push_back(&Avx512Kernels(way));
  return tables;
}

const char* Name(BlockFormat format) {
  switch (format) {
    case BlockFormat::kF32:
      return "F32";
    case BlockFormat::kBf16:
      return "BF16";
    case BlockFormat::kF8Block32:
      return "F8";
    case BlockFormat::kF4Group32:
      return "F4";
  }
  return "?";
}

// Bytes at an odd address that end exactly where their allocation ends, as a tensor does in a file.
class EndingBytes {
 public:
  explicit EndingBytes(uint64_t size = 0) : bytes_(size + 1) {}
  std::byte* data() { return bytes_.data() + 1; }
  const std::byte* data() const { return bytes_.data() + 1; }
  uint64_t size() const { return bytes_.size() - 1; }

 private:
  std::vector<std::byte> bytes_;
};

// A matrix and its memory.
struct Stored {
  EndingBytes weights;
  EndingBytes scales;
  BlockFormat format;
  uint32_t outputs;
  uint32_t inputs;

  Stored(BlockFormat kind, uint32_t rows, uint32_t columns)
      : weights(rows * BlockRowBytes(kind, columns)),
        scales(kind == BlockFormat::kF8Block32 ? uint64_t{(rows + 31) / 32} * ((columns + 31) / 32)
               : kind == BlockFormat::kF4Group32 ? uint64_t{rows} * (columns / 32)
                                                 : 0),
        format(kind),
        outputs(rows),
        inputs(columns) {}

  BlockMatrix matrix() const {
    return {format, outputs, inputs, weights.data(), scales.size() > 0 ? scales.data() : nullptr};
  }
  void SetScales(uint8_t scale) {
    for (uint64_t i = 0; i < scales.size(); ++i) scales.data()[i] = std::byte{scale};
  }
};

Stored RandomStored(BlockFormat format, uint32_t outputs, uint32_t inputs, base::Rng& rng) {
  Stored stored(format, outputs, inputs);
  for (uint64_t i = 0; i < stored.weights.size(); ++i) {
    stored.weights.data()[i] = static_cast<std::byte>(rng.Next());
  }
  const uint64_t weights = uint64_t{outputs} * inputs;
  for (uint64_t i = 0; i < weights; ++i) {
    const float weight = test::RandomFloat(rng, rng.Below(8) == 0 ? 3.0f : 0.1f);
    const uint32_t bits = std::bit_cast<uint32_t>(weight);
    const auto high = static_cast<uint16_t>(bits >> 16);
    if (format == BlockFormat::kF32) std::memcpy(stored.weights.data() + 4 * i, &bits, 4);
    if (format == BlockFormat::kBf16) std::memcpy(stored.weights.data() + 2 * i, &high, 2);
  }
  for (uint64_t i = 0; i < stored.scales.size(); ++i) {
    stored.scales.data()[i] = static_cast<std::byte>(110 + rng.Below(12));
  }
  return stored;
}

// Activations whose rows are farther apart than they are long, at an odd multiple of four bytes.
struct Input {
  std::vector<float> values;
  uint32_t rows;
  uint64_t stride;
  const float* x() const { return values.data() + 1; }

  Input(uint32_t count, uint32_t inputs, base::Rng& rng)
      : values(RandomFloats(rng, 1 + count * (inputs + 3))), rows(count), stride(inputs + 3) {}
};

// What one call writes, with the space between rows.
std::vector<float> Multiply(const KernelTable& kernels, ThreadPool& pool, const BlockMatrix& matrix,
                            const float* x, uint64_t x_stride, uint32_t rows) {
  const uint64_t stride = matrix.outputs + 5;
  std::vector<float> out(rows * stride, kUntouched);
  const BlockProduct product = {.matrix = matrix,
                                .x = x,
                                .x_stride = x_stride,
                                .rows = rows,
                                .out = out.data(),
                                .out_stride = stride};
  BlockLinear({pool, kernels}, {&product, 1});
  return out;
}

class BlockProducts : public ::testing::TestWithParam<BlockFormat> {
 protected:
  void ExpectEqualBits(const Stored& stored, uint32_t rows, uint32_t threads) {
    const Input input(rows, stored.inputs, rng_);
    ThreadPool pool({.threads = threads, .spin_pauses = 10});
    const BlockMatrix matrix = stored.matrix();
    const auto tables = Tables();
    const auto expected = Multiply(*tables[0], pool, matrix, input.x(), input.stride, rows);
    for (uint32_t row = 0; row < rows; ++row) {
      for (uint32_t i = 0; i < 5; ++i) {
        ASSERT_EQ(expected[row * (matrix.outputs + 5) + matrix.outputs + i], kUntouched);
      }
    }
    for (size_t t = 1; t < tables.size(); ++t) {
      const auto got = Multiply(*tables[t], pool, matrix, input.x(), input.stride, rows);
      ASSERT_EQ(FirstDifference(expected, got), "")
          << tables[t]->name << ": " << matrix.outputs << " x " << matrix.inputs << ", " << rows
          << " rows";
    }
  }
  bool whole_groups() const { return GetParam() == BlockFormat::kF4Group32; }

  base::Rng rng_{11};
};

TEST_P(BlockProducts, EqualTheJudgeAtAllShapes) {
  std::vector<uint32_t> lengths = {32, 64, 96, 160, 1056};
  if (!whole_groups()) lengths.insert(lengths.end(), {1, 15, 17, 31, 33, 545});
  uint32_t threads = 0;
  for (const uint32_t outputs : {1u, 15u, 17u, 31u, 32u, 33u, 64u}) {
    for (const uint32_t inputs : lengths) {
      const Stored stored = RandomStored(GetParam(), outputs, inputs, rng_);
      for (const uint32_t rows : {0u, 1u, 2u, 3u, 5u, 8u, 9u, 17u, 64u}) {
        ExpectEqualBits(stored, rows, 1 + threads++ % 8);
      }
    }
  }
}

// Around the rows and outputs of an area, and with more outputs than an item takes.
TEST_P(BlockProducts, EqualTheJudgeAroundAreas) {
  for (const uint32_t rows : {4u, 6u, 7u, 47u, 48u, 49u, 97u}) {
    ExpectEqualBits(RandomStored(GetParam(), 5, 512 + 32, rng_), rows, 3);
  }
  for (const uint32_t rows : {1u, 4u, 6u, 12u}) {
    ExpectEqualBits(RandomStored(GetParam(), 203, 2304, rng_), rows, 8);
  }
  for (const uint32_t inputs : {640u, 4096u, 4128u}) {  // rows that streams ask for ahead
    ExpectEqualBits(RandomStored(GetParam(), 53, inputs, rng_), 1, 2);
  }
}

TEST_P(BlockProducts, EqualTheJudgeWithVeryLongRows) {
  for (const uint32_t rows : {1u, 2u, 3u, 4u, 7u}) {
    ExpectEqualBits(RandomStored(GetParam(), 6, 32768, rng_), rows, 2);
  }
  ExpectEqualBits(RandomStored(GetParam(), 71, 65536 + 32, rng_), 1, 2);  // too long to stage F8
}

TEST_P(BlockProducts, ARowDoesNotDependOnItsNeighbours) {
  constexpr uint32_t kInputs = 1056;
  const Stored stored = RandomStored(GetParam(), 70, kInputs, rng_);
  const BlockMatrix matrix = stored.matrix();
  const Input input(64, kInputs, rng_);
  ThreadPool pool({.threads = 3});
  for (const KernelTable* table : Tables()) {
    const auto all = Multiply(*table, pool, matrix, input.x(), input.stride, input.rows);
    for (const uint32_t chunk : {1u, 2u, 3u, 5u, 8u, 13u, 50u}) {
      std::vector<float> joined;
      for (uint32_t row = 0; row < input.rows; row += chunk) {
        const auto part = Multiply(*table, pool, matrix, input.x() + row * input.stride,
                                   input.stride, std::min(chunk, input.rows - row));
        joined.insert(joined.end(), part.begin(), part.end());
      }
      ASSERT_EQ(FirstDifference(all, joined), "") << table->name << " " << chunk;
    }
  }
}

TEST_P(BlockProducts, PartsOfAMatrixAreItsOutputs) {
  constexpr uint32_t kInputs = 96;
  const Stored stored = RandomStored(GetParam(), 100, kInputs, rng_);
  const Input input(6, kInputs, rng_);
  ThreadPool pool({.threads = 2});
  const KernelTable& kernels = *AllKernels().back();
  const auto all = Multiply(kernels, pool, stored.matrix(), input.x(), input.stride, 6);
  for (const auto& [begin, count] : {std::pair(0u, 100u), {32u, 33u}, {64u, 36u}, {96u, 1u}}) {
    const BlockMatrix part = stored.matrix().Rows(begin, count);
    EXPECT_EQ(part.outputs, count);
    const auto got = Multiply(kernels, pool, part, input.x(), input.stride, 6);
    for (uint32_t row = 0; row < 6; ++row) {
      for (uint32_t output = 0; output < count; ++output) {
        ASSERT_EQ(got[row * (count + 5) + output], all[row * 105 + begin + output])
            << begin << " " << output;
      }
    }
  }
}

// The judge and all targets against sums of doubles, within the rounding of f32.
TEST_P(BlockProducts, AreTheSumsOfTheRowsThatBlockRowGives) {
  constexpr uint32_t kInputs = 544;
  const Stored stored = RandomStored(GetParam(), 40, kInputs, rng_);
  const Input input(5, kInputs, rng_);
  ThreadPool pool({.threads = 2});
  std::vector<float> weights(kInputs);
  for (const KernelTable* table : Tables()) {
    const auto out = Multiply(*table, pool, stored.matrix(), input.x(), input.stride, 5);
    for (uint32_t output = 0; output < 40; ++output) {
      BlockRow(stored.matrix(), output, weights.data());
      for (uint32_t row = 0; row < 5; ++row) {
        double sum = 0;
        double magnitudes = 0;
        for (uint32_t i = 0; i < kInputs; ++i) {
          const double term = double{weights[i]} * input.x()[row * input.stride + i];
          sum += term;
          magnitudes += std::fabs(term);
        }
        // A lane has 34 terms, and 4 more additions follow.
        ASSERT_NEAR(out[row * 45 + output], sum, magnitudes * 38 * 0x1p-24) << table->name;
      }
    }
  }
}

// What 16 lanes of -0 sum to is -0 only if nothing was added to them, such as the padding of the
// last inputs.
TEST_P(BlockProducts, KeepTheSignOfZero) {
  if (whole_groups()) return;
  constexpr uint32_t kInputs = 17;
  Stored stored(GetParam(), 3, kInputs);
  const float small = -0x1p-100f;
  for (uint32_t i = 0; i < 3 * kInputs; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(small);
    const auto high = static_cast<uint16_t>(bits >> 16);
    if (GetParam() == BlockFormat::kF32) std::memcpy(stored.weights.data() + 4 * i, &bits, 4);
    if (GetParam() == BlockFormat::kBf16) std::memcpy(stored.weights.data() + 2 * i, &high, 2);
    if (GetParam() == BlockFormat::kF8Block32) stored.weights.data()[i] = std::byte{0xb8};  // -1
  }
  stored.SetScales(27);
  const std::vector<float> x(7 * kInputs, 0x1p-100f);
  ThreadPool pool({.threads = 1});
  for (const KernelTable* table : Tables()) {
    for (const uint32_t rows : {1u, 7u}) {
      const auto out = Multiply(*table, pool, stored.matrix(), x.data(), kInputs, rows);
      for (uint32_t output = 0; output < 3; ++output) {
        EXPECT_EQ(std::bit_cast<uint32_t>(out[output]), 0x80000000u) << table->name << " " << rows;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats, BlockProducts,
                         ::testing::Values(BlockFormat::kF32, BlockFormat::kBf16,
                                           BlockFormat::kF8Block32, BlockFormat::kF4Group32),
                         [](const auto& param) { return Name(param.param); });

// Every output has one weight that is not zero, so infinities meet no zero.
void ExpectWeights(const Stored& stored, const std::vector<float>& expected) {
  const BlockMatrix matrix = stored.matrix();
  const std::vector<float> x(uint64_t{7} * matrix.inputs, 1.0f);
  ThreadPool pool({.threads = 2});
  std::vector<float> row(matrix.inputs);
  for (uint32_t output = 0; output < matrix.outputs; ++output) {
    BlockRow(matrix, output, row.data());
    float weight = 0;  // -0 + 0 is 0 in the products too
    for (const float value : row) weight += value;
    ASSERT_EQ(weight, expected[output]) << output;
  }
  for (const KernelTable* table : Tables()) {
    for (const uint32_t rows : {1u, 7u}) {
      const auto out = Multiply(*table, pool, matrix, x.data(), matrix.inputs, rows);
      for (uint32_t output = 0; output < matrix.outputs; ++output) {
        ASSERT_EQ(out[(rows - 1) * (matrix.outputs + 5) + output], expected[output])
            << table->name << " " << output;
      }
    }
  }
}

constexpr uint8_t kScaleBytes[] = {0, 1, 2, 126, 127, 128, 245, 246, 247, 248, 253, 254};

// The value of a code times 2^(scale - 127), rounded as one f32 product.
float Scaled(double value, uint8_t scale) {
  return static_cast<float>(value) * static_cast<float>(std::ldexp(1.0, scale - 127));
}

TEST(BlockCodes, EveryE4m3CodeUnderEveryKindOfScale) {
  for (const uint8_t scale : kScaleBytes) {
    Stored stored(BlockFormat::kF8Block32, 256, 1);
    std::vector<float> expected(256);
    for (uint32_t code = 0; code < 256; ++code) {
      stored.weights.data()[code] = static_cast<std::byte>(code);
      const int exponent = static_cast<int>(code >> 3 & 15);
      const double fraction = (code & 7) / 8.0;
      const double value = exponent == 0 ? std::ldexp(fraction, -6)
                                         : std::ldexp(1 + fraction, exponent - 7);  // NaN: 480
      expected[code] = Scaled((code & 0x80) != 0 ? -value : value, scale);
    }
    stored.SetScales(scale);
    ExpectWeights(stored, expected);
  }
}

TEST(BlockCodes, EveryE2m1CodeAtEveryPlaceUnderEveryKindOfScale) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (const uint8_t scale : kScaleBytes) {
    Stored stored(BlockFormat::kF4Group32, 16 * 32, 32);
    std::vector<float> expected(16 * 32);
    for (uint32_t place = 0; place < 32; ++place) {
      for (uint32_t code = 0; code < 16; ++code) {
        const uint32_t output = place * 16 + code;
        stored.weights.data()[output * 16 + place / 2] =
            static_cast<std::byte>(place % 2 == 0 ? code : code << 4);
        expected[output] = Scaled(kValues[code], scale);
      }
    }
    stored.SetScales(scale);
    ExpectWeights(stored, expected);
  }
}

// Scales go to the activations where that is exact, to the weights where an activation would become
// too small or too large; not finite stays not finite.
TEST(BlockCodes, ScalesAreExactOnWhicheverSide) {
  struct Extreme {
    uint8_t scale;
    uint8_t code;
    float x;
  };
  constexpr Extreme kExtremes[] = {
      {3, 0x7e, 0x1.fffffep-20f},  {100, 0x7e, 0x1.fffffep-130f}, {20, 0x31, 0x1.234566p-100f},
      {230, 0x01, 0x1.2p25f},      {247, 0x01, 0x1.3p-3f},        {254, 0x81, 0x1.1p-9f},
      {0, 0x0b, 0x1.fffffep+100f}, {120, 0x38, INFINITY},         {120, 0x38, -NAN}};
  base::Rng rng(14);
  ThreadPool pool({.threads = 1});
  for (const auto& [scale, code, value] : kExtremes) {
    Stored stored(BlockFormat::kF8Block32, 37, 80);
    for (uint64_t i = 0; i < stored.weights.size(); ++i) {
      stored.weights.data()[i] = static_cast<std::byte>(code);
    }
    stored.SetScales(119);
    stored.scales.data()[1] = static_cast<std::byte>(scale);  // of the first 32 outputs
    for (const uint32_t place : {32u, 47u, 63u}) {
      std::vector<float> x = RandomFloats(rng, 3 * 80);
      for (uint32_t row = 0; row < 3; ++row) {
        for (uint32_t i = 32; i < 64; ++i) x[row * 80 + i] = i == place ? value : 0;
      }
      const auto expected = Multiply(*Tables()[0], pool, stored.matrix(), x.data(), 80, 3);
      for (const KernelTable* table : Tables()) {
        const auto got = Multiply(*table, pool, stored.matrix(), x.data(), 80, 3);
        for (size_t i = 0; i < got.size(); ++i) {
          const bool finite = std::isfinite(expected[i]);
          ASSERT_EQ(std::isfinite(got[i]), finite) << table->name << " " << i;
          if (!finite) continue;
          ASSERT_EQ(got[i], expected[i]) << table->name << " " << int{scale};
        }
      }
    }
  }
}

// The even input is the low half of its byte, scales belong to the block or group they stand for.
TEST(BlockCodes, EachScaleCoversItsBlock) {
  ThreadPool pool({.threads = 1});
  Stored blocks(BlockFormat::kF8Block32, 40, 70);
  Stored groups(BlockFormat::kF4Group32, 40, 96);
  for (uint64_t i = 0; i < blocks.weights.size(); ++i) blocks.weights.data()[i] = std::byte{0x38};
  for (uint64_t i = 0; i < groups.weights.size(); ++i) groups.weights.data()[i] = std::byte{0x42};
  for (uint64_t i = 0; i < blocks.scales.size(); ++i) blocks.scales.data()[i] = std::byte(127 + i);
  for (uint64_t i = 0; i < groups.scales.size(); ++i) groups.scales.data()[i] = std::byte(100 + i);
  std::vector<float> row(96);
  for (const uint32_t output : {0u, 31u, 32u, 39u}) {
    BlockRow(blocks.matrix(), output, row.data());
    for (uint32_t i = 0; i < 70; ++i) {
      ASSERT_EQ(row[i], std::ldexp(1.0f, static_cast<int>(output / 32 * 3 + i / 32))) << i;
    }
    BlockRow(groups.matrix(), output, row.data());
    for (uint32_t i = 0; i < 96; ++i) {
      const int exponent = static_cast<int>(output * 3 + i / 32) - 27;
      ASSERT_EQ(row[i], std::ldexp(i % 2 == 0 ? 1.0f : 2.0f, exponent)) << i;
    }
  }
}

TEST(BlockLinear, ComputesManyProductsOfAllKindsInOneCall) {
  base::Rng rng(12);
  std::vector<Stored> matrices;
  std::vector<Input> inputs;
  for (uint32_t i = 0; i < 300; ++i) {
    const auto format = static_cast<BlockFormat>(i % 4);
    matrices.push_back(RandomStored(format, 1 + static_cast<uint32_t>(rng.Below(70)),
                                    32 * (1 + static_cast<uint32_t>(rng.Below(20))), rng));
    inputs.emplace_back(static_cast<uint32_t>(rng.Below(9)), matrices.back().inputs, rng);
  }
  for (const KernelTable* table : Tables()) {
    ThreadPool pool({.threads = 3});
    std::vector<std::vector<float>> outs;
    std::vector<BlockProduct> products;
    for (uint32_t i = 0; i < 300; ++i) {
      outs.emplace_back(inputs[i].rows * matrices[i].outputs);
      products.push_back({.matrix = matrices[i].matrix(),
                          .x = inputs[i].x(),
                          .x_stride = inputs[i].stride,
                          .rows = inputs[i].rows,
                          .out = outs[i].data(),
                          .out_stride = matrices[i].outputs});
    }
    BlockLinear({pool, *table}, products);
    for (uint32_t i = 0; i < 300; ++i) {
      std::vector<float> alone(outs[i].size());
      BlockProduct product = products[i];
      product.out = alone.data();
      BlockLinear({pool, *Tables()[0]}, {&product, 1});
      ASSERT_EQ(FirstDifference(alone, outs[i]), "") << table->name << " " << i;
    }
    BlockLinear({pool, *table}, {});
  }
}

TEST(BlockMatrix, CountsItsBytes) {
  EXPECT_EQ(Stored(BlockFormat::kF32, 3, 5).matrix().weight_bytes(), 60u);
  EXPECT_EQ(Stored(BlockFormat::kBf16, 3, 5).matrix().weight_bytes(), 30u);
  EXPECT_EQ(Stored(BlockFormat::kF8Block32, 33, 65).matrix().weight_bytes(), 33 * 65 + 6u);
  EXPECT_EQ(Stored(BlockFormat::kF4Group32, 33, 64).matrix().weight_bytes(), 33 * 32 + 66u);
}

// Offsets beyond 2^32: 5 GiB of pages that nobody touches but around one row.
TEST(BlockMatrix, ReachesRowsBeyondFourGigabytes) {
  constexpr uint64_t kBytes = uint64_t{5} << 30;
  constexpr uint32_t kInputs = 4096;
  constexpr uint32_t kOutputs = kBytes / kInputs;
  constexpr uint32_t kFirst = kOutputs - 64;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* weights = static_cast<std::byte*>(memory);
  base::Rng rng(13);
  for (uint64_t i = uint64_t{kFirst} * kInputs; i < kBytes; ++i) {
    weights[i] = static_cast<std::byte>(rng.Next() % 0x7f);
  }
  const std::vector<std::byte> scales(uint64_t{kOutputs} / 32 * (kInputs / 32), std::byte{120});
  const BlockMatrix matrix = {BlockFormat::kF8Block32, kOutputs, kInputs, weights, scales.data()};
  const Input input(5, kInputs, rng);
  ThreadPool pool({.threads = 2});
  std::vector<float> row(kInputs);
  BlockRow(matrix, kOutputs - 1, row.data());
  EXPECT_EQ(row[1], E4m3Value(static_cast<uint8_t>(weights[kBytes - kInputs + 1])) * 0x1p-7f);
  const auto expected =
      Multiply(*Tables()[0], pool, matrix.Rows(kFirst, 64), input.x(), input.stride, 5);
  for (const KernelTable* table : Tables()) {
    for (const uint32_t rows : {1u, 5u}) {
      std::vector<float> out(uint64_t{rows} * kOutputs);
      table->multiply_blocks({.matrix = &matrix,
                              .output_begin = kFirst,
                              .output_end = kOutputs,
                              .rows = rows,
                              .x = input.x(),
                              .x_stride = input.stride,
                              .out = out.data(),
                              .out_stride = kOutputs});
      for (uint32_t i = 0; i < 64; ++i) {
        ASSERT_EQ(out[(rows - 1) * uint64_t{kOutputs} + kFirst + i], expected[(rows - 1) * 69 + i])
            << table->name << " " << i;
      }
    }
  }
  munmap(memory, kBytes);
}

}  // namespace
}  // namespace plumb::tensor
