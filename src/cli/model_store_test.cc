// cli/model_store_test.cc
// Where models lie that come with plumb, and what is said of them.
#include "cli/model_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/content_hash.h"

namespace plumb::cli {
namespace {

using base::Code;

constexpr CatalogueEntry kShipped = {.alias = "mini",
                                     .description = "",
                                     .file = "",
                                     .licence = "X",
                                     .sha256 = "",
                                     .size = 1,
                                     .shipped = true};

TEST(ShippedFolders, LieBesideTheProgramAndWhereItIsInstalled) {
  EXPECT_EQ(
      ShippedFolders("/opt/p/bin/plumb"),
      (std::vector<std::string>{"/opt/p/bin/share/plumb/models", "/opt/p/share/plumb/models"}));
  EXPECT_TRUE(ShippedFolders("").empty());
}

TEST(ModelStore, FindsWhatIsShippedInTheFirstFolderThatHasIt) {
  const base::ScratchFolder scratch;
  const std::string first = scratch.File("a"), second = scratch.File("b");
  const ModelStore store(scratch.File("cache"), {first, second});
  EXPECT_FALSE(store.Has(kShipped));
  EXPECT_EQ(store.PathOf(kShipped), second + "/mini");
  const base::Status missing = store.Missing(kShipped);
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_NE(missing.message().find("install plumb again"), std::string::npos);
  std::filesystem::create_directories(second + "/mini");
  EXPECT_FALSE(store.Has(kShipped)) << "an empty folder is no model";
  ASSERT_TRUE(base::WriteFileAtomic(second + "/mini/config.json", "{}").ok());
  EXPECT_TRUE(store.Has(kShipped));
  std::filesystem::create_directories(first + "/mini");
  EXPECT_EQ(store.PathOf(kShipped), first + "/mini");
}

TEST(ModelStore, WithoutAPlaceForWhatIsShippedHasNone) {
  EXPECT_FALSE(ModelStore("/cache").Has(kShipped));
}

TEST(ModelStore, ABuildHasTheShippedModelAsItIsInTheCatalogue) {
  const ModelStore store("/cache", ShippedFolders(ThisProgram()));
  const auto reference = ResolveModel(store, "v41-mini");
  ASSERT_TRUE(reference.ok());
  ASSERT_NE(reference->entry, nullptr);
  ASSERT_TRUE(store.Has(*reference->entry)) << store.Missing(*reference->entry).message();
  EXPECT_EQ(reference->id, "v41-mini");
  uint64_t size = 0;
  const auto hash = ContentHash(
      reference->path, {.on_start = {}, .on_progress = [&](uint64_t done) { size = done; }});
  ASSERT_TRUE(hash.ok()) << hash.status().ToString();
  EXPECT_EQ(*hash, reference->entry->sha256);
  EXPECT_EQ(size, reference->entry->size);
}

TEST(InModel, OfWhatIsShippedNothingIsToBeDeleted) {
  const ModelReference reference{&kShipped, "/p/mini", "mini"};
  const base::Status status = InModel(reference, base::Corrupt("it is torn"));
  EXPECT_NE(status.message().find("install plumb again"), std::string::npos);
  EXPECT_EQ(status.message().find("pull"), std::string::npos);
}

}  // namespace
}  // namespace plumb::cli
