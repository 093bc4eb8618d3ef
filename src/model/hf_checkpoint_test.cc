// model/hf_checkpoint_test.cc
// A folder gives the logits of the GGUF file with the same weights, bit for bit, whole or in
// shards; and where its files may lie.
#include "model/hf_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/testing/scratch_folder.h"
#include "model/gguf.h"
#include "model/hf_folder.h"
#include "model/hf_writer.h"
#include "model/inspect.h"
#include "model/load.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::ScratchFolder;
using base::TokenId;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr uint32_t kF32 = 0, kF16 = 1, kBF16 = 30;

std::vector<float> LogitsOf(const Checkpoint& checkpoint) {
  tensor::ThreadPool pool({.threads = 2});
  auto model = LoadModel(checkpoint, {.pool = pool,
                                      .kernels = **tensor::SelectKernels("auto"),
                                      .rows_max = 16,
                                      .logits_rows_max = 16});
  if (!model.ok()) {
    ADD_FAILURE() << model.status().ToString();
    return {};
  }
  std::vector<std::byte> page((*model)->info().page_bytes);
  std::byte* const pages[] = {page.data()};
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < 12; ++i) tokens.push_back(TokenId{7 * i + 3});
  std::vector<float> logits(tokens.size() * (*model)->info().vocabulary_size);
  const SequenceRows rows[] = {{tokens, 0, pages, static_cast<uint32_t>(tokens.size())}};
  (*model)->Forward(rows, logits);
  return logits;
}

TinyModelSpec Small(std::string architecture) {
  TinyModelSpec spec;
  spec.architecture = std::move(architecture);
  spec.types = {kF32, kBF16, kF16};
  spec.embedding_type = kBF16;
  spec.tokenizer = false;
  return spec;
}

class RoundTrip : public testing::TestWithParam<TinyModelSpec> {};

