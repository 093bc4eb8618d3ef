// model/families/deepseek_v41_config.cc
// Fields by their tables, then what holds between them. Any key of an object of config.json must
// stand in one of that object's tables: an unknown one could be a feature that changes every
// answer.
#include "model/families/deepseek_v41_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "model/families/deepseek_v41_fields.h"
#include "model/hf_json.h"
#include "model/model.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;
using nlohmann::json;

constexpr const char* kClassName = "DeepseekV41ForCausalLM";
constexpr const char* kFile = "config.json";
constexpr const char* kTextFile = "config.json: text_config";

std::string Printable(std::string_view text, size_t max) {
  std::string shown(text.substr(0, max));
  for (char& c : shown) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return shown;
}

constexpr auto In = [](std::string_view key, const auto&... tables) {
  const auto name = [](const auto& row) -> std::string_view {
    if constexpr (requires { row.key; }) {
      return row.key;
    } else {
      return row;
    }
  };
  return (std::ranges::any_of(tables, [&](const auto& row) { return key == name(row); }) || ...);
};

// Null and false are how a file says that it lacks a feature.
template <typename... Tables>
Status RefuseUnknown(const HfObject& object, const json& keys, const Tables&... known) {
  for (const auto& [key, value] : keys.items()) {
    if (In(key, known...) || value.is_null() || value == json(false)) continue;
    return object.Refused(Printable(key, 80).c_str(),
                          "is not known here and might change the arithmetic");
  }
  return base::OkStatus();
}

template <size_t N>
Status CheckFixed(const HfObject& object, const FixedField (&fields)[N]) {
  for (const FixedField& field : fields) {
    const json* value = object.Find(field.key);
    if (value == nullptr || *value == json::parse(field.value)) continue;
    return object.Refused(field.key,
                          fmt::format("must be {}: another value is not supported", field.value));
  }
  return base::OkStatus();
}

// Reads text_config, and what stands beside it.
class ConfigReader {
 public:
  ConfigReader(const json& top, const json& text)
      : top_json_(top), text_json_(text), top_(top, kFile), text_(text, kTextFile) {}

  Result<DeepseekConfig> Run(std::string_view name) {
    c_.name = Printable(name, 128);
    RETURN_IF_ERROR(RefuseUnknown(top_, top_json_, kTopKeys, kFixed, kHarmless));
    RETURN_IF_ERROR(RefuseUnknown(text_, text_json_, kTextKeys, kCounts, kCandidateCounts,
                                  kEngramCounts, kDraftCounts, kDraftKeys, kReals, kFixed,
                                  kHarmless));
    RETURN_IF_ERROR(CheckFixed(top_, kFixed));
    RETURN_IF_ERROR(CheckFixed(text_, kFixed));
    RETURN_IF_ERROR(Quantisation());
    for (const CountField& field : kCounts) RETURN_IF_ERROR(Count(field));
    for (const RealField& field : kReals) {
      double value = 0;
      RETURN_IF_ERROR(Real(text_, field.key, field.min, field.max, value));
      c_.*field.field = static_cast<float>(value);
    }
    RETURN_IF_ERROR(CheckShapes());
    RETURN_IF_ERROR(Rope());
    RETURN_IF_ERROR(Draft());
    RETURN_IF_ERROR(Ratios());
    RETURN_IF_ERROR(Sources());
    RETURN_IF_ERROR(Candidates());
    RETURN_IF_ERROR(Engram());
    RETURN_IF_ERROR(Images());
    return std::move(c_);
  }

 private:
  Status Quantisation() const;
  Status CheckShapes() const;
  Status Rope();
  Status Draft();
  Status Ratios();
  Status Sources();
  Status AssignSources(const std::vector<uint64_t>& kv, const std::vector<uint64_t>& index);
  Status Candidates();
  Status Engram();
  Status Images();

