// model/hf_config.h
// config.json of a Hugging Face folder, told as the metadata that a GGUF file of the same model
// would have ("llama.block_count"), so that model/config.cc reads both. What GGUF does not say is
// returned: how tensors are stored. Anything that would change the arithmetic and has no key is
// refused. Sources: the configuration classes of transformers 4 and 5; key names of ggml's gguf.md
// and llama.cpp's converter. Read next: model/hf_tensors.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/metadata.h"

namespace plumb::model {

// One scale for each block of a matrix stored in F8; blocks at the edges may be cut.
struct ScaleBlock {
  uint64_t outputs = 0;
  uint64_t inputs = 0;
};

// Which of a layer's projections the reference adds a bias to; the tensors must agree.
struct HfAttentionBiases {
  bool query_key_value = false;
  bool output = false;
  std::string why;  // who says so, as errors begin
};

struct HfConfig {
  std::string architecture;  // general.architecture: "llama", "qwen3moe"
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t experts = 0;      // 0 = none
  bool tied_output = false;  // lm_head.weight, if it is there, does not count
  // GGUF's rows of queries and keys are ordered for rotation of adjacent pairs; the folder's for
  // pairs (i, i + half).
  bool adjacent_pairs = false;
  HfAttentionBiases biases;
  bool norms_lack_one = false;         // Gemma: a norm's weight is stored less 1
  std::optional<ScaleBlock> f8_block;  // set when matrices are stored in F8
  std::vector<float> rope_factors;     // divide the rotary frequencies; empty = none
};

// Ranges checked here are only those that later steps of the reader rely on; model/config.cc checks
// the rest by the keys' names.
constexpr uint32_t kHfExpertsMax = 4096;

// Fills `metadata`. kCorrupt: no JSON, or a key missing, of the wrong type or out of range;
// kUnsupported: an architecture, quantisation or feature that is not supported. field() and message
// name the key.
base::Result<HfConfig> ReadHfConfig(std::string_view json, std::string_view name,
                                    Metadata& metadata);

}  // namespace plumb::model
