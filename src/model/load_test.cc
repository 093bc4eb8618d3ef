// model/load_test.cc: what is refused before and while weights are read, and what inspection tells.
// Tiny models with one thing wrong; then thousands with one byte changed.
#include "model/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "base/random.h"
#include "base/testing/scratch_folder.h"
#include "model/gguf_writer.h"
#include "model/inspect.h"
#include "model/tiny_model.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::HasSubstr;

class Load : public testing::Test {
 protected:
  LoadOptions Options() {
    return {.pool = pool_,
            .kernels = **tensor::SelectKernels("auto"),
            .rows_max = 16,
            .logits_rows_max = 4};
  }
  base::Result<std::unique_ptr<Model>> LoadFile(const std::string& file, LoadOptions options) {
    auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    if (!gguf.ok()) return gguf.status();
    return LoadModel(**gguf, options);
  }
  base::Result<std::unique_ptr<Model>> LoadFile(const std::string& file) {
    return LoadFile(file, Options());
  }
  tensor::ThreadPool pool_{{.threads = 2}};
};

// Renames a tensor in place; both names have the same length.
std::string Renamed(std::string file, std::string_view from, std::string_view to) {
  const size_t at = file.find(from);
  CHECK(at != std::string::npos && from.size() == to.size());
  return file.replace(at, to.size(), to);
}

TEST_F(Load, TellsWhatItLoaded) {
  const TinyModelSpec spec{.types = {8, 2, 3, 6, 7}};
  const std::string file = TinyModel(spec);
  auto model = LoadFile(file);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const ModelInfo& info = (*model)->info();
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.name, "tiny");
  EXPECT_EQ(info.vocabulary_size, spec.vocabulary);
  EXPECT_EQ(info.context_max, spec.context);
  EXPECT_EQ(info.page_bytes, 2u * 2 * 2 * 16 * 128 * 2);  // docs/kv_page.md
  EXPECT_EQ(info.numerics_id, "p2-f16kv");
  EXPECT_EQ((*model)->rows_max(), 16u);
  EXPECT_EQ((*model)->logits_rows_max(), 4u);
}

TEST_F(Load, InspectionPredictsTheLoadedSizes) {
  for (const bool tied : {false, true}) {
    // Outputs that are no multiple of a panel, floats and every kind of block.
    const std::string file = TinyModel({.embedding = 256,
                                        .feed_forward = 512,
                                        .heads = 16,
                                        .vocabulary = 301,
                                        .types = {12, 14, 0, 1, 30, 13, 8},
                                        .embedding_type = 13,
                                        .tied_output = tied});
    auto gguf = Gguf::Parse(std::as_bytes(std::span(file)));
    ASSERT_TRUE(gguf.ok()) << gguf.status().ToString();
    auto inspection = Inspect(**gguf);
    ASSERT_TRUE(inspection.ok()) << inspection.status().ToString();
    EXPECT_TRUE(inspection->unsupported.ok()) << inspection->unsupported.ToString();
    auto model = LoadModel(**gguf, Options());
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    EXPECT_EQ(inspection->memory.weight_bytes, (*model)->info().weight_bytes);
    EXPECT_EQ(inspection->memory.page_bytes, (*model)->info().page_bytes);
    EXPECT_EQ(inspection->parameters, (*model)->info().parameters);
    EXPECT_EQ(inspection->tokenizer_model, "gpt2");
    EXPECT_EQ(inspection->vocabulary_tokens, 301u);
    EXPECT_THAT(inspection->chat_template, HasSubstr("<|im_start|>"));
    uint64_t bytes = 0;
    for (const TypeShare& share : inspection->types) {
      EXPECT_LE(share.bytes, inspection->types[0].bytes);
      bytes += share.bytes;
    }
    EXPECT_GT(bytes, file.size() / 2);
    EXPECT_LT(bytes, file.size());
    EXPECT_EQ(MemoryFor(inspection->memory, 129, 3), inspection->memory.weight_bytes +
                                                         inspection->memory.workspace_bytes +
                                                         6 * inspection->memory.page_bytes);
  }
}

TEST_F(Load, ReportsProgressToTheEnd) {
  LoadProgress last;
  uint32_t calls = 0;
  LoadOptions options = Options();
  options.progress = [&](const LoadProgress& progress) {
    EXPECT_GT(progress.bytes_done, last.bytes_done);
    last = progress;
    ++calls;
  };
  ASSERT_TRUE(LoadFile(TinyModel({.tied_output = false}), options).ok());
  EXPECT_GT(calls, 10u);
  EXPECT_EQ(last.bytes_done, last.bytes_total);
}

