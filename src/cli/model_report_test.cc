// cli/model_report_test.cc
// What `plumb model inspect` says of a DeepSeek-V4.1 folder, and only of one.
#include "cli/model_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/testing/scratch_folder.h"
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
  EXPECT_THAT(text, HasSubstr("tokens/s here at batch 1 (estimate"));
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
