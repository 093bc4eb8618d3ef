// model/hf_tensors_test.cc
// Names, row order, stacks, F8 scales and norms, read back row by row; and what is refused.
#include "model/hf_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "model/hf_writer.h"
#include "tensor/float16.h"

namespace plumb::model {
namespace {

using base::Code;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
std::vector<float> Counting(size_t count, float from = 0) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = from + static_cast<float>(i);
  return values;
}

// A mapped file, with what it borrows.
struct Mapped {
  std::string bytes;
  std::unique_ptr<Safetensors> file;
  HfTensors tensors;
  base::Status status;

  Mapped(const SafetensorsWriter& writer, const HfConfig& config) : bytes(writer.Finish()) {
    auto parsed = Safetensors::Parse(std::as_bytes(std::span(bytes)));
    if (!parsed.ok()) {
      status = parsed.status();
      return;
    }
    file = std::move(parsed).value();
    std::vector<const SafetensorsTensor*> stored;
    for (const SafetensorsTensor& tensor : file->tensors()) stored.push_back(&tensor);
    status = tensors.Map(stored, config);
  }
  std::vector<float> Rows(std::string_view name, RowRange range) const {
    tensor::AlignedBuffer scratch;
    const auto rows = tensors.Rows(*tensors.Find(name), range, scratch);
    std::vector<float> values(rows->size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), rows->data(), rows->size());
    return values;
  }
};

HfConfig Config() {
  return {.architecture = "llama",
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 4,
          .experts = 0,
          .tied_output = true,
          .adjacent_pairs = true};
}

TEST(HfTensors, PlainTensorsAreViews) {
  SafetensorsWriter writer;
  writer.Tensor("model.embed_tokens.weight", "F32", {3, 2}, Floats(Counting(6)));
  writer.Tensor("model.layers.1.mlp.down_proj.weight", "BF16", {2, 4}, std::string(16, 'x'));
  const Mapped mapped(writer, Config());
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  const GgufTensor* embedding = mapped.tensors.Find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->dims[0], 2u);
  EXPECT_EQ(embedding->dims[1], 3u);
  EXPECT_EQ(embedding->type, 0u);
  EXPECT_EQ(embedding->bytes.size(), 24u);
  EXPECT_THAT(mapped.Rows("token_embd.weight", {1, 2}), ElementsAre(2, 3, 4, 5));
  const GgufTensor* down = mapped.tensors.Find("blk.1.ffn_down.weight");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->type, 30u);
  EXPECT_EQ(down->stored_bytes, 16u);
  EXPECT_EQ(down->stored_type, "BF16");
}

