// model/quantize_test.cc: which types a mixture gives, what a written file holds, and that bad
// weights are refused by name. Sources are tiny random models.
#include "model/quantize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/disk.h"
#include "base/testing/scratch_folder.h"
#include "model/families/deepseek_v41_config.h"
#include "model/gguf_writer.h"
#include "model/hf_checkpoint.h"
#include "model/hf_text.h"
#include "model/hf_writer.h"
#include "model/load.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"
#include "tensor/dequantize.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::HasSubstr;

constexpr uint32_t kF32 = 0, kF16 = 1, kQ5_0 = 6, kQ8_0 = 8, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14,
                   kBF16 = 30;
constexpr FileType kAllFileTypes[] = {FileType::kF32,  FileType::kF16,  FileType::kBF16,
                                      FileType::kQ8_0, FileType::kQ6_K, FileType::kQ5_K_M,
                                      FileType::kQ5_1, FileType::kQ5_0, FileType::kQ4_K_M,
                                      FileType::kQ4_1, FileType::kQ4_0};

std::unique_ptr<Gguf> Parse(const std::string& file) {
  auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
  EXPECT_TRUE(gguf.ok()) << gguf.status().ToString();
  return *std::move(gguf);
}

// Rows of 256 weights, so that every format fits.
std::string WideModel(uint32_t type, uint64_t seed = 1) {
  return TinyModel({.embedding = 256,
                    .feed_forward = 512,
                    .head_dim = 64,
                    .types = {type},
                    .embedding_type = type,
                    .seed = seed});
}

// A directory alone: names and shapes of `layers` layers, F32, every tensor of no data.
std::string Directory(uint64_t inputs, uint32_t layers, bool tied, uint32_t experts = 0) {
  GgufWriter writer;
  writer.Text("general.architecture", "llama").Value("llama.block_count", layers);
  writer.Value("llama.expert_count", experts);
  const uint64_t vector[] = {inputs}, matrix[] = {inputs, 1};
  const std::string row(inputs * 4, '\0');
  writer.Tensor("token_embd.weight", kF32, matrix, row);
  for (uint32_t layer = 0; layer < layers; ++layer) {
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"}) {
      writer.Tensor("blk." + std::to_string(layer) + "." + name + ".weight", kF32, matrix, row);
    }
    writer.Tensor("blk." + std::to_string(layer) + ".attn_norm.weight", kF32, vector, row);
  }
  if (!tied) writer.Tensor("output.weight", kF32, matrix, row);
  return writer.Finish();
}

std::map<std::string, uint32_t> TypesOf(const std::string& file, FileType type) {
  const auto gguf = Parse(file);
  const auto plan = PlanQuantize(*gguf, type);
  EXPECT_TRUE(plan.ok()) << plan.status().ToString();
  std::map<std::string, uint32_t> types;
  for (const PlannedTensor& tensor : plan->tensors) {
    types[std::string(tensor.source->name)] = tensor.type;
  }
  return types;
}

