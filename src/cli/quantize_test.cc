// cli/quantize_test.cc: the commands on tiny models: what is refused before anything is written,
// that nothing half-done stays, and figures before and after.
#include "cli/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "cli/perplexity.h"
#include "model/gguf.h"
#include "model/gguf_writer.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

namespace fs = std::filesystem;
using base::Code;
using testing::HasSubstr;

constexpr uint32_t kF16 = 1, kQ8_0 = 8;

class QuantizeCommand : public testing::Test {
 protected:
  void SetUp() override {
    Store("source.gguf", model::TinyModel({.types = {kF16}}));
    settings_.type = "Q8_0";
    settings_.output = folder_.File("out.gguf");
    settings_.threads = 2;
  }
  void Store(const std::string& name, const std::string& content) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.File(name), content).ok());
  }
  ModelReference Model(const std::string& name) const {
    return {nullptr, folder_.File(name), fs::path(name).stem().string()};
  }
  // Standard output goes to printed_.
  base::Status Quantize(const std::string& name = "source.gguf") {
    testing::internal::CaptureStdout();
    const base::Status status = RunQuantize(settings_, Model(name));
    printed_ = testing::internal::GetCapturedStdout();
    EXPECT_FALSE(fs::exists(settings_.output + ".quantizing"));
    return status;
  }

  base::ScratchFolder folder_;
  QuantizeSettings settings_;
  std::string printed_;
};

TEST_F(QuantizeCommand, WritesTheFileUnderItsName) {
  ASSERT_TRUE(Quantize().ok());
  EXPECT_THAT(printed_, HasSubstr("out.gguf: Q8_0, "));
  const auto made = model::Gguf::Open(settings_.output);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ((*made)->FindTensor("blk.0.attn_q.weight")->type, kQ8_0);
}

TEST_F(QuantizeCommand, KeepsWhatExistsUnlessForced) {
  Store("out.gguf", "mine");
  const base::Status status = Quantize();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.field(), "--output");
  EXPECT_EQ(base::ReadFile(settings_.output, 100).value(), "mine");
  settings_.force = true;
  ASSERT_TRUE(Quantize().ok());
  EXPECT_TRUE(model::Gguf::Open(settings_.output).ok());
  // Also onto its own source, which stays mapped meanwhile.
  settings_.type = "F32";
  settings_.output = folder_.File("source.gguf");
  ASSERT_TRUE(Quantize().ok());
  EXPECT_TRUE(model::Gguf::Open(settings_.output).ok());
}

// In a shared folder the name of the unfinished file can be guessed.
TEST_F(QuantizeCommand, DoesNotWriteThroughALinkSomebodyLeft) {
  Store("theirs", "kept");
  fs::create_symlink(folder_.File("theirs"), settings_.output + ".quantizing");
  testing::internal::CaptureStdout();
  const base::Status status = RunQuantize(settings_, Model("source.gguf"));
  testing::internal::GetCapturedStdout();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(base::ReadFile(folder_.File("theirs"), 100).value(), "kept");
  EXPECT_FALSE(fs::exists(settings_.output));
}

TEST_F(QuantizeCommand, KeepsASourceOfTheUnfinishedFilesName) {
  fs::rename(folder_.File("source.gguf"), settings_.output + ".quantizing");
  testing::internal::CaptureStdout();
  const base::Status status = RunQuantize(settings_, Model("out.gguf.quantizing"));
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(status.field(), "--output");
  EXPECT_TRUE(model::Gguf::Open(settings_.output + ".quantizing").ok());
}

TEST_F(QuantizeCommand, RefusesWhatItCannotDo) {
  settings_.type = "Q9";
  EXPECT_EQ(Quantize().field(), "--type");
  settings_.type = "Q4_0";
  settings_.output = folder_.path();
  EXPECT_EQ(Quantize().field(), "--output");
  settings_.output = folder_.File("missing/out.gguf");
  EXPECT_EQ(Quantize().field(), "--output");
  settings_.output = folder_.File("out.gguf");
  settings_.measure = folder_.File("missing.txt");
  EXPECT_EQ(Quantize().field(), "--measure");
  settings_.measure.clear();
  EXPECT_EQ(Quantize("nothing.gguf").code(), Code::kNotFound);
  Store("text.gguf", "not a model");
  EXPECT_EQ(Quantize("text.gguf").code(), Code::kCorrupt);
  EXPECT_FALSE(fs::exists(settings_.output));
}

TEST_F(QuantizeCommand, RoundsTwiceOnlyWhenTold) {
  Store("small.gguf", model::TinyModel({.types = {kQ8_0}}));
  settings_.type = "Q4_0";
  const base::Status status = Quantize("small.gguf");
  EXPECT_EQ(status.field(), "--requantize");
  EXPECT_THAT(status.message(), HasSubstr("is Q8_0"));
  settings_.requantize = true;
  EXPECT_TRUE(Quantize("small.gguf").ok());
  settings_.requantize = false;
  settings_.type = "F32";
  settings_.output = folder_.File("exact.gguf");
  EXPECT_TRUE(Quantize("small.gguf").ok());
}

