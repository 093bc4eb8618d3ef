// model/families/deepseek_v41_weights_test.cc: every weight is found where the file has it, and a
// checkpoint with one thing wrong is refused in one line that names the tensor.
#include "model/families/deepseek_v41_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "model/deepseek_checkpoint.h"
#include "model/families/deepseek_v41_need.h"
#include "model/families/deepseek_v41_tiny.h"
#include "tensor/cpu_features.h"

namespace plumb::model {
namespace {

using base::Code;
using base::Result;
using testing::HasSubstr;
using testing::Not;

// A checkpoint in memory, and its weights.
class Mapped {
 public:
  explicit Mapped(const DeepseekTiny& tiny, uint32_t threads = 2) : pool_({.threads = threads}) {
    SafetensorsWriter writer;
    for (const DeepseekTinyTensor& t : tiny.tensors) {
      writer.Tensor(t.name, t.type, t.shape, t.bytes);
    }
    file_ = writer.Finish();
    const std::string config = tiny.config.dump();
    auto parsed = Safetensors::Parse(std::as_bytes(std::span(file_)));
    if (!parsed.ok()) {
      status_ = parsed.status();
      return;
    }
    std::vector<std::unique_ptr<Safetensors>> files;
    files.push_back(*std::move(parsed));
    auto assembled = DeepseekCheckpoint::Assemble(
        "tiny", {.config = config}, nlohmann::json(tiny.token_map).dump(), std::move(files));
    if (!assembled.ok()) {
      status_ = assembled.status();
      return;
    }
    checkpoint_ = *std::move(assembled);
    config_ = *ReadDeepseekConfig(*checkpoint_);
    Map({});
  }

  void Map(std::function<void(const LoadProgress&)> progress) {
    auto weights = MapDeepseekWeights(*checkpoint_, config_,
                                      {.pool = pool_,
                                       .kernels = **tensor::SelectKernels("auto"),
                                       .progress = std::move(progress)});
    status_ = weights.status();
    if (weights.ok()) weights_ = *std::move(weights);
  }

  const base::Status& status() const { return status_; }
  const DeepseekWeights& weights() const { return weights_; }
  const DeepseekConfig& config() const { return config_; }
  const Checkpoint& checkpoint() const { return *checkpoint_; }
  const std::byte* Bytes(const std::string& name) const {
    return checkpoint_->FindTensor(name)->bytes.data();
  }