  Status Count(const CountField& field) {
    ASSIGN_OR_RETURN(const uint64_t value, text_.RequiredUnsigned(field.key));
    if (value < field.min || value > field.max || value % field.multiple != 0) {
      return text_.Wrong(
          field.key,
          fmt::format("in [{}, {}]{}", field.min, field.max,
                      field.multiple == 1 ? std::string()
                                          : fmt::format(" and a multiple of {}", field.multiple)));
    }
    c_.*field.field = static_cast<uint32_t>(value);
    return base::OkStatus();
  }
  Status Real(const HfObject& object, const char* key, double min, double max, double& out) const {
    ASSIGN_OR_RETURN(const auto value, object.Number(key));
    if (!value) return object.Missing(key);
    if (!(*value >= min && *value <= max)) {
      return object.Wrong(key, fmt::format("a number in [{:g}, {:g}]", min, max));
    }
    out = *value;
    return base::OkStatus();
  }
  // Absent = empty. Values are at most value_max.
  Result<std::vector<uint64_t>> List(const char* key, size_t size_max, uint64_t value_max) const {
    std::vector<uint64_t> values;
    const json* found = text_.Find(key);
    if (found == nullptr) return values;
    const auto wrong = [&] {
      return text_.Wrong(
          key, fmt::format("a list of at most {} integers in [0, {}]", size_max, value_max));
    };
    if (!found->is_array() || found->size() > size_max) return wrong();
    for (const json& value : *found) {
      if (!value.is_number_unsigned() || value.get<uint64_t>() > value_max) return wrong();
      values.push_back(value.get<uint64_t>());
    }
    return values;
  }
  // Layers, ascending.
  Result<std::vector<uint64_t>> Layers(const char* key, size_t size_max = kLayersMax) const {
    ASSIGN_OR_RETURN(std::vector<uint64_t> layers, List(key, size_max, c_.layer_count - 1));
    if (std::adjacent_find(layers.begin(), layers.end(), std::greater_equal<>()) == layers.end()) {
      return layers;
    }
    return text_.Wrong(key, "in ascending order");
  }

  const json& top_json_;
  const json& text_json_;
  const HfObject top_;
  const HfObject text_;
  DeepseekConfig c_;
};

Status ConfigReader::Quantisation() const {
  constexpr const char* kKey = "quantization_config";
  const json* found = top_.Find(kKey);
  if (found == nullptr || !found->is_object()) return top_.Wrong(kKey, "an object");
  const HfObject object(*found, fmt::format("{}: {}", kFile, kKey));
  RETURN_IF_ERROR(RefuseUnknown(object, *found, kQuantisation));
  for (const FixedField& field : kQuantisation) {
    const bool may_lack = field.key == std::string_view("fmt");
    if (!may_lack && !object.Has(field.key)) return object.Wrong(field.key, "there");
  }
  return CheckFixed(object, kQuantisation);
}

Status ConfigReader::CheckShapes() const {
  if (c_.heads % c_.output_groups != 0) {
    return text_.Wrong("o_groups", "a divisor of num_attention_heads");
  }
  if (c_.rope_dims > c_.head_dim || c_.rope_dims > c_.index_dim) {
    return text_.Wrong("qk_rope_head_dim", "at most head_dim and index_head_dim");
  }
  if (c_.experts_used > c_.experts) {
    return text_.Wrong("num_experts_per_tok", "at most n_routed_experts");
  }
  return base::OkStatus();
}

Status ConfigReader::Rope() {
  RETURN_IF_ERROR(Real(text_, "rope_theta", 1.001, 1e12, c_.rope_base));
  RETURN_IF_ERROR(Real(text_, "compress_rope_theta", 1.001, 1e12, c_.rope_base_compress));
  const json* found = text_.Find("rope_scaling");
  if (text_.Absent("rope_scaling")) return text_.Missing("rope_scaling");
  if (found == nullptr) return base::OkStatus();  // null: positions are not stretched
  if (!found->is_object()) return text_.Wrong("rope_scaling", "an object");
  const HfObject rope(*found, fmt::format("{}: rope_scaling", kTextFile));
  if (!rope.Has("rope_type") && !rope.Has("type")) return rope.Wrong("rope_type", "there");
  RETURN_IF_ERROR(RefuseUnknown(rope, *found, kYarn, kYarnReals, kYarnKeys));
  RETURN_IF_ERROR(CheckFixed(rope, kYarn));
  DeepseekYarn yarn;
  for (const YarnField& field : kYarnReals) {
    RETURN_IF_ERROR(Real(rope, field.key, field.min, field.max, yarn.*field.field));
  }
  if (yarn.beta_slow > yarn.beta_fast) return rope.Wrong("beta_slow", "at most beta_fast");
  ASSIGN_OR_RETURN(const auto base, rope.Number("rope_theta"));
  if (base && *base != c_.rope_base) return rope.Wrong("rope_theta", "text_config's rope_theta");
  c_.yarn = yarn;
  return base::OkStatus();
}

