// model/weight_reader_test.cc
// Stacks of experts: cut as the file's dims say, compared with a matrix of their own, and refused
// when the shape is another; and values that are not finite.
#include "model/weight_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/gguf.h"
#include "model/gguf_writer.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::HasSubstr;

constexpr uint32_t kQ8 = 8;
constexpr uint32_t kExperts = 3;
constexpr uint64_t kOutputs = 20;
constexpr uint64_t kInputs = 64;

std::string StackedFile() {
  GgufWriter writer;
  const uint64_t dims[] = {kInputs, kOutputs, kExperts};
  const std::string bytes = RandomWeights(kQ8, kInputs * kOutputs * kExperts, kInputs, 7);
  writer.Tensor("blk.0.ffn_up_exps.weight", kQ8, dims, bytes);
  const size_t each = bytes.size() / kExperts;
  const uint64_t plain[] = {kInputs, kOutputs};
  for (uint32_t i = 0; i < kExperts; ++i) {
    writer.Tensor("expert." + std::to_string(i), kQ8, plain, bytes.substr(i * each, each));
  }
  return writer.Finish();
}

class ExpertMatrix : public testing::Test {
 protected:
  const std::string file_ = StackedFile();
  const std::unique_ptr<Gguf> gguf_ = *Gguf::Parse(std::as_bytes(std::span(file_)));
  tensor::ThreadPool pool_{{.threads = 1}};
  tensor::WeightArena arena_;
  std::vector<LoadProgress> progress_;
  const LoadOptions options_{
      .pool = pool_,
      .kernels = **tensor::SelectKernels("auto"),
      .progress = [this](const LoadProgress& state) { progress_.push_back(state); }};
  WeightReader reader_{*gguf_, options_, arena_};
};

TEST_F(ExpertMatrix, EqualsTheSameWeightsAsAMatrix) {
  for (uint32_t i = 0; i < kExperts; ++i) {
    const auto expert =
        reader_.ExpertMatrix("blk.0.ffn_up_exps.weight", i, kExperts, kOutputs, kInputs);
    const auto plain = reader_.Matrix("expert." + std::to_string(i), kOutputs, kInputs);
    ASSERT_TRUE(expert.ok()) << expert.status().ToString();
    ASSERT_TRUE(plain.ok()) << plain.status().ToString();
    ASSERT_EQ(expert->size_bytes(), plain->size_bytes());
    EXPECT_TRUE(
        std::equal(expert->panel(0), expert->panel(0) + expert->size_bytes(), plain->panel(0)))
        << i;
  }
  ASSERT_EQ(progress_.size(), 2 * kExperts);
  EXPECT_EQ(progress_.back().bytes_done, progress_.back().bytes_total);
}

TEST_F(ExpertMatrix, RefusesAnotherNumberOrShape) {
  const auto error = [&](uint32_t experts, uint64_t outputs, uint64_t inputs) {
    return reader_.ExpertMatrix("blk.0.ffn_up_exps.weight", 0, experts, outputs, inputs).status();
  };
  for (const base::Status& status :
       {error(kExperts + 1, kOutputs, kInputs), error(kExperts, kOutputs * 3, kInputs),
        error(kExperts, kOutputs, kInputs / 2)}) {
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.field(), "blk.0.ffn_up_exps.weight");
    EXPECT_THAT(status.message(), HasSubstr("64 x 20 x 3"));
  }
  // A stack is no matrix with more outputs.
  EXPECT_EQ(
      reader_.Matrix("blk.0.ffn_up_exps.weight", kOutputs * kExperts, kInputs).status().code(),
      Code::kCorrupt);
}

TEST_F(ExpertMatrix, IsListedAsAStack) {
  std::vector<WeightSpec> specs = {
      {"blk.0.ffn_up_exps.weight", kOutputs, kInputs, false, kExperts}};
  for (uint32_t i = 0; i < kExperts; ++i) {
    specs.push_back({"expert." + std::to_string(i), kOutputs, kInputs});
  }
  EXPECT_TRUE(CheckWeights(*gguf_, specs, "test").ok());
  specs[0].experts = 2;
  EXPECT_EQ(CheckWeights(*gguf_, specs, "test").code(), Code::kCorrupt);
  specs[0].experts = 0;
  EXPECT_EQ(CheckWeights(*gguf_, specs, "test").code(), Code::kCorrupt);
}

// Of several pieces, one in the last: a scale of a Q8_0 block, and a plain number.
TEST(CheckValues, FindsTheOneThatIsNotFinite) {
  constexpr uint32_t kF32 = 0;
  constexpr uint64_t kRows = 300, kWidth = 1u << 16;  // more than are read at once
  tensor::ThreadPool pool({.threads = 2});
  const auto check = [&](uint32_t type, const std::string& bytes, uint64_t rows, uint64_t inputs) {
    GgufWriter writer;
    const uint64_t dims[] = {inputs, rows};
    const uint64_t one[] = {1};
    writer.Tensor("good", kF32, one, std::string(4, '\0'));
    writer.Tensor("judged", type, dims, bytes);
    const std::string file = writer.Finish();
    const auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    EXPECT_TRUE(gguf.ok()) << gguf.status().ToString();
    return CheckValues(**gguf, pool);
  };
  std::string blocks = RandomWeights(kQ8, kRows * kWidth, kWidth, 3);
  EXPECT_TRUE(check(kQ8, blocks, kRows, kWidth).ok());
  constexpr size_t kBlockBytes = 34;
  blocks[blocks.size() - kBlockBytes] = 0x01;  // F16: not a number
  blocks[blocks.size() - kBlockBytes + 1] = 0x7c;
  EXPECT_EQ(check(kQ8, blocks, kRows, kWidth).code(), Code::kCorrupt);
  EXPECT_EQ(check(kQ8, blocks, kRows, kWidth).field(), "judged");
  std::string plain = RandomWeights(kF32, 64, 32, 3);
  EXPECT_TRUE(check(kF32, plain, 2, 32).ok());
  plain[plain.size() - 1] = 0x7f;
  plain[plain.size() - 2] = static_cast<char>(0x80);  // F32: infinite or not a number
  EXPECT_EQ(check(kF32, plain, 2, 32).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace plumb::model
