// tensor/row_format_test.cc: the elements by hand (midpoints, ties, ends), rows by hand for each
// format, then every target against the judge, byte for byte.
#include "tensor/row_format.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensor/cpu_features.h"
#include "tensor/small_float.h"
#include "tensor/test_data.h"

namespace plumb::tensor {
namespace {

constexpr RowFormat kSmallFormats[] = {RowFormat::kF8Group32, RowFormat::kF4Group16,
                                       RowFormat::kF4Group32};
constexpr RowFormat kAllFormats[] = {RowFormat::kF32, RowFormat::kF8Group32, RowFormat::kF4Group16,
                                     RowFormat::kF4Group32};
constexpr uint32_t kSizes[] = {32, 64, 96, 128, 512};

std::vector<uint8_t> Encode(const KernelTable& kernels, RowFormat format,
                            const std::vector<float>& values) {
  std::vector<std::byte> row(RowBytes(format, values.size()) + 1, std::byte{0xa5});
  EncodeRow(kernels, format, values, row.data());
  EXPECT_EQ(row.back(), std::byte{0xa5}) << "wrote beyond the row";
  std::vector<uint8_t> bytes(row.size() - 1);
  std::memcpy(bytes.data(), row.data(), bytes.size());
  return bytes;
}

std::vector<float> Decode(const KernelTable& kernels, RowFormat format,
                          const std::vector<uint8_t>& bytes, size_t n) {
  std::vector<float> values(n);
  DecodeRow(kernels, format, reinterpret_cast<const std::byte*>(bytes.data()), values);
  return values;
}

uint8_t NibbleOf(const std::vector<uint8_t>& row, size_t i) {
  return i % 2 == 0 ? row[i / 2] & 15 : row[i / 2] >> 4;
}

// Where arrays first differ, NaN being equal to NaN.
std::string Difference(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i])) {
      return "[" + std::to_string(i) + "] " + std::to_string(a[i]) + " " + std::to_string(b[i]);
    }
  }
  return "";
}

// Groups of very different magnitude, with zeros of both signs and exact codes among them.
std::vector<float> WideFloats(base::Rng& rng, size_t n, int exponent_min, int exponent_max) {
  std::vector<float> values(n);
  int exponent = 0;
  for (size_t i = 0; i < n; ++i) {
    if (i % 16 == 0) {
      const auto span = static_cast<uint64_t>(exponent_max - exponent_min + 1);
      exponent = exponent_min + static_cast<int>(rng.Below(span));
    }
    const uint64_t kind = rng.Below(8);
    float x = test::RandomFloat(rng, 1);
    if (kind == 0) x = rng.Below(2) == 0 ? 0.0f : -0.0f;
    if (kind == 1) x = E2m1Value(static_cast<uint8_t>(rng.Below(16)));
    if (kind == 2) x *= 0x1p-12f;
    values[i] = std::ldexp(x, exponent);
  }
  return values;
}

TEST(RowFormat, RowsOfTheRealModelHaveTheirPublishedSizes) {
  const uint64_t main_row = RowBytes(RowFormat::kF4Group16, 512);
  const uint64_t index_key = RowBytes(RowFormat::kF4Group32, 128);
  EXPECT_EQ(main_row, 288u);
  EXPECT_EQ(index_key, 68u);
  EXPECT_EQ(RowBytes(RowFormat::kF8Group32, 512), 528u);
  EXPECT_EQ(RowBytes(RowFormat::kF32, 512), 2048u);
  // Three sources with a row for two tokens, one with a row for each.
  EXPECT_EQ(3 * (main_row + index_key) / 2 + (main_row + index_key), 890u);
}

// Every code, and the points where rounding turns from one to the next: the middle goes to the
// even code, the next f32 on either side to its own.
template <typename Value, typename Code>
void CheckRounding(int codes, int sign, Value value, Code code) {
  for (int i = 0; i < codes; ++i) {
    const float x = value(static_cast<uint8_t>(i));
    EXPECT_EQ(code(x), i);
    EXPECT_EQ(code(-x), i | sign);
    if (i + 1 == codes) continue;
    const float middle = (x + value(static_cast<uint8_t>(i + 1))) / 2;
    EXPECT_EQ(code(middle), i % 2 == 0 ? i : i + 1) << middle;
    EXPECT_EQ(code(-middle), (i % 2 == 0 ? i : i + 1) | sign) << middle;
    EXPECT_EQ(code(std::nextafter(middle, 0.0f)), i) << middle;
    EXPECT_EQ(code(std::nextafter(middle, 1e9f)), i + 1) << middle;
  }
  EXPECT_EQ(code(1e30f), codes - 1);
  EXPECT_EQ(code(-1e30f), (codes - 1) | sign);
  EXPECT_EQ(code(1e-40f), 0);
  EXPECT_EQ(code(-1e-40f), sign);
}