TEST(PlanQuantize, MixesTypesAsTheFileTypeSays) {
  const auto medium = TypesOf(Directory(256, 24, true), FileType::kQ4_K_M);
  EXPECT_EQ(medium.at("token_embd.weight"), kQ6_K);  // the output too
  EXPECT_EQ(medium.at("blk.0.attn_norm.weight"), kF32);
  EXPECT_EQ(medium.at("blk.0.attn_q.weight"), kQ4_K);
  // Layers of llama-quantize's own Q4_K_M of a model with 24 layers.
  const std::set<int> more = {0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23};
  for (int layer = 0; layer < 24; ++layer) {
    for (const char* name : {".attn_v.weight", ".ffn_down.weight"}) {
      EXPECT_EQ(medium.at("blk." + std::to_string(layer) + name),
                more.contains(layer) ? kQ6_K : kQ4_K)
          << layer << name;
    }
  }
  const auto untied = TypesOf(Directory(256, 8, false), FileType::kQ4_K_M);
  EXPECT_EQ(untied.at("token_embd.weight"), kQ4_K);
  EXPECT_EQ(untied.at("output.weight"), kQ6_K);
  EXPECT_EQ(TypesOf(Directory(256, 8, false), FileType::kQ4_0).at("output.weight"), kQ6_K);
  EXPECT_EQ(TypesOf(Directory(256, 8, false), FileType::kQ8_0).at("output.weight"), kQ8_0);
  EXPECT_EQ(TypesOf(Directory(256, 8, false), FileType::kBF16).at("output.weight"), kBF16);

  const auto experts = TypesOf(Directory(256, 8, false, 8), FileType::kQ4_K_M);
  EXPECT_EQ(experts.at("blk.3.attn_v.weight"), kQ8_0);
  EXPECT_EQ(experts.at("blk.3.attn_k.weight"), kQ8_0);
  EXPECT_EQ(experts.at("blk.3.attn_output.weight"), kQ5_K);
}

TEST(PlanQuantize, TakesSmallerBlocksWhereRowsDoNotFit) {
  const std::string file = Directory(576, 8, true);  // as SmolLM2-135M's
  const auto gguf = Parse(file);
  const auto plan = PlanQuantize(*gguf, FileType::kQ4_K_M);
  ASSERT_TRUE(plan.ok());
  std::map<std::string, PlannedTensor> planned;
  for (const PlannedTensor& tensor : plan->tensors) {
    planned.emplace(std::string(tensor.source->name), tensor);
  }
  EXPECT_EQ(planned.at("blk.4.attn_q.weight").type, kQ5_0);
  EXPECT_EQ(planned.at("blk.4.attn_q.weight").instead_of, tensor::DType::kQ4_K);
  EXPECT_EQ(planned.at("blk.0.attn_v.weight").type, kQ8_0);  // for Q6_K
  EXPECT_EQ(planned.at("token_embd.weight").type, kQ8_0);
  EXPECT_FALSE(planned.at("blk.0.attn_norm.weight").instead_of.has_value());
  const auto odd = TypesOf(Directory(33, 1, true), FileType::kQ4_0);
  EXPECT_EQ(odd.at("blk.0.attn_q.weight"), kF16);
}

TEST(PlanQuantize, SaysWhenSomethingIsRoundedTwice) {
  const std::string file = WideModel(kQ8_0);
  const auto gguf = Parse(file);
  const auto requantized = [&](FileType type) {
    return PlanQuantize(*gguf, type).value().requantized != nullptr;
  };
  EXPECT_TRUE(requantized(FileType::kQ4_0));
  EXPECT_TRUE(requantized(FileType::kF16));
  EXPECT_FALSE(requantized(FileType::kQ8_0));  // copied
  EXPECT_FALSE(requantized(FileType::kF32));   // exact
  const std::string half = WideModel(kF16);
  EXPECT_EQ(PlanQuantize(*Parse(half), FileType::kQ4_0).value().requantized, nullptr);
}

TEST(PlanQuantize, RefusesWhatItCannotRead) {
  const uint64_t dims[] = {256, 1};
  const std::string unread =
      GgufWriter().Tensor("blk.0.ffn_up.weight", 10, dims, std::string(84, '\0')).Finish();
  const auto plan = PlanQuantize(*Parse(unread), FileType::kQ4_0);
  EXPECT_EQ(plan.status().code(), Code::kUnsupported);
  EXPECT_EQ(plan.status().field(), "blk.0.ffn_up.weight");
  EXPECT_THAT(plan.status().message(), HasSubstr("Q2_K"));
  const std::string part = GgufWriter().Value<uint16_t>("split.count", 2).Finish();
  EXPECT_EQ(PlanQuantize(*Parse(part), FileType::kQ4_0).status().code(), Code::kUnsupported);
  const std::string deepseek =
      GgufWriter().Text("general.architecture", kDeepseekArchitecture).Finish();
  const base::Status status = PlanQuantize(*Parse(deepseek), FileType::kQ4_0).status();
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("use the folder as it is"));
}