TEST(HfTensors, QueriesAndKeysChangeToAdjacentPairs) {
  SafetensorsWriter writer;
  writer.Tensor("model.layers.0.self_attn.q_proj.weight", "F32", {8, 1}, Floats(Counting(8)));
  writer.Tensor("model.layers.0.self_attn.k_proj.weight", "F32", {4, 1}, Floats(Counting(4)));
  writer.Tensor("model.layers.0.self_attn.q_proj.bias", "F32", {8}, Floats(Counting(8)));
  writer.Tensor("model.layers.0.self_attn.v_proj.weight", "F32", {4, 1}, Floats(Counting(4)));
  const Mapped mapped(writer, Config());
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  // Of each head, dimension i and i + half become 2i and 2i + 1.
  EXPECT_THAT(mapped.Rows("blk.0.attn_q.weight", {0, 8}), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(mapped.Rows("blk.0.attn_q.weight", {5, 2}), ElementsAre(6, 5));
  EXPECT_THAT(mapped.Rows("blk.0.attn_q.bias", {0, 1}), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
  EXPECT_THAT(mapped.Rows("blk.0.attn_k.weight", {0, 4}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(mapped.Rows("blk.0.attn_v.weight", {0, 4}), ElementsAre(0, 1, 2, 3));

  HfConfig halves = Config();
  halves.adjacent_pairs = false;
  EXPECT_THAT(Mapped(writer, halves).Rows("blk.0.attn_k.weight", {0, 4}), ElementsAre(0, 1, 2, 3));
}

TEST(HfTensors, GemmaNormsGetTheirOne) {
  HfConfig config = Config();
  config.architecture = "gemma3";
  config.norms_lack_one = true;
  SafetensorsWriter writer;
  const uint16_t half = tensor::FloatToHalf(0.25f);
  const std::string halves(reinterpret_cast<const char*>(&half), 2);
  const std::string layer = "model.layers.0.";
  writer.Tensor(layer + "post_attention_layernorm.weight", "F16", {2}, halves + halves);
  writer.Tensor(layer + "pre_feedforward_layernorm.weight", "F32", {1}, Floats({-0.5f}));
  writer.Tensor(layer + "post_feedforward_layernorm.weight", "F32", {1}, Floats({0.5f}));
  writer.Tensor(layer + "self_attn.q_norm.weight", "F32", {1}, Floats({1.0f}));
  writer.Tensor(layer + "mlp.up_proj.weight", "F32", {1, 1}, Floats({1.0f}));
  const Mapped mapped(writer, config);
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  EXPECT_EQ(mapped.tensors.Find("blk.0.post_attention_norm.weight")->type, 0u);
  EXPECT_THAT(mapped.Rows("blk.0.post_attention_norm.weight", {0, 1}), ElementsAre(1.25f, 1.25f));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_norm.weight", {0, 1}), ElementsAre(0.5f));
  EXPECT_THAT(mapped.Rows("blk.0.post_ffw_norm.weight", {0, 1}), ElementsAre(1.5f));
  EXPECT_THAT(mapped.Rows("blk.0.attn_q_norm.weight", {0, 1}), ElementsAre(2.0f));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_up.weight", {0, 1}), ElementsAre(1.0f));
}

HfConfig WithExperts() {
  HfConfig config = Config();
  config.experts = 3;
  return config;
}

TEST(HfTensors, ExpertsBecomeAStack) {
  SafetensorsWriter writer;
  for (const int expert : {2, 0, 1}) {
    const std::string name = "model.layers.0.block_sparse_moe.experts." + std::to_string(expert);
    const auto from = static_cast<float>(10 * expert);
    writer.Tensor(name + ".w1.weight", "F32", {2, 3}, Floats(Counting(6, from)));
    writer.Tensor(name + ".w3.weight", "F32", {2, 3}, Floats(Counting(6, from + 100)));
    writer.Tensor(name + ".w2.weight", "F32", {3, 2}, Floats(Counting(6, from + 200)));
  }
  const Mapped mapped(writer, WithExperts());
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  const GgufTensor* gate = mapped.tensors.Find("blk.0.ffn_gate_exps.weight");
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->dims_count, 3u);
  EXPECT_THAT(gate->dims, ElementsAre(3, 2, 3, 1));
  EXPECT_EQ(gate->stored_bytes, 72u);
  EXPECT_THAT(mapped.Rows("blk.0.ffn_gate_exps.weight", {2, 2}),
              ElementsAre(10, 11, 12, 13, 14, 15));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_up_exps.weight", {4, 1}), ElementsAre(120, 121, 122));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_down_exps.weight", {8, 1}), ElementsAre(224, 225));
  // Over the border of two experts.
  EXPECT_THAT(mapped.Rows("blk.0.ffn_gate_exps.weight", {1, 2}), ElementsAre(3, 4, 5, 10, 11, 12));
}

TEST(HfTensors, AStackInOneTensorIsCutInTwo) {
  SafetensorsWriter writer;
  writer.Tensor("model.layers.0.mlp.experts.gate_up_proj", "F32", {3, 4, 1}, Floats(Counting(12)));
  writer.Tensor("model.layers.0.mlp.experts.down_proj", "F32", {3, 1, 2}, Floats(Counting(6)));
  const Mapped mapped(writer, WithExperts());
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  EXPECT_THAT(mapped.Rows("blk.0.ffn_gate_exps.weight", {0, 6}), ElementsAre(0, 1, 4, 5, 8, 9));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_up_exps.weight", {2, 2}), ElementsAre(6, 7));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_down_exps.weight", {1, 1}), ElementsAre(2, 3));
  EXPECT_EQ(mapped.tensors.Find("blk.0.ffn_up_exps.weight")->stored_bytes, 24u);
}

