// model/hf_config_test.cc
// Keys that config.json turns into, for each architecture and both generations of transformers, and
// what is refused.
#include "model/hf_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/hf_config_testing.h"

namespace plumb::model {
namespace {

using base::Code;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(HfConfig, LlamaBecomesGgufKeys) {
  json source = Base("LlamaForCausalLM");
  source["rope_theta"] = 500000.0;
  const Read read(source);
  ASSERT_TRUE(read.config.ok()) << read.config.status().ToString();
  EXPECT_EQ(*read.values.Text("general.architecture"), "llama");
  EXPECT_EQ(*read.values.Text("general.name"), "tiny");
  EXPECT_EQ(read.Unsigned("llama.block_count"), 4u);
  EXPECT_EQ(read.Unsigned("llama.embedding_length"), 64u);
  EXPECT_EQ(read.Unsigned("llama.feed_forward_length"), 96u);
  EXPECT_EQ(read.Unsigned("llama.attention.head_count"), 4u);
  EXPECT_EQ(read.Unsigned("llama.attention.head_count_kv"), 2u);
  EXPECT_EQ(read.Unsigned("llama.attention.key_length"), 16u);
  EXPECT_EQ(read.Unsigned("llama.attention.value_length"), 16u);
  EXPECT_EQ(read.Unsigned("llama.context_length"), 512u);
  EXPECT_EQ(read.Unsigned("llama.vocab_size"), 320u);
  EXPECT_EQ(read.Number("llama.attention.layer_norm_rms_epsilon"), 1e-5);
  EXPECT_EQ(read.Number("llama.rope.freq_base"), 500000.0);
  EXPECT_FALSE(read.values.Has("llama.attention.sliding_window"));
  EXPECT_TRUE(read.config->adjacent_pairs);
  EXPECT_FALSE(read.config->tied_output);
  EXPECT_TRUE(read.config->rope_factors.empty());
}

// As the configuration classes of transformers: an absent key is the class's default.
TEST(HfConfig, AbsentNumbersHaveTheDefaultsOfTheClass) {
  struct Case {
    const char* class_name;
    uint32_t kv_heads, head_dim;
    double theta;
    bool tied;
  };
  for (const Case& each : {Case{"LlamaForCausalLM", 4, 16, 1e4, false},
                           {"MistralForCausalLM", 8, 16, 1e4, false},
                           {"MixtralForCausalLM", 8, 16, 1e6, false},
                           {"Qwen2ForCausalLM", 32, 16, 1e4, false},
                           {"Qwen3ForCausalLM", 32, 128, 1e4, false},
                           {"Qwen3MoeForCausalLM", 4, 16, 1e4, false},
                           {"Gemma3ForCausalLM", 4, 256, 1e6, true}}) {
    json source = Base(each.class_name);
    source.erase("num_key_value_heads");
    source["num_experts"] = 4;
    source["num_experts_per_tok"] = 2;
    source["moe_intermediate_size"] = 32;
    const Read read(source);
    ASSERT_TRUE(read.config.ok()) << read.config.status().ToString();
    EXPECT_EQ(read.config->kv_heads, each.kv_heads) << each.class_name;
    EXPECT_EQ(read.config->head_dim, each.head_dim) << each.class_name;
    EXPECT_EQ(read.Number((read.config->architecture + ".rope.freq_base").c_str()), each.theta);
    EXPECT_EQ(read.config->tied_output, each.tied) << each.class_name;
    source["num_key_value_heads"] = nullptr;
    EXPECT_EQ(Read(source).config->kv_heads, 4u) << each.class_name << ": as many as heads";
  }
  json nothing = Base("LlamaForCausalLM");
  nothing["head_dim"] = nullptr;
  EXPECT_EQ(Read(nothing).config->head_dim, 16u);
  EXPECT_EQ(Read(Base("MixtralForCausalLM")).config.status().code(), Code::kCorrupt);
  json typed = Base("x");
  typed.erase("architectures");
  typed["model_type"] = "mistral";
  EXPECT_EQ(Read(typed).config->architecture, "llama");
}

TEST(HfConfig, AbsentWindowsAreTheClassesOwnAndNullIsNone) {
  const auto window = [](const json& source, const char* architecture) {
    const Read read(source);
    EXPECT_TRUE(read.config.ok()) << read.config.status().ToString();
    return read.Unsigned(fmt::format("{}.attention.sliding_window", architecture).c_str());
  };
  constexpr uint64_t kNone = 999999;
  EXPECT_EQ(window(Base("MistralForCausalLM"), "llama"), 4096u);
  EXPECT_EQ(window(Base("LlamaForCausalLM"), "llama"), kNone);
  json mixtral = Base("MixtralForCausalLM");
  mixtral["num_local_experts"] = 8;
  mixtral["num_experts_per_tok"] = 2;
  EXPECT_EQ(window(mixtral, "llama"), kNone);
  json qwen = Base("Qwen2ForCausalLM");
  EXPECT_EQ(window(qwen, "qwen2"), kNone);
  qwen["use_sliding_window"] = true;
  EXPECT_EQ(window(qwen, "qwen2"), kNone) << "from layer 28 on, and there are 4";
  qwen["max_window_layers"] = 1;
  EXPECT_EQ(window(qwen, "qwen2"), 4096u);
  qwen["sliding_window"] = nullptr;
  EXPECT_EQ(window(qwen, "qwen2"), kNone);
  json gemma = Base("Gemma3ForCausalLM");
  gemma["num_hidden_layers"] = 7;
  const Read read(gemma);
  EXPECT_EQ(read.Unsigned("gemma3.attention.sliding_window"), 4096u);
  EXPECT_THAT(*read.values.Integers("gemma3.attention.sliding_window_pattern"),
              ElementsAre(1, 1, 1, 1, 1, 0, 1));
  EXPECT_EQ(read.Number("gemma3.rope.freq_base_swa"), 1e4);
  EXPECT_EQ(read.Number("gemma3.attention.scale"), 1.0 / 16);
  for (const auto& [key, value] :
       {std::pair("sliding_window", json()), std::pair("query_pre_attn_scalar", json()),
        std::pair("final_logit_softcapping", json(0.0))}) {
    json without = gemma;
    without[key] = value;
    EXPECT_EQ(Read(without).config.status().code(), Code::kCorrupt) << key;
    EXPECT_THAT(Read(without).config.status().message(), HasSubstr(key));
  }
}

TEST(HfConfig, Llama3ScalingBecomesFrequencyFactors) {
  json source = Base("LlamaForCausalLM");
  source["head_dim"] = 64;
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  json older = source, newer = source;
  older["rope_theta"] = 500000.0;
  older["rope_scaling"] = scaling;
  newer["rope_parameters"] = scaling;
  newer["rope_parameters"]["rope_theta"] = 500000.0;
  const Read read(older);
  ASSERT_TRUE(read.config.ok()) << read.config.status().ToString();
  const std::vector<float>& factors = read.config->rope_factors;
  ASSERT_EQ(factors.size(), 32u);
  // Wavelength of dimension i: 2 pi theta^(2i/64). Below 8192/4: 1. Above 8192: 8.
  EXPECT_EQ(factors[0], 1.0f);
  EXPECT_EQ(factors[14], 1.0f);
  EXPECT_GT(factors[15], 1.0f);
  EXPECT_LT(factors[16], 8.0f);
  EXPECT_EQ(factors[18], 8.0f);
  EXPECT_EQ(factors[31], 8.0f);
  // By hand: frequency 500000^(-30/64), smooth = (8192 * frequency / 2 pi - 1) / 3.
  EXPECT_NEAR(factors[15], 1.0 / ((1 - 0.592849295) / 8 + 0.592849295), 1e-5);
  EXPECT_FALSE(read.values.Has("llama.rope.scaling.type"));
  const Read again(newer);
  EXPECT_EQ(again.config->rope_factors, factors);
  EXPECT_EQ(again.Number("llama.rope.freq_base"), 500000.0);
}

TEST(HfConfig, LinearScalingKeepsItsFactor) {
  json source = Base("Qwen2ForCausalLM");
  source["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  const Read read(source);
  EXPECT_EQ(*read.values.Text("qwen2.rope.scaling.type"), "linear");
  EXPECT_EQ(read.Number("qwen2.rope.scaling.factor"), 4.0);
  EXPECT_FALSE(read.config->adjacent_pairs);
}

TEST(HfConfig, WindowsByLayer) {
  const auto pattern = [](const Read& read, const char* key) {
    auto found = read.values.Integers(key);
    return found.ok() ? *found : std::vector<int64_t>();
  };
  json mistral = Base("MistralForCausalLM");
  mistral["sliding_window"] = 64;
  EXPECT_EQ(Read(mistral).Unsigned("llama.attention.sliding_window"), 64u);
  EXPECT_THAT(pattern(Read(mistral), "llama.attention.sliding_window_pattern"),
              ElementsAre(1, 1, 1, 1));
  mistral["sliding_window"] = nullptr;
  EXPECT_FALSE(Read(mistral).values.Has("llama.attention.sliding_window"));

  json qwen = Base("Qwen2ForCausalLM");
  qwen["sliding_window"] = 64;
  qwen["max_window_layers"] = 3;
  EXPECT_FALSE(Read(qwen).values.Has("qwen2.attention.sliding_window"));
  qwen["use_sliding_window"] = true;
  EXPECT_THAT(pattern(Read(qwen), "qwen2.attention.sliding_window_pattern"),
              ElementsAre(0, 0, 0, 1));
  qwen["max_window_layers"] = 4;
  EXPECT_FALSE(Read(qwen).values.Has("qwen2.attention.sliding_window"));

  json gemma = Base("Gemma3ForCausalLM");
  gemma["sliding_window"] = 64;
  gemma["sliding_window_pattern"] = 2;
  EXPECT_THAT(pattern(Read(gemma), "gemma3.attention.sliding_window_pattern"),
              ElementsAre(1, 0, 1, 0));
  gemma["layer_types"] = {"full_attention", "sliding_attention", "sliding_attention",
                          "sliding_attention"};
  EXPECT_THAT(pattern(Read(gemma), "gemma3.attention.sliding_window_pattern"),
              ElementsAre(0, 1, 1, 1));
}

TEST(HfConfig, GemmaHasTwoRotaryBasesAndAScale) {
  json source = Base("Gemma3ForCausalLM");
  source["hidden_activation"] = "gelu_pytorch_tanh";
  source["query_pre_attn_scalar"] = 64;
  source["final_logit_softcapping"] = 30.0;
  json newer = source;
  newer["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 2e4}}}};
  source["rope_theta"] = 2e6;
  source["rope_local_base_freq"] = 2e4;
  source["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  for (const json& each : {source, newer}) {
    const Read read(each);
    ASSERT_TRUE(read.config.ok()) << read.config.status().ToString();
    EXPECT_EQ(read.Number("gemma3.rope.freq_base"), 2e6);
    EXPECT_EQ(read.Number("gemma3.rope.freq_base_swa"), 2e4);
    EXPECT_EQ(read.Number("gemma3.rope.scaling.factor"), 8.0);
    EXPECT_EQ(read.Number("gemma3.attention.scale"), 0.125);
    EXPECT_EQ(read.Number("gemma3.final_logit_softcapping"), 30.0);
    EXPECT_TRUE(read.config->norms_lack_one);
  }
}

TEST(HfConfig, ExpertsOfMixtralAndQwen) {
  json mixtral = Base("MixtralForCausalLM");
  mixtral["num_local_experts"] = 8;
  mixtral["num_experts_per_tok"] = 2;
  const Read first(mixtral);
  EXPECT_EQ(first.config->experts, 8u);
  EXPECT_EQ(first.Unsigned("llama.expert_count"), 8u);
  EXPECT_EQ(first.Unsigned("llama.expert_used_count"), 2u);
  EXPECT_EQ(first.Number("llama.rope.freq_base"), 1e6);

  json qwen = Base("Qwen3MoeForCausalLM");
  qwen["num_experts"] = 16;
  qwen["num_experts_per_tok"] = 4;
  qwen["moe_intermediate_size"] = 32;
  EXPECT_FALSE(*Read(qwen).values.Bool("qwen3moe.expert_weights_norm"));
  qwen["norm_topk_prob"] = true;
  const Read second(qwen);
  EXPECT_TRUE(*second.values.Bool("qwen3moe.expert_weights_norm"));
  EXPECT_EQ(second.Unsigned("qwen3moe.expert_feed_forward_length"), 32u);
  qwen["decoder_sparse_step"] = 2;
  EXPECT_EQ(Read(qwen).config.status().code(), Code::kUnsupported);
  qwen["decoder_sparse_step"] = 1;
  qwen["mlp_only_layers"] = {0};
  EXPECT_EQ(Read(qwen).config.status().code(), Code::kUnsupported);
}

TEST(HfConfig, F8HasABlock) {
  json source = Base("Qwen3ForCausalLM");
  source["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"activation_scheme", "dynamic"},
                                   {"weight_block_size", {128, 64}}};
  const Read read(source);
  ASSERT_TRUE(read.config.ok()) << read.config.status().ToString();
  EXPECT_EQ(read.config->f8_block->outputs, 128u);
  EXPECT_EQ(read.config->f8_block->inputs, 64u);
}

TEST(HfConfig, RefusesByName) {
  struct Case {
    const char* key;
    json value;
    Code code;
  };
  const json fp8 = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  const auto quant = [&](const char* key, const json& value) {
    json changed = fp8;
    changed[key] = value;
    return changed;
  };
  const Case cases[] = {
      {"architectures", json::array({"GptOssForCausalLM"}), Code::kUnsupported},
      {"architectures", json::array({"Llama\n\x01"}), Code::kUnsupported},
      {"num_hidden_layers", 0, Code::kCorrupt},
      {"num_hidden_layers", 257, Code::kCorrupt},
      {"num_hidden_layers", "4", Code::kCorrupt},
      {"num_hidden_layers", nullptr, Code::kCorrupt},
      {"num_hidden_layers", -4, Code::kCorrupt},
      {"hidden_size", 1.5, Code::kCorrupt},
      {"num_attention_heads", 0, Code::kCorrupt},
      {"rms_norm_eps", nullptr, Code::kCorrupt},
      {"tie_word_embeddings", "yes", Code::kCorrupt},
      {"hidden_act", "gelu", Code::kUnsupported},
      {"is_causal", false, Code::kUnsupported},
      {"attn_logit_softcapping", 50.0, Code::kUnsupported},
      {"use_bidirectional_attention", true, Code::kUnsupported},
      {"partial_rotary_factor", 0.5, Code::kUnsupported},
      {"rope_scaling", "linear", Code::kCorrupt},
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}, Code::kUnsupported},
      {"rope_scaling", {{"rope_type", "linear"}}, Code::kCorrupt},
      {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}, Code::kCorrupt},
      {"rope_parameters", {{"full_attention", json::object()}}, Code::kUnsupported},
      {"quantization_config", {{"quant_method", "gptq"}}, Code::kUnsupported},
      {"quantization_config", {{"quant_method", "fp8"}}, Code::kUnsupported},
      {"quantization_config", quant("fmt", "e5m2"), Code::kUnsupported},
      {"quantization_config", quant("activation_scheme", "static"), Code::kUnsupported},
      {"quantization_config", quant("weight_block_size", {0, 128}), Code::kCorrupt},
      {"quantization_config", quant("weight_block_size", {128}), Code::kCorrupt},
  };
  for (const Case& each : cases) {
    json source = Base("LlamaForCausalLM");
    source[each.key] = each.value;
    const Read read(source);
    EXPECT_EQ(read.config.status().code(), each.code) << each.key << " " << each.value;
    EXPECT_THAT(read.config.status().message(), HasSubstr("config.json"));
    EXPECT_FALSE(read.config.status().field().empty()) << each.key;
  }
}

TEST(HfConfig, BiasesAreThoseOfTheClass) {
  struct Case {
    const char* class_name;
    bool absent, absent_output, asked, asked_output;
  };
  for (const Case& each : {Case{"LlamaForCausalLM", false, false, true, true},
                           {"MistralForCausalLM", false, false, false, false},
                           {"MixtralForCausalLM", false, false, false, false},
                           {"Qwen2ForCausalLM", true, false, true, false},
                           {"Qwen3ForCausalLM", false, false, true, true},
                           {"Qwen3MoeForCausalLM", false, false, true, true},
                           {"Gemma3ForCausalLM", false, false, true, true}}) {
    json source = Base(each.class_name);
    source.update({{"num_experts", 4}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 32}});
    const HfAttentionBiases absent = Read(source).config->biases;
    EXPECT_EQ(absent.query_key_value, each.absent) << each.class_name;
    EXPECT_EQ(absent.output, each.absent_output) << each.class_name;
    source["attention_bias"] = true;
    const HfAttentionBiases asked = Read(source).config->biases;
    EXPECT_EQ(asked.query_key_value, each.asked) << each.class_name;
    EXPECT_EQ(asked.output, each.asked_output) << each.class_name;
  }
}

TEST(HfConfig, RefusesTextThatIsNoShallowObject) {
  Metadata metadata;
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{"),
                                  "{\"a\":" + std::string(100, '[') + std::string(100, ']') + "}",
                                  std::string(1000000, '{')}) {
    EXPECT_EQ(ReadHfConfig(text, "x", metadata).status().code(), Code::kCorrupt);
  }
}

}  // namespace
}  // namespace plumb::model
