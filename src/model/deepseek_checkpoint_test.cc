// model/deepseek_checkpoint_test.cc: a folder of one file or several becomes a checkpoint; files
// that are damaged, missing or listed wrongly are refused in one line.
#include "model/deepseek_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/testing/scratch_folder.h"
#include "model/families/deepseek_v41_tiny.h"
#include "model/families/deepseek_v41_weights.h"
#include "model/hf_folder.h"
#include "model/inspect.h"
#include "model/load.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

using base::Code;
using base::ScratchFolder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(DeepseekCheckpoint, OneFileSeveralAndAPrefixAreTheSame) {
  const DeepseekTiny tiny = MakeDeepseekTiny({});
  const DeepseekTiny prefixed = MakeDeepseekTiny({.model_prefix = true});
  for (const uint32_t shards : {1u, 3u}) {
    for (const DeepseekTiny* files : {&tiny, &prefixed}) {
      const ScratchFolder folder;
      WriteFiles(folder.path(), DeepseekTinyFiles(*files, shards));
      const auto opened = OpenModelFile(folder.path());
      ASSERT_TRUE(opened.ok()) << opened.status().ToString();
      EXPECT_EQ(*(*opened)->Text("general.architecture"), "deepseek_v41");
      EXPECT_EQ((*opened)->tensors().size(), tiny.tensors.size());
      EXPECT_EQ((*opened)->Format(), shards == 1 ? "safetensors, 1 file" : "safetensors, 3 files");
      for (const DeepseekTinyTensor& stored : tiny.tensors) {
        const GgufTensor* tensor = (*opened)->FindTensor(stored.name);
        ASSERT_NE(tensor, nullptr) << stored.name;
        EXPECT_EQ(tensor->name, stored.name);
        EXPECT_EQ(tensor->stored_type, stored.type);
        EXPECT_EQ(tensor->dims[0], stored.shape.back());
        EXPECT_EQ(tensor->dims_count, stored.shape.size());
        tensor::AlignedBuffer scratch;
        const uint64_t rows = tensor->elements / tensor->dims[0];
        const auto last = (*opened)->Rows(*tensor, {rows - 1, 1}, scratch);
        ASSERT_TRUE(last.ok());
        const std::string bytes(reinterpret_cast<const char*>(last->data()), last->size());
        EXPECT_TRUE(stored.bytes.ends_with(bytes)) << stored.name;
        EXPECT_EQ(bytes.size() * rows, stored.bytes.size()) << stored.name;
      }
      EXPECT_EQ((*opened)->FindTensor("layers.9.attn_norm.weight"), nullptr);
      EXPECT_EQ((*opened)->FindTensor(""), nullptr);
    }
  }
}

