// model/families/deepseek_v41_config_test.cc: the released config's numbers, and every field that
// is out of range, contradicts another or asks for what is not built, by name; every known key.
#include "model/families/deepseek_v41_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/families/deepseek_v41_fields.h"
#include "model/families/deepseek_v41_released.h"
#include "model/families/deepseek_v41_tiny.h"

namespace plumb::model {
namespace {

using base::Code;
using base::Status;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json Released() { return json::parse(kDeepseekReleasedConfig); }

TEST(DeepseekConfig, ReadsTheReleasedModel) {
  const auto read = ReadDeepseekConfig(kDeepseekReleasedConfig, "Flash\x01");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  const DeepseekConfig& c = *read;
  EXPECT_EQ(c.name, "Flash?");
  EXPECT_EQ(c.vocabulary, 129280u);
  EXPECT_EQ(c.hidden, 5120u);
  EXPECT_EQ(c.layer_count, 40u);
  EXPECT_EQ(c.decoder_begin, 20u);
  EXPECT_EQ(c.context_max, 1048576u);
  EXPECT_EQ(c.rms_epsilon, 1e-20f);
  EXPECT_EQ(c.rope_base, 10000);
  EXPECT_EQ(c.rope_base_compress, 160000);
  ASSERT_TRUE(c.yarn.has_value());
  EXPECT_EQ(c.yarn->factor, 16);
  EXPECT_EQ(c.yarn->original_positions, 65536);
  EXPECT_EQ(c.experts, 384u);
  EXPECT_EQ(c.experts_used, 6u);
  EXPECT_EQ(c.expert_scale, 1.5f);
  EXPECT_EQ(c.swiglu_limit, 10);
  EXPECT_EQ(c.hyper_epsilon, 1e-6f);
  EXPECT_EQ(c.candidate_source, 20u);
  EXPECT_EQ(c.candidate_blocks, 2048u);
  EXPECT_EQ(c.candidate_block_rows, 8u);
  EXPECT_THAT(c.engram_layers, ElementsAre(1, 14));
  EXPECT_THAT(c.engram_rows, ElementsAre(384006168, 384016682));
  EXPECT_EQ(c.engram_bucket, 16000000u);
  EXPECT_EQ(c.engram_classes, 99092u);
  EXPECT_EQ(c.image_token, 129264u);
  EXPECT_EQ(c.draft_blocks, 3u);
  EXPECT_THAT(c.draft_targets, ElementsAre(37, 38, 39));
  EXPECT_THAT(c.KvSources(), ElementsAre(2, 8, 14, 20));
}

TEST(DeepseekConfig, SourcesAreTheNearestAtOrBelow) {
  const DeepseekConfig c = *ReadDeepseekConfig(kDeepseekReleasedConfig, "");
  struct Case {
    uint32_t layer, ratio, kv, index, engram;
  };
  for (const Case& want : {Case{0, 0, kNoLayer, kNoLayer, kNoLayer},
                           {1, 0, kNoLayer, kNoLayer, 0},
                           {2, 2, 2, 2, kNoLayer},
                           {7, 2, 2, 2, kNoLayer},
                           {14, 2, 14, 14, 1},
                           {19, 2, 14, 14, kNoLayer},
                           {20, 1, 20, 20, kNoLayer},
                           {27, 1, 20, 24, kNoLayer},
                           {39, 1, 20, 36, kNoLayer}}) {
    const DeepseekLayer& layer = c.layers[want.layer];
    EXPECT_EQ(layer.ratio, want.ratio) << want.layer;
    EXPECT_EQ(layer.kv_source, want.kv) << want.layer;
    EXPECT_EQ(layer.index_source, want.index) << want.layer;
    EXPECT_EQ(layer.engram, want.engram) << want.layer;
    EXPECT_EQ(layer.owns_kv, want.kv == want.layer) << want.layer;
    EXPECT_EQ(layer.owns_index, want.index == want.layer) << want.layer;
  }
}

TEST(DeepseekConfig, ReadsSmallShapes) {
  DeepseekTinySpec spec;
  for (const bool features : {true, false}) {
    if (!features) {
      spec.yarn = false;
      spec.candidate_source = kNoLayer;
      spec.engram_layers.clear();
      spec.draft_blocks = 0;
      spec.vision = false;
    }
    const auto c = ReadDeepseekConfig(MakeDeepseekTiny(spec).config.dump(), "tiny");
    ASSERT_TRUE(c.ok()) << c.status().ToString();
    EXPECT_EQ(c->decoder_begin, 3u);
    EXPECT_EQ(c->yarn.has_value(), features);
    EXPECT_EQ(c->candidate_source, features ? 3u : kNoLayer);
    EXPECT_EQ(c->engram_layers.size(), features ? 1u : 0u);
    EXPECT_EQ(c->draft_blocks, features ? 1u : 0u);
  }
}

TEST(DeepseekConfig, HarmlessKeysAndAbsentFeaturesPass) {
  json config = Released();
  config["transformers_version"] = "5.0.0";
  config["_name_or_path"] = "somewhere";
  config["text_config"]["initializer_range"] = 0.02;
  config["text_config"]["some_new_feature"] = false;
  config["text_config"]["another"] = nullptr;
  config["text_config"].erase("hidden_act");
  EXPECT_TRUE(ReadDeepseekConfig(config.dump(), "").ok());
}

// What a change to the released config makes of it.
struct Case {
  const char* where;  // JSON pointer
  const char* value;  // JSON; "" = erased
  Code code;
  const char* message;
};
class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, NamesTheKey) {
  json config = Released();
  const json::json_pointer where(GetParam().where);
  if (*GetParam().value == '\0') {
    config.at(where.parent_pointer()).erase(where.back());
  } else {
    config[where] = json::parse(GetParam().value);
  }
  const auto read = ReadDeepseekConfig(config.dump(), "");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), GetParam().code) << read.status().ToString();
  EXPECT_THAT(read.status().message(), HasSubstr(GetParam().message));
  EXPECT_THAT(read.status().field(), HasSubstr(std::string("config.json: ")));
}

