// model/hf_config.cc
// One table row per architecture, then one function per part of config.json: shape, attention
// windows, rotary embedding, experts, quantisation.
#include "model/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>

#include "model/config.h"
#include "model/hf_json.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;
using nlohmann::json;

enum class Windows : uint8_t {
  kNone,
  kAlways,    // every layer, when sliding_window is set
  kSwitched,  // when use_sliding_window is set
  kLayered,   // some layers
};

struct Architecture {
  std::string_view class_name;
  std::string_view model_type;  // for folders that name no class
  std::string_view gguf;
  std::string_view activation;
  // What the class assumes of keys that config.json does not have. Source: the configuration
  // classes of transformers 4.57 and 5.0.
  uint32_t kv_heads;  // 0 = as many as heads
  uint32_t head_dim;  // 0 = hidden_size / heads
  double rope_theta;
  bool tied;
  Windows windows;
  uint32_t window;  // sliding_window; 0 = none
};
constexpr Architecture kArchitectures[] = {
    {"LlamaForCausalLM", "llama", "llama", "silu", 0, 0, 1e4, false, Windows::kNone, 0},
    {"MistralForCausalLM", "mistral", "llama", "silu", 8, 0, 1e4, false, Windows::kAlways, 4096},
    {"MixtralForCausalLM", "mixtral", "llama", "silu", 8, 0, 1e6, false, Windows::kAlways, 0},
    {"Qwen2ForCausalLM", "qwen2", "qwen2", "silu", 32, 0, 1e4, false, Windows::kSwitched, 4096},
    {"Qwen3ForCausalLM", "qwen3", "qwen3", "silu", 32, 128, 1e4, false, Windows::kSwitched, 4096},
    {"Qwen3MoeForCausalLM", "qwen3_moe", "qwen3moe", "silu", 4, 0, 1e4, false, Windows::kSwitched,
     4096},
    {"Gemma3ForCausalLM", "gemma3_text", "gemma3", "gelu_pytorch_tanh", 4, 256, 1e6, true,
     Windows::kLayered, 4096},
};
constexpr double kGemmaQueryScalar = 256;  // query_pre_attn_scalar, likewise
constexpr double kGemmaLocalTheta = 1e4;   // rope_local_base_freq
constexpr uint32_t kGemmaPeriod = 6;       // sliding_window_pattern
constexpr uint32_t kQwenFirstWindow = 28;  // max_window_layers

std::string Printable(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shown;
}

Result<const Architecture*> FindArchitecture(const HfObject& config) {
  std::string name;
  const json* names = config.Find("architectures");
  if (names != nullptr && names->is_array() && names->size() == 1 && (*names)[0].is_string()) {
    name = (*names)[0].get<std::string>();
    for (const Architecture& row : kArchitectures) {
      if (row.class_name == name) return &row;
    }
  } else {
    ASSIGN_OR_RETURN(const std::optional<std::string> type, config.Text("model_type"));
    if (!type) return config.Wrong("architectures", "a list of one name");
    name = *type;
    for (const Architecture& row : kArchitectures) {
      if (row.model_type == name) return &row;
    }
  }
  return config.Refused("architectures",
                        fmt::format("names \"{}\", which is not supported", Printable(name)));
}

// Translates one config.json.
class Translator {
 public:
  Translator(const HfObject& config, const Architecture& row, Metadata& metadata)
      : config_(config), row_(row), metadata_(metadata) {}

  Status Run(std::string_view name) {
    out_.architecture = row_.gguf;
    metadata_.SetText("general.architecture", row_.gguf);
    metadata_.SetText("general.name", name);
    out_.adjacent_pairs = row_.gguf == "llama";
    out_.norms_lack_one = row_.gguf == "gemma3";
    RETURN_IF_ERROR(RefuseFeatures());
    RETURN_IF_ERROR(Shape());
    RETURN_IF_ERROR(AttentionWindows());
    RETURN_IF_ERROR(Rope());
    RETURN_IF_ERROR(Experts());
    if (row_.gguf == "gemma3") RETURN_IF_ERROR(Gemma());
    return Quantisation();
  }
  HfConfig Take() { return std::move(out_); }