TEST(DeepseekCheckpoint, WeightsOutliveIt) {
  const ScratchFolder folder;
  const DeepseekTiny tiny = MakeDeepseekTiny({});
  WriteFiles(folder.path(), DeepseekTinyFiles(tiny));
  DeepseekWeights weights;
  {
    const auto opened = OpenModelFile(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    tensor::ThreadPool pool({.threads = 1});
    auto mapped = MapDeepseekWeights(
        **opened, *ReadDeepseekConfig(**opened),
        {.pool = pool, .kernels = **tensor::SelectKernels("auto"), .progress = {}});
    ASSERT_TRUE(mapped.ok()) << mapped.status().ToString();
    weights = *std::move(mapped);
  }
  std::string stored(reinterpret_cast<const char*>(weights.embedding.weights), 96 * 64 * 2);
  DeepseekTiny copy = tiny;
  EXPECT_EQ(stored, copy.Tensor("embed.weight").bytes);
}

TEST(DeepseekCheckpoint, TheFingerprintCoversTheTokenMap) {
  const ScratchFolder folder;
  WriteFiles(folder.path(), DeepseekTinyFiles(MakeDeepseekTiny({})));
  EXPECT_THAT(*HfFolder::Open(folder.path())->FileNames(),
              ElementsAre("config.json", "engram_token_map.json", "model.safetensors"));
}

TEST(DeepseekCheckpoint, IsInspected) {
  const ScratchFolder folder;
  const DeepseekTinySpec spec;
  WriteFiles(folder.path(), DeepseekTinyFiles(MakeDeepseekTiny(spec)));
  const auto opened = OpenModelFile(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  const auto found = Inspect(**opened);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_TRUE(found->unsupported.ok()) << found->unsupported.ToString();
  EXPECT_EQ(found->config.family, Family::kDeepseekV41);
  EXPECT_EQ(found->config.layers, 5u);
  EXPECT_EQ(found->config.vocabulary, spec.vocabulary);
  ASSERT_TRUE(found->deepseek.has_value());
  EXPECT_EQ(found->memory.weight_bytes, found->deepseek->weight_bytes);
  EXPECT_EQ(found->memory.state_bytes, found->deepseek->state_bytes);
  EXPECT_EQ(MemoryFor(found->memory, 128, 2) - MemoryFor(found->memory, 128, 1),
            found->memory.page_bytes + found->memory.state_bytes);
  // What the draft blocks and vision have comes on top.
  EXPECT_GT(found->parameters, found->deepseek->parameters);
  EXPECT_FALSE(found->types.empty());
}

// ---- the released sizes ----

DeepseekTinySpec Released() {
  DeepseekTinySpec spec;
  spec.vocabulary = 129280;
  spec.hidden = 5120;
  spec.context_max = 1048576;
  spec.ratios = {0, 0};
  spec.ratios.resize(20, 2);
  spec.ratios.resize(40, 1);
  spec.kv_sources = {2, 8, 14, 20};
  spec.index_sources = {2, 8, 14, 20, 24, 28, 32, 36};
  spec.heads = 64;
  spec.head_dim = 512;
  spec.rope_dims = 64;
  spec.query_rank = 1280;
  spec.output_rank = 1024;
  spec.output_groups = 8;
  spec.window = 128;
  spec.index_heads = 32;
  spec.index_dim = 128;
  spec.index_top = 512;
  spec.candidate_source = 20;
  spec.candidate_blocks = 2048;
  spec.candidate_block_rows = 8;
  spec.experts = 384;
  spec.experts_used = 6;
  spec.expert_width = 2304;
  spec.engram_layers = {1, 14};
  spec.engram_ngram_max = 4;
  spec.engram_heads = 8;
  spec.engram_head_dim = 256;
  spec.engram_bucket = 16000000;
  spec.engram_classes = 99092;
  spec.values = false;
  return spec;
}

// Some 93,000 tensors in 48 files of ten gigabytes, all holes: counts, names and offsets are real.
TEST(DeepseekCheckpoint, TheReleasedSizesAreOpenedAndFound) {
  const ScratchFolder folder;
  const DeepseekTiny tiny = MakeDeepseekTiny(Released());
  WriteDeepseekSparse(folder.path(), tiny, 48);
  const auto opened = OpenModelFile(folder.path());
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  EXPECT_EQ((*opened)->tensors().size(), tiny.tensors.size());
  EXPECT_GT(tiny.tensors.size(), 93'000u);
  const auto found = Inspect(**opened);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_TRUE(found->unsupported.ok()) << found->unsupported.ToString();
  EXPECT_EQ(found->deepseek->token_bytes, 890u);
  // Headers, and what is left of drafts and vision, beside the text model.
  EXPECT_GT(found->file_bytes, found->deepseek->weight_bytes + found->deepseek->table_bytes);
  EXPECT_LT(found->file_bytes,
            found->deepseek->weight_bytes + found->deepseek->table_bytes + (64u << 20));
  const GgufTensor* table = (*opened)->FindTensor("layers.14.engram.embed.weight");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->bytes.size(), uint64_t{384016682} * 256);
  EXPECT_EQ(table->bytes.back(), std::byte{0});
}

// ---- damaged folders ----

constexpr const char* kIndexName = "model.safetensors.index.json";

class DamagedFolder : public testing::Test {
 protected:
  // Of the tiny model in `shards` files, changed.
  base::Status Open(uint32_t shards, const std::function<void(HfFiles&)>& change) {
    HfFiles files = DeepseekTinyFiles(MakeDeepseekTiny({}), shards);
    change(files);
    const ScratchFolder folder;
    WriteFiles(folder.path(), files);
    base::Status status = OpenModelFile(folder.path()).status();
    EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
    EXPECT_THAT(status.message(), Not(HasSubstr(folder.path())));
    return status;
  }
  static std::string& File(HfFiles& files, const std::string& name) {
    for (auto& [own, content] : files) {
      if (own == name) return content;
    }
    ADD_FAILURE() << name;
    return files.front().second;
  }
  // Replaces a text in a header by one as long.
  static void Patch(std::string& file, std::string_view from, std::string_view to) {
    ASSERT_EQ(from.size(), to.size());
    const size_t at = file.find(from);
    ASSERT_NE(at, file.npos) << from;
    file.replace(at, from.size(), to);
  }
};

TEST_F(DamagedFolder, ATruncatedShardIsNamed) {
  const base::Status status = Open(3, [](HfFiles& files) {
    std::string& file = File(files, "model-00002-of-00003.safetensors");
    file.resize(file.size() - 10);
  });
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("truncated"));
  EXPECT_THAT(status.message(), HasSubstr("model-00002-of-00003.safetensors"));
}

TEST_F(DamagedFolder, AMissingShardIsNamed) {
  const base::Status status = Open(3, [](HfFiles& files) {
    std::erase_if(files,
                  [](const auto& f) { return f.first == "model-00003-of-00003.safetensors"; });
  });
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("model-00003-of-00003.safetensors"));
}

