// model/hf_windows.cc
// Which layers see a window of positions only. In files of transformers 4 a rule says it, in later
// ones a list; some classes read no list, so that one which says otherwise is refused.
#include <algorithm>
#include <memory>
#include <span>

#include "model/hf_translate.h"

namespace plumb::model {

using base::Result;
using base::Status;
using nlohmann::json;

namespace {

constexpr uint32_t kGemmaPeriod = 6;       // sliding_window_pattern
constexpr uint32_t kQwenFirstWindow = 28;  // max_window_layers

bool ReadsLayerTypes(HfWindows windows) {
  return windows == HfWindows::kLayered || windows == HfWindows::kSwitchedLayered;
}

// By layer, whether it has the window, as layer_types says; null without the key.
Result<std::unique_ptr<bool[]>> ListedLayers(const HfTranslation& to) {
  const json* types = to.config.Find("layer_types");
  if (types == nullptr) return std::unique_ptr<bool[]>();
  if (!types->is_array() || types->size() != to.out.layers) {
    return to.config.Wrong("layer_types", fmt::format("a list of {} names", to.out.layers));
  }
  auto layers = std::make_unique<bool[]>(to.out.layers);
  for (uint32_t i = 0; i < to.out.layers; ++i) {
    const bool sliding = (*types)[i] == "sliding_attention";
    if (!sliding && (*types)[i] != "full_attention") {
      return to.config.Refused("layer_types", fmt::format("has an unknown kind for layer {}", i));
    }
    layers[i] = sliding;
  }
  return layers;
}

// The same by the class's rule.
Result<std::unique_ptr<bool[]>> RuledLayers(const HfTranslation& to) {
  auto layers = std::make_unique<bool[]>(to.out.layers);
  if (to.row.windows == HfWindows::kLayered) {
    ASSIGN_OR_RETURN(const auto period, to.config.Unsigned("sliding_window_pattern"));
    if (period == 0u) return to.config.Wrong("sliding_window_pattern", "above 0");
    const uint64_t every = period.value_or(kGemmaPeriod);
    for (uint32_t i = 0; i < to.out.layers; ++i) layers[i] = (i + 1) % every != 0;
    return layers;
  }
  uint64_t first = 0;  // with a window
  if (to.row.windows == HfWindows::kSwitchedLayered) {
    ASSIGN_OR_RETURN(const auto given, to.config.Unsigned("max_window_layers"));
    first = given.value_or(kQwenFirstWindow);
  }
  for (uint32_t i = 0; i < to.out.layers; ++i) layers[i] = i >= first;
  return layers;
}

// Positions that a row sees in layers with a window; 0 = none has one.
Result<uint64_t> WindowSize(const HfTranslation& to) {
  const HfWindows windows = to.row.windows;
  if (windows == HfWindows::kNone) return 0;
  if (windows == HfWindows::kSwitched || windows == HfWindows::kSwitchedLayered) {
    ASSIGN_OR_RETURN(const auto used, to.config.Bool("use_sliding_window"));
    if (!used.value_or(false)) return 0;
  }
  ASSIGN_OR_RETURN(auto window, to.config.Unsigned("sliding_window"));
  // Null is none; without the key the class has its own.
  if (to.row.window != 0 && to.config.Absent("sliding_window")) window = to.row.window;
  if (!window && windows == HfWindows::kLayered) {
    return to.config.Wrong("sliding_window", "a count");  // these layers have no other meaning
  }
  if (window == 0u) return to.config.Wrong("sliding_window", "above 0");
  return window.value_or(0);
}

// A list must not say other than what is computed.
Status CheckList(const HfTranslation& to, const std::unique_ptr<bool[]>& listed, uint64_t window) {
  if (listed == nullptr) return base::OkStatus();
  for (uint32_t i = 0; i < to.out.layers; ++i) {
    if (listed[i] && window == 0) {
      return to.config.Refused(
          "layer_types", fmt::format("gives layer {} a window, but {}: remove layer_types, or name "
                                     "the class that the model was made with",
                                     i,
                                     to.row.windows == HfWindows::kNone
                                         ? fmt::format("{} has none", to.row.class_name)
                                         : "sliding_window or use_sliding_window says none"));
    }
    if (!listed[i] && window != 0 && !ReadsLayerTypes(to.row.windows)) {
      return to.config.Refused(
          "layer_types",
          fmt::format("gives layer {} no window, but all layers of {} have it: remove layer_types, "
                      "or name the class that the model was made with",
                      i, to.row.class_name));
    }
  }
  return base::OkStatus();
}

}  // namespace

Status TranslateWindows(const HfTranslation& to) {
  ASSIGN_OR_RETURN(const uint64_t window, WindowSize(to));
  ASSIGN_OR_RETURN(std::unique_ptr<bool[]> layers, ListedLayers(to));
  RETURN_IF_ERROR(CheckList(to, layers, window));
  if (window == 0) return base::OkStatus();
  if (layers == nullptr) {
    ASSIGN_OR_RETURN(layers, RuledLayers(to));
  }
  const std::span<const bool> flags(layers.get(), to.out.layers);
  if (std::find(flags.begin(), flags.end(), true) == flags.end()) return base::OkStatus();
  to.metadata.SetUnsigned(to.Key("attention.sliding_window"), window);
  to.metadata.SetBools(to.Key("attention.sliding_window_pattern"), flags);
  return base::OkStatus();
}

}  // namespace plumb::model