TEST(FileType, HasANameBothWays) {
  for (const FileType type : kAllFileTypes) {
    EXPECT_EQ(FileTypeFromName(Name(type)), type);
    EXPECT_THAT(std::string(FileTypeNames()), HasSubstr(std::string(Name(type))));
  }
  EXPECT_EQ(FileTypeFromName("q4_k_m"), FileType::kQ4_K_M);
  EXPECT_EQ(FileTypeFromName("Q4_K"), std::nullopt);
  EXPECT_EQ(FileTypeFromName(""), std::nullopt);
}

class Quantize : public testing::Test {
 protected:
  base::Status Write(const Checkpoint& source, FileType type, uint32_t threads = 2) {
    tensor::ThreadPool pool({.threads = threads});
    const auto plan = PlanQuantize(source, type);
    if (!plan.ok()) return plan.status();
    RETURN_IF_ERROR(WriteQuantized(source, *plan, {pool, {}}, path_));
    const std::string written = base::ReadFile(path_, 1u << 26).value();
    EXPECT_EQ(written.size(), QuantizedFileBytes(source, *plan)) << Name(type);
    return base::OkStatus();
  }
  std::string Bytes() const { return base::ReadFile(path_, 1u << 26).value(); }
  std::vector<float> Weights(const Gguf& gguf, std::string_view name) {
    const GgufTensor* tensor = gguf.FindTensor(name);
    CHECK(tensor != nullptr) << name;
    const auto dtype = tensor::DTypeFromGguf(tensor->type).value();
    std::vector<float> values(tensor->elements);
    CHECK(tensor::DequantizeRow(dtype, tensor->bytes, values).ok());
    return values;
  }

  base::ScratchFolder folder_;
  const std::string path_ = folder_.File("out.gguf");
};

TEST_F(Quantize, EveryTypeGivesAFileThatLoads) {
  const std::string file = WideModel(kBF16);
  const auto source = Parse(file);
  tensor::ThreadPool pool({.threads = 2});
  for (const FileType type : kAllFileTypes) {
    ASSERT_TRUE(Write(*source, type).ok()) << Name(type);
    const auto gguf = Gguf::Open(path_);
    ASSERT_TRUE(gguf.ok()) << Name(type) << gguf.status().ToString();
    EXPECT_EQ((*gguf)->Unsigned("general.file_type").value(), static_cast<uint32_t>(type));
    EXPECT_EQ((*gguf)->Unsigned("general.quantization_version").value(), 2u);
    EXPECT_EQ((*gguf)->Texts("tokenizer.ggml.tokens").value().size(), 320u);
    EXPECT_EQ((*gguf)->values().size(), source->values().size() + 2);
    const auto model = LoadModel(**gguf, {.pool = pool,
                                          .kernels = **tensor::SelectKernels("auto"),
                                          .rows_max = 16,
                                          .logits_rows_max = 4});
    EXPECT_TRUE(model.ok()) << Name(type) << model.status().ToString();
    // Far nearer than the weights' own size; how near each format comes is tensor's test.
    const std::vector<float> before = Weights(*source, "blk.1.ffn_down.weight");
    const std::vector<float> after = Weights(**gguf, "blk.1.ffn_down.weight");
    double error = 0, size = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      error += std::pow(before[i] - after[i], 2);
      size += std::pow(before[i], 2);
    }
    EXPECT_LT(std::sqrt(error / size), 0.1) << Name(type);
    EXPECT_EQ(Weights(*source, "blk.0.attn_norm.weight"),
              Weights(**gguf, "blk.0.attn_norm.weight"));
  }
}