constexpr Code kBad = Code::kCorrupt, kNot = Code::kUnsupported;
INSTANTIATE_TEST_SUITE_P(
    DeepseekConfig, Refused,
    testing::Values(
        // Ranges and types.
        Case{"/text_config/vocab_size", "", kBad, "vocab_size is missing"},
        Case{"/text_config/vocab_size", "0", kBad, "vocab_size"},
        Case{"/text_config/vocab_size", "9223372036854775808", kBad, "vocab_size"},
        Case{"/text_config/vocab_size", "-1", kBad, "vocab_size"},
        Case{"/text_config/hidden_size", "5121", kBad, "multiple of 32"},
        Case{"/text_config/hidden_size", "\"5120\"", kBad, "hidden_size"},
        Case{"/text_config/head_dim", "500", kBad, "head_dim"},
        Case{"/text_config/num_hidden_layers", "1000", kBad, "num_hidden_layers"},
        Case{"/text_config/rms_norm_eps", "0", kBad, "rms_norm_eps"},
        Case{"/text_config/rms_norm_eps", "null", kBad, "rms_norm_eps is missing"},
        Case{"/text_config/rms_norm_eps", "", kBad, "rms_norm_eps is missing"},
        Case{"/text_config/hc_eps", "", kBad, "hc_eps is missing"},
        Case{"/text_config/hc_eps", "true", kBad, "hc_eps is not a number"},
        Case{"/text_config/rope_theta", "", kBad, "rope_theta is missing"},
        Case{"/text_config/rope_scaling", "", kBad, "rope_scaling is missing"},
        Case{"/text_config/rope_theta", "-3", kBad, "rope_theta"},
        Case{"/text_config/swiglu_limit", "", kBad, "swiglu_limit is missing"},
        Case{"/text_config/o_groups", "7", kBad, "divisor"},
        Case{"/text_config/qk_rope_head_dim", "256", kBad, "qk_rope_head_dim"},
        Case{"/text_config/num_experts_per_tok", "65", kBad, "num_experts_per_tok"},
        Case{"/text_config/engram_pad_token_id", "129280", kBad, "engram_pad_token_id"},
        Case{"/text_config/engram_compressed_vocab_size", "129281", kBad,
             "engram_compressed_vocab_size"},
        Case{"/text_config/engram_num_embeddings", "[1]", kBad, "engram_num_embeddings"},
        Case{"/text_config/engram_num_embeddings", "[9223372036854775808,1]", kBad,
             "engram_num_embeddings"},
        Case{"/text_config/engram_vocab_size", "18446744073709551615", kBad, "engram_vocab_size"},
        Case{"/text_config/engram_layer_ids", "[14,1]", kBad, "ascending"},
        Case{"/text_config/engram_layer_ids", "[1,40]", kBad, "engram_layer_ids"},
        Case{"/image_token_id", "129280", kBad, "image_token_id"},
        Case{"/text_config/rope_scaling/factor", "0.5", kBad, "factor"},
        Case{"/text_config/rope_scaling/beta_slow", "33", kBad, "beta_slow"},
        Case{"/text_config/rope_scaling/rope_type", "", kBad, "rope_type"},
        // Contradictions.
        Case{"/text_config/compress_ratios", "[0,0,2]", kBad, "compress_ratios"},
        Case{"/text_config/compress_ratios/2", "0", kBad, "kv_source_layer_ids"},
        Case{"/text_config/compress_ratios/21", "2", kNot, "behind a layer of ratio 1"},
        Case{"/text_config/compress_ratios/5", "4", kNot, "ratio 4 for layer 5"},
        Case{"/text_config/compress_ratios/41", "1", kNot, "draft block 1"},
        Case{"/text_config/kv_source_layer_ids", "[2,8,14]", kBad, "layer 20"},
        Case{"/text_config/kv_source_layer_ids", "[8,14,20]", kBad, "layer 2"},
        Case{"/text_config/kv_source_layer_ids", "[2,8,14,20,24]", kNot, "layer 24"},
        Case{"/text_config/kv_source_layer_ids", "[1,2,8,14,20]", kBad, "layer 1"},
        Case{"/text_config/index_source_layer_ids", "[2,8,20]", kBad, "layer 14"},
        Case{"/text_config/index_source_layer_ids", "[]", kBad, "layer 2"},
        Case{"/text_config/index_k_source_layer_ids", "[2]", kNot, "index_k_source_layer_ids"},
        Case{"/text_config/candidate_source_layer_id", "14", kBad, "candidate_source_layer_id"},
        Case{"/text_config/candidate_source_layer_id", "21", kBad, "candidate_source_layer_id"},
        Case{"/text_config/candidate_source_layer_id", "", kBad,
             "candidate_source_layer_id is missing"},
        Case{"/text_config/candidate_block_size", "0", kBad, "candidate_block_size"},
        // Features.
        Case{"/text_config/hidden_act", "\"gelu\"", kNot, "hidden_act"},
        Case{"/text_config/scoring_func", "\"sigmoid\"", kNot, "scoring_func"},
        Case{"/text_config/topk_method", "\"greedy\"", kNot, "topk_method"},
        Case{"/text_config/norm_topk_prob", "false", kNot, "norm_topk_prob"},
        Case{"/text_config/attention_bias", "true", kNot, "attention_bias"},
        Case{"/text_config/tie_word_embeddings", "true", kNot, "tie_word_embeddings"},
        Case{"/tie_word_embeddings", "true", kNot, "tie_word_embeddings"},
        Case{"/text_config/num_key_value_heads", "8", kNot, "num_key_value_heads"},
        Case{"/text_config/n_shared_experts", "2", kNot, "n_shared_experts"},
        Case{"/text_config/hc_shifted", "false", kNot, "hc_shifted"},
        Case{"/text_config/num_hash_layers", "3", kNot, "num_hash_layers"},
        Case{"/text_config/attn_soft_cap", "50.0", kNot, "attn_soft_cap is not known"},
        Case{"/new_arithmetic", "{}", kNot, "new_arithmetic is not known"},
        Case{"/text_config/_new_arithmetic", "1", kNot, "_new_arithmetic is not known"},
        Case{"/text_config/rope_scaling/rope_theta", "160000", kBad, "text_config's rope_theta"},
        Case{"/text_config/rope_scaling/_x", "1", kNot, "rope_scaling: _x is not known"},
        Case{"/quantization_config/packing", "\"odd_first\"", kNot, "packing is not known"},
        Case{"/quantization_config/modules_to_not_convert", "[]", kNot, "modules_to_not_convert"},
        Case{"/text_config/rope_scaling/rope_type", "\"linear\"", kNot, "rope_type"},
        Case{"/text_config/rope_scaling/mscale", "0.7", kNot, "mscale"},
        Case{"/text_config/rope_scaling/low_freq_factor", "1", kNot, "low_freq_factor"},
        Case{"/quantization_config", "", kBad, "quantization_config"},
        Case{"/quantization_config/quant_method", "\"awq\"", kNot, "quant_method"},
        Case{"/quantization_config/weight_block_size", "[128,128]", kNot, "weight_block_size"},
        Case{"/quantization_config/scale_fmt", "\"float\"", kNot, "scale_fmt"},
        Case{"/quantization_config/expert_dtype", "\"fp8\"", kNot, "expert_dtype"},
        Case{"/quantization_config/expert_dtype", "", kBad, "expert_dtype"},
        Case{"/architectures", "[\"LlamaForCausalLM\"]", kNot, "architectures"},
        Case{"/text_config", "", kBad, "text_config"}));