 private:
  std::string Key(std::string_view name) const { return fmt::format("{}.{}", row_.gguf, name); }

  Status RefuseFeatures() const {
    for (const char* key : {"hidden_act", "hidden_activation"}) {
      ASSIGN_OR_RETURN(const auto activation, config_.Text(key));
      // Gemma's older files say "gelu" under the first key and mean the second.
      const bool counts = row_.gguf != "gemma3" || key == std::string_view("hidden_activation");
      if (counts && activation && *activation != row_.activation) {
        return config_.Refused(key, fmt::format("is \"{}\"; only {} is supported",
                                                Printable(*activation), row_.activation));
      }
    }
    for (const char* key : {"use_bidirectional_attention", "attn_logit_softcapping"}) {
      const json* value = config_.Find(key);
      if (value != nullptr && *value != false) return config_.Refused(key, "is not supported");
    }
    ASSIGN_OR_RETURN(const auto causal, config_.Bool("is_causal"));
    if (!causal.value_or(true)) return config_.Refused("is_causal", "must be true");
    return base::OkStatus();
  }

  // A count that becomes a key and is needed later.
  Result<uint32_t> Count(const char* hf_key, std::optional<uint64_t> fallback, std::string_view key,
                         uint64_t max) {
    uint64_t value = 0;
    if (fallback) {
      ASSIGN_OR_RETURN(const auto given, config_.Unsigned(hf_key));
      value = given.value_or(*fallback);
    } else {
      ASSIGN_OR_RETURN(value, config_.RequiredUnsigned(hf_key));
    }
    if (value < 1 || value > max) {
      return config_.Wrong(hf_key, fmt::format("in [1, {}]", max));
    }
    metadata_.SetUnsigned(Key(key), value);
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
    const bool own = config_.Absent("num_key_value_heads") && row_.kv_heads != 0;
    ASSIGN_OR_RETURN(out_.kv_heads, Count("num_key_value_heads", own ? row_.kv_heads : out_.heads,
                                          "attention.head_count_kv", kHeadsMax));
    const uint32_t head_dim = row_.head_dim != 0 ? row_.head_dim : width / out_.heads;
    ASSIGN_OR_RETURN(out_.head_dim,
                     Count("head_dim", head_dim, "attention.key_length", kHeadDimMax));
    metadata_.SetUnsigned(Key("attention.value_length"), out_.head_dim);
    RETURN_IF_ERROR(
        Count("intermediate_size", std::nullopt, "feed_forward_length", kFeedForwardMax));
    RETURN_IF_ERROR(Count("max_position_embeddings", std::nullopt, "context_length", kContextMax));
    RETURN_IF_ERROR(Count("vocab_size", std::nullopt, "vocab_size", kVocabularyMax));
    ASSIGN_OR_RETURN(const auto epsilon, config_.Number("rms_norm_eps"));
    if (!epsilon) return config_.Wrong("rms_norm_eps", "there");
    metadata_.SetNumber(Key("attention.layer_norm_rms_epsilon"), *epsilon);
    ASSIGN_OR_RETURN(const auto tied, config_.Bool("tie_word_embeddings"));
    out_.tied_output = tied.value_or(row_.tied);
    ASSIGN_OR_RETURN(out_.attention_bias, config_.Bool("attention_bias"));
    ASSIGN_OR_RETURN(out_.mlp_bias, config_.Bool("mlp_bias"));
    return base::OkStatus();
  }