Status ConfigReader::Draft() {
  constexpr const char* kKey = "num_nextn_predict_layers";
  ASSIGN_OR_RETURN(const auto blocks, text_.Unsigned(kKey));
  if (blocks.value_or(0) > kDraftBlocksMax) {
    return text_.Wrong(kKey, fmt::format("in [0, {}]", kDraftBlocksMax));
  }
  c_.draft_blocks = static_cast<uint32_t>(blocks.value_or(0));
  if (c_.draft_blocks == 0) return base::OkStatus();
  for (const CountField& field : kDraftCounts) RETURN_IF_ERROR(Count(field));
  for (const char* key : kDraftKeys) RETURN_IF_ERROR(base::ToStatus(text_.Unsigned(key)));
  ASSIGN_OR_RETURN(const auto targets, Layers("dspark_target_layer_ids"));
  c_.draft_targets.assign(targets.begin(), targets.end());
  return base::OkStatus();
}

// Window only, then pairs in the encoder, then single tokens in the decoder.
Status ConfigReader::Ratios() {
  constexpr const char* kKey = "compress_ratios";
  const size_t size = size_t{c_.layer_count} + c_.draft_blocks;
  ASSIGN_OR_RETURN(const auto ratios, List(kKey, size, kPageTokens));
  if (ratios.size() != size) {
    return text_.Wrong(kKey, fmt::format("a list of {} integers, one for each layer and draft "
                                         "block",
                                         size));
  }
  c_.layers.resize(c_.layer_count);
  c_.decoder_begin = kNoLayer;
  for (uint32_t i = 0; i < size; ++i) {
    const auto ratio = static_cast<uint32_t>(ratios[i]);
    const bool draft = i >= c_.layer_count;
    if (ratio > 2 || (draft && ratio != 0)) {
      return text_.Refused(
          kKey, fmt::format("has the ratio {} for {} {}", ratio, draft ? "draft block" : "layer",
                            draft ? i - c_.layer_count : i));
    }
    if (draft) continue;
    c_.layers[i].ratio = ratio;
    if (ratio == 1 && c_.decoder_begin == kNoLayer) c_.decoder_begin = i;
    if (c_.decoder_begin != kNoLayer && ratio != 1) {
      return text_.Refused(
          kKey, fmt::format("has the ratio {} for layer {}, behind a layer of ratio 1", ratio, i));
    }
  }
  if (c_.decoder_begin == kNoLayer) return text_.Refused(kKey, "has no layer of ratio 1");
  return base::OkStatus();
}

Status ConfigReader::Sources() {
  ASSIGN_OR_RETURN(const auto kv, Layers("kv_source_layer_ids"));
  ASSIGN_OR_RETURN(const auto index, Layers("index_source_layer_ids"));
  if (text_.Has("index_k_source_layer_ids")) {
    ASSIGN_OR_RETURN(const auto keys, Layers("index_k_source_layer_ids"));
    if (keys != kv) {
      return text_.Refused("index_k_source_layer_ids", "differs from kv_source_layer_ids");
    }
  }
  return AssignSources(kv, index);
}

Status ConfigReader::AssignSources(const std::vector<uint64_t>& kv,
                                   const std::vector<uint64_t>& index) {
  constexpr const char* kKv = "kv_source_layer_ids";
  constexpr const char* kIndex = "index_source_layer_ids";
  uint32_t kv_source = kNoLayer, index_source = kNoLayer;
  for (uint32_t i = 0; i < c_.layer_count; ++i) {
    DeepseekLayer& layer = c_.layers[i];
    layer.owns_kv = std::binary_search(kv.begin(), kv.end(), uint64_t{i});
    layer.owns_index = std::binary_search(index.begin(), index.end(), uint64_t{i});
    if (layer.ratio == 0) {
      if (layer.owns_kv) return text_.Wrong(kKv, fmt::format("right: layer {} has ratio 0", i));
      if (layer.owns_index) {
        return text_.Wrong(kIndex, fmt::format("right: layer {} has ratio 0", i));
      }
      continue;
    }
    if (layer.owns_kv && i > c_.decoder_begin) {
      return text_.Refused(kKv, fmt::format("names layer {}, behind the decoder's first", i));
    }
    if (layer.owns_kv) kv_source = i;
    if (layer.owns_index) index_source = i;
    if (kv_source == kNoLayer || c_.layers[kv_source].ratio != layer.ratio) {
      return text_.Wrong(
          kKv, fmt::format("complete: layer {} has no source of ratio {} at or below it", i,
                           layer.ratio));
    }
    if (index_source == kNoLayer ||
        (index_source != i && c_.layers[index_source].kv_source != kv_source)) {
      return text_.Wrong(
          kIndex, fmt::format("complete: layer {} has no source with its keys at or below it", i));
    }
    layer.kv_source = kv_source;
    layer.index_source = index_source;
  }
  return base::OkStatus();
}

