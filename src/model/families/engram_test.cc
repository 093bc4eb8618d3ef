// model/families/engram_test.cc: the released model's primes and multipliers, which its table sizes
// and an independent publication confirm; then rows, by the formula written out.
#include "model/families/engram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <numeric>
#include <vector>

#include "model/families/deepseek_v41_released.h"
#include "model/families/deepseek_v41_tiny.h"

namespace plumb::model {
namespace {

using base::TokenId;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

std::vector<uint32_t> Classes(const DeepseekConfig& config) {
  std::vector<uint32_t> classes(config.vocabulary);
  for (uint32_t id = 0; id < classes.size(); ++id) classes[id] = id * 7 % config.engram_classes;
  return classes;
}

std::vector<uint64_t> RowsOf(const EngramAddresses& addresses, uint32_t place,
                             std::vector<TokenId> recent) {
  std::vector<uint64_t> rows(addresses.rows_per_token());
  addresses.RowsOf(place, recent, rows);
  return rows;
}

TEST(Engram, HasTheReleasedModelsMultipliersAndPrimes) {
  const DeepseekConfig config = *ReadDeepseekConfig(kDeepseekReleasedConfig, "");
  const auto addresses = EngramAddresses::Create(config, Classes(config));
  ASSERT_TRUE(addresses.ok()) << addresses.status().ToString();
  EXPECT_EQ(addresses->rows_per_token(), 24u);
  EXPECT_EQ(addresses->ngram_max(), 4u);
  EXPECT_THAT(addresses->multipliers(0),
              ElementsAre(76632096046245, 4839876093313, 35959672319349, 73987337458391));
  EXPECT_THAT(addresses->multipliers(1),
              ElementsAre(67716810739261, 51510806800915, 30921347202721, 82619226485591));
  EXPECT_THAT(
      addresses->primes(0),
      ElementsAre(16000057, 16000079, 16000081, 16000097, 16000121, 16000129, 16000133, 16000183,
                  16000189, 16000207, 16000211, 16000253, 16000277, 16000289, 16000307, 16000321,
                  16000339, 16000381, 16000393, 16000399, 16000403, 16000409, 16000447, 16000463));
  EXPECT_THAT(
      addresses->primes(1),
      ElementsAre(16000477, 16000487, 16000499, 16000507, 16000511, 16000573, 16000609, 16000627,
                  16000667, 16000669, 16000693, 16000697, 16000711, 16000729, 16000759, 16000769,
                  16000781, 16000799, 16000813, 16000819, 16000841, 16000877, 16000879, 16000889));
}

// The largest class times the largest multiplier stays an int64, so that engines which compute in
// signed numbers agree.
TEST(Engram, ProductsOfTheReleasedModelFitInt64) {
  const DeepseekConfig config = *ReadDeepseekConfig(kDeepseekReleasedConfig, "");
  const EngramAddresses addresses = *EngramAddresses::Create(config, Classes(config));
  for (uint32_t place = 0; place < 2; ++place) {
    for (const int64_t multiplier : addresses.multipliers(place)) {
      int64_t product = 0;
      EXPECT_FALSE(__builtin_mul_overflow(multiplier, int64_t{99091}, &product));
      EXPECT_EQ(multiplier % 2, 1);
    }
  }
}

TEST(Engram, RowsAreHashesModuloPrimesEachInItsPartOfTheTable) {
  const DeepseekConfig config = *ReadDeepseekConfig(kDeepseekReleasedConfig, "");
  const std::vector<uint32_t> classes = Classes(config);
  const EngramAddresses addresses = *EngramAddresses::Create(config, classes);
  const std::vector<TokenId> recent = {TokenId{129279}, TokenId{5}, TokenId{99000}, TokenId{17}};
  for (uint32_t place = 0; place < 2; ++place) {
    std::vector<uint64_t> expected;
    int64_t hash = 0;
    uint64_t begin = 0;
    for (uint32_t n = 1; n <= 4; ++n) {
      hash ^= int64_t{classes[base::Index(recent[n - 1])]} * addresses.multipliers(place)[n - 1];
      for (uint32_t head = 0; head < 8 && n > 1; ++head) {
        const auto prime = static_cast<int64_t>(addresses.primes(place)[(n - 2) * 8 + head]);
        expected.push_back(begin + static_cast<uint64_t>(hash % prime));
        begin += static_cast<uint64_t>(prime);
      }
    }
    EXPECT_EQ(begin, config.engram_rows[place]);
    EXPECT_THAT(RowsOf(addresses, place, recent), ElementsAreArray(expected));
  }
}

TEST(Engram, BeforeTheBeginningStandsThePaddingToken) {
  DeepseekTinySpec spec;
  spec.engram_ngram_max = 4;
  const DeepseekTiny tiny = MakeDeepseekTiny(spec);
  const DeepseekConfig config = *ReadDeepseekConfig(tiny.config.dump(), "");
  const EngramAddresses addresses = *EngramAddresses::Create(config, tiny.token_map);
  const TokenId a{11}, b{30}, pad{config.engram_pad_token};
  EXPECT_EQ(RowsOf(addresses, 0, {a}), RowsOf(addresses, 0, {a, pad, pad, pad}));
  EXPECT_EQ(RowsOf(addresses, 0, {a, b}), RowsOf(addresses, 0, {a, b, pad, pad}));
  EXPECT_NE(RowsOf(addresses, 0, {a, b}), RowsOf(addresses, 0, {b, a}));
}

TEST(Engram, ATableOfAnotherSizeIsRefused) {
  DeepseekConfig config = *ReadDeepseekConfig(kDeepseekReleasedConfig, "");
  ++config.engram_rows[1];
  const auto addresses = EngramAddresses::Create(config, Classes(config));
  ASSERT_FALSE(addresses.ok());
  EXPECT_EQ(addresses.status().code(), base::Code::kCorrupt);
  EXPECT_THAT(addresses.status().message(), HasSubstr("384016682"));
  EXPECT_THAT(addresses.status().field(), HasSubstr("engram_num_embeddings"));
}

// By NumPy: row ids of the first five tokens of the reference's prompt, with its classes.
TEST(Engram, EqualsTheReferenceOnASmallModel) {
  DeepseekTinySpec spec;
  spec.vocabulary = 512;
  spec.ratios = {0, 0, 2, 2, 2, 1};
  spec.kv_sources = {2, 5};
  spec.index_sources = {2, 5};
  spec.candidate_source = kNoLayer;
  spec.engram_layers = {1, 4};
  spec.engram_ngram_max = 4;
  spec.engram_bucket = 100;
  spec.engram_classes = 400;
  const DeepseekConfig config = *ReadDeepseekConfig(MakeDeepseekTiny(spec).config.dump(), "");
  EXPECT_THAT(config.engram_rows, ElementsAre(660, 864));
  std::vector<uint32_t> classes(512);
  std::iota(classes.begin(), classes.begin() + 400, 0u);
  classes[463] = 187;
  classes[439] = 351;
  const EngramAddresses addresses = *EngramAddresses::Create(config, classes);
  EXPECT_THAT(addresses.multipliers(0), ElementsAre(18984069153536581, 1198982504596559,
                                                    8908289623672409, 18328883108567563));
  EXPECT_THAT(addresses.multipliers(1), ElementsAre(20378323963399201, 1248012217874625,
                                                    18246170261325197, 4695688200551669));
  const TokenId t0{463}, t1{307}, t2{336}, t3{439}, t4{284};
  EXPECT_THAT(RowsOf(addresses, 0, {t0}), ElementsAre(17, 186, 217, 414, 484, 655));
  EXPECT_THAT(RowsOf(addresses, 0, {t1, t0}), ElementsAre(94, 141, 271, 333, 519, 652));
  EXPECT_THAT(RowsOf(addresses, 0, {t2, t1, t0}), ElementsAre(97, 171, 220, 417, 512, 541));
  EXPECT_THAT(RowsOf(addresses, 0, {t3, t2, t1, t0}), ElementsAre(81, 128, 297, 341, 528, 572));
  EXPECT_THAT(RowsOf(addresses, 0, {t4, t3, t2, t1}), ElementsAre(91, 158, 297, 366, 466, 624));
  EXPECT_THAT(RowsOf(addresses, 1, {t0}), ElementsAre(68, 136, 404, 473, 600, 774));
  EXPECT_THAT(RowsOf(addresses, 1, {t4, t3, t2, t1}), ElementsAre(2, 138, 355, 415, 622, 778));
}

// ---- the table in its file ----

TEST(Engram, ARowHasItsOwnCodesAndScales) {
  std::vector<std::byte> codes(5 * 64), scales(5 * 2);
  const EngramTable table{codes.data(), scales.data(), 5, 64};
  const tensor::BlockMatrix row = table.Row(3);
  EXPECT_EQ(row.outputs, 1u);
  EXPECT_EQ(row.inputs, 64u);
  EXPECT_EQ(row.weights, codes.data() + 3 * 64);
  EXPECT_EQ(row.scales, scales.data() + 3 * 2);
  EXPECT_EQ(table.bytes(), 5u * 66);
}

// The released table: rows lie beyond 2^32 bytes. The memory is reserved, never written.
TEST(Engram, PrefetchChangesNothingAtAnyRow) {
  constexpr uint64_t kRows = 384006168, kWidth = 256;
  constexpr uint64_t kBytes = kRows * (kWidth + kWidth / 32);
  void* memory =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const auto* codes = static_cast<const std::byte*>(memory);
  const EngramTable table{codes, codes + kRows * kWidth, kRows, kWidth};
  const std::vector<uint64_t> rows = {0, kRows - 1, 77, uint64_t{1} << 28, 77};
  PrefetchRows(table, rows);
  for (const uint64_t row : rows) {
    EXPECT_EQ(*table.Row(row).weights, std::byte{0}) << row;
    EXPECT_EQ(*table.Row(row).scales, std::byte{0}) << row;
  }
  EXPECT_EQ(munmap(memory, kBytes), 0);
}

}  // namespace
}  // namespace plumb::model