  // Which layers see a window. In files of transformers 4 a rule says it, in later ones a list.
  Result<std::unique_ptr<bool[]>> WindowLayers() const {
    auto layers = std::make_unique<bool[]>(out_.layers);
    const json* types = config_.Find("layer_types");
    if (types != nullptr) {
      if (!types->is_array() || types->size() != out_.layers) {
        return config_.Wrong("layer_types", fmt::format("a list of {} names", out_.layers));
      }
      for (uint32_t i = 0; i < out_.layers; ++i) {
        const bool sliding = (*types)[i] == "sliding_attention";
        if (!sliding && (*types)[i] != "full_attention") {
          return config_.Refused("layer_types", fmt::format("has an unknown kind for layer {}", i));
        }
        layers[i] = sliding;
      }
      return layers;
    }
    if (row_.windows == Windows::kLayered) {
      ASSIGN_OR_RETURN(const auto period, config_.Unsigned("sliding_window_pattern"));
      if (period == 0u) return config_.Wrong("sliding_window_pattern", "above 0");
      const uint64_t every = period.value_or(kGemmaPeriod);
      for (uint32_t i = 0; i < out_.layers; ++i) layers[i] = (i + 1) % every != 0;
      return layers;
    }
    uint64_t first = 0;  // with a window
    if (row_.windows == Windows::kSwitched && row_.gguf != "qwen3moe") {
      ASSIGN_OR_RETURN(const auto given, config_.Unsigned("max_window_layers"));
      first = given.value_or(kQwenFirstWindow);
    }
    for (uint32_t i = 0; i < out_.layers; ++i) layers[i] = i >= first;
    return layers;
  }

  Status AttentionWindows() {
    if (row_.windows == Windows::kNone) return base::OkStatus();
    if (row_.windows == Windows::kSwitched) {
      ASSIGN_OR_RETURN(const auto used, config_.Bool("use_sliding_window"));
      if (!used.value_or(false)) return base::OkStatus();
    }
    ASSIGN_OR_RETURN(auto window, config_.Unsigned("sliding_window"));
    // Null is none; without the key the class has its own.
    if (row_.window != 0 && config_.Absent("sliding_window")) window = row_.window;
    if (!window && row_.windows == Windows::kLayered) {
      return config_.Wrong("sliding_window", "a count");  // these layers have no other meaning
    }
    if (!window) return base::OkStatus();
    if (*window == 0) return config_.Wrong("sliding_window", "above 0");
    ASSIGN_OR_RETURN(const std::unique_ptr<bool[]> layers, WindowLayers());
    const std::span<const bool> flags(layers.get(), out_.layers);
    if (std::find(flags.begin(), flags.end(), true) == flags.end()) return base::OkStatus();
    metadata_.SetUnsigned(Key("attention.sliding_window"), *window);
    metadata_.SetBools(Key("attention.sliding_window_pattern"), flags);
    return base::OkStatus();
  }

  Status Gemma() {
    ASSIGN_OR_RETURN(const auto cap, config_.Number("final_logit_softcapping"));
    if (cap) metadata_.SetNumber(Key("final_logit_softcapping"), *cap);
    ASSIGN_OR_RETURN(const auto given, config_.Number("query_pre_attn_scalar"));
    if (!given && !config_.Absent("query_pre_attn_scalar")) {
      return config_.Wrong("query_pre_attn_scalar", "a number");  // null has no meaning here
    }
    const double scalar = given.value_or(kGemmaQueryScalar);
    if (!(scalar > 0)) return config_.Wrong("query_pre_attn_scalar", "above 0");
    // As model/config.cc computes it where a file leaves it out, so that both give equal bits.
    const float scale = 1.0f / std::sqrt(static_cast<float>(scalar));
    metadata_.SetNumber(Key("attention.scale"), static_cast<double>(scale));
    return base::OkStatus();
  }

  Status Rope();
  Status RopeScaling(const HfObject& rope, double theta);
  Status Llama3Factors(const HfObject& rope, double theta);
  Status LayeredRope(const json& parameters);
  Status Experts();
  Status Quantisation();