 private:
  tensor::ThreadPool pool_;
  std::string file_;
  std::unique_ptr<DeepseekCheckpoint> checkpoint_;
  DeepseekConfig config_;
  DeepseekWeights weights_;
  base::Status status_;
};

// A matrix is where the file has `name` + ".weight" and ".scale".
void ExpectStored(const Mapped& m, const BlockMatrix& matrix, const std::string& name,
                  tensor::BlockFormat format, uint32_t outputs, uint32_t inputs) {
  EXPECT_EQ(matrix.format, format) << name;
  EXPECT_EQ(matrix.outputs, outputs) << name;
  EXPECT_EQ(matrix.inputs, inputs) << name;
  EXPECT_EQ(matrix.weights, m.Bytes(name + ".weight")) << name;
  EXPECT_EQ(matrix.scales, m.Bytes(name + ".scale")) << name;
}

TEST(DeepseekWeights, MatricesAreViewsOfTheFile) {
  const Mapped m(MakeDeepseekTiny({}));
  ASSERT_TRUE(m.status().ok()) << m.status().ToString();
  const DeepseekWeights& w = m.weights();
  constexpr auto kF8 = tensor::BlockFormat::kF8Block32;
  constexpr auto kF4 = tensor::BlockFormat::kF4Group32;
  const DeepseekAttention& a = w.layers[1].attention;
  ExpectStored(m, a.query_a, "layers.1.attn.wq_a", kF8, 32, 64);
  ExpectStored(m, a.query_b, "layers.1.attn.wq_b", kF8, 128, 32);
  ExpectStored(m, a.kv, "layers.1.attn.wkv", kF8, 32, 64);
  ExpectStored(m, a.output_a, "layers.1.attn.wo_a", kF8, 64, 64);
  ExpectStored(m, a.output_b, "layers.1.attn.wo_b", kF8, 64, 64);
  ExpectStored(m, a.indexer.query, "layers.1.attn.indexer.wq_b", kF8, 128, 32);
  ExpectStored(m, w.layers[1].engram.kv, "layers.1.engram.wkv", kF8, 320, 128);
  ExpectStored(m, w.layers[4].feed.shared.up, "layers.4.ffn.shared_experts.w3", kF8, 32, 64);
  ExpectStored(m, w.layers[4].feed.experts[5].gate, "layers.4.ffn.experts.5.w1", kF4, 32, 64);
  ExpectStored(m, w.layers[4].feed.experts[5].up, "layers.4.ffn.experts.5.w3", kF4, 32, 64);
  ExpectStored(m, w.layers[4].feed.experts[5].down, "layers.4.ffn.experts.5.w2", kF4, 64, 32);
  EXPECT_EQ(w.embedding.weights, m.Bytes("embed.weight"));
  EXPECT_EQ(w.embedding.format, tensor::BlockFormat::kBf16);
  EXPECT_EQ(w.head.outputs, 96u);
  EXPECT_EQ(w.layers[0].attention_mix.fn.format, tensor::BlockFormat::kF32);
  EXPECT_EQ(w.layers[0].attention_mix.fn.inputs, 256u);
  EXPECT_EQ(w.layers[0].attention_mix.fn.weights, m.Bytes("layers.0.hc_attn_fn"));
  EXPECT_EQ(w.layers[1].engram.table.rows, m.config().engram_rows[0]);
  EXPECT_EQ(w.layers[1].engram.table.codes, m.Bytes("layers.1.engram.embed.weight"));
  EXPECT_EQ(w.layers[1].engram.table.scales, m.Bytes("layers.1.engram.embed.scale"));
}

TEST(DeepseekWeights, OnlySourcesHaveCompressorsAndOnlyPairsHaveGates) {
  const Mapped m(MakeDeepseekTiny({}));
  ASSERT_TRUE(m.status().ok()) << m.status().ToString();
  for (uint32_t i = 0; i < 5; ++i) {
    const DeepseekAttention& a = m.weights().layers[i].attention;
    const DeepseekLayer& layer = m.config().layers[i];
    EXPECT_EQ(a.compressor.value.weights != nullptr, layer.owns_kv) << i;
    EXPECT_EQ(a.compressor.gate.weights != nullptr, layer.owns_kv && layer.ratio == 2) << i;
    EXPECT_EQ(a.indexer.query.weights != nullptr, layer.owns_index) << i;
    EXPECT_EQ(m.weights().layers[i].engram.table.codes != nullptr, i == 1) << i;
  }
}

float BFloatAt(const std::string& bytes, size_t i) {
  uint16_t half;
  std::memcpy(&half, bytes.data() + 2 * i, 2);
  const uint32_t bits = uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

TEST(DeepseekWeights, SmallVectorsAreCopiedExactly) {
  DeepseekTiny tiny = MakeDeepseekTiny({.norm_in_f32 = true});
  const Mapped m(tiny);
  ASSERT_TRUE(m.status().ok()) << m.status().ToString();
  const DeepseekLayerWeights& layer = m.weights().layers[1];
  ASSERT_EQ(layer.attention_norm.size(), 64u);
  EXPECT_EQ(layer.attention_norm[63], BFloatAt(tiny.Tensor("layers.1.attn_norm.weight").bytes, 63));
  float scale[3];
  std::memcpy(scale, tiny.Tensor("layers.1.hc_ffn_scale").bytes.data(), sizeof scale);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(layer.feed_mix.scale[i], scale[i]);
  float last;
  std::memcpy(&last, tiny.Tensor("norm.weight").bytes.data() + 63 * 4, 4);
  EXPECT_EQ(m.weights().norm[63], last);
  ASSERT_EQ(layer.engram.query_key.size(), 256u);
  for (const size_t i : {0u, 100u, 255u}) {
    EXPECT_EQ(layer.engram.query_key[i],
              BFloatAt(tiny.Tensor("layers.1.engram.q_weight").bytes, i) *
                  BFloatAt(tiny.Tensor("layers.1.engram.k_weight").bytes, i));
  }
  EXPECT_EQ(m.weights().token_classes, tiny.token_map);
}

TEST(DeepseekWeights, CountsWhatTheConfigsAlgebraSays) {
  DeepseekTinySpec other;
  other.ratios = {0, 2, 2, 2, 1, 1, 1};
  other.kv_sources = {1, 3, 4};
  other.index_sources = {1, 3, 4, 6};
  other.candidate_source = 4;
  other.engram_layers = {0, 2};
  other.heads = 6;
  other.output_groups = 3;
  other.experts = 5;
  DeepseekTinySpec plain;
  plain.engram_layers.clear();
  for (const DeepseekTinySpec& spec : {DeepseekTinySpec(), other, plain}) {
    const Mapped m(MakeDeepseekTiny(spec));
    ASSERT_TRUE(m.status().ok()) << m.status().ToString();
    const DeepseekNeed need = NeedOf(m.config());
    EXPECT_EQ(m.weights().weight_bytes, need.weight_bytes);
    EXPECT_EQ(m.weights().table_bytes, need.table_bytes);
    EXPECT_EQ(m.weights().parameters, need.parameters);
  }
}

TEST(DeepseekWeights, ProgressEndsWithAll) {
  Mapped m(MakeDeepseekTiny({}));
  LoadProgress last;
  m.Map([&](const LoadProgress& progress) { last = progress; });
  ASSERT_TRUE(m.status().ok());
  EXPECT_GT(last.bytes_total, 0u);
  EXPECT_EQ(last.bytes_done, last.bytes_total);
}

TEST(DeepseekWeights, APrefixOfAllNamesIsAccepted) {
  const Mapped m(MakeDeepseekTiny({.model_prefix = true}));
  EXPECT_TRUE(m.status().ok()) << m.status().ToString();
}

// ---- one thing wrong ----

struct Damage {
  const char* name;  // of the test
  std::function<void(DeepseekTiny&)> apply;
  Code code;
  const char* message;
  bool in_values = false;  // so only found where values are read
};
class Damaged : public testing::TestWithParam<Damage> {};

void Erase(DeepseekTiny& tiny, const std::string& name) {
  std::erase_if(tiny.tensors, [&](const DeepseekTinyTensor& t) { return t.name == name; });
}
void Rename(DeepseekTiny& tiny, const std::string& from, std::string to) {
  tiny.Tensor(from).name = std::move(to);
}
void Reshape(DeepseekTiny& tiny, const std::string& name, std::vector<uint64_t> shape) {
  tiny.Tensor(name).shape = std::move(shape);
}

using Tiny = DeepseekTiny;

std::vector<Damage> Damages() {
  return {
      Damage{"MissingMatrix", [](Tiny& t) { Erase(t, "layers.0.attn.wq_a.weight"); },
             Code::kCorrupt, "has no tensor layers.0.attn.wq_a.weight"},
      Damage{"MissingScale", [](Tiny& t) { Erase(t, "layers.4.ffn.experts.3.w2.scale"); },
             Code::kCorrupt, "has no tensor layers.4.ffn.experts.3.w2.scale"},
      Damage{"MissingNorm", [](Tiny& t) { Erase(t, "norm.weight"); }, Code::kCorrupt,
             "norm.weight"},
      Damage{"MissingTable", [](Tiny& t) { Erase(t, "layers.1.engram.embed.weight"); },
             Code::kCorrupt, "layers.1.engram.embed.weight"},
      Damage{"SwappedDims", [](Tiny& t) { Reshape(t, "layers.0.attn.wq_a.weight", {64, 32}); },
             Code::kCorrupt,
             "layers.0.attn.wq_a.weight is F8_E4M3 [64, 32], expected F8_E4M3 [32, 64]"},
      Damage{"AnotherRank", [](Tiny& t) { Reshape(t, "layers.0.hc_attn_base", {24, 1}); },
             Code::kCorrupt, "[24, 1], expected BF16 or F32 [24]"},
      Damage{"ScaleOfAnotherBlock", [](Tiny& t) { Reshape(t, "layers.0.attn.wq_a.scale", {2, 1}); },
             Code::kCorrupt, "layers.0.attn.wq_a.scale is F8_E8M0 [2, 1]"},
      Damage{"AnotherType", [](Tiny& t) { t.Tensor("embed.weight").type = "F16"; }, Code::kCorrupt,
             "embed.weight is F16 [96, 64], expected BF16 or F32"},
      Damage{"ExpertsInBytes",
             [](Tiny& t) { t.Tensor("layers.2.ffn.experts.0.w1.weight").type = "U8"; },
             Code::kCorrupt, "is U8 [32, 32], expected I8"},
      Damage{"ScalesAsBytes",
             [](Tiny& t) { t.Tensor("layers.2.ffn.experts.0.w1.scale").type = "U8"; },
             Code::kCorrupt, "expected F8_E8M0"},
      Damage{"NanScale",
             [](Tiny& t) { t.Tensor("layers.3.ffn.experts.5.w3.scale").bytes.back() = '\xff'; },
             Code::kCorrupt, "layers.3.ffn.experts.5.w3.scale holds a scale", true},
      Damage{"NanTableScale",
             [](Tiny& t) { t.Tensor("layers.1.engram.embed.scale").bytes[100] = '\xff'; },
             Code::kCorrupt, "layers.1.engram.embed.scale holds a scale", true},
      Damage{"NanWeight", [](Tiny& t) { t.Tensor("layers.3.attn.wo_b.weight").bytes[7] = '\x7f'; },
             Code::kCorrupt, "layers.3.attn.wo_b.weight holds a value", true},
      Damage{"InfiniteHead",
             [](Tiny& t) { t.Tensor("head.weight").bytes.replace(8, 2, std::string("\x80\x7f")); },
             Code::kCorrupt, "head.weight holds a value", true},
      Damage{
          "InfiniteBias",
          [](Tiny& t) {
            t.Tensor("layers.0.ffn.gate.bias").bytes.replace(4, 4, std::string("\0\0\x80\xff", 4));
          },
          Code::kCorrupt, "layers.0.ffn.gate.bias holds a value", true},
      Damage{"FoldedNorm",
             [](Tiny& t) { Rename(t, "image_start", "layers.0.hc_attn_norm.weight"); },
             Code::kUnsupported, "layers.0.hc_attn_norm.weight has no place"},
      Damage{"GateInTheDecoder",
             [](Tiny& t) { Rename(t, "image_start", "layers.3.attn.compressor.wgate.weight"); },
             Code::kUnsupported, "layers.3.attn.compressor.wgate.weight has no place"},
      Damage{"AnotherLayer", [](Tiny& t) { Rename(t, "image_start", "layers.5.ffn_norm.weight"); },
             Code::kUnsupported, "layers.5.ffn_norm.weight has no place"},
      Damage{"Unknown", [](Tiny& t) { Rename(t, "image_start", "rotary.inv_freq"); },
             Code::kUnsupported, "rotary.inv_freq has no place"},
      Damage{"ConfigWithMoreExperts",
             [](Tiny& t) { t.config["text_config"]["n_routed_experts"] = 7; }, Code::kCorrupt,
             "layers.0.ffn.gate.weight is BF16 [6, 64], expected BF16 or F32 [7, 64]"},
      Damage{"ConfigWithFewerLayers",
             [](Tiny& t) {
               t.config["text_config"]["num_hidden_layers"] = 4;
               t.config["text_config"]["compress_ratios"] = {0, 2, 2, 1, 0};
               t.config["text_config"]["index_source_layer_ids"] = {1, 3};
               t.config["text_config"]["dspark_target_layer_ids"] = {2, 3};
             },
             Code::kUnsupported, "layers.4."}};
}

TEST_P(Damaged, IsRefusedInALineThatNamesTheTensor) {
  DeepseekTiny tiny = MakeDeepseekTiny({});
  GetParam().apply(tiny);
  const Mapped m(tiny);
  EXPECT_EQ(m.status().code(), GetParam().code) << m.status().ToString();
  EXPECT_THAT(m.status().message(), HasSubstr(GetParam().message));
  EXPECT_THAT(m.status().message(), HasSubstr(m.status().field()));
  EXPECT_THAT(m.status().message(), Not(HasSubstr("\n")));
  EXPECT_FALSE(m.status().field().empty());
  EXPECT_EQ(CheckDeepseekTensors(m.checkpoint(), m.config()).ok(), GetParam().in_values);
}

INSTANTIATE_TEST_SUITE_P(DeepseekWeights, Damaged, testing::ValuesIn(Damages()),
                         [](const auto& damage) { return std::string(damage.param.name); });

}  // namespace
}  // namespace plumb::model
