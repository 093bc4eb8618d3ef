// cli/bench_report_test.cc
// The formulas of what a step costs, by hand for a small shape, and the reports made of a
// measurement: table, CSV, JSON, plot.
#include "cli/bench_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/bench.h"
#include "cli/bench_plot.h"
#include "model/families/deepseek_v41_need.h"
#include "model/families/deepseek_v41_tiny.h"

namespace plumb::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Two layers of two heads of 16; 1000 weights in the layers, 10 tokens of width 20.
ModelCost SmallCost() {
  ModelCost cost;
  cost.known = cost.quantised = true;
  cost.body_weights = 1000;
  cost.output_weights = 200;
  cost.multiply_adds_per_key = 2 * 2 * 2 * 16;
  cost.step_weight_bytes = 1200;
  cost.key_bytes = 256;
  return cost;
}

EngineBenchReport Report() {
  EngineBenchReport report;
  report.machine.cpu = "A <cpu> & co";
  report.probe.read_bytes_per_second = 1e6;
  report.probe.fma_per_second = 2e6;
  report.probe.dot8_per_second = 8e6;
  report.probe.dot16_per_second = 4e6;
  report.cost = SmallCost();
  report.model_id = "small";
  report.chunk_rows = 4;
  report.decode_tokens = 2;
  report.note = "commit\nabc";
  BenchPoint prefill;
  prefill.kind = BenchKind::kPrefill;
  prefill.prompt = prefill.tokens = 6;
  prefill.seconds = {0.5, 0.25, 0.125};
  BenchPoint decode;
  decode.kind = BenchKind::kDecode;
  decode.context = 9;
  decode.batch = 3;
  decode.tokens = 6;
  decode.seconds = {0.5, 0.25, 1.0};
  decode.read_rates = {1e6, 3e6, 1e6, 5e6};
  BenchPoint skipped = decode;
  skipped.batch = 32;
  skipped.seconds.clear();
  skipped.read_rates.clear();
  skipped.skipped = "needs 9 GB";
  report.points = {prefill, decode, skipped};
  return report;
}

TEST(BenchCost, OfAPromptCountsEveryRowsKeysAndOneRowOfLogits) {
  const Work work = PrefillWork(SmallCost(), 6, 4);
  EXPECT_EQ(work.operations, 2.0 * (6 * 1000 + 200 + (1 + 2 + 3 + 4 + 5 + 6) * 128));
  EXPECT_EQ(work.bytes, 2.0 * 1200 + (4 + 6) * 256);
}

TEST(BenchCost, OfDecodeReadsTheWeightsOnceAStepAndEverySequencesKeys) {
  const Work work = DecodeWork(SmallCost(), {.batch = 3, .context = 9, .steps = 2});
  EXPECT_EQ(work.operations, 2.0 * (2 * 3 * (1000 + 200) + 3 * (10 + 11) * 128));
  EXPECT_EQ(work.bytes, 2.0 * 1200 + 3 * (10 + 11) * 256);
}

TEST(BenchCost, ARowSeesNoMoreThanTheWindow) {
  ModelCost cost = SmallCost();
  cost.window = 4;
  EXPECT_EQ(DecodeWork(cost, {.batch = 1, .context = 9, .steps = 1}).bytes, 1200 + 4 * 256);
}