TEST_F(Quantize, BytesDoNotDependOnThreads) {
  // Several slabs and items: 16384 rows of 320 weights.
  const uint64_t dims[] = {320, 16384};
  const std::string file =
      GgufWriter()
          .Tensor("blk.0.ffn_up.weight", kF32, dims, RandomWeights(kF32, 320 * 16384, 320, 3))
          .Finish();
  const auto source = Parse(file);
  ASSERT_TRUE(Write(*source, FileType::kQ5_1, 1).ok());
  const std::string one = Bytes();
  for (const uint32_t threads : {2u, 3u, 8u}) {
    ASSERT_TRUE(Write(*source, FileType::kQ5_1, threads).ok());
    EXPECT_TRUE(Bytes() == one) << threads;
  }
}

TEST_F(Quantize, F32IsExact) {
  const std::string file = WideModel(kQ4_K);
  const auto source = Parse(file);
  ASSERT_TRUE(Write(*source, FileType::kF32).ok());
  const auto gguf = Gguf::Open(path_);
  ASSERT_TRUE(gguf.ok());
  for (const GgufTensor& tensor : source->tensors()) {
    EXPECT_EQ(Weights(*source, tensor.name), Weights(**gguf, tensor.name)) << tensor.name;
    EXPECT_EQ((*gguf)->FindTensor(tensor.name)->type, kF32);
  }
}

