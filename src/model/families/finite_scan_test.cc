// model/families/finite_scan_test.cc: every code of every type at every place of a word, and the
// first of several jobs.
#include "model/families/finite_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace plumb::model {
namespace {

std::optional<size_t> Find(std::span<const ScanJob> jobs, uint32_t threads = 2) {
  tensor::ThreadPool pool({.threads = threads});
  return FindNotFinite(jobs, pool, {});
}
bool Finite(ScanKind kind, const std::string& bytes) {
  const ScanJob job{kind, std::as_bytes(std::span(bytes))};
  return !Find({&job, 1}, 1);
}

TEST(FiniteScan, KnowsEveryByteOfAnEightBitType) {
  for (uint32_t code = 0; code < 256; ++code) {
    for (const size_t place : {0u, 7u, 8u, 12u}) {  // in a word, and behind the last whole one
      std::string bytes(13, '\x7e');
      bytes[place] = static_cast<char>(code);
      EXPECT_EQ(Finite(ScanKind::kF8E4M3, bytes), (code & 0x7f) != 0x7f) << code << " " << place;
      EXPECT_EQ(Finite(ScanKind::kF8E8M0, bytes), code != 0xff) << code << " " << place;
    }
  }
}

TEST(FiniteScan, KnowsEveryBFloat16) {
  tensor::ThreadPool pool({.threads = 1});
  for (uint32_t code = 0; code < 65536; ++code) {
    std::string bytes(14, '\x41');
    const auto half = static_cast<uint16_t>(code);
    std::memcpy(bytes.data() + code % 7 * 2, &half, 2);
    const ScanJob job{ScanKind::kBf16, std::as_bytes(std::span(bytes))};
    EXPECT_EQ(FindNotFinite({&job, 1}, pool, {}).has_value(), (code & 0x7f80) == 0x7f80) << code;
  }
}

TEST(FiniteScan, KnowsFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const float value : {0.0f, -0.0f, kMax, -kMax, 1e-44f, INFINITY, -INFINITY, NAN, -NAN}) {
    for (const size_t place : {0u, 1u, 2u}) {
      float floats[] = {1, -2, 3};
      floats[place] = value;
      const std::string bytes(reinterpret_cast<const char*>(floats), sizeof floats);
      EXPECT_EQ(Finite(ScanKind::kF32, bytes), std::isfinite(value)) << value << " " << place;
    }
  }
}

TEST(FiniteScan, NamesTheFirstBadJobOfSeveral) {
  const std::string good(9u << 20, '\x01');  // more than one chunk
  std::string bad = good;
  bad.back() = '\xff';
  std::vector<ScanJob> jobs;
  for (const std::string* bytes :
       std::initializer_list<const std::string*>{&good, &good, &bad, &good, &bad}) {
    jobs.push_back({ScanKind::kF8E8M0, std::as_bytes(std::span(*bytes))});
  }
  for (const uint32_t threads : {1u, 4u}) EXPECT_EQ(Find(jobs, threads), 2u) << threads;
  jobs.erase(jobs.begin() + 2);
  EXPECT_EQ(Find(jobs), 3u);
  jobs.pop_back();
  EXPECT_EQ(Find(jobs), std::nullopt);
  EXPECT_EQ(Find({}), std::nullopt);
}

TEST(FiniteScan, TellsHowFarItIs) {
  const std::string bytes(1000, '\0');
  const ScanJob jobs[] = {{ScanKind::kF32, std::as_bytes(std::span(bytes))},
                          {ScanKind::kBf16, std::as_bytes(std::span(bytes))}};
  tensor::ThreadPool pool({.threads = 2});
  LoadProgress last;
  EXPECT_FALSE(FindNotFinite(jobs, pool, [&](const LoadProgress& p) { last = p; }));
  EXPECT_EQ(last.bytes_done, 2000u);
  EXPECT_EQ(last.bytes_total, 2000u);
}

}  // namespace
}  // namespace plumb::model
