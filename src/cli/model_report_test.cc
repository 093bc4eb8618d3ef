// cli/model_report_test.cc
// What `plumb model inspect` says of a DeepSeek-V4.1 folder, and only of one.
#include "cli/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/model_check.h"
#include "model/families/deepseek_v41_released.h"
#include "model/families/deepseek_v41_tiny.h"
#include "model/gguf.h"
#include "model/load.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(ModelReport, TellsWhatADeepseekFolderTakes) {
  const base::ScratchFolder folder;
  model::WriteFiles(folder.path(), model::DeepseekTinyFiles(model::MakeDeepseekTiny({})));
  const auto file = model::OpenModelFile(folder.path());
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  const auto inspection = model::Inspect(**file);
  ASSERT_TRUE(inspection.ok()) << inspection.status().ToString();
  const ModelReference reference{nullptr, folder.path(), "tiny"};
  const InspectView view{reference,
                         *inspection,
                         1024,
                         false,
                         {.bytes_per_second = 1e9, .memory_bytes = uint64_t{1} << 40}};
  const std::string text = InspectText(view);
  EXPECT_THAT(text, HasSubstr("deepseek_v41"));
  EXPECT_THAT(text, HasSubstr("mapped from the files"));
  EXPECT_THAT(text, HasSubstr("of n-gram tables"));
  EXPECT_THAT(text, HasSubstr("tokens/s here at batch 1, if nothing but reading"));
  EXPECT_THAT(text, HasSubstr("chat encoding is built in"));
  EXPECT_THAT(text, Not(HasSubstr("F8 weights become F32")));
  const auto json = nlohmann::json::parse(InspectJson(view));
  EXPECT_EQ(json["deepseek"]["token_bytes"], inspection->deepseek->token_bytes);
  EXPECT_EQ(json["memory"]["token_bytes"], inspection->deepseek->token_bytes);
  EXPECT_EQ(json["supported"], true);
  EXPECT_THAT(text, HasSubstr("runs here      yes\n"));
  const InspectView small{reference, *inspection, 1024, false, {.memory_bytes = 1024}};
  EXPECT_THAT(InspectText(small), HasSubstr("runs here      hardly: its"));
}

// People ask before they download hundreds of gigabytes.
TEST(ModelReport, TellsWhatTheReleasedModelTakesByItsConfigAlone) {
  const base::ScratchFolder folder;
  const ModelReference reference{nullptr, folder.path(), "flash"};
  ASSERT_TRUE(
      base::WriteFileAtomic(folder.File("config.json"), model::kDeepseekReleasedConfig).ok());
  const std::string index = R"({"weight_map": {"embed.weight": "model-1-of-2.safetensors"}})";
  for (const bool with_index : {false, true}) {
    if (with_index) {
      ASSERT_TRUE(base::WriteFileAtomic(folder.File("model.safetensors.index.json"), index).ok());
    }
    const auto found = Examine(reference);
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    const InspectView large{
        reference, *found, 1024, false, {.bytes_per_second = 130e9, .memory_bytes = 1ull << 40}};
    const std::string text = InspectText(large);
    EXPECT_THAT(text, HasSubstr("(config.json without weights)"));
    EXPECT_THAT(text, HasSubstr("299 GB mapped from the files"));
    EXPECT_THAT(text, HasSubstr("890 B a token"));
    EXPECT_THAT(text, HasSubstr("about 9.97 tokens/s here"));
    EXPECT_THAT(text, HasSubstr("runs here      not yet: the folder has no weights, or not all of "
                                "them; with them yes\n"));
    EXPECT_THAT(text, Not(HasSubstr("0 tensors")));
    EXPECT_THAT(text, Not(HasSubstr("quantisation")));
    const InspectView small{reference, *found, 1024, false, {.memory_bytes = 1024}};
    EXPECT_THAT(InspectText(small), HasSubstr("not all of them; with them hardly: its"));
    const auto json = nlohmann::json::parse(InspectJson(large));
    EXPECT_EQ(json["supported"], false);
    EXPECT_EQ(json["deepseek"]["token_bytes"], 890);
    EXPECT_FALSE(model::OpenModelFile(folder.path()).ok()) << "nothing computes without weights";
  }
}

TEST(ModelReport, AWrongConfigIsAnErrorWithoutWeightsToo) {
  const base::ScratchFolder folder;
  const ModelReference reference{nullptr, folder.path(), "flash"};
  auto config = nlohmann::json::parse(model::kDeepseekReleasedConfig);
  config["text_config"]["hidden_size"] = 7;
  ASSERT_TRUE(base::WriteFileAtomic(folder.File("config.json"), config.dump()).ok());
  EXPECT_FALSE(Examine(reference).ok());
}

TEST(ModelReport, ADamagedFileOfWeightsIsAnErrorNotAMissingOne) {
  const base::ScratchFolder folder;
  ASSERT_TRUE(
      base::WriteFileAtomic(folder.File("config.json"), model::kDeepseekReleasedConfig).ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder.File("model.safetensors"), "torn").ok());
  EXPECT_EQ(Examine({nullptr, folder.path(), "flash"}).status().code(), base::Code::kCorrupt);
}

TEST(ModelReport, ListsWhatComesWithPlumb) {
  const ModelStore store("/cache", ShippedFolders(ThisProgram()));
  EXPECT_THAT(ListText(store), HasSubstr("(comes with plumb)"));
  bool found = false;
  for (const nlohmann::json& row : nlohmann::json::parse(ListJson(store))) {
    EXPECT_EQ(row["comes_with_plumb"], row["alias"] == "v41-mini");
    if (row["alias"] != "v41-mini") continue;
    found = true;
    EXPECT_EQ(row["present"], true);
    EXPECT_EQ(row["path"], store.PathOf(*FindInCatalogue("v41-mini")));
  }
  EXPECT_TRUE(found);
}

TEST(ModelReport, SaysNothingOfThatForOtherFamilies) {
  const std::string bytes = model::TinyModel({});
  const auto gguf = model::Gguf::Parse(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
  const auto inspection = model::Inspect(**gguf);
  ASSERT_TRUE(inspection.ok()) << inspection.status().ToString();
  const ModelReference reference{nullptr, "model.gguf", "tiny"};
  const InspectView view{reference, *inspection, 1024, false};
  EXPECT_THAT(InspectText(view), Not(HasSubstr("tokens/s")));
  EXPECT_FALSE(nlohmann::json::parse(InspectJson(view)).contains("deepseek"));
}

}  // namespace
}  // namespace plumb::cli
