// model/hf_config_refusals_test.cc
// What a config.json says twice, or says to a class that would not listen: refused by the key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/hf_config_testing.h"

namespace plumb::model {
namespace {

using base::Code;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

struct Case {
  const char* class_name;
  json changes;
  const char* field;
  const char* advice;
};
const json kMixed = {"full_attention", "sliding_attention", "full_attention", "full_attention"};

std::vector<Case> RopeCases() {
  const json llama3 = {{"rope_type", "llama3"},
                       {"factor", 8.0},
                       {"low_freq_factor", 1.0},
                       {"high_freq_factor", 4.0},
                       {"original_max_position_embeddings", 64}};
  const json linear = {{"rope_type", "linear"}, {"factor", 4.0}};
  const char* const kLlama = "LlamaForCausalLM";
  const auto rope = [](const json& object) { return json{{"rope_scaling", object}}; };
  const auto with = [](json object, const char* key, const json& value) {
    object[key] = value;
    return object;
  };
  return {
      {kLlama,
       {{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e4}}},
        {"rope_scaling", llama3}},
       "rope_scaling",
       "remove one"},
      {kLlama,
       {{"rope_parameters", {{"rope_theta", 5e5}}}, {"rope_theta", 1e4}},
       "rope_theta",
       "remove one"},
      {kLlama, rope({{"factor", 4.0}}), "factor", "add \"rope_type\""},
      {kLlama, rope({{"type", "linear"}, {"rope_type", "default"}, {"factor", 4.0}}), "type",
       "remove one"},
      {kLlama, rope(with(llama3, "type", "linear")), "type", "remove one"},
      {kLlama, rope({{"rope_type", "default"}, {"factor", 4.0}}), "factor", "correct rope_type"},
      {kLlama, rope(with(linear, "low_freq_factor", 1.0)), "low_freq_factor", "remove it"},
      {kLlama, rope(with(llama3, "beta_fast", 32)), "beta_fast", "remove it"},
      {kLlama, {{"layer_types", kMixed}}, "layer_types", "remove layer_types"},
      {kLlama, {{"mlp_bias", true}}, "mlp_bias", "not supported"},
  };
}

std::vector<Case> OtherCases() {
  return {
      {"MistralForCausalLM",
       {{"layer_types", kMixed}, {"sliding_window", 9}},
       "layer_types",
       "remove layer_types"},
      {"MistralForCausalLM",
       {{"layer_types", kMixed}, {"sliding_window", nullptr}},
       "layer_types",
       "remove layer_types"},
      {"MixtralForCausalLM",
       {{"layer_types", kMixed}, {"sliding_window", 9}},
       "layer_types",
       "remove layer_types"},
      {"Qwen3MoeForCausalLM",
       {{"layer_types", kMixed}, {"sliding_window", 9}, {"use_sliding_window", true}},
       "layer_types",
       "remove layer_types"},
      {"Qwen3MoeForCausalLM", {{"num_local_experts", 7}}, "num_local_experts", "remove"},
      {"MixtralForCausalLM", {{"num_local_experts", 7}}, "num_experts", "remove"},
      {"Qwen2ForCausalLM",
       {{"layer_types", kMixed}, {"sliding_window", 9}},
       "layer_types",
       "use_sliding_window says none"},
      {"Gemma3ForCausalLM",
       {{"rope_parameters",
         {{"full_attention", {{"rope_theta", 1e6}}}, {"sliding_attention", {{"factor", 8.0}}}}}},
       "factor",
       "add \"rope_type\""},
      {"Gemma3ForCausalLM",
       {{"rope_parameters",
         {{"full_attention", {{"rope_theta", 1e6}}}, {"sliding_attention", {{"rope_theta", 1e4}}}}},
        {"rope_local_base_freq", 2e4}},
       "rope_local_base_freq",
       "remove one"},
  };
}

// What the class would ignore, or what says two things: refused by the key, with what to do.
TEST(HfConfig, ContradictionsAreRefusedInOneLine) {
  std::vector<Case> cases = RopeCases();
  std::ranges::move(OtherCases(), std::back_inserter(cases));
  for (const Case& each : cases) {
    json source = Base(each.class_name);
    source.update({{"num_experts", 4}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 32}});
    ASSERT_TRUE(Read(source).config.ok()) << each.class_name;
    source.update(each.changes);
    const base::Status status = Read(source).config.status();
    EXPECT_EQ(status.code(), Code::kUnsupported) << each.changes << status.ToString();
    EXPECT_TRUE(status.field().ends_with(std::string(" ") + each.field)) << status.field();
    EXPECT_THAT(status.message(), HasSubstr(each.field));
    EXPECT_THAT(status.message(), HasSubstr(each.advice));
    EXPECT_THAT(status.message(), Not(HasSubstr("\n")));
  }
}

// The same words, where they change nothing.
TEST(HfConfig, AgreementIsAccepted) {
  json mistral = Base("MistralForCausalLM");
  mistral["sliding_window"] = 9;
  mistral["layer_types"] = json(4, "sliding_attention");
  EXPECT_EQ(Read(mistral).Unsigned("llama.attention.sliding_window"), 9u);
  mistral["sliding_window"] = nullptr;
  mistral["layer_types"] = json(4, "full_attention");
  EXPECT_FALSE(Read(mistral).values.Has("llama.attention.sliding_window"));
  EXPECT_TRUE(Read(mistral).config.ok());
  json llama = Base("LlamaForCausalLM");
  llama["layer_types"] = json(4, "full_attention");
  llama["rope_parameters"] = {
      {"rope_type", "linear"}, {"type", "linear"}, {"factor", 2.0}, {"rope_theta", 5e5}};
  llama["rope_scaling"] = llama["rope_parameters"];
  llama["rope_theta"] = 5e5;
  const Read read(llama);
  ASSERT_TRUE(read.config.ok()) << read.config.status().ToString();
  EXPECT_EQ(read.Number("llama.rope.freq_base"), 5e5);
  EXPECT_EQ(read.Number("llama.rope.scaling.factor"), 2.0);
  json plain = Base("LlamaForCausalLM");
  plain["rope_scaling"] = {{"rope_type", "default"}, {"factor", 1.0}};
  EXPECT_TRUE(Read(plain).config.ok());
}

}  // namespace
}  // namespace plumb::model
