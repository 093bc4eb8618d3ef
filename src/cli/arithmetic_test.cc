// cli/arithmetic_test.cc
// Which flags a model takes, by its family, and the names by which the others are refused.
#include "cli/arithmetic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/families/deepseek_runner.h"
#include "model/families/deepseek_v41_tiny.h"
#include "model/gguf.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

using testing::HasSubstr;

class ArithmeticFlagsTest : public testing::Test {
 protected:
  ArithmeticFlagsTest()
      : files_(model::DeepseekTinyFiles(model::MakeDeepseekTiny({.window = 160}))),
        deepseek_(model::AssembleDeepseek(files_)),
        bytes_(model::TinyModel({.tokenizer = false})),
        other_(*model::Gguf::Parse(std::as_bytes(std::span(bytes_)))) {}

  std::string Refused(const ArithmeticFlags& flags, const model::Checkpoint& checkpoint) {
    const base::Status status = ArithmeticOf(flags, checkpoint).status();
    EXPECT_TRUE(status.ok() || status.code() == base::Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr(status.field()));
    return status.field();
  }

  const model::HfFiles files_;
  const std::unique_ptr<model::DeepseekCheckpoint> deepseek_;
  const std::string bytes_;
  const std::unique_ptr<model::Gguf> other_;
};

TEST_F(ArithmeticFlagsTest, ChooseDeepseeksRoundingsAndReplay) {
  const auto usual = ArithmeticOf({.kv_format = "f16"}, *deepseek_);
  ASSERT_TRUE(usual.ok()) << usual.status().ToString();
  EXPECT_EQ(usual->roundings, model::Roundings::kKvq);
  EXPECT_EQ(usual->replay_rows, std::nullopt);
  EXPECT_EQ(ArithmeticOf({.numerics = "f32"}, *deepseek_)->roundings, model::Roundings::kF32);
  EXPECT_EQ(ArithmeticOf({.numerics = "full"}, *deepseek_)->roundings, model::Roundings::kFull);
  EXPECT_EQ(ArithmeticOf({.replay = "off"}, *deepseek_)->replay_rows, 0u);
  EXPECT_EQ(ArithmeticOf({.replay = "200"}, *deepseek_)->replay_rows, 200u);
}

TEST_F(ArithmeticFlagsTest, AreRefusedByNameWhereTheyMeanNothing) {
  EXPECT_EQ(Refused({.numerics = "bf16"}, *deepseek_), "--numerics");
  for (const char* replay : {"0", "-1", "1.5", "140x", "on", "99999999999"}) {
    EXPECT_EQ(Refused({.replay = replay}, *deepseek_), "--replay") << replay;
  }
  EXPECT_THAT(ArithmeticOf({.replay = "99999999999"}, *deepseek_).status().message(),
              HasSubstr("'99999999999' is neither off nor a number of rows from 1 to 4294967295"));
  EXPECT_EQ(Refused({.kv_format = "q8"}, *deepseek_), "--kv-format");
  EXPECT_EQ(Refused({.numerics = "kvq"}, *other_), "--numerics");
  EXPECT_EQ(Refused({.replay = "off"}, *other_), "--replay");
  EXPECT_EQ(ArithmeticOf({.kv_format = "q8"}, *other_)->kv_format, tensor::KvFormat::kQ8);
}

TEST_F(ArithmeticFlagsTest, TooFewRowsAreRefusedByTheFlagThatGivesThem) {
  tensor::ThreadPool pool({.threads = 1});
  const auto loaded = model::LoadModel(
      *deepseek_, {.pool = pool, .kernels = model::Fastest(), .replay_rows = 140, .progress = {}});
  ASSERT_FALSE(loaded.ok());
  const base::Status named = NamingReplay(loaded.status());
  EXPECT_EQ(named.field(), "--replay");
  EXPECT_THAT(named.message(), HasSubstr("--replay: 140 rows"));
  EXPECT_THAT(named.message(), HasSubstr("off (0) or at least 166"));
  EXPECT_TRUE(NamingReplay(base::OkStatus()).ok());
}

}  // namespace
}  // namespace plumb::cli
