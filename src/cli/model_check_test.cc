// cli/model_check_test.cc
// A file that could not be served does not pass for a good one: tokenizer and chat template count.
#include "cli/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "model/families/deepseek_v41_tiny.h"
#include "model/gguf.h"
#include "model/hf_writer.h"
#include "model/tiny_model.h"

namespace plumb::cli {
namespace {

using base::Code;
using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kF16 = 1;

class ModelCheck : public testing::Test {
 protected:
  // A folder with these files beside config and weights.
  ModelReference Folder(const model::HfFiles& more) const {
    const std::string bytes = model::TinyModel({.types = {kF16}, .tokenizer = false});
    const auto gguf = model::Gguf::Parse(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(gguf.ok()) << gguf.status().ToString();
    std::filesystem::remove_all(folder_.File("model"));
    std::filesystem::create_directories(folder_.File("model"));
    model::WriteFiles(folder_.File("model"), model::HfFolderOf(**gguf));
    model::WriteFiles(folder_.File("model"), more);
    return {nullptr, folder_.File("model"), "model"};
  }
  static base::Status Check(const ModelReference& reference) {
    const auto inspection = Examine(reference);
    return inspection.ok() ? CheckWhole(reference, *inspection) : inspection.status();
  }

  base::ScratchFolder folder_;
};

// Two tokens, enough for the reader.
constexpr const char* kTokenizer =
    R"({"version":"1.0","added_tokens":[],"normalizer":null,)"
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
    R"("use_regex":true},"post_processor":null,"decoder":{"type":"ByteLevel",)"
    R"("add_prefix_space":true,"trim_offsets":true,"use_regex":true},)"
    R"("model":{"type":"BPE","dropout":null,"unk_token":null,"vocab":{"a":0,"b":1},"merges":[]}})";

TEST_F(ModelCheck, PassesAWholeFile) {
  ASSERT_TRUE(
      base::WriteFileAtomic(folder_.File("m.gguf"), model::TinyModel({.types = {kF16}})).ok());
  const base::Status status = Check({nullptr, folder_.File("m.gguf"), "m"});
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_F(ModelCheck, AWeightThatIsNoNumberFails) {
  std::string file = model::TinyModel({.types = {kF16}});
  const ModelReference reference{nullptr, folder_.File("m.gguf"), "m"};
  ASSERT_TRUE(base::WriteFileAtomic(reference.path, file).ok());
  EXPECT_TRUE(CheckValues(reference).ok()) << CheckValues(reference).ToString();
  file.replace(file.size() - 4, 4, std::string("\0\0\xc0\x7f", 4));  // ends with output_norm
  ASSERT_TRUE(base::WriteFileAtomic(reference.path, file).ok());
  const base::Status status = CheckValues(reference);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("output_norm.weight holds a value that is not finite"));
  EXPECT_TRUE(Check(reference).ok()) << "which its directory does not tell";
}

TEST_F(ModelCheck, AMissingOrBrokenTokenizerFails) {
  base::Status status = Check(Folder({}));
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("tokenizer"));
  EXPECT_THAT(status.message(), HasSubstr(folder_.File("model"))) << "and names the file";
  for (const char* content : {"{", "[]", "{\"version\": 1}", "\xff"}) {
    status = Check(Folder({{"tokenizer.json", content}}));
    EXPECT_EQ(status.code(), Code::kCorrupt) << content;
    EXPECT_THAT(status.message(), HasSubstr("tokenizer")) << content;
  }
}

TEST_F(ModelCheck, ABrokenTemplateFails) {
  const base::Status whole =
      Check(Folder({{"tokenizer.json", kTokenizer}, {"chat_template.jinja", "{{ messages }}"}}));
  EXPECT_TRUE(whole.ok()) << whole.ToString();
  const base::Status status = Check(
      Folder({{"tokenizer.json", kTokenizer}, {"chat_template.jinja", "{% for m in messages %}"}}));
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("chat template: "));
}

TEST_F(ModelCheck, WhatPlumbCannotRunIsNotTheFilesFault) {
  const ModelReference reference{nullptr, "x.gguf", "x"};
  model::Inspection inspection;
  inspection.unsupported = base::Unsupported("a family of the future");
  EXPECT_TRUE(CheckWhole(reference, inspection).ok());
  inspection.unsupported = base::Corrupt("a tensor is missing");
  EXPECT_EQ(CheckWhole(reference, inspection).message(), "'x.gguf': a tensor is missing");
}

TEST_F(ModelCheck, MappedWeightsAndScalesAreLookedAtToo) {
  const auto check = [&](const model::DeepseekTiny& tiny) {
    std::filesystem::remove_all(folder_.File("v41"));
    std::filesystem::create_directories(folder_.File("v41"));
    model::WriteFiles(folder_.File("v41"), model::DeepseekTinyFiles(tiny));
    return CheckValues({nullptr, folder_.File("v41"), "v41"});
  };
  const model::DeepseekTiny good = model::MakeDeepseekTiny({});
  EXPECT_TRUE(check(good).ok()) << check(good).ToString();
  std::set<std::string> types;
  for (size_t i = 0; i < good.tensors.size(); ++i) {
    if (!good.tensors[i].type.starts_with("F8_") || !types.insert(good.tensors[i].type).second) {
      continue;
    }
    model::DeepseekTiny bad = good;
    bad.tensors[i].bytes.back() = '\xff';  // not a number in either type
    EXPECT_EQ(check(bad).code(), Code::kCorrupt) << good.tensors[i].name;
    EXPECT_THAT(check(bad).message(), HasSubstr("tensor " + good.tensors[i].name + " holds"));
  }
  EXPECT_EQ(types, (std::set<std::string>{"F8_E4M3", "F8_E8M0"}));
}

TEST_F(ModelCheck, AListOfTokenClassesThatLoadingWouldRefuseFails) {
  model::DeepseekTiny tiny = model::MakeDeepseekTiny({});
  const auto check = [&] {
    std::filesystem::remove_all(folder_.File("v41"));
    std::filesystem::create_directories(folder_.File("v41"));
    model::WriteFiles(folder_.File("v41"), model::DeepseekTinyFiles(tiny));
    return Check({nullptr, folder_.File("v41"), "v41"});
  };
  // This folder has no tokenizer, which is looked at last.
  EXPECT_THAT(check().message(), Not(HasSubstr("engram_token_map.json")));
  tiny.token_map.pop_back();
  const base::Status status = check();
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("engram_token_map.json has 95 numbers"));
}

}  // namespace
}  // namespace plumb::cli
