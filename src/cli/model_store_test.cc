// cli/model_store_test.cc: where models lie that come with plumb; what the fingerprint of a model's
// files covers, and what it refuses rather than wait for.
#include "cli/model_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/sha256.h"

namespace plumb::cli {
namespace {

using base::Code;

constexpr const char* kOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class ContentHashOf : public testing::Test {
 protected:
  ContentHashOf() {
    Store("config.json", "{}");
    Store("model.safetensors", "weights");
  }
  void Store(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.File(name), content).ok());
  }
  void Pipe(const std::string& name) const {
    std::filesystem::remove(folder_.File(name));
    ASSERT_EQ(mkfifo(folder_.File(name).c_str(), 0600), 0);
  }
  std::string Folder() const {
    const auto hash = ContentHash(folder_.path());
    EXPECT_TRUE(hash.ok()) << hash.status().ToString();
    return hash.value_or("");
  }

  const base::ScratchFolder folder_;
};

TEST_F(ContentHashOf, AFolderIsOfNamesAndHashes) {
  Sha256 config, weights, all;
  config.Update("{}");
  weights.Update("weights");
  all.Update("config.json " + config.Finish() + "\nmodel.safetensors " + weights.Finish() + "\n");
  EXPECT_EQ(Folder(), all.Finish());
}

TEST_F(ContentHashOf, AnEmptyFileCountsAsNoBytes) {
  const std::string without = Folder();
  Store("chat_template.jinja", "");
  const std::string with = Folder();
  EXPECT_EQ(with.size(), 64u);
  EXPECT_NE(with, without);
  EXPECT_EQ(ContentHash(folder_.File("chat_template.jinja")).value_or(""), kOfNothing);
}

TEST_F(ContentHashOf, APipeIsRefusedNotWaitedFor) {
  Pipe("tokenizer.json");
  const base::Status side = ContentHash(folder_.path()).status();
  EXPECT_EQ(side.code(), Code::kCorrupt);
  EXPECT_EQ(side.field(), "tokenizer.json");
  EXPECT_EQ(ContentHash(folder_.File("tokenizer.json")).status().code(), Code::kInvalidArgument);
  std::filesystem::remove(folder_.File("tokenizer.json"));
  Pipe("model.safetensors");
  const base::Status weights = ContentHash(folder_.path()).status();
  EXPECT_EQ(weights.code(), Code::kCorrupt);
  EXPECT_EQ(weights.field(), "model.safetensors");
}

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
  const auto hash = ContentHash(reference->path, [&](uint64_t done) { size = done; });
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

TEST_F(ContentHashOf, AMissingFileIsAnError) {
  EXPECT_EQ(ContentHash(folder_.File("none.gguf")).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace plumb::cli
