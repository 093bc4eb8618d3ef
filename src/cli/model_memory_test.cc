// cli/model_memory_test.cc
// The line between what fits and what does not, to the byte, and what counts.
#include "cli/model_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/gguf.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

using base::Code;
using testing::HasSubstr;
using testing::Not;

model::Inspection Tiny() {
  const std::string bytes = model::TinyModel({});
  const auto gguf = model::Gguf::Parse(std::as_bytes(std::span(bytes)));
  CHECK(gguf.ok());
  auto inspection = model::Inspect(**gguf);
  CHECK(inspection.ok());
  return *std::move(inspection);
}

TEST(ModelMemory, WhatFitsExactlyIsLoadedAndAByteMoreIsNot) {
  const model::Inspection tiny = Tiny();
  ASSERT_GT(tiny.memory.weight_bytes, 0u);
  const uint64_t least =
      tiny.memory.weight_bytes + tiny.memory.workspace_bytes + tiny.memory.page_bytes;
  EXPECT_EQ(BytesToServe(tiny, 0), least);
  EXPECT_TRUE(CheckModelMemory(tiny, 0, least).ok());
  const base::Status status = CheckModelMemory(tiny, 0, least - 1);
  EXPECT_EQ(status.code(), Code::kOverloaded);
  EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
  EXPECT_EQ(CheckModelMemory(tiny, 0, 0).code(), Code::kOverloaded);
}

TEST(ModelMemory, TheMessageHasBothNumbers) {
  model::Inspection large = Tiny();
  large.memory = {.weight_bytes = 3'000'000'000, .page_bytes = 1000, .workspace_bytes = 250'000};
  const base::Status status = CheckModelMemory(large, 1'230'000'000, 1'500'000'000);
  EXPECT_THAT(status.message(), HasSubstr("it needs 4.23 GB of memory (3.00 GB for weights"));
  EXPECT_THAT(status.message(), HasSubstr("1.50 GB are available"));
  EXPECT_THAT(status.message(), HasSubstr("less --kv-memory"));
  EXPECT_THAT(CheckModelMemory(large, 0, 1).message(), Not(HasSubstr("--kv-memory")))
      << "which nobody gave";
}

TEST(ModelMemory, KeysAndValuesAskedForCount) {
  const model::Inspection tiny = Tiny();
  const uint64_t without = BytesToServe(tiny, 0) - tiny.memory.page_bytes;
  EXPECT_EQ(BytesToServe(tiny, 1000), without + 1000);
  EXPECT_TRUE(CheckModelMemory(tiny, 1000, without + 1000).ok());
  EXPECT_FALSE(CheckModelMemory(tiny, 1001, without + 1000).ok());
}

TEST(ModelMemory, MappedWeightsMayBeLargerThanMemory) {
  model::Inspection mapped = Tiny();
  mapped.deepseek = model::DeepseekNeed{};
  mapped.memory.weight_bytes = uint64_t{1} << 40;
  mapped.memory.state_bytes = 77;
  EXPECT_EQ(BytesToServe(mapped, 0), mapped.memory.workspace_bytes + mapped.memory.page_bytes + 77);
}

}  // namespace
}  // namespace plumb::cli