TEST_F(Load, RefusesOptionsOutOfRange) {
  const std::string file = TinyModel({});
  for (const auto& [rows, logits_rows] :
       {std::pair(0u, 1u), {kRowsMax + 1, 1u}, {8u, 0u}, {8u, 9u}}) {
    LoadOptions options = Options();
    options.rows_max = rows;
    options.logits_rows_max = logits_rows;
    EXPECT_EQ(LoadFile(file, options).status().code(), Code::kInvalidArgument);
  }
}

TEST_F(Load, CapsTheContext) {
  LoadOptions options = Options();
  options.context_max = 100;
  EXPECT_EQ((*LoadFile(TinyModel({}), options))->info().context_max, 100u);
  options.context_max = 5000;
  EXPECT_EQ((*LoadFile(TinyModel({}), options))->info().context_max, 1024u);
  EXPECT_EQ((*LoadFile(TinyModel({.context = 1u << 20})))->info().context_max, kContextDefaultMax);
}

TEST_F(Load, RefusesTensorsThatDoNotFitTheFamily) {
  const std::string good = TinyModel({.qkv_bias = true});
  std::string not_finite = good;
  std::string late = good;
  for (const char part : {'q', 'k', 'v'}) {
    std::string name = std::string("blk.0.attn_") + part + ".bias", other = name;
    other[6] = 'A';
    late = Renamed(late, name, other);
  }
  const float nan = std::nanf("");
  std::memcpy(not_finite.data() + not_finite.size() - 4, &nan, 4);  // ends with output_norm.weight
  struct Case {
    const char* name;
    std::string file;
    Code code;
    const char* field;
  };
  const Case cases[] = {
      {"missing", Renamed(good, "blk.1.ffn_up.weight", "blk.1.ffn_UP.weight"), Code::kCorrupt,
       "blk.1.ffn_up.weight"},
      {"one bias missing", Renamed(good, "blk.1.attn_v.bias", "blk.1.attn_V.bias"), Code::kCorrupt,
       "blk.1.attn_v.bias"},
      {"a bias lost in the first layer", Renamed(good, "blk.0.attn_q.bias", "blk.0.attn_Q.bias"),
       Code::kCorrupt, "blk.0.attn_k.bias"},
      {"biases in the last layer only", late, Code::kCorrupt, "blk.1.attn_q.bias"},
      {"not finite", not_finite, Code::kCorrupt, "output_norm.weight"},
      {"heads of 8", TinyModel({.embedding = 64, .heads = 8, .kv_heads = 8, .head_dim = 8}),
       Code::kUnsupported, "llama.attention.key_length"},
      {"qwen2 with a window",
       TinyModel({.architecture = "qwen2", .sliding_window = 64, .qkv_bias = true}),
       Code::kUnsupported, "qwen2.attention.sliding_window"},
      {"gemma3 without its norms",
       Renamed(TinyModel({.architecture = "gemma3"}), "blk.1.post_ffw_norm.weight",
               "blk.1.post_ffw_NORM.weight"),
       Code::kCorrupt, "blk.1.post_ffw_norm.weight"},
  };
  for (const Case& c : cases) {
    auto model = LoadFile(c.file);
    EXPECT_EQ(model.status().code(), c.code) << c.name << ": " << model.status().ToString();
    EXPECT_EQ(model.status().field(), c.field) << c.name;
    EXPECT_FALSE(model.status().message().empty());
  }
}