TEST_F(DamagedFolder, AnIndexThatListsOtherTensorsIsRefused) {
  const base::Status status = Open(2, [](HfFiles& files) {
    Patch(File(files, "model.safetensors.index.json"), "\"head.weight\"", "\"haed.weight\"");
  });
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("haed.weight"));
}

TEST_F(DamagedFolder, AnIndexThatLeavesATensorOutIsRefused) {
  for (const uint32_t shards : {1u, 2u}) {
    const base::Status status = Open(shards, [&](HfFiles& files) {
      if (shards == 1) {
        nlohmann::json map;
        for (const DeepseekTinyTensor& tensor : MakeDeepseekTiny({}).tensors) {
          map[tensor.name] = "model.safetensors";
        }
        files.emplace_back(kIndexName, nlohmann::json({{"weight_map", map}}).dump());
      }
      std::string& text = File(files, kIndexName);
      nlohmann::json index = nlohmann::json::parse(text);
      index["weight_map"].erase("embed.weight");
      text = index.dump();
    });
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.field(), "embed.weight");
    EXPECT_THAT(status.message(), HasSubstr("does not list the tensor embed.weight"));
  }
}

TEST_F(DamagedFolder, AnIndexWithoutAMapIsRefusedBesideOneFileToo) {
  for (const uint32_t shards : {1u, 2u}) {
    const base::Status status = Open(shards, [&](HfFiles& files) {
      if (shards == 1) files.emplace_back(kIndexName, "");
      File(files, kIndexName) = R"({"metadata":{}})";
    });
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_THAT(status.field(), HasSubstr("weight_map"));
  }
}

TEST_F(DamagedFolder, AnIndexOfOtherFilesDoesNotMatterBesideTheWholeModel) {
  EXPECT_TRUE(Open(1, [](HfFiles& files) {
                files.emplace_back(kIndexName,
                                   R"({"weight_map":{"embed.weight":"part.safetensors"}})");
              }).ok());
}

