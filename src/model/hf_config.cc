// model/hf_config.cc
// One table row per architecture, then one function per part of config.json: shape, biases,
// experts, quantisation. Attention windows and the rotary embedding: hf_windows.cc, hf_rope.cc.
#include "model/hf_config.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "model/config.h"
#include "model/hf_json.h"
#include "model/hf_translate.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;
using nlohmann::json;

constexpr HfArchitecture kArchitectures[] = {
    {"LlamaForCausalLM", "llama", "llama", "silu", 0, 0, 1e4, false, HfWindows::kNone, 0,
     HfBiases::kByKey},
    {"MistralForCausalLM", "mistral", "llama", "silu", 8, 0, 1e4, false, HfWindows::kAlways, 4096,
     HfBiases::kNever},
    {"MixtralForCausalLM", "mixtral", "llama", "silu", 8, 0, 1e6, false, HfWindows::kAlways, 0,
     HfBiases::kNever},
    {"Qwen2ForCausalLM", "qwen2", "qwen2", "silu", 32, 0, 1e4, false, HfWindows::kSwitchedLayered,
     4096, HfBiases::kQueryKeyValue},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", "silu", 32, 128, 1e4, false, HfWindows::kSwitchedLayered,
     4096, HfBiases::kByKey},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe", "silu", 4, 0, 1e4, false, HfWindows::kSwitched,
     4096, HfBiases::kByKey},
    {"Gemma3ForCausalLM", "gemma3_text", "gemma3", "gelu_pytorch_tanh", 4, 256, 1e6, true,
     HfWindows::kLayered, 4096, HfBiases::kByKey},
};
constexpr double kGemmaQueryScalar = 256;  // query_pre_attn_scalar, where it is absent

Result<const HfArchitecture*> FindArchitecture(const HfObject& config) {
  std::string name;
  const json* names = config.Find("architectures");
  if (names != nullptr && names->is_array() && names->size() == 1 && (*names)[0].is_string()) {
    name = (*names)[0].get<std::string>();
    for (const HfArchitecture& row : kArchitectures) {
      if (row.class_name == name) return &row;
    }
  } else {
    ASSIGN_OR_RETURN(const std::optional<std::string> type, config.Text("model_type"));
    if (!type) return config.Wrong("architectures", "a list of one name");
    name = *type;
    for (const HfArchitecture& row : kArchitectures) {
      if (row.model_type == name) return &row;
    }
  }
  return config.Refused("architectures",
                        fmt::format("names \"{}\", which is not supported", Printable(name)));
}

// Translates one config.json.
class Translator {
 public:
  Translator(const HfObject& config, const HfArchitecture& row, Metadata& metadata)
      : to_{config, row, metadata, out_} {}
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;

  Status Run(std::string_view name) {
    out_.architecture = to_.row.gguf;
    to_.metadata.SetText("general.architecture", to_.row.gguf);
    to_.metadata.SetText("general.name", name);
    out_.adjacent_pairs = to_.row.gguf == "llama";
    out_.norms_lack_one = to_.row.gguf == "gemma3";
    RETURN_IF_ERROR(RefuseFeatures());
    RETURN_IF_ERROR(Shape());
    RETURN_IF_ERROR(Biases());
    RETURN_IF_ERROR(TranslateWindows(to_));
    RETURN_IF_ERROR(TranslateRope(to_));
    RETURN_IF_ERROR(Experts());
    if (to_.row.gguf == "gemma3") RETURN_IF_ERROR(Gemma());
    return Quantisation();
  }
  HfConfig Take() { return std::move(out_); }

 private:
  Status RefuseFeatures() const {
    for (const char* key : {"hidden_act", "hidden_activation"}) {
      ASSIGN_OR_RETURN(const auto activation, to_.config.Text(key));
      // Gemma's older files say "gelu" under the first key and mean the second.
      const bool counts = to_.row.gguf != "gemma3" || key == std::string_view("hidden_activation");
      if (counts && activation && *activation != to_.row.activation) {
        return to_.config.Refused(key, fmt::format("is \"{}\"; only {} is supported",
                                                   Printable(*activation), to_.row.activation));
      }
    }
    for (const char* key : {"use_bidirectional_attention", "attn_logit_softcapping"}) {
      const json* value = to_.config.Find(key);
      if (value != nullptr && *value != false) return to_.config.Refused(key, "is not supported");
    }
    ASSIGN_OR_RETURN(const auto causal, to_.config.Bool("is_causal"));
    if (!causal.value_or(true)) return to_.config.Refused("is_causal", "must be true");
    return base::OkStatus();
  }