TEST_F(QuantizeCommand, ABadWeightLeavesNoFile) {
  const uint64_t dims[] = {32, 1};
  std::string row(64, '\0');
  row[1] = row[0] = '\x7e';  // an f16 NaN
  Store("bad.gguf", model::GgufWriter().Tensor("blk.0.ffn_up.weight", kF16, dims, row).Finish());
  const base::Status status = Quantize("bad.gguf");
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("blk.0.ffn_up.weight"));
  EXPECT_FALSE(fs::exists(settings_.output));
}

TEST_F(QuantizeCommand, SaysWhichTypesTakeOthersPlaces) {
  settings_.type = "Q4_K_M";  // rows of 64 and 96
  testing::internal::CaptureStderr();
  ASSERT_TRUE(Quantize().ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("Q5_0 instead of Q4_K"));
}

TEST_F(QuantizeCommand, MeasuresBeforeAndAfter) {
  std::string text;
  while (text.size() < 3000) text += "the thin cat sat there; ";
  Store("text.txt", text);
  settings_.measure = folder_.File("text.txt");
  ASSERT_TRUE(Quantize().ok());
  EXPECT_THAT(printed_, HasSubstr("  out\n"));
  EXPECT_THAT(printed_, HasSubstr("  source\n"));
  EXPECT_THAT(printed_, HasSubstr("KL from the reference: mean "));
}

TEST_F(QuantizeCommand, RefusesWhatCouldNotBeMeasuredBeforeItWritesAnything) {
  Store("short.txt", "too short");
  settings_.measure = folder_.File("short.txt");
  base::Status status = Quantize();
  EXPECT_EQ(status.field(), "--measure");
  EXPECT_THAT(status.message(), HasSubstr("less than one window"));
  Store("bytes.txt", std::string(5000, '\xff'));
  settings_.measure = folder_.File("bytes.txt");
  EXPECT_EQ(Quantize().field(), "--measure");
  Store("text.txt", std::string(5000, 'a'));
  settings_.measure = folder_.File("text.txt");
  Store("narrow.gguf", model::TinyModel({.context = 100, .types = {kF16}}));
  EXPECT_EQ(Quantize("narrow.gguf").field(), "--measure");
  Store("mute.gguf", model::TinyModel({.types = {kF16}, .tokenizer = false}));
  status = Quantize("mute.gguf");
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("mute.gguf"));
  EXPECT_FALSE(fs::exists(settings_.output));
}

TEST_F(QuantizeCommand, PerplexityPrintsJson) {
  ASSERT_TRUE(Quantize().ok());
  std::string text;
  while (text.size() < 3000) text += "the thin cat sat there; ";
  Store("text.txt", text);
  PerplexitySettings settings;
  settings.text = folder_.File("text.txt");
  settings.context = 100;
  settings.windows = 4;
  settings.json = true;
  const ModelReference reference = Model("source.gguf");
  testing::internal::CaptureStdout();
  ASSERT_TRUE(RunPerplexity(settings, Model("out.gguf"), &reference).ok());
  const auto json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(json["windows"], 4);
  EXPECT_EQ(json["positions"], 4 * 49);
  EXPECT_GT(json["perplexity"].get<double>(), 1);
  EXPECT_GT(json["kl"]["mean"].get<double>(), 0);
  EXPECT_LT(json["kl"]["mean"].get<double>(), 0.01);  // Q8_0
  EXPECT_EQ(json["tokens_sha256"].get<std::string>().size(), 64u);
}

TEST_F(QuantizeCommand, PerplexityRefusesWhatDoesNotFit) {
  PerplexitySettings settings;
  const auto run = [&](const ModelReference* reference) {
    return RunPerplexity(settings, Model("source.gguf"), reference);
  };
  settings.text = folder_.File("missing.txt");
  EXPECT_EQ(run(nullptr).field(), "--text");
  settings.kernels = "sse";
  settings.text = folder_.File("source.gguf");
  EXPECT_EQ(run(nullptr).field(), "--kernels");
  settings.kernels = "auto";
  settings.text = folder_.File("missing.txt");
  Store("short.txt", "too short");
  settings.text = folder_.File("short.txt");
  EXPECT_EQ(run(nullptr).field(), "--text");
  Store("bytes.txt", std::string(5000, '\xff'));
  settings.text = folder_.File("bytes.txt");
  EXPECT_EQ(run(nullptr).field(), "--text");
  Store("text.txt", std::string(5000, 'a'));
  settings.text = folder_.File("text.txt");
  settings.context = 4096;  // the model has 1024
  EXPECT_EQ(run(nullptr).field(), "--context");
  settings.context = 64;
  Store("other.gguf", model::TinyModel({.vocabulary = 333, .types = {kF16}}));
  const ModelReference other = Model("other.gguf");
  EXPECT_EQ(run(&other).field(), "--reference");
}

}  // namespace
}  // namespace plumb::cli