TEST(BenchCost, SubtractsTheTablesThatAreLookedUp) {
  model::ModelInfo info;
  info.parameters = 5000;
  info.weight_bytes = 4000;
  info.page_bytes = 128 * 64;
  model::Inspection inspection;
  inspection.config.embedding = 10;
  inspection.config.vocabulary = 100;
  inspection.types = {{"Q8_0", 1, 4000, 4000}, {"F32", 1, 1, 1}};
  inspection.memory.lookup_bytes = 700;
  const ModelCost own = CostOf({info, inspection, false});
  EXPECT_TRUE(own.known && own.quantised);
  EXPECT_EQ(own.body_weights, 3000u);
  EXPECT_EQ(own.output_weights, 1000u);
  EXPECT_EQ(own.step_weight_bytes, 3300u);
  EXPECT_EQ(own.key_bytes, 64u);
  inspection.config.tied_output = true;
  inspection.types.front().type = "BF16";
  const ModelCost tied = CostOf({info, inspection, false});
  EXPECT_FALSE(tied.quantised);
  EXPECT_EQ(tied.body_weights, 4000u);
  EXPECT_EQ(tied.step_weight_bytes, 3300u) << "rows held beside the packed ones";
  inspection.memory.lookup_bytes = 0;
  EXPECT_EQ(CostOf({info, inspection, false}).step_weight_bytes, 4000u) << "held once";
  EXPECT_FALSE(CostOf({info, inspection, true}).known) << "experts are not all used";
}

TEST(BenchCost, OfDeepseekIsWhatTheFamilyCounts) {
  const model::DeepseekConfig config =
      *model::ReadDeepseekConfig(model::MakeDeepseekTiny({}).config.dump(), "");
  model::ModelInfo info;
  info.replay_rows = 4;
  const ModelCost cost = CostOf({info, {}, /*experts=*/true, config});
  ASSERT_TRUE(cost.known);
  const auto work = [&](const model::DeepseekStep& step) {
    return model::DeepseekWorkOf(config, step);
  };
  const Work decode = DecodeWork(cost, {.batch = 3, .context = 9, .steps = 2});
  const auto first = work({.sequences = 3, .position = 9, .replay_from = 5});
  const auto second = work({.sequences = 3, .position = 10, .replay_from = 5});
  EXPECT_DOUBLE_EQ(decode.operations, first.operations + second.operations);
  EXPECT_DOUBLE_EQ(decode.bytes, first.bytes() + second.bytes());
  const Work prefill = PrefillWork(cost, 6, 4);
  const auto start = work({.position = 0, .rows = 4, .replay_from = 2, .logits_rows = 0});
  const auto end = work({.position = 4, .rows = 2, .replay_from = 2, .logits_rows = 1});
  EXPECT_DOUBLE_EQ(prefill.operations, start.operations + end.operations);
  EXPECT_DOUBLE_EQ(prefill.bytes, start.bytes() + end.bytes());
}

TEST(BenchShares, AreThoseOfTheMedianSample) {
  const EngineBenchReport report = Report();
  const Shares prefill = SharesOf(report, report.points[0]);
  const double operations = 2.0 * (6 * 1000 + 200 + 21 * 128);
  EXPECT_DOUBLE_EQ(prefill.fma, operations / 0.25 / 2e6);
  EXPECT_DOUBLE_EQ(prefill.dot8, operations / 0.25 / 8e6);
  EXPECT_DOUBLE_EQ(prefill.dot16, operations / 0.25 / 4e6);
  EXPECT_DOUBLE_EQ(prefill.read, (2.0 * 1200 + (4 + 6) * 256) / 0.25 / 1e6);
  EXPECT_EQ(SharesOf(report, report.points[2]).read, 0);
}

TEST(BenchShares, OfReadAreByWhatMemoryGaveBesideEachSample) {
  EngineBenchReport report = Report();
  const double bytes = 2.0 * 1200 + 63 * 256;
  // Rates of 2, 2 and 3 MB/s.
  EXPECT_THAT(ReadSharesOf(report, report.points[1]),
              testing::ElementsAre(testing::DoubleEq(bytes / 0.5 / 2e6),
                                   testing::DoubleEq(bytes / 0.25 / 2e6),
                                   testing::DoubleEq(bytes / 1.0 / 3e6)));
  EXPECT_DOUBLE_EQ(SharesOf(report, report.points[1]).read, bytes / 0.5 / 2e6);
  report.points[1].read_rates.clear();
  EXPECT_DOUBLE_EQ(SharesOf(report, report.points[1]).read, bytes / 0.5 / 1e6) << "the probe's";
  report.cost.known = false;
  EXPECT_THAT(ReadSharesOf(report, report.points[1]), testing::IsEmpty());
}

