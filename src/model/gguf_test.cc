// model/gguf_test.cc: what the reader accepts, what it refuses and how it says so. Every truncation
// and many changes of every byte of a small file are tried; run under asan they show overreads.
#include "model/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "base/random.h"
#include "base/testing/scratch_folder.h"
#include "model/gguf_writer.h"
#include "model/hf_text.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::ElementsAre;
using testing::HasSubstr;

std::span<const std::byte> Bytes(const std::string& file) { return std::as_bytes(std::span(file)); }

// Two tensors of 64 floats and of one Q4_0 row, and a key of every type.
std::string SmallFile(uint32_t version = 3) {
  GgufWriter writer(version);
  writer.Text("general.architecture", "llama").Text("empty", "");
  writer.Value<uint8_t>("u8", 200).Value<int8_t>("i8", -3).Value<uint16_t>("u16", 60000);
  writer.Value<int16_t>("i16", -30000)
      .Value<uint32_t>("u32", 4000000000u)
      .Value<int32_t>("i32", -7);
  writer.Value<uint64_t>("u64", UINT64_MAX).Value<int64_t>("i64", 1LL << 40);
  writer.Value("f32", 0.5f).Value("f64", 0.25).Value("yes", true).Value("no", false);
  const std::string texts[] = {"a", "", "long"};
  writer.Texts("texts", texts).Values<float>("floats", {1.5f, -2.0f});
  writer.Values<int32_t>("ints", {3, -4}).Values<uint64_t>("huge", {UINT64_MAX});
  writer.Values<bool>("bools", {true, false});
  const uint64_t dims[] = {32, 2};
  writer.Tensor("a.weight", 0, dims, std::string(256, 'x'));
  writer.Tensor("b.weight", 2, std::span(dims, 1), std::string(18, 'y'));
  return writer.Finish();
}

TEST(Gguf, ReadsEveryValueType) {
  for (const uint32_t version : {2u, 3u}) {
    const std::string file = SmallFile(version);
    auto gguf = Gguf::Parse(Bytes(file));
    ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
    const Gguf& g = **gguf;
    EXPECT_EQ(g.version(), version);
    EXPECT_EQ(*g.Text("general.architecture"), "llama");
    EXPECT_EQ(*g.Text("empty"), "");
    EXPECT_EQ(*g.Unsigned("u8"), 200u);
    EXPECT_EQ(*g.Unsigned("u16"), 60000u);
    EXPECT_EQ(*g.Unsigned("u32"), 4000000000u);
    EXPECT_EQ(*g.Unsigned("u64"), UINT64_MAX);
    EXPECT_EQ(*g.Unsigned("i64"), 1ull << 40);
    EXPECT_EQ(*g.Number("i8"), -3.0);
    EXPECT_EQ(*g.Number("i16"), -30000.0);
    EXPECT_EQ(*g.Number("i32"), -7.0);
    EXPECT_EQ(*g.Number("f32"), 0.5);
    EXPECT_EQ(*g.Number("f64"), 0.25);
    EXPECT_TRUE(*g.Bool("yes"));
    EXPECT_FALSE(*g.Bool("no"));
    EXPECT_THAT(*g.Texts("texts"), ElementsAre("a", "", "long"));
    EXPECT_THAT(*g.Numbers("floats"), ElementsAre(1.5, -2.0));
    EXPECT_THAT(*g.Integers("ints"), ElementsAre(3, -4));
    EXPECT_THAT(*g.Integers("bools"), ElementsAre(1, 0));
  }
}

TEST(Gguf, GivesTensorsAsViewsIntoTheFile) {
  const std::string file = SmallFile();
  auto gguf = Gguf::Parse(Bytes(file));
  ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
  ASSERT_EQ((*gguf)->tensors().size(), 2u);
  const GgufTensor* a = (*gguf)->FindTensor("a.weight");
  const GgufTensor* b = (*gguf)->FindTensor("b.weight");
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_EQ((*gguf)->FindTensor("c.weight"), nullptr);
  EXPECT_THAT(a->dims, ElementsAre(32, 2, 1, 1));
  EXPECT_EQ(a->elements, 64u);
  EXPECT_EQ(a->bytes.size(), 256u);
  EXPECT_EQ(a->bytes[0], std::byte{'x'});
  EXPECT_EQ(b->bytes.size(), 18u);
  EXPECT_EQ(b->bytes[17], std::byte{'y'});
  EXPECT_EQ(GgufTensorTypeName(a->type), "F32");
  EXPECT_EQ(GgufTensorTypeName(b->type), "Q4_0");
  EXPECT_EQ(GgufTensorTypeName(77), "type 77");
}