TEST_P(RoundTrip, FolderAndGgufGiveEqualLogits) {
  const std::string bytes = TinyModel(GetParam());
  const auto gguf = Gguf::Parse(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
  const std::vector<float> expected = LogitsOf(**gguf);
  ASSERT_FALSE(expected.empty());
  for (const uint32_t shards : {1u, 3u}) {
    for (const bool stacked : {false, true}) {
      const ScratchFolder folder;
      WriteFiles(folder.path(), HfFolderOf(**gguf, {.shards = shards, .stacked_experts = stacked}));
      const auto checkpoint = HfCheckpoint::Open(folder.path());
      ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
      EXPECT_EQ(LogitsOf(**checkpoint), expected) << shards;
      const auto inspection = Inspect(**checkpoint);
      ASSERT_TRUE(inspection.ok()) << inspection.status().ToString();
      EXPECT_TRUE(inspection->unsupported.ok()) << inspection->unsupported.ToString();
      EXPECT_EQ(inspection->memory.weight_bytes, Inspect(**gguf)->memory.weight_bytes);
    }
  }
}

std::vector<TinyModelSpec> Specs() {
  std::vector<TinyModelSpec> specs;
  specs.push_back(Small("llama"));
  specs.push_back(Small("llama"));
  specs.back().tied_output = false;
  specs.back().sliding_window = 5;
  specs.push_back(Small("qwen2"));
  specs.back().qkv_bias = true;
  specs.push_back(Small("qwen3"));
  specs.push_back(Small("llama"));  // Mixtral; a stack of gates and ups has one type
  specs.back().types = {kBF16};
  specs.back().experts = 4;
  specs.back().experts_used = 2;
  specs.push_back(Small("qwen3moe"));
  specs.back().types = {kF32};
  specs.back().experts = 4;
  specs.back().experts_used = 2;
  specs.back().expert_norm = false;
  specs.push_back(Small("gemma3"));
  specs.back().sliding_window = 5;
  specs.back().window_period = 2;
  specs.back().soft_cap = 20;
  return specs;
}
INSTANTIATE_TEST_SUITE_P(Families, RoundTrip, testing::ValuesIn(Specs()));

// ---- F8 ----

// The tiny model's matrices as F8 bytes, and the GGUF file with what they stand for.
TEST(HfCheckpoint, F8GivesTheLogitsOfItsF32Expansion) {
  TinyModelSpec spec = Small("llama");
  spec.types = {kF32};
  const std::string source = TinyModel(spec);
  const auto gguf = Gguf::Parse(std::as_bytes(std::span(source)));
  ASSERT_TRUE(gguf.ok());
  constexpr uint64_t kBlock = 24;  // cuts rows and columns unevenly
  HfFiles as_f8, as_f32;
  SafetensorsWriter f8, f32;
  const HfFiles plain = HfFolderOf(**gguf);
  const auto file = Safetensors::Parse(std::as_bytes(std::span(plain[1].second)));
  ASSERT_TRUE(file.ok());
  uint32_t seed = 1;
  for (const SafetensorsTensor& tensor : (*file)->tensors()) {
    const std::span<const uint64_t> shape = std::span(tensor.dims).first(tensor.dims_count);
    if (tensor.dims_count != 2 || tensor.name.find("embed") != std::string::npos) {
      const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                                   tensor.bytes.size());
      f8.Tensor(tensor.name, tensor.type_name, shape, bytes);
      f32.Tensor(tensor.name, tensor.type_name, shape, bytes);
      continue;
    }
    const uint64_t rows = shape[0], columns = shape[1];
    const uint64_t blocks[] = {(rows + kBlock - 1) / kBlock, (columns + kBlock - 1) / kBlock};
    std::vector<float> scales(blocks[0] * blocks[1]);
    for (float& scale : scales) scale = 0.0007f * static_cast<float>(1 + seed++ % 5);
    std::string bytes;
    std::vector<float> values;
    for (uint64_t i = 0; i < rows * columns; ++i) {
      seed = seed * 1664525 + 1013904223;
      const auto byte = static_cast<uint8_t>((seed >> 24) % 0x7f | (seed >> 9 & 0x80));
      bytes += static_cast<char>(byte);
      const uint64_t block = i / columns / kBlock * blocks[1] + i % columns / kBlock;
      values.push_back(FromF8E4M3(byte) * scales[block]);
    }
    const auto text = [](const std::vector<float>& from) {
      return std::string_view(reinterpret_cast<const char*>(from.data()), from.size() * 4);
    };
    f8.Tensor(tensor.name, "F8_E4M3", shape, bytes);
    f8.Tensor(tensor.name + "_scale_inv", "F32", blocks, text(scales));
    f32.Tensor(tensor.name, "F32", shape, text(values));
  }
  auto config = nlohmann::json::parse(plain[0].second);
  as_f32 = {{"config.json", config.dump()}, {"model.safetensors", f32.Finish()}};
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {24, 24}}};
  as_f8 = {{"config.json", config.dump()}, {"model.safetensors", f8.Finish()}};
  const ScratchFolder first, second;
  WriteFiles(first.path(), as_f8);
  WriteFiles(second.path(), as_f32);
  const auto small = HfCheckpoint::Open(first.path());
  const auto large = HfCheckpoint::Open(second.path());
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  ASSERT_TRUE(large.ok()) << large.status().ToString();
  EXPECT_EQ(LogitsOf(**small), LogitsOf(**large));

  // Inspection tells both sizes: a byte a weight in the file, four in memory.
  const auto inspection = Inspect(**small);
  ASSERT_TRUE(inspection.ok());
  EXPECT_EQ(inspection->memory.weight_bytes, Inspect(**large)->memory.weight_bytes);
  ASSERT_EQ(inspection->types.size(), 3u);
  const TypeShare& share =
      inspection->types[0].type == "F8_E4M3" ? inspection->types[0] : inspection->types[1];
  EXPECT_EQ(share.type, "F8_E4M3");
  EXPECT_LT(share.bytes, share.elements * 11 / 10);
  EXPECT_THAT(inspection->format, HasSubstr("safetensors, 1 file"));
}

// ---- the folder ----

// A sound folder in shards.
class Folder : public testing::Test {
 protected:
  Folder() {
    const std::string bytes = TinyModel(Small("llama"));
    const auto gguf = Gguf::Parse(std::as_bytes(std::span(bytes)));
    files_ = HfFolderOf(**gguf, {.shards = 2});
    WriteFiles(folder_.path(), files_);
  }
  base::Status Open() const { return HfCheckpoint::Open(folder_.path()).status(); }
  void Change(const std::string& name, const std::string& content) const {
    WriteFiles(folder_.path(), {{name, content}});
  }
  nlohmann::json Index() const { return nlohmann::json::parse(files_.back().second); }

  const ScratchFolder folder_;
  HfFiles files_;
  const std::string index_ = "model.safetensors.index.json";
  const std::string shard_ = "model-00001-of-00002.safetensors";
};