TEST(SmallFloat, RoundsToNearestWithTiesToTheEvenCode) {
  CheckRounding(127, 0x80, E4m3Value, E4m3Code);
  CheckRounding(8, 8, E2m1Value, E2m1Code);
}

TEST(SmallFloat, HasTheValuesOfItsStandard) {
  EXPECT_EQ(E4m3Value(0x01), 0x1p-9f);
  EXPECT_EQ(E4m3Value(0x07), 7 * 0x1p-9f);
  EXPECT_EQ(E4m3Value(0x08), 0x1p-6f);
  EXPECT_EQ(E4m3Value(0x38), 1.0f);
  EXPECT_EQ(E4m3Value(0x39), 1.125f);
  EXPECT_EQ(E4m3Value(0x7e), 448.0f);
  EXPECT_EQ(E4m3Value(0xfe), -448.0f);
  EXPECT_TRUE(std::isnan(E4m3Value(0x7f)) && std::isnan(E4m3Value(0xff)));
  EXPECT_EQ(E8m0Value(0), 0x1p-127f);
  EXPECT_EQ(E8m0Value(127), 1.0f);
  EXPECT_EQ(E8m0Value(254), 0x1p127f);
  EXPECT_TRUE(std::isnan(E8m0Value(255)));
  EXPECT_EQ(E8m0Above(1.0f), 127);
  EXPECT_EQ(E8m0Above(std::nextafter(1.0f, 2.0f)), 128);
  EXPECT_EQ(E8m0Above(std::nextafter(1.0f, 0.0f)), 127);
  EXPECT_EQ(E8m0Above(0x1p-126f), 1);
}

struct ByHand {
  const char* what;
  RowFormat format;
  std::vector<float> first;  // of the row; the others are 0
  uint8_t scale;             // of the first group
  std::vector<uint8_t> codes;
};

const ByHand kByHand[] = {
    {"bytes: nothing, and the floor 1e-4 / 448 above 2^-23", RowFormat::kF8Group32, {}, 105, {0}},
    {"bytes: the largest is a power of two times 448",
     RowFormat::kF8Group32,
     {448, 1, -1, 0x1p-9f, 0x1p-10f, 3 * 0x1p-10f, 17, 19, -0.0f},
     127,
     {0x7e, 0x38, 0xb8, 0x01, 0x00, 0x02, 0x58, 0x5a, 0x80}},
    {"bytes: a little more, and the scale doubles",
     RowFormat::kF8Group32,
     {0x1.c00002p+8f, 2},
     128,
     {0x76, 0x38}},
    {"bytes: a great magnitude", RowFormat::kF8Group32, {0x1p120f}, 239, {0x78}},
    {"halves: nothing, and the floor", RowFormat::kF4Group32, {}, 1, {0}},
    {"halves: the middles",
     RowFormat::kF4Group32,
     {6, 0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, -0.25f, -5, -0.0f},
     127,
     {7, 0, 2, 2, 4, 4, 6, 6, 8, 14, 8}},
    {"halves: beside the middles",
     RowFormat::kF4Group32,
     {-6, 0x1.000002p-2f, 0x1.7ffffep-1f, 0x1.400002p+0f, 0x1.bffffep+0f, 0x1.400002p+1f,
      0x1.bffffep+1f, 0x1.400002p+2f},
     127,
     {15, 1, 1, 3, 3, 5, 5, 7}},
    {"halves: a little more, and the scale doubles",
     RowFormat::kF4Group32,
     {0x1.800002p+2f, 4},
     128,
     {5, 4}},
    {"halves: the ends of the scale", RowFormat::kF4Group32, {6 * 0x1p-126f, 0x1p-126f}, 1, {7, 2}},
    {"halves: the largest number", RowFormat::kF4Group32, {0x1.fffffep127f}, 253, {6}},
    {"main: nothing, and the floor", RowFormat::kF4Group16, {}, 0x01, {0}},
    {"main: a scale of 1", RowFormat::kF4Group16, {6, -3, 0.5f, -0.0f}, 0x38, {7, 13, 1, 8}},
    {"main: the largest scale", RowFormat::kF4Group16, {2688, 448}, 0x7e, {7, 2}},
    {"main: beyond it", RowFormat::kF4Group16, {1e6f, -1e30f, 447}, 0x7e, {7, 15, 2}},
    {"main: the scale's own tie, 17 to 16", RowFormat::kF4Group16, {102, 16}, 0x58, {7, 2}},
    // 18.75 / 15 would be the middle 1.25 and round to 1; times 1/15, rounded, it is above.
    {"main: times the reciprocal", RowFormat::kF4Group16, {90, 18.75f}, 0x57, {7, 3}},
};