TEST(BenchTable, ShowsMedianRangeAndWhyAPointIsMissing) {
  const std::string table = BenchTable(Report());
  EXPECT_THAT(table, HasSubstr("24.0       12.0       48.0"));  // 6 tokens
  EXPECT_THAT(table, HasSubstr("12.0        6.0       24.0    0.0"));
  EXPECT_THAT(table, HasSubstr("skipped: needs 9 GB"));
  EXPECT_THAT(table, HasSubstr("A <cpu> & co"));
}

TEST(BenchCsv, HasALineForEverySampleAndOneLineComments) {
  const std::string csv = BenchCsv(Report());
  EXPECT_THAT(csv, HasSubstr("# note: commit?abc\n"));
  EXPECT_THAT(csv, HasSubstr("\nprefill,6,0,1,0,6,0.500000,12.000,"));
  EXPECT_THAT(csv, HasSubstr("\nprefill,6,0,1,2,6,0.125000,48.000,"));
  EXPECT_THAT(csv, HasSubstr(",0.500000,12.000,,0.0")) << "of a prompt the rate is not measured";
  EXPECT_THAT(csv, HasSubstr("\ndecode,0,9,3,0,6,0.500000,12.000,0.002,0.0185,"));
  EXPECT_THAT(csv, HasSubstr("\ndecode,0,9,3,2,6,1.000000,6.000,0.003,0.0062,"));
  EXPECT_THAT(csv, HasSubstr("\n# skipped decode,0,9,32: needs 9 GB\n"));
}

TEST(BenchJson, IsParsedBackWithEverySample) {
  const auto json = nlohmann::json::parse(BenchJson(Report()));
  EXPECT_EQ(json["points"].size(), 3u);
  EXPECT_EQ(json["points"][0]["tokens_per_second"], 24.0);
  EXPECT_EQ(json["points"][0]["seconds"].size(), 3u);
  EXPECT_EQ(json["points"][0]["read_bytes_per_second"].size(), 0u);
  EXPECT_EQ(json["points"][1]["read_bytes_per_second"].size(), 4u);
  EXPECT_EQ(json["points"][1]["read_shares"].size(), 3u);
  EXPECT_EQ(json["points"][1]["read_shares"][0], json["points"][1]["read_share"]);
  EXPECT_EQ(json["points"][2]["skipped"], "needs 9 GB");
  EXPECT_EQ(json["run"]["model"], "small");
}

TEST(BenchPlot, IsOneFileWithEscapedTextAndALineForEachContext) {
  const std::string svg = BenchPlot(Report());
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("A &lt;cpu&gt; &amp; co"));
  EXPECT_THAT(svg, HasSubstr("context 9"));
  EXPECT_THAT(svg, Not(HasSubstr("href")));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(BenchPlot, OfNothingIsStillAPicture) {
  EngineBenchReport report = Report();
  report.points = {report.points.back()};
  EXPECT_TRUE(BenchPlot(report).ends_with("</svg>\n"));
}

TEST(ParseIntegers, TakesACommaSeparatedListInRange) {
  const IntegerRange range{1, 100};
  EXPECT_EQ(*ParseIntegers("7", range), std::vector<uint32_t>{7});
  EXPECT_EQ(*ParseIntegers("1,100,1", range), (std::vector<uint32_t>{1, 100, 1}));
  for (const char* bad :
       {"", ",", "1,", ",1", "0", "101", "1 2", "1, 2", "-1", "1.5", "x", "99999999999999999999"}) {
    EXPECT_EQ(ParseIntegers(bad, range).status().code(), base::Code::kInvalidArgument) << bad;
  }
  std::string long_list = "1";
  for (size_t i = 1; i < kBenchListMax; ++i) long_list += ",1";
  EXPECT_TRUE(ParseIntegers(long_list, range).ok());
  EXPECT_FALSE(ParseIntegers(long_list + ",1", range).ok());
}

}  // namespace
}  // namespace plumb::cli