TEST_F(Folder, IsReadInShards) {
  EXPECT_TRUE(Open().ok()) << Open().ToString();
  const auto folder = HfFolder::Open(folder_.path());
  ASSERT_TRUE(folder.ok());
  EXPECT_THAT(*folder->FileNames(),
              ElementsAre("config.json", shard_, "model-00002-of-00002.safetensors"));
  EXPECT_EQ(HfFolder::Open(folder_.File("none")).status().code(), Code::kNotFound);
}

TEST_F(Folder, RefusesNamesThatLeaveIt) {
  for (const char* name :
       {"../model-00001-of-00002.safetensors", "/etc/passwd.safetensors", "a/b.safetensors",
        "..\\b.safetensors", ".safetensors", "model\n.safetensors", "weights.bin", ""}) {
    nlohmann::json index = Index();
    index["weight_map"]["model.norm.weight"] = name;
    Change(index_, index.dump());
    EXPECT_EQ(Open().code(), Code::kCorrupt) << name;
    EXPECT_EQ(Open().field(), "model.norm.weight") << name;
  }
}

TEST_F(Folder, RefusesLinksThatLeaveIt) {
  const ScratchFolder other;
  fs::rename(folder_.File(shard_), other.File("outside.safetensors"));
  fs::create_symlink(other.File("outside.safetensors"), folder_.File(shard_));
  EXPECT_EQ(Open().code(), Code::kCorrupt);
  EXPECT_THAT(Open().message(), HasSubstr("leaves the model's folder"));
  EXPECT_THAT(Open().message(), Not(HasSubstr(other.path())));
  // Within the folder a link is another name.
  fs::remove(folder_.File(shard_));
  fs::rename(other.File("outside.safetensors"), folder_.File("stored"));
  fs::create_symlink("stored", folder_.File(shard_));
  EXPECT_TRUE(Open().ok()) << Open().ToString();
  // Also the small files: a template that shows a file of the server, say.
  WriteFiles(other.path(), {{"secret", "{{ messages }}"}});
  fs::create_symlink(other.File("secret"), folder_.File("chat_template.jinja"));
  EXPECT_EQ(Open().code(), Code::kCorrupt);
  EXPECT_EQ(Open().field(), "chat_template.jinja");
}

TEST_F(Folder, FollowsTheCacheOfHuggingFace) {
  const ScratchFolder cache;
  const fs::path repository = fs::path(cache.path()) / "models--org--Tiny-0.1B";
  const fs::path snapshot = repository / "snapshots" / "0123abc";
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  for (const auto& [name, content] : files_) {
    WriteFiles((repository / "blobs").string(), {{"blob-of-" + name, content}});
    fs::create_symlink("../../blobs/blob-of-" + name, snapshot / name);
  }
  const auto checkpoint = HfCheckpoint::Open(snapshot.string());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  EXPECT_EQ(*(*checkpoint)->Text("general.name"), "Tiny-0.1B");
}