TEST_F(DamagedFolder, AScaleThatIsNoNumberNamesTensorAndFile) {
  for (const uint32_t shards : {1u, 3u}) {
    DeepseekTiny tiny = MakeDeepseekTiny({});
    tiny.Tensor("layers.0.attn.wq_a.scale").bytes[0] = '\xff';
    const ScratchFolder folder;
    WriteFiles(folder.path(), DeepseekTinyFiles(tiny, shards));
    const auto opened = OpenModelFile(folder.path());
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    tensor::ThreadPool pool({.threads = 1});
    const base::Status status =
        MapDeepseekWeights(**opened, *ReadDeepseekConfig(**opened),
                           {.pool = pool, .kernels = **tensor::SelectKernels("auto")})
            .status();
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.field(), "layers.0.attn.wq_a.scale");
    EXPECT_THAT(status.message(), HasSubstr(shards == 1 ? "the model's file is damaged"
                                                        : "-of-00003.safetensors is damaged"));
    EXPECT_THAT(status.message(), HasSubstr("fetch it again"));
  }
}

TEST_F(DamagedFolder, SizesAndPlacesThatDoNotFitAreRefused) {
  struct Case {
    const char* from;
    const char* to;
    const char* message;
  };
  for (const Case& bad :
       {Case{"\"shape\":[96,64]", "\"shape\":[64,64]", "embed.weight has 12288 bytes"},
        {"\"data_offsets\":[0,12288]", "\"data_offsets\":[0,12289]", "embed.weight has 12289"},
        // The second tensor over the first, or away from it.
        {"[12288,24576]", "[12200,24488]", "head.weight overlaps"},
        {"[12288,24576]", "[12298,24586]", "head.weight leaves a gap"}}) {
    const base::Status status =
        Open(1, [&](HfFiles& files) { Patch(File(files, "model.safetensors"), bad.from, bad.to); });
    EXPECT_EQ(status.code(), Code::kCorrupt) << bad.to;
    EXPECT_THAT(status.message(), HasSubstr(bad.message));
  }
}

TEST_F(DamagedFolder, GiantDimensionsAreRefused) {
  constexpr uint64_t kGiant = uint64_t{1} << 63;
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{kGiant},
                                             {kGiant, 2},
                                             {uint64_t{1} << 32, uint64_t{1} << 32},
                                             {0, 64}}) {
    DeepseekTiny tiny = MakeDeepseekTiny({});
    tiny.Tensor("embed.weight").shape = shape;
    const ScratchFolder folder;
    WriteFiles(folder.path(), DeepseekTinyFiles(tiny));
    const auto opened = OpenModelFile(folder.path());
    EXPECT_EQ(opened.status().code(), Code::kCorrupt);
    EXPECT_THAT(opened.status().message(), HasSubstr("embed.weight has an impossible dimension"));
  }
}

TEST_F(DamagedFolder, ATensorWithAndWithoutThePrefixIsRefused) {
  DeepseekTiny tiny = MakeDeepseekTiny({});
  tiny.tensors.push_back(tiny.Tensor("head.weight"));
  tiny.tensors.back().name = "model.head.weight";
  const ScratchFolder folder;
  WriteFiles(folder.path(), DeepseekTinyFiles(tiny));
  const auto opened = OpenModelFile(folder.path());
  EXPECT_EQ(opened.status().code(), Code::kCorrupt);
  EXPECT_EQ(opened.status().field(), "head.weight");
}

TEST_F(DamagedFolder, AConfigThatContradictsItselfIsRefusedBeforeTheWeights) {
  const base::Status status = Open(1, [](HfFiles& files) {
    Patch(File(files, "config.json"), "\"o_groups\":2", "\"o_groups\":3");
  });
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.field(), HasSubstr("o_groups"));
}

}  // namespace
}  // namespace plumb::model
