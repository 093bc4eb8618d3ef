// model/safetensors_test.cc
// What a good file gives, and that every damage of a header is refused by name.
#include "model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/testing/scratch_folder.h"
#include "model/hf_writer.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::HasSubstr;
using testing::Not;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string TwoTensors() {
  return SafetensorsWriter()
      .Tensor("a", "F32", {2, 3}, std::string(24, 'a'))
      .Tensor("b.weight", "BF16", {4}, std::string(8, 'b'))
      .Finish();
}

TEST(Safetensors, ReadsShapesAndBytes) {
  const std::string bytes = TwoTensors();
  const auto file = Safetensors::Parse(Bytes(bytes));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  ASSERT_EQ((*file)->tensors().size(), 2u);
  const SafetensorsTensor& a = (*file)->tensors()[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, StoredType::kF32);
  EXPECT_EQ(a.rows(), 2u);
  EXPECT_EQ(a.row_elements(), 3u);
  EXPECT_EQ(a.bytes.size(), 24u);
  EXPECT_EQ(a.bytes[0], std::byte{'a'});
  const SafetensorsTensor& b = (*file)->tensors()[1];
  EXPECT_EQ(b.type_name, "BF16");
  EXPECT_EQ(b.rows(), 1u);
  EXPECT_EQ(b.bytes.back(), std::byte{'b'});
  EXPECT_EQ((*file)->file_bytes(), bytes.size());
}

// The parser would hold them several times over.
TEST(Safetensors, RefusesLongNumbersAndTextsUnparsed) {
  const auto parse = [](const std::string& shape, const std::string& note) {
    const std::string bytes = SafetensorsWriter::File(R"({"__metadata__":{"note":")" + note +
                                                          R"("},"a":{"dtype":"F32","shape":[)" +
                                                          shape + R"(],"data_offsets":[0,4]}})",
                                                      "1234");
    return Safetensors::Parse(Bytes(bytes)).status();
  };
  EXPECT_TRUE(parse("1", "x").ok());
  EXPECT_EQ(parse(std::string(21, '1'), "x").code(), Code::kCorrupt);
  EXPECT_THAT(parse(std::string(21, '1'), "x").message(), HasSubstr("more than 20 digits"));
  EXPECT_THAT(parse(std::string(20, '1'), "x").message(), Not(HasSubstr("digits")));
  EXPECT_TRUE(parse("1", std::string(1000, '7')).ok()) << "digits of a text are none";
  EXPECT_TRUE(parse("1", R"(\")" + std::string(30, '7') + R"(\\)").ok());
  const std::string longest(kSafetensorsTextBytesMax - 1, 'x');
  EXPECT_TRUE(parse("1", longest).ok());
  EXPECT_EQ(parse("1", longest + "xx").code(), Code::kUnsupported);
  EXPECT_FALSE(Safetensors::Parse(Bytes(SafetensorsWriter::File("{\"a", ""))).ok());
}

TEST(Safetensors, ReadsNumbersEmptyFilesAndAnyOrder) {
  const std::string number =
      SafetensorsWriter::File(R"({"z":{"data_offsets":[4,6],"dtype":"F16","shape":[]},)"
                              R"("y":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}})",
                              "123456");
  const auto file = Safetensors::Parse(Bytes(number));
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ((*file)->tensors()[0].name, "y");
  EXPECT_EQ((*file)->tensors()[0].type, StoredType::kOther);
  EXPECT_EQ((*file)->tensors()[1].elements, 1u);
  EXPECT_TRUE(Safetensors::Parse(Bytes(SafetensorsWriter::File("{}", ""))).ok());
}

struct Damage {
  const char* what;
  std::string header;
  uint64_t data_bytes;
  Code code;
  const char* message;
};

