// cli/deepseek_report_test.cc
// The estimate, and that what does not fit is said.
#include "cli/deepseek_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace plumb::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

model::DeepseekNeed Need() {
  return {.weight_bytes = 280'000'000'000,
          .table_bytes = 200'000'000'000,
          .expert_bytes = 270'000'000'000,
          .active_parameters = 16'000'000'000,
          .active_weight_bytes = 13'000'000'000,
          .table_row_bytes = 12'672,
          .token_bytes = 890,
          .page_bytes = 113'920,
          .state_bytes = 2'900'000,
          .checkpoint_bytes = 1'351'692};
}

std::string Text(const ReportLines& lines) {
  std::string text;
  for (const auto& [label, value] : lines) text += label + " " + value + "\n";
  return text;
}

TEST(DeepseekReport, EstimatesTheSpeedFromWhatATokenReads) {
  EXPECT_DOUBLE_EQ(DecodeEstimate(Need(), {.bytes_per_second = 26e9, .memory_bytes = 0}), 2.0);
  const std::string text =
      Text(DeepseekLines(Need(), {.bytes_per_second = 26e9, .memory_bytes = uint64_t{1} << 40}));
  EXPECT_THAT(text, HasSubstr("about 2 tokens/s here at batch 1, if nothing but reading took time "
                              "(estimate: 13.0 GB a token at 26.0 GB/s, the best of 8 readings"));
  EXPECT_THAT(text, HasSubstr("890 B a token"));
  EXPECT_THAT(text, HasSubstr("200 GB of n-gram tables"));
  EXPECT_THAT(text, Not(HasSubstr("do not hold")));
  EXPECT_THAT(text, Not(HasSubstr("draft")));
}

TEST(DeepseekReport, SaysWhenTheWeightsDoNotFitOrNothingWasMeasured) {
  EXPECT_THAT(Text(DeepseekLines(Need(), {.bytes_per_second = 26e9, .memory_bytes = 16u << 20})),
              HasSubstr("do not hold the weights"));
  EXPECT_THAT(Text(DeepseekLines(Need(), {})), HasSubstr("not estimated"));
}

TEST(DeepseekReport, WeightsAreHeldWhereMemoryIsNotLess) {
  EXPECT_FALSE(HeldInMemory(Need(), {.memory_bytes = 279'999'999'999}));
  EXPECT_TRUE(HeldInMemory(Need(), {.memory_bytes = 280'000'000'000}));
  EXPECT_TRUE(HeldInMemory(Need(), {})) << "unknown";
}

TEST(DeepseekReport, JsonHoldsTheSameNumbers) {
  const auto json = DeepseekJson(Need(), {.bytes_per_second = 26e9, .memory_bytes = 0});
  EXPECT_EQ(json["token_bytes"], 890);
  EXPECT_EQ(json["checkpoint_bytes"], 1'351'692);
  EXPECT_EQ(json["tokens_per_second_estimate"], 2.0);
  EXPECT_EQ(json["held_in_memory"], true);
}

TEST(DeepseekReport, MeasuresThisMachine) {
  const auto machine = MeasureReads();
  ASSERT_TRUE(machine.ok()) << machine.status().ToString();
  EXPECT_GT(machine->bytes_per_second, 1e8);
}

}  // namespace
}  // namespace plumb::cli