// Every key of a table is read where it stands, so that none is taken and then forgotten: a value
// that fits none of them is refused by name. Elsewhere the key is unknown.
class EveryKey : public testing::Test {
 protected:
  template <typename Table>
  static std::vector<std::string> KeysOf(const Table& table) {
    std::vector<std::string> keys;
    for (const auto& row : table) {
      if constexpr (requires { row.key; }) {
        keys.emplace_back(row.key);
      } else {
        keys.emplace_back(row);
      }
    }
    return keys;
  }
  static Status With(const std::string& object, const std::string& key, const json& value) {
    json config = Released();
    config[json::json_pointer(object + "/" + key)] = value;
    return ReadDeepseekConfig(config.dump(), "").status();
  }
  // Those of the tables' keys for which the error does not hold `text` behind the key.
  template <typename... Tables>
  static std::vector<std::string> Taken(const std::string& object, const json& value,
                                        const std::string& text, const Tables&... tables) {
    std::vector<std::string> taken;
    for (const auto& keys : {KeysOf(tables)...}) {
      for (const std::string& key : keys) {
        const Status status = With(object, key, value);
        const bool named = status.field().find(key) != std::string::npos;
        if (status.ok() || !named || status.message().find(key + text) == std::string::npos) {
          taken.push_back(key + ": " + status.ToString());
        }
      }
    }
    return taken;
  }
};

