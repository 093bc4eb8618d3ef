// base/hash_test.cc
// BLAKE3 against the vectors that its authors publish (BLAKE3-team/BLAKE3, test_vectors.json,
// "hash", first 32 bytes): byte i of an input is i mod 251.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plumb::base {
namespace {

std::string Hex(const Hash256& hash) {
  std::string text;
  for (const uint8_t byte : hash.bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::vector<std::byte> Input(size_t size) {
  std::vector<std::byte> input(size);
  for (size_t i = 0; i < size; ++i) input[i] = static_cast<std::byte>(i % 251);
  return input;
}

constexpr struct {
  size_t size;
  const char* hash;
} kVectors[] = {
    {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
    {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
    {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
    {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
    {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
    {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
    {4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969"},
    {6145, "f1323a8631446cc50536a9f705ee5cb619424d46887f3c376c695b70e0f0507f"},
};

TEST(Blake3, GivesThePublishedHashes) {
  for (const auto& vector : kVectors) {
    EXPECT_EQ(Hex(Blake3({Input(vector.size)})), vector.hash) << vector.size;
  }
}

TEST(Blake3, PartsCountAsOneInput) {
  const std::vector<std::byte> input = Input(6145);
  const std::span<const std::byte> all(input);
  for (const size_t cut : {0, 1, 64, 1024, 4097, 6145}) {
    EXPECT_EQ(Blake3({all.first(cut), all.subspan(cut)}), Blake3({all})) << cut;
  }
  EXPECT_EQ(Blake3({}), Blake3({all.first(0)}));
}

TEST(Hash256, EqualPrefixesAreNotEqualHashes) {
  Hash256 a = Blake3({Input(3)}), b = a;
  b.bytes[31] ^= 1;
  EXPECT_EQ(a.prefix(), b.prefix());
  EXPECT_NE(a, b);
  EXPECT_EQ(a < b, a.bytes < b.bytes);
}

}  // namespace
}  // namespace plumb::base
