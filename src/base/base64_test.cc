// base/base64_test.cc
// Against the vectors of RFC 4648, and every other spelling refused.
#include "base/base64.h"

#include <gtest/gtest.h>

namespace plumb::base {
namespace {

struct Pair {
  std::string_view bytes;
  std::string_view text;
};

// RFC 4648, section 10.
constexpr Pair kPairs[] = {{"", ""},
                           {"f", "Zg=="},
                           {"fo", "Zm8="},
                           {"foo", "Zm9v"},
                           {"foob", "Zm9vYg=="},
                           {"fooba", "Zm9vYmE="},
                           {"foobar", "Zm9vYmFy"}};

TEST(Base64, AgreesWithTheRfc) {
  for (const Pair& pair : kPairs) {
    EXPECT_EQ(EncodeBase64(pair.bytes), pair.text);
    EXPECT_EQ(DecodeBase64(pair.text), pair.bytes);
  }
}

TEST(Base64, TakesEveryByteThereAndBack) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(DecodeBase64(EncodeBase64(bytes)), bytes) << i;
  }
}

TEST(Base64, RefusesEveryOtherSpelling) {
  for (const std::string_view text :
       {"Zg", "Zg=", "Zg===", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=", "Zm9v\n", "Zm 9", "Zm_v",
        "Zm-v", "=m9v", "Z=9v", "Zm=v", "Zm9v=", "\xC3\xA9gg"}) {
    EXPECT_FALSE(DecodeBase64(text)) << text;
  }
}

}  // namespace
}  // namespace plumb::base