  const HfObject& config_;
  const Architecture& row_;
  Metadata& metadata_;
  HfConfig out_;
};

// transformers 5 writes rope_parameters with everything; 4 wrote rope_theta beside rope_scaling.
Status Translator::Rope() {
  const json* parameters = config_.Find("rope_parameters");
  if (parameters != nullptr && parameters->is_object() && parameters->contains("full_attention")) {
    return LayeredRope(*parameters);
  }
  ASSIGN_OR_RETURN(const auto theta, config_.Number("rope_theta"));
  double base = theta.value_or(row_.rope_theta);
  const bool newer = parameters != nullptr;
  const char* key = newer ? "rope_parameters" : "rope_scaling";
  const json* found = config_.Find(key);
  if (found != nullptr && !found->is_object()) return config_.Wrong(key, "an object");
  const json none = json::object();
  const HfObject rope(found != nullptr ? *found : none, fmt::format("config.json: {}", key));
  if (newer) {
    ASSIGN_OR_RETURN(const auto inner, rope.Number("rope_theta"));
    base = inner.value_or(base);
  }
  metadata_.SetNumber(Key("rope.freq_base"), base);
  if (row_.windows == Windows::kLayered) {
    ASSIGN_OR_RETURN(const auto local, config_.Number("rope_local_base_freq"));
    metadata_.SetNumber(Key("rope.freq_base_swa"), local.value_or(kGemmaLocalTheta));
  }
  return RopeScaling(rope, base);
}

// Gemma's layers with a window rotate by frequencies of their own.
Status Translator::LayeredRope(const json& parameters) {
  if (row_.windows != Windows::kLayered) {
    return config_.Refused("rope_parameters", "differs by layer: not in this architecture");
  }
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"full_attention", "rope.freq_base"}, {"sliding_attention", "rope.freq_base_swa"}};
  for (const auto& [kind, key] : kKinds) {
    const bool full = kind == kKinds[0].first;
    const auto found = parameters.find(kind);
    if (found == parameters.end() || !found->is_object()) {
      return config_.Wrong("rope_parameters", fmt::format("complete: {} is missing", kind));
    }
    const HfObject rope(*found, fmt::format("config.json: rope_parameters.{}", kind));
    ASSIGN_OR_RETURN(const auto theta, rope.Number("rope_theta"));
    const double base = theta.value_or(full ? row_.rope_theta : kGemmaLocalTheta);
    metadata_.SetNumber(Key(key), base);
    if (full) {
      RETURN_IF_ERROR(RopeScaling(rope, base));
      continue;
    }
    ASSIGN_OR_RETURN(const auto type, rope.Text("rope_type"));
    if (type.value_or("default") != "default") {
      return rope.Refused("rope_type", "is not supported for layers with a window");
    }
  }
  return base::OkStatus();
}

Status Translator::RopeScaling(const HfObject& rope, double theta) {
  ASSIGN_OR_RETURN(const auto top_share, config_.Number("partial_rotary_factor"));
  ASSIGN_OR_RETURN(const auto share, rope.Number("partial_rotary_factor"));
  if (share.value_or(top_share.value_or(1.0)) != 1.0) {
    return config_.Refused("partial_rotary_factor", "other than 1 is not supported");
  }
  ASSIGN_OR_RETURN(const auto new_type, rope.Text("rope_type"));
  ASSIGN_OR_RETURN(const auto old_type, rope.Text("type"));
  const std::string type = new_type ? *new_type : old_type.value_or("default");
  if (type == "default") return base::OkStatus();
  if (type == "llama3") return Llama3Factors(rope, theta);
  if (type != "linear") {
    return rope.Refused("rope_type", fmt::format("is \"{}\"; supported are default, linear and "
                                                 "llama3",
                                                 Printable(type)));
  }
  ASSIGN_OR_RETURN(const auto factor, rope.Number("factor"));
  if (!factor) return rope.Wrong("factor", "there");
  metadata_.SetText(Key("rope.scaling.type"), "linear");
  metadata_.SetNumber(Key("rope.scaling.factor"), *factor);
  return base::OkStatus();
}