TEST_F(Quantize, AFolderGivesTheSameTensorsAsTheFile) {
  const std::string file = WideModel(kBF16);
  const auto source = Parse(file);
  WriteFiles(folder_.path(), HfFolderOf(*source, {.shards = 2}));
  const auto folder = HfCheckpoint::Open(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  ASSERT_TRUE(Write(*source, FileType::kQ4_K_M).ok());
  const std::string bytes = Bytes();
  const auto expected = Parse(bytes);
  ASSERT_TRUE(Write(**folder, FileType::kQ4_K_M).ok());
  const auto made = Gguf::Open(path_);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  ASSERT_EQ((*made)->tensors().size(), expected->tensors().size());
  for (const GgufTensor& tensor : expected->tensors()) {
    const GgufTensor* other = (*made)->FindTensor(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(other->type, tensor.type) << tensor.name;
    EXPECT_TRUE(std::ranges::equal(other->bytes, tensor.bytes)) << tensor.name;
  }
}

TEST_F(Quantize, ALongTokenizerComesAlong) {
  const std::string file = WideModel(kBF16);
  const std::string json(17u << 20, ' ');
  WriteFiles(folder_.path(), HfFolderOf(*Parse(file), {.tokenizer_json = json}));
  const auto folder = HfCheckpoint::Open(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  ASSERT_TRUE(Write(**folder, FileType::kQ8_0).ok());
  const auto made = Gguf::Open(path_);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  EXPECT_EQ((*made)->Text(kHfTokenizerKey)->size(), json.size());
}

// A folder whose last layer's `up` is F8.
HfFiles WithF8(const Checkpoint& source) {
  HfFiles files = HfFolderOf(source);
  const std::string whole = files[1].second;
  const auto parsed = Safetensors::Parse(std::as_bytes(std::span(whole)));
  CHECK(parsed.ok()) << parsed.status().ToString();
  SafetensorsWriter writer;
  for (const SafetensorsTensor& tensor : (*parsed)->tensors()) {
    const std::span<const uint64_t> shape = std::span(tensor.dims).first(tensor.dims_count);
    if (tensor.name.ends_with("1.mlp.up_proj.weight")) {
      writer.Tensor(tensor.name, "F8_E4M3", shape, std::string(shape[0] * shape[1], '\x38'));
      const uint64_t blocks[] = {1, 1};
      writer.Tensor(std::string(tensor.name) + "_scale_inv", "F32", blocks, std::string(4, '\0'));
      continue;
    }
    writer.Tensor(tensor.name, tensor.type_name, shape,
                  {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  }
  files[1].second = writer.Finish();
  auto config = nlohmann::json::parse(files[0].second);
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {4096, 4096}}};
  files[0].second = config.dump();
  return files;
}

TEST_F(Quantize, F8IsQuantisedAlready) {
  WriteFiles(folder_.path(), WithF8(*Parse(WideModel(kBF16))));
  const auto folder = HfCheckpoint::Open(folder_.path());
  ASSERT_TRUE(folder.ok()) << folder.status().ToString();
  const auto plan = PlanQuantize(**folder, FileType::kQ4_0);
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  ASSERT_NE(plan->requantized, nullptr);
  EXPECT_EQ(plan->requantized->name, "blk.1.ffn_up.weight");
  EXPECT_EQ(plan->requantized->stored_type, "F8_E4M3");
  EXPECT_EQ(PlanQuantize(**folder, FileType::kF32)->requantized, nullptr) << "exact";
}

TEST_F(Quantize, RefusesBadWeightsByName) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    std::string_view name;
    float value;
    FileType type;
    std::string_view message;
  };
  for (const Case& c : {Case{"blk.0.ffn_up.weight", kNan, FileType::kQ4_0, "row 1: element 2"},
                        Case{"blk.0.ffn_up.weight", kNan, FileType::kF32, "not finite"},
                        Case{"blk.0.attn_norm.weight", INFINITY, FileType::kQ8_0, "not finite"},
                        Case{"blk.0.ffn_up.weight", 1e9f, FileType::kQ4_K_M, "too large"}}) {
    std::vector<float> values(512, 0.25f);
    values[258] = c.value;
    const uint64_t dims[] = {256, 2};
    const std::string file =
        GgufWriter()
            .Tensor(c.name, kF32, dims,
                    {reinterpret_cast<const char*>(values.data()), values.size() * 4})
            .Finish();
    const base::Status status = Write(*Parse(file), c.type);
    EXPECT_EQ(status.code(), Code::kCorrupt);
    EXPECT_EQ(status.field(), c.name);
    EXPECT_THAT(status.message(), HasSubstr(std::string(c.message)));
    EXPECT_THAT(status.message(), HasSubstr(std::string(c.name)));
  }
}

TEST_F(Quantize, AFolderThatIsNotThereIsAnError) {
  const std::string file = WideModel(kF16);
  const auto source = Parse(file);
  tensor::ThreadPool pool({.threads = 1});
  const auto plan = PlanQuantize(*source, FileType::kQ8_0).value();
  EXPECT_EQ(WriteQuantized(*source, plan, {pool, {}}, folder_.File("no/out.gguf")).code(),
            Code::kNotFound);
}

TEST_F(Quantize, EndsBeforeTheNextPieceWhenCancelled) {
  const std::string file = WideModel(kF16);
  const auto source = Parse(file);
  const QuantizePlan plan = PlanQuantize(*source, FileType::kQ8_0).value();
  tensor::ThreadPool pool({.threads = 2});
  uint64_t done = 0;
  const QuantizeOptions options{
      .pool = pool,
      .progress = [&](const QuantizeProgress& state) { done = state.bytes_done; },
      .cancelled = [&] { return done > 0; }};
  EXPECT_EQ(WriteQuantized(*source, plan, options, path_).code(), Code::kCancelled);
  EXPECT_LT(done, plan.data_bytes);
}

TEST_F(Quantize, ProgressEndsAtTheTotal) {
  const std::string file = WideModel(kF16);
  const auto source = Parse(file);
  tensor::ThreadPool pool({.threads = 1});
  const auto plan = PlanQuantize(*source, FileType::kQ8_0).value();
  QuantizeProgress last;
  const auto progress = [&](const QuantizeProgress& state) {
    EXPECT_GE(state.bytes_done, last.bytes_done);
    last = state;
  };
  ASSERT_TRUE(WriteQuantized(*source, plan, {pool, progress}, path_).ok());
  EXPECT_EQ(last.bytes_total, plan.data_bytes);
  EXPECT_EQ(last.bytes_done, plan.data_bytes);
}

}  // namespace
}  // namespace plumb::model
