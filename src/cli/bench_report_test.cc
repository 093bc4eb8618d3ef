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
  BenchPoint skipped = decode;
  skipped.batch = 32;
  skipped.seconds.clear();
  skipped.skipped = "needs 9 GB";
  report.points = {prefill, decode, skipped};
  report.read_rates = {2e6, 4e6, 3e6, 50e6, 1e6};
  return report;
}

Shares SharesAt(const EngineBenchReport& report, size_t point) {
  return SharesOf(report, report.points[point], ReadBandwidthOf(report));
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
  const Shares prefill = SharesAt(report, 0);
  const double operations = 2.0 * (6 * 1000 + 200 + 21 * 128);
  EXPECT_DOUBLE_EQ(prefill.fma, operations / 0.25 / 2e6);
  EXPECT_DOUBLE_EQ(prefill.dot8, operations / 0.25 / 8e6);
  EXPECT_DOUBLE_EQ(prefill.dot16, operations / 0.25 / 4e6);
  EXPECT_DOUBLE_EQ(prefill.read, (2.0 * 1200 + (4 + 6) * 256) / 0.25 / 3e6);
  EXPECT_EQ(SharesAt(report, 2).read, 0);
}

TEST(BenchShares, OfReadAreByTheMedianOfWhatMemoryGaveInTheRun) {
  EngineBenchReport report = Report();
  const double bytes = 2.0 * 1200 + 63 * 256;
  EXPECT_EQ(BytesOf(report, report.points[1]), bytes);
  // Of the median sample, by the median of all that memory gave: one reading of 50 changes nothing.
  EXPECT_EQ(ReadBandwidthOf(report).median, 3e6);
  EXPECT_DOUBLE_EQ(SharesAt(report, 1).read, bytes / 0.5 / 3e6);
  EXPECT_EQ(ReadBandwidthOf(report).best, 50e6);
  EXPECT_DOUBLE_EQ(SharesAt(report, 1).read_of_best, bytes / 0.5 / 50e6);
}

TEST(BenchShares, OfReadAreByTheProbeWhereMemoryWasNotReadBetweenSamples) {
  EngineBenchReport report = Report();
  const double bytes = 2.0 * 1200 + 63 * 256;
  report.read_rates = {0.5e6, 0.25e6};
  EXPECT_EQ(ReadBandwidthOf(report).best, 1e6) << "the probe's was better";
  report.read_rates.clear();
  EXPECT_EQ(ReadBandwidthOf(report).median, 1e6);
  EXPECT_DOUBLE_EQ(SharesAt(report, 1).read, bytes / 0.5 / 1e6);
  report.cost.known = false;
  EXPECT_EQ(BytesOf(report, report.points[1]), 0);
  EXPECT_EQ(SharesAt(report, 1).read, 0);
}

// The noise that made a share of one sample by what memory gave beside it useless: neighbours take
// the memory for one reading in three, and one sample of decode in five is slow.
TEST(BenchShares, OfReadIsTheSameWhereEveryThirdReadingAndEveryFifthSampleAreDisturbed) {
  EngineBenchReport quiet = Report();
  quiet.points[1].seconds.assign(15, 0.5);
  quiet.read_rates.assign(96, 40e6);
  EngineBenchReport disturbed = quiet;
  for (size_t i = 0; i < 96; i += 3) disturbed.read_rates[i] = 15e6;
  for (size_t i = 0; i < 15; i += 5) disturbed.points[1].seconds[i] = 0.9;
  EXPECT_EQ(SharesAt(disturbed, 1).read, SharesAt(quiet, 1).read);
}

TEST(BenchTable, ShowsMedianRangeAndWhyAPointIsMissing) {
  const std::string table = BenchTable(Report());
  EXPECT_THAT(table, HasSubstr("24.0       12.0       48.0"));  // 6 tokens
  EXPECT_THAT(table, HasSubstr("12.0        6.0       24.0    0.0"));
  EXPECT_THAT(table, HasSubstr("skipped: needs 9 GB"));
  EXPECT_THAT(table, HasSubstr("the median of 5 readings"));
  EXPECT_THAT(table, HasSubstr("A <cpu> & co"));
}

TEST(BenchCsv, HasALineForEverySampleAndOneLineComments) {
  const std::string csv = BenchCsv(Report());
  EXPECT_THAT(csv, HasSubstr("# note: commit?abc\n"));
  EXPECT_THAT(csv, HasSubstr("\nprefill,6,0,1,0,6,0.500000,12.000,"));
  EXPECT_THAT(csv, HasSubstr("\nprefill,6,0,1,2,6,0.125000,48.000,"));
  // 18,528 bytes, by half a second, three and fifty millions.
  EXPECT_THAT(csv, HasSubstr("\ndecode,0,9,3,0,6,0.500000,12.000,0.000,0.0124,0.0007,"));
  EXPECT_THAT(csv, HasSubstr("\ndecode,0,9,3,2,6,1.000000,6.000,0.000,0.0062,0.0004,"));
  EXPECT_THAT(csv, HasSubstr("\nmemory,,,,0,,,,0.002,,,,,\nmemory,,,,1,,,,0.004,,,,,\n"));
  EXPECT_THAT(csv, HasSubstr("\nmemory,,,,4,,,,0.001,,,,,\n"));
  EXPECT_THAT(csv, HasSubstr("\n# skipped decode,0,9,32: needs 9 GB\n"));
}

TEST(BenchJson, IsParsedBackWithEverySample) {
  const auto json = nlohmann::json::parse(BenchJson(Report()));
  EXPECT_EQ(json["points"].size(), 3u);
  EXPECT_EQ(json["points"][0]["tokens_per_second"], 24.0);
  EXPECT_EQ(json["points"][0]["seconds"].size(), 3u);
  EXPECT_EQ(json["points"][1]["bytes"], 2.0 * 1200 + 63 * 256);
  EXPECT_EQ(json["memory"]["read_bytes_per_second"].size(), 5u);
  EXPECT_EQ(json["memory"]["median"], 3e6);
  EXPECT_EQ(json["memory"]["best"], 50e6);
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