TEST_F(EveryKey, IsReadWhereItStands) {
  const json no_value = {{"no", "value"}};
  EXPECT_THAT(Taken("/text_config", no_value, "", kTextKeys, kCounts, kCandidateCounts,
                    kEngramCounts, kDraftCounts, kDraftKeys, kReals, kFixed),
              IsEmpty());
  EXPECT_THAT(Taken("/text_config/rope_scaling", no_value, "", kYarn, kYarnReals, kYarnKeys),
              IsEmpty());
  EXPECT_THAT(Taken("/quantization_config", no_value, "", kQuantisation), IsEmpty());
  EXPECT_THAT(Taken("", no_value, "", kFixed,
                    std::to_array({"image_token_id", "quantization_config", "text_config"})),
              IsEmpty());
}

TEST_F(EveryKey, IsUnknownElsewhere) {
  constexpr const char* kUnknown = " is not known here";
  EXPECT_THAT(Taken("", 1, kUnknown, kTextKeys, kCounts, kCandidateCounts, kEngramCounts,
                    kDraftCounts, kDraftKeys, kReals, kYarn, kYarnReals, kQuantisation),
              IsEmpty());
  EXPECT_THAT(Taken("/text_config", 1, kUnknown, kTopKeys, kYarn, kYarnReals, kQuantisation),
              IsEmpty());
  EXPECT_THAT(Taken("/text_config/rope_scaling", 1, kUnknown, kCounts, kHarmless, kQuantisation),
              IsEmpty());
  EXPECT_THAT(Taken("/quantization_config", 1, kUnknown, kHarmless, kYarn, kCounts), IsEmpty());
  for (const char* object :
       {"", "/text_config", "/text_config/rope_scaling", "/quantization_config"}) {
    EXPECT_THAT(Taken(object, 1, kUnknown, std::to_array({"anything_new", "_anything_new", "__"})),
                IsEmpty());
  }
}

TEST_F(EveryKey, RopeThetaMayStandTwiceWithOneValue) {
  EXPECT_TRUE(With("/text_config/rope_scaling", "rope_theta", 10000).ok());
  EXPECT_THAT(With("/text_config/rope_scaling", "rope_theta", "x").message(),
              HasSubstr("rope_scaling: rope_theta is not a number"));
}

TEST(DeepseekConfig, RefusesWhatIsNoJson) {
  EXPECT_EQ(ReadDeepseekConfig("{", "").status().code(), Code::kCorrupt);
  EXPECT_EQ(ReadDeepseekConfig("[]", "").status().code(), Code::kCorrupt);
  EXPECT_EQ(ReadDeepseekConfig("", "").status().code(), Code::kCorrupt);
  // What Python writes for a value that is no number is no JSON; the line says which key has it.
  std::string config = Released().dump(1);
  const std::string key = "\"rms_norm_eps\": ";
  const size_t begin = config.find(key) + key.size();
  config.replace(begin, config.find(',', begin) - begin, "NaN");
  const base::Status status = ReadDeepseekConfig(config, "").status();
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), testing::MatchesRegex("config.json: not JSON in line [0-9]+, at "
                                                      "\"rms_norm_eps\": N"));
  config.replace(begin, 3, "1e999");
  EXPECT_THAT(ReadDeepseekConfig(config, "").status().message(), HasSubstr("too large"));
}

TEST(DeepseekConfig, IsKnownByItsClassOrType) {
  EXPECT_TRUE(IsDeepseekV41(kDeepseekReleasedConfig));
  EXPECT_TRUE(IsDeepseekV41(std::string_view(R"({"model_type":"deepseek_v41"})")));
  EXPECT_FALSE(IsDeepseekV41(std::string_view(R"({"architectures":["LlamaForCausalLM"]})")));
  EXPECT_FALSE(IsDeepseekV41(std::string_view("{")));
}

}  // namespace
}  // namespace plumb::model