  // A count that becomes a key and is needed later.
  Result<uint32_t> Count(const char* hf_key, std::optional<uint64_t> fallback, std::string_view key,
                         uint64_t max) {
    uint64_t value = 0;
    if (fallback) {
      ASSIGN_OR_RETURN(const auto given, to_.config.Unsigned(hf_key));
      value = given.value_or(*fallback);
    } else {
      ASSIGN_OR_RETURN(value, to_.config.RequiredUnsigned(hf_key));
    }
    if (value < 1 || value > max) {
      return to_.config.Wrong(hf_key, fmt::format("in [1, {}]", max));
    }
    to_.metadata.SetUnsigned(to_.Key(key), value);
    return static_cast<uint32_t>(value);
  }

  Status Shape() {
    ASSIGN_OR_RETURN(out_.layers,
                     Count("num_hidden_layers", std::nullopt, "block_count", kLayersMax));
    ASSIGN_OR_RETURN(const uint32_t width,
                     Count("hidden_size", std::nullopt, "embedding_length", kEmbeddingMax));
    ASSIGN_OR_RETURN(out_.heads,
                     Count("num_attention_heads", std::nullopt, "attention.head_count", kHeadsMax));
    // Null means as many as heads, in every class.
    const bool own = to_.config.Absent("num_key_value_heads") && to_.row.kv_heads != 0;
    ASSIGN_OR_RETURN(out_.kv_heads,
                     Count("num_key_value_heads", own ? to_.row.kv_heads : out_.heads,
                           "attention.head_count_kv", kHeadsMax));
    const uint32_t head_dim = to_.row.head_dim != 0 ? to_.row.head_dim : width / out_.heads;
    ASSIGN_OR_RETURN(out_.head_dim,
                     Count("head_dim", head_dim, "attention.key_length", kHeadDimMax));
    to_.metadata.SetUnsigned(to_.Key("attention.value_length"), out_.head_dim);
    RETURN_IF_ERROR(
        Count("intermediate_size", std::nullopt, "feed_forward_length", kFeedForwardMax));
    RETURN_IF_ERROR(Count("max_position_embeddings", std::nullopt, "context_length", kContextMax));
    RETURN_IF_ERROR(Count("vocab_size", std::nullopt, "vocab_size", kVocabularyMax));
    ASSIGN_OR_RETURN(const auto epsilon, to_.config.Number("rms_norm_eps"));
    if (!epsilon) return to_.config.Wrong("rms_norm_eps", "there");
    to_.metadata.SetNumber(to_.Key("attention.layer_norm_rms_epsilon"), *epsilon);
    ASSIGN_OR_RETURN(const auto tied, to_.config.Bool("tie_word_embeddings"));
    out_.tied_output = tied.value_or(to_.row.tied);
    return base::OkStatus();
  }

  Status Gemma() {
    ASSIGN_OR_RETURN(const auto cap, to_.config.Number("final_logit_softcapping"));
    if (cap && !(*cap > 0)) {
      return to_.config.Wrong("final_logit_softcapping", "above 0 or null");
    }
    if (cap) to_.metadata.SetNumber(to_.Key("final_logit_softcapping"), *cap);
    ASSIGN_OR_RETURN(const auto given, to_.config.Number("query_pre_attn_scalar"));
    if (!given && !to_.config.Absent("query_pre_attn_scalar")) {
      return to_.config.Wrong("query_pre_attn_scalar", "a number");  // null has no meaning here
    }
    const double scalar = given.value_or(kGemmaQueryScalar);
    if (!(scalar > 0)) return to_.config.Wrong("query_pre_attn_scalar", "above 0");
    // As model/config.cc computes it where a file leaves it out, so that both give equal bits.
    const float scale = 1.0f / std::sqrt(static_cast<float>(scalar));
    to_.metadata.SetNumber(to_.Key("attention.scale"), static_cast<double>(scale));
    return base::OkStatus();
  }

  Status Biases();
  Status Experts();
  Status Quantisation();

  HfConfig out_;
  const HfTranslation to_;
};

Status Translator::Biases() {
  HfAttentionBiases& biases = out_.biases;
  switch (to_.row.biases) {
    case HfBiases::kNever:
      biases.why = fmt::format("{} has no biases", to_.row.class_name);
      return base::OkStatus();
    case HfBiases::kQueryKeyValue:
      biases = {.query_key_value = true, .output = false};
      biases.why =
          fmt::format("{} has biases of queries, keys and values only", to_.row.class_name);
      return base::OkStatus();
    case HfBiases::kByKey:
      break;
  }
  ASSIGN_OR_RETURN(const auto given, to_.config.Bool("attention_bias"));
  biases.query_key_value = biases.output = given.value_or(false);
  biases.why = given ? fmt::format("config.json: attention_bias is {}", *given)
                     : "config.json has no attention_bias, which means none";
  if (to_.row.model_type != "llama") return base::OkStatus();  // the others do not read the next
  ASSIGN_OR_RETURN(const auto feed_forward, to_.config.Bool("mlp_bias"));
  if (feed_forward.value_or(false)) return to_.config.Refused("mlp_bias", "is not supported");
  return base::OkStatus();
}