TEST(RowFormat, EncodesByHand) {
  for (const KernelTable* kernels : AllKernels()) {
    for (const ByHand& hand : kByHand) {
      std::vector<float> values(64);
      std::copy(hand.first.begin(), hand.first.end(), values.begin());
      const auto row = Encode(*kernels, hand.format, values);
      const bool bytes = hand.format == RowFormat::kF8Group32;
      EXPECT_EQ(row[bytes ? 64 : 32], hand.scale) << kernels->name << ", " << hand.what;
      for (size_t i = 0; i < hand.codes.size(); ++i) {
        EXPECT_EQ(bytes ? row[i] : NibbleOf(row, i), hand.codes[i])
            << kernels->name << ", " << hand.what << " [" << i << "]";
      }
    }
  }
}

TEST(RowFormat, DecodesEveryByteLikeTheJudge) {
  for (const RowFormat format : kSmallFormats) {
    for (uint32_t scale = 0; scale < 256; ++scale) {
      std::vector<uint8_t> row(RowBytes(format, 512), static_cast<uint8_t>(scale));
      for (uint32_t i = 0; i < 256; ++i) row[i] = static_cast<uint8_t>(i);
      const auto expected = Decode(*AllKernels()[0], format, row, 512);
      for (const KernelTable* kernels : AllKernels()) {
        ASSERT_EQ(Difference(expected, Decode(*kernels, format, row, 512)), "")
            << kernels->name << " scale " << scale;
      }
    }
  }
}

TEST(RowFormat, EqualsTheJudgeAtEverySize) {
  base::Rng rng(61);
  for (const RowFormat format : kAllFormats) {
    for (const uint32_t n : kSizes) {
      for (int repeat = 0; repeat < 40; ++repeat) {
        auto values = WideFloats(rng, n, -140, 120);
        if (repeat % 8 == 1) values[rng.Below(n)] = std::numeric_limits<float>::infinity();
        if (repeat % 8 == 2) values[rng.Below(n)] = std::nanf("");
        const auto row = Encode(*AllKernels()[0], format, values);
        auto rounded = values;
        RoundRow(format, rounded);
        EXPECT_EQ(Difference(rounded, Decode(*AllKernels()[0], format, row, n)), "");
        for (const KernelTable* kernels : AllKernels()) {
          ASSERT_EQ(Encode(*kernels, format, values), row) << kernels->name << " " << n;
          auto got = values;
          RoundRow(*kernels, format, got);
          ASSERT_EQ(Difference(rounded, got), "") << kernels->name << " " << n;
        }
      }
    }
  }
}

// A relative error of half a step, against the largest of the group where an element is small.
TEST(RowFormat, StaysWithinItsSteps) {
  base::Rng rng(62);
  for (const RowFormat format : kSmallFormats) {
    const uint32_t group = format == RowFormat::kF4Group16 ? 16 : 32;
    const auto values = WideFloats(rng, 4096, -4, 8);
    auto rounded = values;
    RoundRow(format, rounded);
    for (size_t first = 0; first < values.size(); first += group) {
      float largest = 0;
      for (size_t i = first; i < first + group; ++i) {
        largest = std::max(largest, std::fabs(values[i]));
      }
      for (size_t i = first; i < first + group; ++i) {
        const float error = std::fabs(values[i] - rounded[i]);
        const bool bytes = format == RowFormat::kF8Group32;
        // Four bits: half of the widest step, 2 of 6, and the scale is at most double (or, E4M3,
        // off by 1/16).
        const float bound = bytes ? std::fabs(values[i]) / 16 + largest * 0x1p-17f : largest / 3;
        ASSERT_LE(error, bound) << values[i] << " in a group of " << largest;
      }
    }
  }
}