TEST(Gguf, GettersNameTheKeyAndTheFault) {
  const std::string file = SmallFile();
  auto gguf = Gguf::Parse(Bytes(file));
  ASSERT_TRUE(gguf.ok());
  const Gguf& g = **gguf;
  const std::pair<base::Status, Code> cases[] = {
      {g.Unsigned("i8").status(), Code::kCorrupt},
      {g.Unsigned("f32").status(), Code::kCorrupt},
      {g.Unsigned("yes").status(), Code::kCorrupt},
      {g.Unsigned("texts").status(), Code::kCorrupt},
      {g.Unsigned("absent").status(), Code::kNotFound},
      {g.Number("yes").status(), Code::kCorrupt},
      {g.Number("empty").status(), Code::kCorrupt},
      {g.Number("absent").status(), Code::kNotFound},
      {g.Bool("u8").status(), Code::kCorrupt},
      {g.Bool("absent").status(), Code::kNotFound},
      {g.Text("u8").status(), Code::kCorrupt},
      {g.Text("absent").status(), Code::kNotFound},
      {g.Texts("floats").status(), Code::kCorrupt},
      {g.Texts("empty").status(), Code::kCorrupt},
      {g.Texts("absent").status(), Code::kNotFound},
      {g.Numbers("texts").status(), Code::kCorrupt},
      {g.Numbers("f32").status(), Code::kCorrupt},
      {g.Numbers("absent").status(), Code::kNotFound},
      {g.Integers("floats").status(), Code::kCorrupt},
      {g.Integers("huge").status(), Code::kCorrupt},
      {g.Integers("absent").status(), Code::kNotFound},
  };
  for (const auto& [status, code] : cases) EXPECT_EQ(status.code(), code) << status.ToString();
  EXPECT_THAT(g.Unsigned("i8").status().message(), HasSubstr("i8 is -3"));
  EXPECT_THAT(g.Number("texts").status().message(), HasSubstr("texts is an array of text"));
}

// A file with one thing wrong.
struct Unsound {
  const char* name;
  std::function<void(GgufWriter&)> write;
  Code code;
  const char* message;
};

void ExpectRefused(std::span<const Unsound> cases) {
  for (const Unsound& c : cases) {
    GgufWriter writer;
    c.write(writer);
    const std::string file = writer.Finish();
    auto gguf = Gguf::Parse(Bytes(file));
    ASSERT_FALSE(gguf.ok()) << c.name;
    EXPECT_EQ(gguf.status().code(), c.code) << c.name << ": " << gguf.status().ToString();
    EXPECT_THAT(gguf.status().message(), HasSubstr(c.message)) << c.name;
  }
}

constexpr uint64_t kRow[] = {32};
const std::string kBlock(18, 'x');

TEST(Gguf, RefusesUnsoundMetadata) {
  const Unsound cases[] = {
      {"key twice", [](GgufWriter& w) { w.Value("k", true).Value("k", true); }, Code::kCorrupt,
       "key k occurs twice"},
      {"empty key", [](GgufWriter& w) { w.Value("", true); }, Code::kCorrupt, "printable ASCII"},
      {"key with newline", [](GgufWriter& w) { w.Value("a\nb", true); }, Code::kCorrupt,
       "printable ASCII"},
      {"long key", [](GgufWriter& w) { w.Value(std::string(257, 'k'), true); }, Code::kUnsupported,
       "257 bytes"},
      {"alignment 0", [](GgufWriter& w) { w.Value<uint32_t>("general.alignment", 0); },
       Code::kCorrupt, "power of two"},
      {"alignment 24", [](GgufWriter& w) { w.Value<uint32_t>("general.alignment", 24); },
       Code::kCorrupt, "power of two"},
      {"alignment 2^31", [](GgufWriter& w) { w.Value<uint32_t>("general.alignment", 1u << 31); },
       Code::kCorrupt, "power of two"},
      {"alignment text", [](GgufWriter& w) { w.Text("general.alignment", "x"); }, Code::kCorrupt,
       "general.alignment is text"},
  };
  ExpectRefused(cases);
}

