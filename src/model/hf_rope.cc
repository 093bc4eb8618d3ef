// model/hf_rope.cc
// The rotary embedding. transformers 5 writes rope_parameters with everything; 4 wrote rope_theta
// beside rope_scaling. Both spellings are read, but never two that say different things.
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <optional>
#include <utility>

#include "model/hf_translate.h"

namespace plumb::model {

using base::Result;
using base::Status;
using nlohmann::json;

namespace {

constexpr double kGemmaLocalTheta = 1e4;  // rope_local_base_freq, where it is absent

// What llama.cpp's converter stores as rope_freqs.weight: frequencies of long wavelengths are
// divided by the factor, short ones stay, those between are interpolated. Source: the rope type
// "llama3" of transformers' modeling_rope_utils.
Status Llama3Factors(const HfTranslation& to, const HfObject& rope, double theta) {
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
  if (!(theta >= 1 && theta <= 1e12)) return to.config.Wrong("rope_theta", "in [1, 1e12]");
  for (uint32_t i = 0; i < to.out.head_dim / 2; ++i) {
    const double frequency = std::pow(theta, -2.0 * i / to.out.head_dim);
    const double wavelength = 2 * std::numbers::pi / frequency;
    double divisor = 1;
    if (wavelength > original / low) {
      divisor = factor;
    } else if (wavelength >= original / high) {
      const double smooth = (original / wavelength - low) / (high - low);
      divisor = 1 / ((1 - smooth) / factor + smooth);
    }
    to.out.rope_factors.push_back(static_cast<float>(divisor));
  }
  return base::OkStatus();
}

// rope_type, or by its older name type. An object that only says rope_theta means "default".
Result<std::string> ScalingType(const HfObject& rope) {
  ASSIGN_OR_RETURN(const auto type, rope.Text("rope_type"));
  ASSIGN_OR_RETURN(const auto older, rope.Text("type"));
  if (type && older && *type != *older) {
    return rope.Refused("type",
                        fmt::format("is \"{}\", but rope_type is \"{}\": remove one of them",
                                    Printable(*older), Printable(*type)));
  }
  if (type || older) return type ? *type : *older;
  if (rope.Has("factor")) {
    return rope.Refused("factor",
                        "stands there without rope_type: add \"rope_type\": \"linear\" or llama3, "
                        "or remove factor");
  }
  return std::string("default");
}

// Numbers that belong to other types would be ignored.
Status RefuseUnread(const HfObject& rope, std::string_view type) {
  constexpr const char* kNumbers[] = {"factor",           "low_freq_factor", "high_freq_factor",
                                      "attention_factor", "beta_fast",       "beta_slow",
                                      "mscale",           "mscale_all_dim",  "short_factor",
                                      "long_factor",      "mrope_section"};
  const bool llama3 = type == "llama3";
  for (const char* key : kNumbers) {
    const json* found = rope.Find(key);
    const std::string_view name = key;
    const bool read =
        name == "factor" ? llama3 || type == "linear" : llama3 && name.ends_with("freq_factor");
    if (found == nullptr || read || (name == "factor" && *found == 1.0)) continue;
    return rope.Refused(key, fmt::format("has no meaning where rope_type is \"{}\": remove it, or "
                                         "correct rope_type",
                                         type));
  }
  return base::OkStatus();
}

Status RopeScaling(const HfTranslation& to, const HfObject& rope, double theta) {
  ASSIGN_OR_RETURN(const auto top_share, to.config.Number("partial_rotary_factor"));
  ASSIGN_OR_RETURN(const auto share, rope.Number("partial_rotary_factor"));
  for (const std::optional<double>& each : {top_share, share}) {
    if (each.value_or(1.0) == 1.0) continue;
    return to.config.Refused("partial_rotary_factor", "other than 1 is not supported");
  }
  ASSIGN_OR_RETURN(const std::string type, ScalingType(rope));
  if (type != "default" && type != "llama3" && type != "linear") {
    return rope.Refused("rope_type", fmt::format("is \"{}\"; supported are default, linear and "
                                                 "llama3",
                                                 Printable(type)));
  }
  RETURN_IF_ERROR(RefuseUnread(rope, type));
  if (type == "default") return base::OkStatus();
  if (type == "llama3") return Llama3Factors(to, rope, theta);
  ASSIGN_OR_RETURN(const auto factor, rope.Number("factor"));
  if (!factor) return rope.Wrong("factor", "there");
  to.metadata.SetText(to.Key("rope.scaling.type"), "linear");
  to.metadata.SetNumber(to.Key("rope.scaling.factor"), *factor);
  return base::OkStatus();
}

// The base of the frequencies: `inner` to the object, `outer_key` beside it, or the class's.
Result<double> Theta(const HfTranslation& to, const char* outer_key, std::optional<double> inner,
                     double fallback) {
  ASSIGN_OR_RETURN(const auto outer, to.config.Number(outer_key));
  if (outer && inner && *outer != *inner) {
    return to.config.Refused(outer_key,
                             fmt::format("is {}, but the object of rope parameters says {}: remove "
                                         "one of them",
                                         *outer, *inner));
  }
  return inner ? *inner : outer.value_or(fallback);
}

// Gemma's layers with a window rotate by frequencies of their own.
Status LayeredRope(const HfTranslation& to, const json& parameters) {
  if (to.row.windows != HfWindows::kLayered) {
    return to.config.Refused("rope_parameters", "differs by layer: not in this architecture");
  }
  constexpr std::pair<const char*, const char*> kKinds[] = {
      {"full_attention", "rope.freq_base"}, {"sliding_attention", "rope.freq_base_swa"}};
  for (const auto& [kind, key] : kKinds) {
    const bool full = kind == kKinds[0].first;
    const auto found = parameters.find(kind);
    if (found == parameters.end() || !found->is_object()) {
      return to.config.Wrong("rope_parameters", fmt::format("complete: {} is missing", kind));
    }
    const HfObject rope(*found, fmt::format("config.json: rope_parameters.{}", kind));
    ASSIGN_OR_RETURN(const auto inner, rope.Number("rope_theta"));
    ASSIGN_OR_RETURN(const double base, Theta(to, full ? "rope_theta" : "rope_local_base_freq",
                                              inner, full ? to.row.rope_theta : kGemmaLocalTheta));
    to.metadata.SetNumber(to.Key(key), base);
    if (full) {
      RETURN_IF_ERROR(RopeScaling(to, rope, base));
      continue;
    }
    ASSIGN_OR_RETURN(const std::string type, ScalingType(rope));
    if (type != "default") {
      return rope.Refused("rope_type", "is not supported for layers with a window");
    }
    RETURN_IF_ERROR(RefuseUnread(rope, type));
  }
  return base::OkStatus();
}

}  // namespace

Status TranslateRope(const HfTranslation& to) {
  const json* parameters = to.config.Find("rope_parameters");
  const json* scaling = to.config.Find("rope_scaling");
  for (const auto& [key, found] :
       {std::pair("rope_parameters", parameters), std::pair("rope_scaling", scaling)}) {
    if (found != nullptr && !found->is_object()) return to.config.Wrong(key, "an object");
  }
  if (parameters != nullptr && scaling != nullptr && *parameters != *scaling) {
    return to.config.Refused(
        "rope_scaling", "stands beside rope_parameters and says otherwise: remove one of them");
  }
  if (parameters != nullptr && parameters->contains("full_attention")) {
    return LayeredRope(to, *parameters);
  }
  const char* key = parameters != nullptr ? "rope_parameters" : "rope_scaling";
  const json* found = parameters != nullptr ? parameters : scaling;
  const json none = json::object();
  const HfObject rope(found != nullptr ? *found : none, fmt::format("config.json: {}", key));
  ASSIGN_OR_RETURN(const auto inner, rope.Number("rope_theta"));
  ASSIGN_OR_RETURN(const double base, Theta(to, "rope_theta", inner, to.row.rope_theta));
  to.metadata.SetNumber(to.Key("rope.freq_base"), base);
  if (to.row.windows == HfWindows::kLayered) {
    ASSIGN_OR_RETURN(const auto local, to.config.Number("rope_local_base_freq"));
    to.metadata.SetNumber(to.Key("rope.freq_base_swa"), local.value_or(kGemmaLocalTheta));
  }
  return RopeScaling(to, rope, base);
}

}  // namespace plumb::model