TEST(HfTensors, F8IsValueTimesScaleOfItsBlock) {
  HfConfig config = Config();
  config.adjacent_pairs = false;
  config.f8_block = ScaleBlock{2, 3};
  SafetensorsWriter writer;
  std::string bytes;
  for (int i = 0; i < 12; ++i) bytes += static_cast<char>(0x38 + i);  // 1, 1.125, ...
  writer.Tensor("model.layers.0.mlp.up_proj.weight", "F8_E4M3", {3, 4}, bytes);
  writer.Tensor("model.layers.0.mlp.up_proj.weight_scale_inv", "F32", {2, 2},
                Floats({0.1f, 0.2f, 0.3f, 0.4f}));
  const Mapped mapped(writer, config);
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  const GgufTensor* up = mapped.tensors.Find("blk.0.ffn_up.weight");
  ASSERT_NE(up, nullptr);
  EXPECT_EQ(up->type, 0u);
  EXPECT_EQ(up->stored_type, "F8_E4M3");
  EXPECT_EQ(up->stored_bytes, 28u);
  const std::vector<float> values = mapped.Rows("blk.0.ffn_up.weight", {0, 3});
  ASSERT_EQ(values.size(), 12u);
  const float scales[] = {0.1f, 0.2f, 0.3f, 0.4f};
  for (uint32_t row = 0; row < 3; ++row) {
    for (uint32_t column = 0; column < 4; ++column) {
      const float value = FromF8E4M3(static_cast<uint8_t>(0x38 + row * 4 + column));
      EXPECT_EQ(values[row * 4 + column], value * scales[row / 2 * 2 + column / 3]);
    }
  }
}