TEST_F(Folder, RefusesMissingDamagedAndDoubledFiles) {
  const auto after = [&](const std::string& name, const std::string& content) {
    Change(name, content);
    const base::Status status = Open();
    EXPECT_THAT(status.message(), Not(HasSubstr(folder_.path()))) << name;
    WriteFiles(folder_.path(), files_);
    return status;
  };
  EXPECT_EQ(after(index_, "{").code(), Code::kCorrupt);
  EXPECT_EQ(after(index_, "{}").code(), Code::kCorrupt);
  EXPECT_EQ(after(index_, R"({"weight_map":{}})").code(), Code::kCorrupt);
  EXPECT_EQ(after(index_, R"({"weight_map":{"a":1}})").code(), Code::kCorrupt);
  EXPECT_EQ(after("config.json", "[]").code(), Code::kCorrupt);
  EXPECT_EQ(after("tokenizer_config.json", "[]").code(), Code::kCorrupt);
  EXPECT_EQ(after("generation_config.json", R"({"eos_token_id":"x"})").code(), Code::kCorrupt);
  fs::remove(folder_.File("generation_config.json"));
  EXPECT_EQ(after("tokenizer_config.json", "{}").code(), Code::kOk);

  const std::string& whole = files_[1].second;
  const base::Status cut = after(shard_, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(cut.code(), Code::kCorrupt);
  EXPECT_EQ(cut.field(), shard_);
  EXPECT_THAT(after("model-00002-of-00002.safetensors", whole).message(), HasSubstr("is in"));

  nlohmann::json index = Index();
  index["weight_map"]["model.norm.weight"] = "more.safetensors";
  EXPECT_EQ(after(index_, index.dump()).code(), Code::kNotFound);
  index = Index();
  index["weight_map"]["model.other.weight"] = shard_;
  EXPECT_EQ(after(index_, index.dump()).field(), "model.other.weight");

  fs::remove(folder_.File(index_));
  EXPECT_EQ(Open().code(), Code::kUnsupported);
  fs::remove(folder_.File("config.json"));
  EXPECT_EQ(Open().code(), Code::kUnsupported);
  EXPECT_EQ(Open().field(), "config.json");
}

TEST_F(Folder, DoesNotWaitForAPipe) {
  fs::remove(folder_.File("config.json"));
  ASSERT_EQ(mkfifo(folder_.File("config.json").c_str(), 0600), 0);
  EXPECT_EQ(Open().code(), Code::kCorrupt);
  Change("config.json.new", files_[0].second);
  fs::rename(folder_.File("config.json.new"), folder_.File("config.json"));
  ASSERT_TRUE(Open().ok()) << Open().ToString();
  // Not only where it is read here: whoever asks for the path would open it.
  ASSERT_EQ(mkfifo(folder_.File("tokenizer.json").c_str(), 0600), 0);
  const auto folder = HfFolder::Open(folder_.path());
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder->PathOf("tokenizer.json").status().code(), Code::kCorrupt);
  EXPECT_EQ(folder->FileNames().status().field(), "tokenizer.json");
  // In the place of the weights it does not make the index count.
  fs::remove(folder_.File("tokenizer.json"));
  ASSERT_EQ(mkfifo(folder_.File("model.safetensors").c_str(), 0600), 0);
  EXPECT_EQ(Open().field(), "model.safetensors");
}

TEST_F(Folder, ConfigAndTensorsMustAgreeOnBiases) {
  const auto with = [&](const char* key, bool value) {
    auto config = nlohmann::json::parse(files_[0].second);
    config[key] = value;
    Change("config.json", config.dump());
    return Open();
  };
  ASSERT_EQ(files_[0].first, "config.json");
  EXPECT_TRUE(with("attention_bias", false).ok());
  EXPECT_TRUE(with("mlp_bias", false).ok());
  EXPECT_EQ(with("attention_bias", true).code(), Code::kCorrupt);
  EXPECT_EQ(Open().field(), "model.layers.0.self_attn.q_proj.bias");
  EXPECT_THAT(Open().message(), HasSubstr("attention_bias is true, but"));
  EXPECT_EQ(with("mlp_bias", true).field(), "config.json: mlp_bias");
}

