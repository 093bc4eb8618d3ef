// text/utf8_test.cc: the replacement rules of the Unicode standard by its own examples, and
// independence of how bytes are cut.
#include "text/utf8.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace plumb::text {
namespace {

std::string Decode(const std::vector<std::string>& pieces) {
  std::string waiting, text;
  for (const std::string& piece : pieces) {
    waiting += piece;
    text += TakeUtf8(waiting);
    EXPECT_LE(waiting.size(), 3u);
  }
  if (!waiting.empty()) text += kReplacement;
  return text;
}

TEST(Utf8, ReplacesEachMaximalInvalidPartOnce) {
  const std::string r(kReplacement);
  const struct {
    const char* name;
    std::string bytes;
    std::string text;
  } cases[] = {
      {"plain", "aé한🦙", "aé한🦙"},
      {"the smallest and largest of each length",
       "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF",
       "\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"},
      {"a lone continuation", "a\x80z", "a" + r + "z"},
      {"an overlong form, Unicode table 3-8",
       "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82"
       "A",
       r + r + r + r + r + r + r + r + "A"},
      {"surrogates, Unicode table 3-9",
       "\xED\xA0\x80\xED\xBF\xBF\xED\xAF"
       "A",
       r + r + r + r + r + r + r + r + "A"},
      {"other ill-formed, Unicode table 3-10",
       "\xF4\x91\x92\x93\xFF"
       "A\x80\xBF"
       "B",
       r + r + r + r + r + "A" + r + r + "B"},
      {"truncated, Unicode table 3-11",
       "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF"
       "A",
       r + r + r + r + "A"},
      {"cut at the end", "a\xF0\x9F\xA6", "a" + r},
      {"a bare lead at the end", "\xC2", r},
  };
  for (const auto& item : cases) EXPECT_EQ(Decode({item.bytes}), item.text) << item.name;
}

TEST(Utf8, EveryCuttingOfBytesGivesTheSame) {
  const uint64_t seed = 20261130;
  SCOPED_TRACE(seed);
  base::Rng rng(seed);
  const std::string alphabet = "a\x80\xBF\xC2\xE0\xA0\xED\xF0\x90\xF4\x8F\xFF\xE1";
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (uint64_t n = rng.Below(16); n > 0; --n) bytes += alphabet[rng.Below(alphabet.size())];
    std::vector<std::string> pieces;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + rng.Below(4);
      pieces.push_back(bytes.substr(at, size));
      at += size;
    }
    ASSERT_EQ(Decode(pieces), Decode({bytes})) << testing::PrintToString(bytes);
  }
}

}  // namespace
}  // namespace plumb::text
