// base/bytes_test.cc: reads outside the range return nothing and move nothing.
// Sizes near the top of the range are where a sum would wrap.
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace plumb::base {
namespace {

TEST(ByteReader, ReadsLittleEndianAndStopsAtTheEnd) {
  const std::array<std::byte, 6> bytes{std::byte{1}, std::byte{2},   std::byte{0},
                                       std::byte{0}, std::byte{'h'}, std::byte{'i'}};
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Read<uint32_t>(), 0x0201u);
  EXPECT_EQ(reader.Read<uint64_t>(), std::nullopt);
  EXPECT_EQ(reader.offset(), 4u);
  EXPECT_EQ(reader.TakeText(3), std::nullopt);
  EXPECT_EQ(reader.TakeText(2), "hi");
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_EQ(reader.Read<uint8_t>(), std::nullopt);
}

TEST(ByteReader, RefusesSizesNearTheTopOfTheRange) {
  const std::array<std::byte, 2> bytes{};
  ByteReader reader(bytes);
  reader.Read<uint8_t>();
  EXPECT_EQ(reader.Take(UINT64_MAX), std::nullopt);
  EXPECT_EQ(reader.Take(UINT64_MAX - 1), std::nullopt);
}

TEST(CheckedArithmetic, ReturnsNothingOnOverflow) {
  EXPECT_EQ(CheckedMul(1u << 31, 2), uint64_t{1} << 32);
  EXPECT_EQ(CheckedMul(UINT64_MAX, 2), std::nullopt);
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 0), UINT64_MAX);
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 1), std::nullopt);
}

}  // namespace
}  // namespace plumb::base