TEST(HfTensors, F8Values) {
  EXPECT_EQ(FromF8E4M3(0x00), 0.0f);
  EXPECT_EQ(FromF8E4M3(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(FromF8E4M3(0x07), std::ldexp(7.0f, -9));
  EXPECT_EQ(FromF8E4M3(0x08), std::ldexp(1.0f, -6));
  EXPECT_EQ(FromF8E4M3(0x38), 1.0f);
  EXPECT_EQ(FromF8E4M3(0x39), 1.125f);
  EXPECT_EQ(FromF8E4M3(0x7e), 448.0f);
  EXPECT_EQ(FromF8E4M3(0xfe), -448.0f);
  EXPECT_TRUE(std::signbit(FromF8E4M3(0x80)));
  EXPECT_TRUE(std::isnan(FromF8E4M3(0x7f)));
  EXPECT_TRUE(std::isnan(FromF8E4M3(0xff)));
}

TEST(HfTensors, TensorsThatLieOddlyAreCopied) {
  SafetensorsWriter writer;
  HfConfig config = Config();
  config.f8_block = ScaleBlock{1, 1};
  writer.Tensor("model.layers.0.mlp.gate_proj.weight", "F8_E4M3", {1, 1}, "\x38");
  writer.Tensor("model.layers.0.mlp.up_proj.weight", "F32", {2, 1}, Floats({1, 2}));
  writer.Tensor("model.layers.0.mlp.gate_proj.weight_scale_inv", "F32", {1, 1}, Floats({3}));
  const Mapped mapped(writer, config);
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  EXPECT_TRUE(mapped.tensors.Find("blk.0.ffn_up.weight")->bytes.empty());
  EXPECT_THAT(mapped.Rows("blk.0.ffn_up.weight", {0, 2}), ElementsAre(1, 2));
  EXPECT_THAT(mapped.Rows("blk.0.ffn_gate.weight", {0, 1}), ElementsAre(3));
  EXPECT_TRUE(mapped.Rows("blk.0.ffn_up.weight", {2, 0}).empty()) << "no rows, at the end";
  EXPECT_TRUE(mapped.Rows("blk.0.ffn_gate.weight", {1, 0}).empty());
}

TEST(HfTensors, FrequencyFactorsAreATensor) {
  HfConfig config = Config();
  config.rope_factors = {1, 8};
  const Mapped mapped(SafetensorsWriter(), config);
  ASSERT_TRUE(mapped.status.ok()) << mapped.status.ToString();
  EXPECT_EQ(mapped.tensors.Find("rope_freqs.weight")->dims[0], 2u);
  EXPECT_THAT(mapped.Rows("rope_freqs.weight", {0, 1}), ElementsAre(1, 8));
}

TEST(HfTensors, TiedOutputAndOldBuffersAreLeftOut) {
  SafetensorsWriter writer;
  writer.Tensor("lm_head.weight", "F32", {1, 1}, Floats({1}));
  writer.Tensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, Floats({1}));
  EXPECT_TRUE(Mapped(writer, Config()).tensors.tensors().empty());
  HfConfig untied = Config();
  untied.tied_output = false;
  EXPECT_NE(Mapped(writer, untied).tensors.Find("output.weight"), nullptr);
}

// A folder that is refused, and the tensor that the error names.
struct Refusal {
  const char* what;
  std::function<void(SafetensorsWriter&, HfConfig&)> change;
  Code code;
  const char* name;
};
void ExpectRefusals(const std::vector<Refusal>& cases) {
  for (const Refusal& each : cases) {
    SafetensorsWriter writer;
    HfConfig config = WithExperts();
    each.change(writer, config);
    const Mapped mapped(writer, config);
    EXPECT_EQ(mapped.status.code(), each.code) << each.what << mapped.status.ToString();
    EXPECT_EQ(mapped.status.field(), each.name) << each.what;
    EXPECT_THAT(mapped.status.message(), HasSubstr(each.name)) << each.what;
  }
}
const std::string kLayer = "model.layers.0.";
const std::string kValue = kLayer + "self_attn.v_proj.weight";

TEST(HfTensors, RefusesUnknownAndMisshapenTensors) {
  ExpectRefusals({
      {"unknown", [](auto& w, auto&) { w.Tensor("model.vision.weight", "F32", {1}, "1234"); },
       Code::kUnsupported, "model.vision.weight"},
      {"layer out of range",
       [](auto& w, auto&) {
         w.Tensor("model.layers.2.self_attn.v_proj.weight", "F32", {1, 1}, "1234");
       },
       Code::kUnsupported, "model.layers.2.self_attn.v_proj.weight"},
      {"layer overflows",
       [](auto& w, auto&) { w.Tensor("model.layers.4294967296.x", "F32", {1}, "1234"); },
       Code::kUnsupported, "model.layers.4294967296.x"},
      {"one place twice",
       [](auto& w, auto&) {
         w.Tensor(kValue, "F32", {1, 1}, "1234");
         w.Tensor("model.layers.00.self_attn.v_proj.weight", "F32", {1, 1}, "1234");
       },
       Code::kCorrupt, "model.layers.00.self_attn.v_proj.weight"},
      {"other type", [](auto& w, auto&) { w.Tensor(kValue, "I32", {1, 1}, "1234"); },
       Code::kUnsupported, "model.layers.0.self_attn.v_proj.weight"},
      {"three dimensions", [](auto& w, auto&) { w.Tensor(kValue, "F32", {1, 1, 1}, "1234"); },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight"},
      {"a number", [](auto& w, auto&) { w.Tensor(kValue, "F32", {}, "1234"); }, Code::kCorrupt,
       "model.layers.0.self_attn.v_proj.weight"},
      {"query rows",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "self_attn.q_proj.weight", "F32", {7, 1}, std::string(28, 'x'));
       },
       Code::kCorrupt, "model.layers.0.self_attn.q_proj.weight"},
      {"no output", [](auto&, auto& config) { config.tied_output = false; }, Code::kCorrupt,
       "lm_head.weight"},
  });
}

