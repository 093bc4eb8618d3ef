// cli/model_logits_test.cc
// What counts as ids, and the file that comes out, read back by hand.
#include "cli/model_logits.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "base/disk.h"
#include "model/families/deepseek_v41_tiny.h"
#include "model/hf_writer.h"
#include "model/load.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

using base::TokenId;

TEST(ParseIds, TakesJsonArraysAndPlainNumbers) {
  const std::vector<TokenId> wanted = {TokenId{3}, TokenId{0}, TokenId{41}};
  for (const char* text : {"[3,0,41]", " [ 3 , 0,\n41 ]\n", "3 0 41", "\n3\t0\r\n41\n"}) {
    const auto ids = ParseIds(text, 42);
    ASSERT_TRUE(ids.ok()) << text << ": " << ids.status().ToString();
    EXPECT_EQ(*ids, wanted) << text;
  }
}

TEST(ParseIds, RefusesEverythingElse) {
  for (const char* text : {"", " ", "[]", "[1", "[1,]", "[1 2]", "1,2", "1 x", "-1", "1.5", "[1]2",
                           "42", "99999999999", "[[1]]", "1x"}) {
    const auto ids = ParseIds(text, 42);
    ASSERT_FALSE(ids.ok()) << text;
    EXPECT_EQ(ids.status().code(), base::Code::kInvalidArgument) << text;
    EXPECT_EQ(ids.status().field(), "--ids") << text;
  }
}

TEST(NpyHeader, IsAlignedAndSaysTheShape) {
  const std::string header = NpyHeader(3, 129280);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<unsigned char>(header[8]) + 256u * static_cast<unsigned char>(header[9]),
            header.size() - 10);
  EXPECT_NE(header.find("'shape': (3, 129280), }"), std::string::npos);
  EXPECT_EQ(header.back(), '\n');
}

class Logits : public testing::Test {
 protected:
  Logits() {
    std::filesystem::create_directories(folder_);
    model_ = (folder_ / "tiny.gguf").string();
    EXPECT_TRUE(base::WriteFileAtomic(model_, model::TinyModel({.tokenizer = false})).ok());
    EXPECT_TRUE(base::WriteFileAtomic((folder_ / "ids").string(), "[1, 2, 3, 4, 5]").ok());
    settings_.ids = (folder_ / "ids").string();
    settings_.output = (folder_ / "out.npy").string();
    settings_.threads = 1;
  }
  base::Status Run() { return RunLogits(settings_, {nullptr, model_, "tiny"}); }
  std::string Output() { return *base::ReadFile(settings_.output, 1 << 24); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / "plumb_model_logits";
  std::string model_;
  LogitsSettings settings_;
};

TEST_F(Logits, AreTheSameFileHoweverManyRowsAStepHas) {
  ASSERT_TRUE(Run().ok()) << Run().ToString();
  const std::string whole = Output();
  EXPECT_EQ(whole.size(), NpyHeader(5, 320).size() + 5 * 320 * sizeof(float));
  EXPECT_EQ(whole.substr(0, 128), NpyHeader(5, 320));
  settings_.rows = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(Output(), whole);
}

// The usual context of a server is less than what some models have.
TEST_F(Logits, MayHaveTheModelsWholeContextAndNoMore) {
  constexpr uint32_t kContext = model::kContextDefaultMax + 2;
  ASSERT_TRUE(
      base::WriteFileAtomic(model_, model::TinyModel({.context = kContext, .tokenizer = false}))
          .ok());
  std::string ids;
  for (uint32_t i = 0; i <= kContext; ++i) ids += "7 ";
  ASSERT_TRUE(base::WriteFileAtomic(settings_.ids, ids).ok());
  const base::Status status = Run();
  EXPECT_EQ(status.field(), "--ids");
  EXPECT_EQ(status.message(), "--ids: 131075 ids are more than the model's context of 131074");
}

TEST_F(Logits, RefuseFlagsThatWouldDoNothing) {
  settings_.replay = "200";
  EXPECT_EQ(Run().field(), "--replay");
  settings_.replay = "0";
  EXPECT_EQ(Run().field(), "--replay");
  settings_.replay = "off";
  settings_.numerics = "bf16";
  EXPECT_EQ(Run().field(), "--numerics");
}

TEST_F(Logits, TakeThePlaceOfNothingButLogits) {
  ASSERT_TRUE(Run().ok());
  const std::string first = Output();
  ASSERT_TRUE(Run().ok()) << "a .npy file is replaced";
  const std::string output = settings_.output;
  for (const std::string& taken : {model_, settings_.ids, folder_.string()}) {
    settings_.output = taken;
    EXPECT_EQ(Run().field(), "--out") << taken;
  }
  settings_.output = (folder_ / "elsewhere").string();
  const std::string grows = settings_.output + ".computing";
  ASSERT_TRUE(base::WriteFileAtomic(grows, "somebody's").ok());
  EXPECT_EQ(Run().field(), "--out");
  EXPECT_EQ(*base::ReadFile(grows, 100), "somebody's");
  EXPECT_FALSE(std::filesystem::exists(settings_.output));
  settings_.output = output;
  EXPECT_TRUE(Run().ok()) << "model and ids are whole";
  EXPECT_EQ(Output(), first);
}

TEST_F(Logits, ThatAreNotFiniteAreAnErrorAndNoFile) {
  model::DeepseekTiny tiny = model::MakeDeepseekTiny({});
  std::string& scales = tiny.Tensor("layers.3.attn.wq_a.scale").bytes;
  scales.assign(scales.size(), '\xfe');
  std::string& embedding = tiny.Tensor("embed.weight").bytes;
  embedding.assign(embedding.size(), '\x7f');
  model_ = (folder_ / "overflowing").string();
  std::filesystem::create_directories(model_);
  model::WriteFiles(model_, model::DeepseekTinyFiles(tiny));
  std::filesystem::remove(settings_.output);
  const base::Status status = Run();
  EXPECT_EQ(status.code(), base::Code::kCorrupt) << status.ToString();
  EXPECT_NE(status.message().find("not finite"), std::string::npos) << status.message();
  EXPECT_FALSE(std::filesystem::exists(settings_.output));
  EXPECT_FALSE(std::filesystem::exists(settings_.output + ".computing"));
}

}  // namespace
}  // namespace plumb::cli