TEST_F(Load, RefusesWrongShapesTypesAndStrangers) {
  const std::string small = TinyModel({.layers = 1, .tokenizer = false});
  auto gguf = Gguf::Parse(std::as_bytes(std::span(small)));
  ASSERT_TRUE(gguf.ok());
  // Rebuilds the file with one tensor changed.
  const auto rebuild = [&](std::string_view changed, uint32_t type, std::vector<uint64_t> dims,
                           size_t size, std::string_view extra) {
    GgufWriter writer;
    writer.Text("general.architecture", "llama");
    for (const auto& [key, value] : (*gguf)->values()) {
      if (value.type == GgufType::kUint32) {
        writer.Value(key, static_cast<uint32_t>(*(*gguf)->Unsigned(key)));
      } else if (value.type == GgufType::kFloat32) {
        writer.Value(key, static_cast<float>(*(*gguf)->Number(key)));
      }
    }
    for (const GgufTensor& tensor : (*gguf)->tensors()) {
      const bool change = tensor.name == changed;
      const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                                   tensor.bytes.size());
      writer.Tensor(tensor.name, change ? type : tensor.type,
                    change ? std::span<const uint64_t>(dims)
                           : std::span(tensor.dims).first(tensor.dims_count),
                    change ? std::string(size, '\0') : std::string(bytes));
    }
    const uint64_t one[] = {1};
    if (!extra.empty()) writer.Tensor(extra, 0, one, std::string(4, '\0'));
    return writer.Finish();
  };
  struct Case {
    std::string file;
    Code code;
    const char* field;
  };
  const Case cases[] = {
      {rebuild("blk.0.attn_k.weight", 0, {64, 31}, 64 * 31 * 4, ""), Code::kCorrupt,
       "blk.0.attn_k.weight"},
      {rebuild("blk.0.attn_k.weight", 0, {32, 64}, 64 * 32 * 4, ""), Code::kCorrupt,
       "blk.0.attn_k.weight"},
      {rebuild("output_norm.weight", 0, {63}, 63 * 4, ""), Code::kCorrupt, "output_norm.weight"},
      {rebuild("blk.0.attn_k.weight", 20, {64, 32}, 64 * 18, ""), Code::kUnsupported,
       "blk.0.attn_k.weight"},
      {rebuild("", 0, {}, 0, "blk.0.attn_q_norm.weight"), Code::kUnsupported,
       "blk.0.attn_q_norm.weight"},
      {rebuild("", 0, {}, 0, "blk.1.attn_q.weight"), Code::kUnsupported, "blk.1.attn_q.weight"},
      {rebuild("", 0, {}, 0, ""), Code::kOk, ""},
  };
  for (const Case& c : cases) {
    auto model = LoadFile(c.file);
    EXPECT_EQ(model.status().code(), c.code) << model.status().ToString();
    EXPECT_EQ(model.status().field(), c.field) << model.status().ToString();
  }
}

TEST_F(Load, SaysWhatIsMissingToAModel) {
  const auto weights = OpenModelFile("/x/model.safetensors");
  EXPECT_EQ(weights.status().code(), Code::kUnsupported);
  EXPECT_THAT(weights.status().message(), HasSubstr("the folder"));
  const base::ScratchFolder empty;
  const auto folder = OpenModelFile(empty.path());
  EXPECT_EQ(folder.status().code(), Code::kUnsupported);
  EXPECT_THAT(folder.status().message(), HasSubstr("config.json"));
  EXPECT_EQ(OpenModelFile("/x/model.gguf").status().code(), Code::kNotFound);
}

// Whatever a byte becomes: an error, or a model that computes without leaving its memory.
TEST_F(Load, AnyFlippedByteGivesAnErrorOrAModel) {
  const std::string file = TinyModel({.layers = 1,
                                      .embedding = 32,
                                      .feed_forward = 32,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .vocabulary = 8,
                                      .context = 64,
                                      .types = {2, 3, 6, 7, 8},
                                      .tokenizer = false});
  base::Rng rng(5);
  uint32_t loaded = 0;
  const base::TokenId tokens[] = {base::TokenId{1}, base::TokenId{2}};
  for (uint32_t round = 0; round < 3000; ++round) {
    std::string changed = file;
    // Two thirds in the header, where most can go wrong.
    const size_t at = rng.Below(round % 3 == 0 ? file.size() : 2200);
    changed[at] = static_cast<char>(rng.Next());
    LoadOptions options = Options();
    options.context_max = 64;
    auto model = LoadFile(changed, options);
    if (!model.ok()) continue;
    ++loaded;
    std::vector<std::byte> page((*model)->info().page_bytes);
    std::byte* const pages[] = {page.data()};
    std::vector<float> logits((*model)->info().vocabulary_size);
    const uint32_t count = std::min((*model)->info().context_max, 2u);
    const SequenceRows rows[] = {{std::span(tokens).first(count), 0, pages, 1}};
    (*model)->Forward(rows, logits);
  }
  EXPECT_GT(loaded, 100u);
  EXPECT_LT(loaded, 2900u);
}

}  // namespace
}  // namespace plumb::model