TEST(HfTensors, RefusesExperts) {
  ExpectRefusals({
      {"expert out of range",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "block_sparse_moe.experts.3.w3.weight", "F32", {1, 1}, "1234");
       },
       Code::kUnsupported, "model.layers.0.block_sparse_moe.experts.3.w3.weight"},
      {"expert missing",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "block_sparse_moe.experts.0.w3.weight", "F32", {1, 1}, "1234");
         w.Tensor(kLayer + "block_sparse_moe.experts.2.w3.weight", "F32", {1, 1}, "1234");
       },
       Code::kCorrupt, "blk.0.ffn_up_exps.weight"},
      {"experts differ in shape",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "block_sparse_moe.experts.0.w3.weight", "F32", {1, 1}, "1234");
         w.Tensor(kLayer + "block_sparse_moe.experts.1.w3.weight", "F32", {2, 1}, "12345678");
       },
       Code::kCorrupt, "model.layers.0.block_sparse_moe.experts.1.w3.weight"},
      {"experts differ in type",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "block_sparse_moe.experts.0.w3.weight", "F32", {1, 1}, "1234");
         w.Tensor(kLayer + "block_sparse_moe.experts.1.w3.weight", "F16", {1, 1}, "12");
       },
       Code::kCorrupt, "model.layers.0.block_sparse_moe.experts.1.w3.weight"},
      {"expert twice",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "block_sparse_moe.experts.0.w3.weight", "F32", {1, 1}, "1234");
         w.Tensor(kLayer + "block_sparse_moe.experts.00.w3.weight", "F32", {1, 1}, "1234");
       },
       Code::kCorrupt, "model.layers.0.block_sparse_moe.experts.00.w3.weight"},
      {"stack of two",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "mlp.experts.down_proj", "F32", {2, 1, 1}, "12345678");
       },
       Code::kCorrupt, "model.layers.0.mlp.experts.down_proj"},
      {"stack that has no halves",
       [](auto& w, auto&) {
         w.Tensor(kLayer + "mlp.experts.gate_up_proj", "F32", {3, 1, 1}, "123456789012");
       },
       Code::kCorrupt, "model.layers.0.mlp.experts.gate_up_proj"},
  });
}

TEST(HfTensors, RefusesF8) {
  ExpectRefusals({
      {"F8 unannounced", [](auto& w, auto&) { w.Tensor(kValue, "F8_E4M3", {1, 1}, "1"); },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight"},
      {"F8 without a scale",
       [](auto& w, auto& config) {
         config.f8_block = ScaleBlock{128, 128};
         w.Tensor(kValue, "F8_E4M3", {1, 1}, "1");
       },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight"},
      {"F8 with too few scales",
       [](auto& w, auto& config) {
         config.f8_block = ScaleBlock{1, 1};
         w.Tensor(kValue, "F8_E4M3", {2, 1}, "12");
         w.Tensor(kValue + "_scale_inv", "F32", {1, 1}, "1234");
       },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight_scale_inv"},
      {"F8 with scales of another type",
       [](auto& w, auto& config) {
         config.f8_block = ScaleBlock{1, 1};
         w.Tensor(kValue, "F8_E4M3", {1, 1}, "1");
         w.Tensor(kValue + "_scale_inv", "F8_E8M0", {1, 1}, "1");
       },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight_scale_inv"},
      {"scale of a BF16 matrix",
       [](auto& w, auto& config) {
         config.f8_block = ScaleBlock{1, 1};
         w.Tensor(kValue, "BF16", {1, 1}, "12");
         w.Tensor(kValue + "_scale_inv", "F32", {1, 1}, "1234");
       },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight"},
      {"scale of nothing",
       [](auto& w, auto&) { w.Tensor(kValue + "_scale_inv", "F32", {1, 1}, "1234"); },
       Code::kCorrupt, "model.layers.0.self_attn.v_proj.weight_scale_inv"},
  });
}

}  // namespace
}  // namespace plumb::model