TEST(Gguf, RefusesUnsoundTensors) {
  const Unsound cases[] = {
      {"tensor twice",
       [](GgufWriter& w) { w.Tensor("t", 2, kRow, kBlock).Tensor("t", 2, kRow, kBlock); },
       Code::kCorrupt, "tensor t occurs twice"},
      {"no dimensions", [](GgufWriter& w) { w.Tensor("t", 2, {}, kBlock); }, Code::kUnsupported,
       "0 dimensions"},
      {"five dimensions",
       [](GgufWriter& w) {
         const uint64_t dims[] = {32, 1, 1, 1, 1};
         w.Tensor("t", 2, dims, kBlock);
       },
       Code::kUnsupported, "5 dimensions"},
      {"zero dimension",
       [](GgufWriter& w) {
         const uint64_t dims[] = {32, 0};
         w.Tensor("t", 2, dims, kBlock);
       },
       Code::kCorrupt, "impossible dimension 0"},
      {"product overflows",
       [](GgufWriter& w) {
         const uint64_t dims[] = {1ull << 33, 1ull << 33};
         w.Tensor("t", 0, dims, kBlock);
       },
       Code::kCorrupt, "impossible dimension"},
      {"unknown data type", [](GgufWriter& w) { w.Tensor("t", 31, kRow, kBlock); },
       Code::kUnsupported, "data type 31"},
      {"part of a block",
       [](GgufWriter& w) {
         const uint64_t dims[] = {33};
         w.Tensor("t", 2, dims, kBlock);
       },
       Code::kCorrupt, "whole blocks"},
      {"offset unaligned", [](GgufWriter& w) { w.TensorAt("t", 2, kRow, 16, kBlock); },
       Code::kCorrupt, "not a multiple of 32"},
      {"offset near 2^64", [](GgufWriter& w) { w.TensorAt("t", 2, kRow, ~uint64_t{31}, kBlock); },
       Code::kCorrupt, "offset overflows"},
      {"offset past the end", [](GgufWriter& w) { w.TensorAt("t", 2, kRow, 64, kBlock); },
       Code::kCorrupt, "truncated: 64 bytes are missing"},
      {"overlap",
       [](GgufWriter& w) { w.TensorAt("t", 2, kRow, 0, kBlock).TensorAt("u", 2, kRow, 0, kBlock); },
       Code::kCorrupt, "u overlaps t"},
  };
  ExpectRefused(cases);
}

// Header and first key of a file with one field replaced.
TEST(Gguf, RefusesImpossibleCountsBeforeReadingOn) {
  struct Case {
    const char* name;
    size_t offset;
    uint64_t value;
    size_t size;
    Code code;
  };
  GgufWriter writer;
  writer.Values<uint8_t>("k", {1, 2});
  const std::string file = writer.Finish();
  // magic 4, version 4, tensors 8, keys 8, key size 8, "k", type 4, element type 4, count 8
  const Case cases[] = {
      {"magic", 0, 0x46554746, 4, Code::kCorrupt},
      {"version 1", 4, 1, 4, Code::kUnsupported},
      {"version 4", 4, 4, 4, Code::kUnsupported},
      {"big-endian", 4, 3u << 24, 4, Code::kUnsupported},
      {"tensors", 8, kGgufTensorsMax + 1, 8, Code::kUnsupported},
      {"tensors 2^64-1", 8, UINT64_MAX, 8, Code::kUnsupported},
      {"keys", 16, kGgufKeysMax + 1, 8, Code::kUnsupported},
      {"keys more than there are", 16, kGgufKeysMax, 8, Code::kCorrupt},
      {"key size 2^63", 24, 1ull << 63, 8, Code::kUnsupported},
      {"value type", 33, 13, 4, Code::kCorrupt},
      {"element type", 37, 99, 4, Code::kCorrupt},
      {"array of arrays", 37, 9, 4, Code::kUnsupported},
      {"bool that is 2", 37, 7, 4, Code::kCorrupt},
      {"array count", 41, kGgufArrayCountMax + 1, 8, Code::kUnsupported},
      {"array count more than there is", 41, kGgufArrayCountMax, 8, Code::kCorrupt},
  };
  for (const Case& c : cases) {
    std::string changed = file;
    std::memcpy(changed.data() + c.offset, &c.value, c.size);
    auto gguf = Gguf::Parse(Bytes(changed));
    ASSERT_FALSE(gguf.ok()) << c.name;
    EXPECT_EQ(gguf.status().code(), c.code) << c.name << ": " << gguf.status().ToString();
  }
}