Status ConfigReader::Candidates() {
  constexpr const char* kKey = "candidate_source_layer_id";
  ASSIGN_OR_RETURN(const auto source, text_.Unsigned(kKey));
  for (const CountField& field : kCandidateCounts) {
    if (!source && text_.Has(field.key)) return text_.Missing(kKey);
  }
  if (!source) return base::OkStatus();
  if (*source >= c_.layer_count || *source < c_.decoder_begin || !c_.layers[*source].owns_index) {
    return text_.Wrong(kKey, "an index source of the decoder");
  }
  c_.candidate_source = static_cast<uint32_t>(*source);
  for (const CountField& field : kCandidateCounts) RETURN_IF_ERROR(Count(field));
  return base::OkStatus();
}

Status ConfigReader::Engram() {
  ASSIGN_OR_RETURN(const auto layers, Layers("engram_layer_ids", kEngramLayersMax));
  if (layers.empty()) return base::OkStatus();
  for (const CountField& field : kEngramCounts) RETURN_IF_ERROR(Count(field));
  if (c_.engram_pad_token >= c_.vocabulary) {
    return text_.Wrong("engram_pad_token_id", "below vocab_size");
  }
  if (c_.engram_classes > c_.vocabulary) {
    return text_.Wrong("engram_compressed_vocab_size", "at most vocab_size");
  }
  ASSIGN_OR_RETURN(c_.engram_bucket, text_.RequiredUnsigned("engram_vocab_size"));
  if (c_.engram_bucket < 2 || c_.engram_bucket > kEngramBucketMax) {
    return text_.Wrong("engram_vocab_size", fmt::format("in [2, {}]", kEngramBucketMax));
  }
  ASSIGN_OR_RETURN(c_.engram_rows, List("engram_num_embeddings", layers.size(), kEngramRowsMax));
  if (c_.engram_rows.size() != layers.size()) {
    return text_.Wrong("engram_num_embeddings", "a number for each of engram_layer_ids");
  }
  for (uint32_t place = 0; place < layers.size(); ++place) {
    c_.engram_layers.push_back(static_cast<uint32_t>(layers[place]));
    c_.layers[layers[place]].engram = place;
  }
  return base::OkStatus();
}

Status ConfigReader::Images() {
  ASSIGN_OR_RETURN(const auto image, top_.Unsigned("image_token_id"));
  if (image && *image >= c_.vocabulary) return top_.Wrong("image_token_id", "below vocab_size");
  c_.image_token = image ? static_cast<uint32_t>(*image) : kNoToken;
  return base::OkStatus();
}

bool NamesFamily(const json& config) {
  const auto names = config.find("architectures");
  if (names != config.end() && names->is_array() && names->size() == 1) {
    return (*names)[0] == kClassName;
  }
  const auto type = config.find("model_type");
  return type != config.end() && *type == std::string(kDeepseekArchitecture);
}

}  // namespace

std::vector<uint32_t> DeepseekConfig::KvSources() const {
  std::vector<uint32_t> sources;
  for (uint32_t i = 0; i < layers.size(); ++i) {
    if (layers[i].owns_kv) sources.push_back(i);
  }
  return sources;
}

Result<DeepseekConfig> ReadDeepseekConfig(std::string_view text, std::string_view name) {
  ASSIGN_OR_RETURN(const json parsed, ParseHfJson(text, kFile));
  const HfObject top(parsed, kFile);
  if (!NamesFamily(parsed)) {
    return top.Refused("architectures", fmt::format("does not name {}", kClassName));
  }
  const json* found = top.Find("text_config");
  if (found == nullptr || !found->is_object()) return top.Wrong("text_config", "an object");
  return ConfigReader(parsed, *found).Run(name);
}

Result<DeepseekConfig> ReadDeepseekConfig(const Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const std::string_view text, checkpoint.Text(kDeepseekConfigKey));
  const auto name = checkpoint.Text("general.name");
  return ReadDeepseekConfig(text, name.ok() ? *name : "");
}

bool IsDeepseekV41(std::string_view config_json) {
  const auto parsed = ParseHfJson(config_json, kFile);
  return parsed.ok() && NamesFamily(*parsed);
}

bool IsDeepseekV41(const Checkpoint& checkpoint) {
  const auto architecture = checkpoint.Text("general.architecture");
  return architecture.ok() && *architecture == kDeepseekArchitecture;
}

}  // namespace plumb::model
