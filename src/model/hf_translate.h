// model/hf_translate.h
// Inside ReadHfConfig only: what each architecture's class of transformers reads of config.json,
// as a table, and the parts of the translation that have files of their own: attention windows and
// the rotary embedding. A key that the class would ignore, or two that contradict each other, are
// refused where they could mean other numbers. Read next: model/hf_config.cc.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/hf_config.h"
#include "model/hf_json.h"
#include "model/metadata.h"

namespace plumb::model {

enum class HfWindows : uint8_t {
  kNone,
  kAlways,           // every layer, when sliding_window is set
  kSwitched,         // every layer, when use_sliding_window is set
  kSwitchedLayered,  // some layers, when use_sliding_window is set
  kLayered,          // some layers
};

// Which attention projections the class gives a bias.
enum class HfBiases : uint8_t {
  kNever,
  kByKey,          // all four, where attention_bias is true
  kQueryKeyValue,  // always, but the output has none
};

// What the class assumes of keys that config.json does not have. Source: the configuration and
// modelling classes of transformers 4.57 and 5.0.
struct HfArchitecture {
  std::string_view class_name;
  std::string_view model_type;  // for folders that name no class
  std::string_view gguf;
  std::string_view activation;
  uint32_t kv_heads;  // 0 = as many as heads
  uint32_t head_dim;  // 0 = hidden_size / heads
  double rope_theta;
  bool tied;
  HfWindows windows;
  uint32_t window;  // sliding_window; 0 = none
  HfBiases biases;
};

// One config.json on its way. Borrows its parts.
struct HfTranslation {
  const HfObject& config;
  const HfArchitecture& row;
  Metadata& metadata;
  HfConfig& out;  // its shape is known

  std::string Key(std::string_view name) const { return fmt::format("{}.{}", row.gguf, name); }
};

// Each writes its keys. Errors: as ReadHfConfig.
base::Status TranslateWindows(const HfTranslation& to);
base::Status TranslateRope(const HfTranslation& to);

// At most 40 characters, others than printable ASCII as '?'.
std::string Printable(std::string_view text);

}  // namespace plumb::model
