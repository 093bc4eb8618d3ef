// api/image_fields_test.cc
// What is an image, what is none, and that nothing is fetched.
#include "api/image_fields.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace plumb::api {
namespace {

const std::string kPng("\x89PNG\r\n\x1A\n rest", 13);
const std::string kWebp("RIFF\x10\0\0\0WEBP", 12);

TEST(ImageFields, ReadsWhatIsOfItsType) {
  EXPECT_EQ(ReadImageData("image/png", base::EncodeBase64(kPng), "p").value(), kPng);
  EXPECT_EQ(ReadImageData("image/webp", base::EncodeBase64(kWebp), "p").value(), kWebp);
  EXPECT_EQ(ReadImageUrl("data:image/png;base64," + base::EncodeBase64(kPng), "p").value(), kPng);
}

TEST(ImageFields, RefusesWhatIsNotByItsPlace) {
  struct Case {
    std::string type;
    std::string data;
  };
  for (const Case& c :
       {Case{"image/svg+xml", base::EncodeBase64("<svg/>")},
        Case{"image/jpeg", base::EncodeBase64(kPng)}, Case{"image/png", "not base64!"},
        Case{"image/png", ""}, Case{"image/webp", base::EncodeBase64("RIFF1234WAVE")},
        Case{"image/gif", base::EncodeBase64("GIF8")},
        Case{"image/png", std::string(kImageBytesMax * 2, 'A')}}) {
    const auto read = ReadImageData(c.type, c.data, "messages[0]");
    ASSERT_FALSE(read.ok()) << c.type;
    EXPECT_EQ(read.status().field(), "messages[0]");
  }
}

TEST(ImageFields, FetchesNothing) {
  for (const std::string url :
       {"http://169.254.169.254/latest", "https://example.org/a.png", "file:///etc/passwd",
        "ftp://a/b", "", "data:", "data:image/png,abc", "data:;base64,AAAA",
        "DATA:image/png;base64,AAAA"}) {
    const auto read = ReadImageUrl(url, "url");
    ASSERT_FALSE(read.ok()) << url;
    EXPECT_EQ(read.status().field(), "url");
  }
}

}  // namespace
}  // namespace plumb::api