TEST(Safetensors, RefusesDamagedHeaders) {
  const std::string deep(100000, '[');
  const std::string many_dims = R"({"t":{"dtype":"U8","shape":[1,1,1,1,1],"data_offsets":[0,1]}})";
  const Damage cases[] = {
      {"array", "[]", 0, Code::kCorrupt, "no JSON object"},
      {"broken", R"({"t":)", 0, Code::kCorrupt, "no JSON from byte"},
      {"trailing", "{} {}", 0, Code::kCorrupt, "no JSON from byte"},
      {"deep", "{\"t\":" + deep, 0, Code::kCorrupt, "an array"},
      {"deep metadata", R"({"__metadata__":{"a":{"b":{}}}})", 0, Code::kCorrupt, "an object"},
      {"metadata twice", R"({"__metadata__":{},"__metadata__":{}})", 0, Code::kCorrupt, "two"},
      {"metadata number", R"({"__metadata__":{"a":1}})", 0, Code::kCorrupt, "a number"},
      {"no dtype", R"({"t":{"shape":[1],"data_offsets":[0,1]}})", 1, Code::kCorrupt, "tensor t"},
      {"unknown field", R"({"t":{"x":1}})", 1, Code::kCorrupt, "unknown field"},
      {"field twice", R"({"t":{"dtype":"U8","dtype":"U8"}})", 1, Code::kCorrupt, "twice"},
      {"name twice",
       R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
       2, Code::kCorrupt, "the tensor t occurs twice"},
      {"name empty", R"({"":{"dtype":"U8"}})", 1, Code::kCorrupt, "name"},
      {"name control", "{\"a\\n\":{}}", 1, Code::kCorrupt, "name"},
      {"unknown type", R"({"t":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", 1,
       Code::kUnsupported, "tensor t has the unknown dtype F4"},
      {"type of control characters",
       R"({"t":{"dtype":"a\u001b\u00e9","shape":[1],"data_offsets":[0,1]}})", 1, Code::kUnsupported,
       "dtype a???"},
      {"five dimensions", many_dims, 1, Code::kUnsupported, "more than 4"},
      {"negative", R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, Code::kCorrupt,
       "a negative number"},
      {"fraction", R"({"t":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1, Code::kCorrupt,
       "a fraction"},
      {"beyond 64 bits",
       R"({"t":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1,
       Code::kCorrupt, "a number of more than 64 bits in or after tensor t"},
      {"zero", R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})", 0, Code::kCorrupt,
       "impossible dimension"},
      {"product overflows",
       R"({"t":{"dtype":"U8","shape":[4294967296,4294967296,1],"data_offsets":[0,0]}})", 0,
       Code::kCorrupt, "impossible dimension"},
      {"wrong size", R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, Code::kCorrupt,
       "need 8"},
      {"backwards", R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1, Code::kCorrupt,
       "no range"},
      {"one offset", R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[1]}})", 1, Code::kCorrupt,
       "no range"},
      {"beyond the end", R"({"t":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 3,
       Code::kCorrupt, "truncated"},
      {"huge offset",
       R"({"t":{"dtype":"U8","shape":[1],)"
       R"("data_offsets":[18446744073709551614,18446744073709551615]}})",
       1, Code::kCorrupt, "truncated"},
      {"overlap",
       R"({"t":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
       R"("u":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       3, Code::kCorrupt, "overlaps"},
      {"gap",
       R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
       R"("u":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
       3, Code::kCorrupt, "gap"},
      {"rest", R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2, Code::kCorrupt,
       "1 bytes that belong to no tensor"},
  };
  for (const Damage& damage : cases) {
    const std::string bytes =
        SafetensorsWriter::File(damage.header, std::string(damage.data_bytes, 'x'));
    const auto file = Safetensors::Parse(Bytes(bytes));
    EXPECT_EQ(file.status().code(), damage.code) << damage.what;
    EXPECT_THAT(file.status().message(), HasSubstr(damage.message)) << damage.what;
  }
}

TEST(Safetensors, RefusesWrongHeaderSizes) {
  const auto code = [](const std::string& bytes) {
    return Safetensors::Parse(Bytes(bytes)).status().code();
  };
  EXPECT_EQ(code(""), Code::kCorrupt);
  EXPECT_EQ(code("1234567"), Code::kCorrupt);
  EXPECT_EQ(code(std::string("\x05\0\0\0\0\0\0\0{}", 10)), Code::kCorrupt);
  EXPECT_EQ(code(std::string(8, '\xff') + "{}"), Code::kUnsupported);
}

TEST(Safetensors, AnyCutIsRefused) {
  const std::string whole = TwoTensors();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    EXPECT_EQ(Safetensors::Parse(Bytes(cut)).status().code(), Code::kCorrupt) << size;
  }
}

TEST(Safetensors, ErrorsOfOpenHoldNoPath) {
  const base::ScratchFolder folder;
  EXPECT_EQ(Safetensors::Open(folder.File("none")).status().code(), Code::kNotFound);
  WriteFiles(folder.path(), {{"empty.safetensors", ""}, {"good.safetensors", TwoTensors()}});
  const auto empty = Safetensors::Open(folder.File("empty.safetensors"));
  EXPECT_EQ(empty.status().code(), Code::kCorrupt);
  EXPECT_THAT(empty.status().message(), Not(HasSubstr(folder.path())));
  EXPECT_EQ(Safetensors::Open(folder.path()).status().code(), Code::kCorrupt);
  EXPECT_TRUE(Safetensors::Open(folder.File("good.safetensors")).ok());
}

}  // namespace
}  // namespace plumb::model