// Where the scale is no subnormal E4M3 (whose steps are coarse).
TEST(RowFormat, RoundingTwiceIsRoundingOnce) {
  base::Rng rng(63);
  for (const KernelTable* kernels : AllKernels()) {
    for (const RowFormat format : kAllFormats) {
      for (const uint32_t n : kSizes) {
        auto once = WideFloats(rng, n, 0, 11);
        for (size_t i = 0; i < n; i += 16) once[i] = 1 + std::fabs(once[i]);
        RoundRow(*kernels, format, once);
        auto twice = once;
        RoundRow(*kernels, format, twice);
        ASSERT_EQ(Difference(once, twice), "") << kernels->name << " " << n;
      }
    }
  }
}

TEST(RowFormat, AGroupWithAnythingNotFiniteIsNaN) {
  const float kHard[] = {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                         -std::numeric_limits<float>::infinity()};
  for (const KernelTable* kernels : AllKernels()) {
    for (const RowFormat format : kSmallFormats) {
      const uint32_t group = format == RowFormat::kF4Group16 ? 16 : 32;
      for (uint32_t at = 0; at < 96; ++at) {
        std::vector<float> values(96, 3.0f);
        values[at] = kHard[at % 4];
        const auto row = Encode(*kernels, format, values);
        const size_t codes = format == RowFormat::kF8Group32 ? 96 : 48;
        EXPECT_EQ(row[codes + at / group], format == RowFormat::kF4Group16 ? 0x7f : 0xff);
        const auto back = Decode(*kernels, format, row, 96);
        for (uint32_t i = 0; i < 96; ++i) {
          if (i / group == at / group) {
            EXPECT_TRUE(std::isnan(back[i])) << kernels->name << i;
          } else {
            EXPECT_EQ(back[i], 3.0f) << kernels->name << i;
          }
        }
      }
    }
  }
}

TEST(RowFormat, Bf16RoundsToNearestEven) {
  const std::pair<uint32_t, uint32_t> kCases[] = {
      {0x3f800000, 0x3f800000}, {0x3f808000, 0x3f800000}, {0x3f808001, 0x3f810000},
      {0x3f818000, 0x3f820000}, {0xbf817fff, 0xbf810000}, {0x80000000, 0x80000000},
      {0x00008000, 0x00000000}, {0x00018000, 0x00020000}, {0x7f7fffff, 0x7f800000},
      {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}};
  base::Rng rng(64);
  for (const KernelTable* kernels : AllKernels()) {
    for (const auto& [before, after] : kCases) {
      for (size_t n : {1u, 7u, 8u, 33u}) {
        std::vector<float> values(n, std::bit_cast<float>(before));
        RoundToBf16(*kernels, values);
        for (const float x : values) EXPECT_EQ(std::bit_cast<uint32_t>(x), after) << kernels->name;
      }
    }
    for (const uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff80ffffu}) {
      std::vector<float> values(17, std::bit_cast<float>(nan));
      RoundToBf16(*kernels, values);
      for (const float x : values) EXPECT_TRUE(std::isnan(x)) << kernels->name;
    }
    for (uint32_t n = 0; n < 70; ++n) {
      std::vector<float> expected(n);
      for (float& x : expected) x = std::bit_cast<float>(static_cast<uint32_t>(rng.Next()));
      auto got = expected;
      RoundToBf16(expected);
      RoundToBf16(*kernels, got);
      ASSERT_EQ(Difference(expected, got), "") << kernels->name << n;
    }
  }
}

TEST(RowFormatDeathTest, PartsOfAGroupAreABug) {
  std::vector<float> values(40);
  std::byte row[64];
  EXPECT_DEATH(EncodeRow(RowFormat::kF8Group32, values, row), "40 values");
}

}  // namespace
}  // namespace plumb::tensor