// Whatever the reference does not read under a config is refused by the folder's name for it.
TEST(HfCheckpoint, TensorsThatTheReferenceDoesNotReadAreRefused) {
  struct Case {
    const char* architecture;
    const char* class_name;
    const char* tensor;  // of layer 1
    uint32_t experts = 0;
  };
  const Case cases[] = {
      {"llama", "LlamaForCausalLM", "self_attn.q_proj.bias"},
      {"llama", "LlamaForCausalLM", "self_attn.o_proj.bias"},
      {"llama", "LlamaForCausalLM", "mlp.down_proj.bias"},
      {"llama", "LlamaForCausalLM", "self_attn.q_norm.weight"},
      {"llama", "LlamaForCausalLM", "mlp.gate.weight"},
      {"llama", "MistralForCausalLM", "self_attn.k_proj.bias"},
      {"llama", "MistralForCausalLM", "self_attn.o_proj.bias"},
      {"llama", "MixtralForCausalLM", "self_attn.v_proj.bias", 4},
      {"llama", "MixtralForCausalLM", "mlp.up_proj.weight", 4},
      {"llama", "MixtralForCausalLM", "mlp.experts.0.up_proj.weight", 4},
      {"qwen2", "Qwen2ForCausalLM", "self_attn.o_proj.bias"},
      {"qwen3", "Qwen3ForCausalLM", "self_attn.q_proj.bias"},
      {"qwen3moe", "Qwen3MoeForCausalLM", "self_attn.q_proj.bias", 4},
      {"qwen3moe", "Qwen3MoeForCausalLM", "block_sparse_moe.gate.weight", 4},
      {"gemma3", "Gemma3ForCausalLM", "self_attn.k_proj.bias"},
  };
  for (const Case& each : cases) {
    TinyModelSpec spec = Small(each.architecture);
    spec.types = {kBF16};
    spec.qkv_bias = spec.architecture == "qwen2";
    spec.experts = each.experts;
    spec.experts_used = each.experts == 0 ? 0 : 2;
    const std::string bytes = TinyModel(spec);
    const auto gguf = Gguf::Parse(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
    HfFiles files = HfFolderOf(**gguf);
    auto config = nlohmann::json::parse(files[0].second);
    config["architectures"] = {each.class_name};
    config.erase("attention_bias");
    files[0].second = config.dump();
    const ScratchFolder folder;
    WriteFiles(folder.path(), files);
    ASSERT_TRUE(HfCheckpoint::Open(folder.path()).ok())
        << each.class_name << HfCheckpoint::Open(folder.path()).status().ToString();
    // Once more with the tensor.
    SafetensorsWriter writer;
    const auto stored = Safetensors::Parse(std::as_bytes(std::span(files[1].second)));
    ASSERT_TRUE(stored.ok());
    for (const SafetensorsTensor& tensor : (*stored)->tensors()) {
      writer.Tensor(tensor.name, tensor.type_name, std::span(tensor.dims).first(tensor.dims_count),
                    {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
    }
    const std::string name = std::string("model.layers.1.") + each.tensor;
    const uint64_t width = name.ends_with("q_norm.weight") ? 16 : 64;
    writer.Tensor(name, "F32", {width}, std::string(width * 4, '\0'));
    WriteFiles(folder.path(), {{files[1].first, writer.Finish()}});
    const base::Status status = HfCheckpoint::Open(folder.path()).status();
    EXPECT_FALSE(status.ok()) << each.class_name << " " << name;
    EXPECT_EQ(status.field(), name) << each.class_name << " " << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
}

TEST(HfCheckpoint, BiasesThatTheReferenceWouldNotAddAreRefused) {
  TinyModelSpec spec = Small("qwen2");
  const auto open = [](const TinyModelSpec& from, const char* class_name) {
    const std::string bytes = TinyModel(from);
    const auto gguf = Gguf::Parse(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(gguf.ok()) << gguf.status().ToString();
    HfFiles files = HfFolderOf(**gguf);
    auto config = nlohmann::json::parse(files[0].second);
    config["architectures"] = {class_name};
    config["attention_bias"] = false;
    files[0].second = config.dump();
    const ScratchFolder folder;
    WriteFiles(folder.path(), files);
    return HfCheckpoint::Open(folder.path()).status();
  };
  EXPECT_EQ(open(spec, "Qwen2ForCausalLM").field(), "model.layers.0.self_attn.q_proj.bias");
  spec.qkv_bias = true;
  EXPECT_TRUE(open(spec, "Qwen2ForCausalLM").ok());
  EXPECT_THAT(open(spec, "LlamaForCausalLM").message(), HasSubstr("attention_bias is false, but"));
}

TEST_F(Folder, RefusesALargeIndexUnread) {
  fs::resize_file(folder_.File(index_), (16u << 20) + 1);
  EXPECT_EQ(Open().code(), Code::kCorrupt);
  EXPECT_THAT(Open().message(), HasSubstr("is larger than 16777216 bytes"));
}

TEST_F(Folder, TellsTokenizerTemplateAndEnds) {
  Change("tokenizer.json", "{\"x\":1}");
  Change("tokenizer_config.json",
         R"({"bos_token":{"content":"<s>"},"eos_token":"</s>","add_bos_token":true,)"
         R"("chat_template":[{"name":"tool_use","template":"T"},{"name":"rag","template":"R"},)"
         R"({"name":"default","template":"D"}]})");
  Change("generation_config.json", R"({"eos_token_id":[7,3,7]})");
  auto checkpoint = HfCheckpoint::Open(folder_.path());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
  EXPECT_EQ(*(*checkpoint)->Text(kHfTokenizerKey), "{\"x\":1}");
  EXPECT_EQ(*(*checkpoint)->Text(kHfBosKey), "<s>");
  EXPECT_EQ(*(*checkpoint)->Text(kHfEosKey), "</s>");
  EXPECT_TRUE(*(*checkpoint)->Bool(kHfAddBosKey));
  EXPECT_EQ(*(*checkpoint)->Text(kChatTemplateKey), "D");
  EXPECT_EQ(*(*checkpoint)->Text(kToolTemplateKey), "T");
  EXPECT_THAT(*(*checkpoint)->Integers(kHfEndIdsKey), ElementsAre(3, 7));
  Change("chat_template.jinja", "J");
  checkpoint = HfCheckpoint::Open(folder_.path());
  EXPECT_EQ(*(*checkpoint)->Text(kChatTemplateKey), "J");
  EXPECT_FALSE((*checkpoint)->Has(kToolTemplateKey)) << "the file is for all";
}

TEST_F(Folder, ReadsTemplatesFromTheirOwnFolder) {
  Change("tokenizer_config.json",
         R"({"chat_template":[{"name":"tool_use","template":"T"},{"name":"default",)"
         R"("template":"D"}]})");
  ASSERT_TRUE(fs::create_directory(folder_.File("additional_chat_templates")));
  const auto template_of = [&](std::string_view key) {
    const auto checkpoint = HfCheckpoint::Open(folder_.path());
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status().ToString();
    return (*checkpoint)->Has(key) ? std::string(*(*checkpoint)->Text(key)) : "none";
  };
  const std::vector<std::string> before = *HfFolder::Open(folder_.path())->FileNames();
  Change("additional_chat_templates/rag.jinja", "R");
  EXPECT_EQ(template_of(kToolTemplateKey), "T");
  Change("additional_chat_templates/tool_use.jinja", "AT");
  EXPECT_EQ(template_of(kToolTemplateKey), "AT") << "before the configuration's";
  EXPECT_EQ(template_of(kChatTemplateKey), "D") << "of which the other still holds";
  Change("additional_chat_templates/default.jinja", "AD");
  EXPECT_EQ(template_of(kChatTemplateKey), "AD");
  Change("chat_template.jinja", "J");
  EXPECT_EQ(template_of(kChatTemplateKey), "J");
  EXPECT_EQ(template_of(kToolTemplateKey), "AT");

  // A name twice, of which nobody could say which holds.
  fs::remove(folder_.File("chat_template.jinja"));
  fs::remove(folder_.File("additional_chat_templates/default.jinja"));
  Change("tokenizer_config.json",
         R"({"chat_template":[{"name":"default","template":"A"},{"name":"default",)"
         R"("template":"B"}]})");
  EXPECT_EQ(Open().code(), Code::kCorrupt);
  Change("tokenizer_config.json", "{}");
  Change("chat_template.jinja", "J");
  Change("additional_chat_templates/default.jinja", "AD");

  // They decide answers, so a fingerprint covers them.
  std::vector<std::string> names = *HfFolder::Open(folder_.path())->FileNames();
  EXPECT_THAT(names, IsSupersetOf({"additional_chat_templates/default.jinja",
                                   "additional_chat_templates/tool_use.jinja"}));
  EXPECT_EQ(names.size(), before.size() + 3) << "the two and chat_template.jinja";
}

TEST_F(Folder, TemplatesFromElsewhereAreRefused) {
  const ScratchFolder other;
  WriteFiles(other.path(), {{"tool_use.jinja", "T"}});
  const fs::path templates = folder_.File("additional_chat_templates");
  fs::create_directory_symlink(other.path(), templates);
  EXPECT_EQ(Open().code(), Code::kCorrupt);
  EXPECT_EQ(Open().field(), "additional_chat_templates/tool_use.jinja");
  fs::remove(templates);
  fs::create_directory(templates);
  fs::create_symlink(other.File("tool_use.jinja"), templates / "tool_use.jinja");
  EXPECT_EQ(Open().field(), "additional_chat_templates/tool_use.jinja");
  fs::remove(templates / "tool_use.jinja");
  fs::create_directory(templates / "tool_use.jinja");
  EXPECT_THAT(Open().message(), HasSubstr("is not a regular file"));
  const auto folder = HfFolder::Open(folder_.path());
  for (const char* name : {"additional_chat_templates/../config.json", "additional_chat_templates/",
                           "additional_chat_templates/a/b", "other/tool_use.jinja"})
    EXPECT_EQ(folder->PathOf(name).status().code(), Code::kCorrupt) << name;
}

TEST_F(Folder, ErrorsNameTheTensorAsTheFolderDoes) {
  SafetensorsWriter writer;
  writer.Tensor("model.layers.0.mlp.strange.weight", "F32", {1, 1}, "1234");
  Change("model.safetensors", writer.Finish());  // goes before the index
  EXPECT_EQ(Open().code(), Code::kUnsupported);
  EXPECT_EQ(Open().field(), "model.layers.0.mlp.strange.weight");
}

}  // namespace
}  // namespace plumb::model
