// api/multipart_test.cc
// Forms as clients send them, and as nobody should.
#include "api/multipart.h"

#include <gmock/gmock.h>

namespace plumb::api {
namespace {

using testing::HasSubstr;

constexpr std::string_view kType = "multipart/form-data; boundary=xyz";
const std::string kPurpose =
    "--xyz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch";
const std::string kFile =
    "\r\n--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n"
    "Content-Type: application/octet-stream\r\n\r\n{}\n";
const std::string kEnd = "\r\n--xyz--\r\n";

TEST(ReadForm, GivesPartsInOrder) {
  const std::string body = kPurpose + kFile + kEnd;
  const auto parts = ReadForm(kType, body);
  ASSERT_TRUE(parts.ok()) << parts.status().ToString();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].name, "purpose");
  EXPECT_EQ((*parts)[0].content, "batch");
  EXPECT_FALSE((*parts)[0].filename);
  EXPECT_EQ((*parts)[1].name, "file");
  EXPECT_EQ((*parts)[1].filename, "a.jsonl");
  EXPECT_EQ((*parts)[1].content, "{}\n");
  EXPECT_EQ((*parts)[1].content.data(), body.data() + body.find("{}")) << "borrowed";
}

TEST(ReadForm, TakesWhatClientsVary) {
  EXPECT_TRUE(
      ReadForm("Multipart/Form-Data;charset=utf-8; boundary=\"xyz\"", kPurpose + kEnd).ok());
  EXPECT_TRUE(ReadForm(kType, "\r\n" + kPurpose + "\r\n--xyz--").ok());
  const auto quoted = ReadForm(
      kType,
      "--xyz \r\ncontent-disposition: FORM-DATA; name=f; filename=\"a \\\"b\\\\;c\\d\"\r\n\r\n" +
          kEnd);
  ASSERT_TRUE(quoted.ok()) << quoted.status().ToString();
  EXPECT_EQ(quoted->front().filename, "a \"b\\;c\\d");
  EXPECT_EQ(quoted->front().content, "");
  EXPECT_TRUE(ReadForm(kType, "--xyz--")->empty());
}

TEST(ReadForm, ContentMayHoldAnythingButTheBoundary) {
  const std::string tricky = "\r\n--xy\r\n--\r\n\r\n--XYZ\n--xyz";
  const std::string body =
      "--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\n" + tricky + kEnd;
  EXPECT_EQ(ReadForm(kType, body)->front().content, tricky);
}

TEST(ReadForm, RefusesWhatIsNoForm) {
  for (const std::string_view type :
       {"application/json", "multipart/form-data", "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"xyz", "multipart/form-data; boundary"}) {
    EXPECT_EQ(ReadForm(type, kPurpose + kEnd).status().code(), base::Code::kInvalidArgument)
        << type;
  }
  const std::string long_boundary(71, 'x');
  EXPECT_FALSE(
      ReadForm("multipart/form-data; boundary=" + long_boundary, "--" + long_boundary + "--").ok());
  EXPECT_THAT(ReadForm(kType, "preamble" + kPurpose + kEnd).status().message(),
              HasSubstr("begin with the boundary"));
  EXPECT_FALSE(ReadForm(kType, "--xyz\r\nContent-Disposition: form-data\r\n\r\n" + kEnd).ok());
  EXPECT_FALSE(ReadForm(kType, "--xyz\r\nContent-Disposition: file; name=a\r\n\r\n" + kEnd).ok());
  EXPECT_FALSE(ReadForm(kType, "--xyz\r\nno colon\r\n\r\n" + kEnd).ok());
  EXPECT_FALSE(
      ReadForm(kType, "--xyzz\r\nContent-Disposition: form-data; name=a\r\n\r\n" + kEnd).ok());
  EXPECT_FALSE(ReadForm(kType,
                        "--xyz\r\nContent-Disposition: form-data; name=a\r\n"
                        "Content-Transfer-Encoding: base64\r\n\r\n" +
                            kEnd)
                   .ok());
  EXPECT_EQ(ReadForm(kType, kPurpose + "\r\n" + kPurpose + kEnd).status().field(), "purpose");
}

TEST(ReadForm, EveryCutIsRefused) {
  const std::string body = kPurpose + kFile + "\r\n--xyz--";
  for (size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(ReadForm(kType, std::string_view(body).substr(0, size)).ok()) << size;
}

TEST(ReadForm, HasLimits) {
  std::string many;
  for (size_t i = 0; i <= kFormPartsMax; ++i) {
    many += (i == 0 ? "" : "\r\n") +
            std::string("--xyz\r\nContent-Disposition: form-data; name=a") + std::to_string(i) +
            "\r\n\r\n";
  }
  EXPECT_THAT(ReadForm(kType, many + kEnd).status().message(), HasSubstr("more than 16 parts"));
  const std::string header = "--xyz\r\nContent-Disposition: form-data; name=a\r\nX: " +
                             std::string(kFormPartHeaderBytesMax, 'x') + "\r\n\r\n";
  EXPECT_THAT(ReadForm(kType, header + kEnd).status().message(), HasSubstr("too long"));
}

}  // namespace
}  // namespace plumb::api