Status Translator::Experts() {
  const bool mixtral = to_.row.model_type == "mixtral";
  if (!mixtral && to_.row.gguf != "qwen3moe") return base::OkStatus();
  // Each class has its own spelling and reads the other where only that is there.
  const char* const own = mixtral ? "num_local_experts" : "num_experts";
  const char* const other = mixtral ? "num_experts" : "num_local_experts";
  ASSIGN_OR_RETURN(const auto count, to_.config.Unsigned(own));
  ASSIGN_OR_RETURN(const auto other_count, to_.config.Unsigned(other));
  if (count && other_count && *count != *other_count) {
    return to_.config.Refused(
        other, fmt::format("is {}, but {} is {}: remove {}", *other_count, own, *count, other));
  }
  const char* const key = count || !other_count ? own : other;
  ASSIGN_OR_RETURN(out_.experts, Count(key, std::nullopt, "expert_count", kHfExpertsMax));
  RETURN_IF_ERROR(Count("num_experts_per_tok", std::nullopt, "expert_used_count", out_.experts));
  if (mixtral) {
    // Its router takes the softmax over the chosen experts, which is the same.
    to_.metadata.SetBool(to_.Key("expert_weights_norm"), true);
    return base::OkStatus();
  }
  RETURN_IF_ERROR(
      Count("moe_intermediate_size", std::nullopt, "expert_feed_forward_length", kFeedForwardMax));
  ASSIGN_OR_RETURN(const auto normalised, to_.config.Bool("norm_topk_prob"));
  to_.metadata.SetBool(to_.Key("expert_weights_norm"), normalised.value_or(false));
  ASSIGN_OR_RETURN(const auto step, to_.config.Unsigned("decoder_sparse_step"));
  if (step.value_or(1) != 1) return to_.config.Refused("decoder_sparse_step", "must be 1");
  const json* dense = to_.config.Find("mlp_only_layers");
  if (dense != nullptr && !(dense->is_array() && dense->empty())) {
    return to_.config.Refused("mlp_only_layers", "must be empty");
  }
  return base::OkStatus();
}

Status Translator::Quantisation() {
  const json* found = to_.config.Find("quantization_config");
  if (found == nullptr) return base::OkStatus();
  if (!found->is_object()) return to_.config.Wrong("quantization_config", "an object");
  const HfObject quant(*found, "config.json: quantization_config");
  ASSIGN_OR_RETURN(const auto method, quant.Text("quant_method"));
  if (method.value_or("") != "fp8") {
    return quant.Refused("quant_method", fmt::format("\"{}\" is not supported; only fp8 is",
                                                     Printable(method.value_or(""))));
  }
  ASSIGN_OR_RETURN(const auto format, quant.Text("fmt"));
  if (format.value_or("e4m3") != "e4m3") return quant.Refused("fmt", "must be e4m3");
  // A static scheme has scales for activations, which only pay on hardware with F8 products.
  ASSIGN_OR_RETURN(const auto scheme, quant.Text("activation_scheme"));
  if (scheme.value_or("dynamic") != "dynamic") {
    return quant.Refused("activation_scheme", "must be dynamic");
  }
  const json* block = quant.Find("weight_block_size");
  if (block == nullptr) return quant.Refused("weight_block_size", "is needed");
  constexpr uint64_t kBlockMax = 1u << 20;
  ScaleBlock size;
  if (block->is_array() && block->size() == 2 && (*block)[0].is_number_unsigned() &&
      (*block)[1].is_number_unsigned()) {
    size = {(*block)[0].get<uint64_t>(), (*block)[1].get<uint64_t>()};
  }
  if (size.outputs < 1 || size.inputs < 1 || size.outputs > kBlockMax || size.inputs > kBlockMax) {
    return quant.Wrong("weight_block_size", "two counts from 1 on");
  }
  out_.f8_block = size;
  return base::OkStatus();
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shown;
}

Result<HfConfig> ReadHfConfig(std::string_view text, std::string_view name, Metadata& metadata) {
  ASSIGN_OR_RETURN(const json parsed, ParseHfJson(text, "config.json"));
  const HfObject config(parsed, "config.json");
  ASSIGN_OR_RETURN(const HfArchitecture* row, FindArchitecture(config));
  Translator translator(config, *row, metadata);
  RETURN_IF_ERROR(translator.Run(name));
  return translator.Take();
}

}  // namespace plumb::model