// What llama.cpp's converter stores as rope_freqs.weight: frequencies of long wavelengths are
// divided by the factor, short ones stay, those between are interpolated. Source: the rope type
// "llama3" of transformers' modeling_rope_utils.
Status Translator::Llama3Factors(const HfObject& rope, double theta) {
  constexpr const char* kKeys[] = {"factor", "low_freq_factor", "high_freq_factor",
                                   "original_max_position_embeddings"};
  std::array<double, 4> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    ASSIGN_OR_RETURN(const auto value, rope.Number(kKeys[i]));
    if (!value || !(*value > 0 && *value < 1e12)) return rope.Wrong(kKeys[i], "a number above 0");
    values[i] = *value;
  }
  const auto [factor, low, high, original] = values;
  if (!(high > low)) return rope.Wrong("high_freq_factor", "above low_freq_factor");
  if (!(theta >= 1 && theta <= 1e12)) return config_.Wrong("rope_theta", "in [1, 1e12]");
  for (uint32_t i = 0; i < out_.head_dim / 2; ++i) {
    const double frequency = std::pow(theta, -2.0 * i / out_.head_dim);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double divisor = 1;
    if (wavelength > original / low) {
      divisor = factor;
    } else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      divisor = 1 / ((1 - smooth) / factor + smooth);
    }
    out_.rope_factors.push_back(static_cast<float>(divisor));
  }
  return base::OkStatus();
}

Status Translator::Experts() {
  const bool mixtral = row_.model_type == "mixtral";
  if (!mixtral && row_.gguf != "qwen3moe") return base::OkStatus();
  const char* key = config_.Has("num_local_experts") ? "num_local_experts" : "num_experts";
  ASSIGN_OR_RETURN(out_.experts, Count(key, std::nullopt, "expert_count", kHfExpertsMax));
  RETURN_IF_ERROR(Count("num_experts_per_tok", std::nullopt, "expert_used_count", out_.experts));
  if (mixtral) {
    // Its router takes the softmax over the chosen experts, which is the same.
    metadata_.SetBool(Key("expert_weights_norm"), true);
    return base::OkStatus();
  }
  RETURN_IF_ERROR(
      Count("moe_intermediate_size", std::nullopt, "expert_feed_forward_length", kFeedForwardMax));
  ASSIGN_OR_RETURN(const auto normalised, config_.Bool("norm_topk_prob"));
  metadata_.SetBool(Key("expert_weights_norm"), normalised.value_or(false));
  ASSIGN_OR_RETURN(const auto step, config_.Unsigned("decoder_sparse_step"));
  if (step.value_or(1) != 1) return config_.Refused("decoder_sparse_step", "must be 1");
  const json* dense = config_.Find("mlp_only_layers");
  if (dense != nullptr && !(dense->is_array() && dense->empty())) {
    return config_.Refused("mlp_only_layers", "must be empty");
  }
  return base::OkStatus();
}

Status Translator::Quantisation() {
  const json* found = config_.Find("quantization_config");
  if (found == nullptr) return base::OkStatus();
  if (!found->is_object()) return config_.Wrong("quantization_config", "an object");
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

Result<HfConfig> ReadHfConfig(std::string_view text, std::string_view name, Metadata& metadata) {
  ASSIGN_OR_RETURN(const json parsed, ParseHfJson(text, "config.json"));
  const HfObject config(parsed, "config.json");
  ASSIGN_OR_RETURN(const Architecture* row, FindArchitecture(config));
  Translator translator(config, *row, metadata);
  RETURN_IF_ERROR(translator.Run(name));
  return translator.Take();
}

}  // namespace plumb::model