TEST(Gguf, EveryTruncationIsAnErrorThatSaysSo) {
  const std::string file = SmallFile();
  for (size_t size = 4; size < file.size(); ++size) {
    const std::string cut =
        file.substr(0, size);  // its own allocation, so that asan sees overreads
    auto gguf = Gguf::Parse(Bytes(cut));
    ASSERT_FALSE(gguf.ok()) << size;
    EXPECT_EQ(gguf.status().code(), Code::kCorrupt) << size;
    EXPECT_THAT(gguf.status().message(), HasSubstr("truncated")) << size;
  }
  // In the data section the number is exact.
  auto gguf = Gguf::Parse(Bytes(file).first(file.size() - 7));
  EXPECT_THAT(gguf.status().message(), HasSubstr("7 bytes are missing"));
}

TEST(Gguf, AnyFlippedByteIsReadOrRefused) {
  const std::string file = SmallFile();
  base::Rng rng(1);
  uint64_t accepted = 0;
  for (size_t round = 0; round < 20 * file.size(); ++round) {
    std::string changed = file;
    changed[round % file.size()] = static_cast<char>(rng.Next());
    auto gguf = Gguf::Parse(Bytes(changed));
    if (!gguf.ok()) continue;
    ++accepted;
    for (const auto& [key, value] : (*gguf)->values()) {
      const int readings = (*gguf)->Unsigned(key).ok() + (*gguf)->Number(key).ok() +
                           (*gguf)->Bool(key).ok() + (*gguf)->Text(key).ok() +
                           (*gguf)->Texts(key).ok() + (*gguf)->Numbers(key).ok() +
                           (*gguf)->Integers(key).ok();
      EXPECT_LE(readings, 2) << key;  // an integer is also a number
    }
    for (const GgufTensor& tensor : (*gguf)->tensors()) EXPECT_FALSE(tensor.bytes.empty());
  }
  EXPECT_GT(accepted, 0u);
}

TEST(Gguf, OpenSaysWhatIsWrongWithoutThePath) {
  auto absent = Gguf::Open("/nonexistent/secret/model.gguf");
  EXPECT_EQ(absent.status().code(), Code::kNotFound);
  EXPECT_THAT(absent.status().message(), testing::Not(HasSubstr("secret")));
  auto folder = Gguf::Open("/");
  EXPECT_EQ(folder.status().code(), Code::kInvalidArgument);

  const base::ScratchFolder scratch;
  const std::string path = scratch.File("small.gguf");
  ASSERT_TRUE(base::WriteFileAtomic(path, SmallFile()).ok());
  auto gguf = Gguf::Open(path);
  ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
  EXPECT_EQ(*(*gguf)->Unsigned("u8"), 200u);
}

TEST(Gguf, OnlyAWholeTokenizerMayBeALongText) {
  const std::string text(kGgufTextBytesMax + 1, 'x');
  const std::string fine = GgufWriter().Text(kHfTokenizerKey, text).Finish();
  auto gguf = Gguf::Parse(std::as_bytes(std::span(fine)));
  ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
  EXPECT_EQ(*(*gguf)->Text(kHfTokenizerKey), text);
  const std::string other = GgufWriter().Text("tokenizer.chat_template", text).Finish();
  EXPECT_EQ(Gguf::Parse(std::as_bytes(std::span(other))).status().code(), Code::kUnsupported);
}

// As vocabularies without weights are distributed: nothing follows the directory.
TEST(Gguf, WithoutTensorsMayEndUnpadded) {
  std::string file = GgufWriter().Text("general.architecture", "llama").Finish();
  while (!file.empty() && file.back() == '\0') file.pop_back();
  auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
  ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
  EXPECT_EQ((*gguf)->tensors().size(), 0u);
}

}  // namespace
}  // namespace plumb::model
