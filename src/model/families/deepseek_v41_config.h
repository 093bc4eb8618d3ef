// model/families/deepseek_v41_config.h
// The numbers of a DeepSeek-V4.1 checkpoint, all from its config.json, each checked against a range
// and against each other. A field that would change the arithmetic and is not implemented is
// refused by name. Source: config.json of DeepSeek-V4.1-Flash, as DeepInfer 0.1.0 reads it. Read
// next: deepseek_v41_weights.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"

namespace plumb::model {

constexpr uint32_t kNoLayer = UINT32_MAX;
constexpr uint32_t kNoToken = UINT32_MAX;

// general.architecture of such a checkpoint, and the metadata keys of files that are read whole.
constexpr std::string_view kDeepseekArchitecture = "deepseek_v41";
constexpr std::string_view kDeepseekConfigKey = "deepseek_v41.config_json";
constexpr std::string_view kDeepseekTokenMapKey = "deepseek_v41.engram_token_map_json";

// What a layer of the backbone does; sources are the nearest at or below it.
struct DeepseekLayer {
  uint32_t ratio = 0;                // tokens of a main row; 0 = sliding window only
  uint32_t kv_source = kNoLayer;     // whose main rows and index keys it uses; for ratio > 0
  uint32_t index_source = kNoLayer;  // whose selection it uses; for ratio > 0
  bool owns_kv = false;              // kv_source == itself
  bool owns_index = false;           // index_source == itself
  uint32_t engram = kNoLayer;        // place in DeepseekConfig::engram_tables; kNoLayer = none
};

struct DeepseekYarn {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double original_positions = 0;
};

struct DeepseekConfig {
  std::string name;
  uint32_t vocabulary = 0;
  uint32_t hidden = 0;
  uint32_t layer_count = 0;
  std::vector<DeepseekLayer> layers;  // [layer_count]
  uint32_t decoder_begin = 0;         // the first layer with ratio 1: n_prefill_layer
  uint32_t context_max = 0;

  uint32_t heads = 0;
  uint32_t head_dim = 0;
  uint32_t rope_dims = 0;  // the last ones of a head
  uint32_t query_rank = 0;
  uint32_t output_rank = 0;
  uint32_t output_groups = 0;
  uint32_t window = 0;  // the query's token included
  float rms_epsilon = 0;
  double rope_base = 0;           // ratio 0
  double rope_base_compress = 0;  // ratio >= 1, with yarn
  std::optional<DeepseekYarn> yarn;

  uint32_t index_heads = 0;
  uint32_t index_dim = 0;
  uint32_t index_top = 0;
  uint32_t candidate_source = kNoLayer;  // kNoLayer: no candidate blocks
  uint32_t candidate_blocks = 0;
  uint32_t candidate_block_rows = 0;

  uint32_t experts = 0;
  uint32_t experts_used = 0;
  uint32_t expert_width = 0;
  float expert_scale = 0;  // routed_scaling_factor
  float swiglu_limit = 0;

  uint32_t streams = 0;  // hc_mult
  uint32_t sinkhorn_iterations = 0;
  float hyper_epsilon = 0;

  std::vector<uint32_t> engram_layers;
  std::vector<uint64_t> engram_rows;  // by place
  uint32_t engram_ngram_max = 0;
  uint32_t engram_heads = 0;
  uint32_t engram_head_dim = 0;
  uint64_t engram_bucket = 0;  // engram_vocab_size: where the search for primes begins
  uint32_t engram_pad_token = 0;
  uint32_t engram_classes = 0;  // engram_compressed_vocab_size

  uint32_t image_token = 0;   // kNoToken: none
  uint32_t draft_blocks = 0;  // mtp.* in the checkpoint; not computed yet
  uint32_t draft_experts = 0;
  uint32_t draft_rank = 0;              // dspark_markov_rank
  std::vector<uint32_t> draft_targets;  // layers whose inputs the draft blocks see

  // Places of the layers that own keys and values, in order.
  std::vector<uint32_t> KvSources() const;
};

// kCorrupt: no JSON, a key missing, of the wrong type, out of range or in contradiction to another;
// kUnsupported: a feature. field() and message name the key.
base::Result<DeepseekConfig> ReadDeepseekConfig(std::string_view json, std::string_view name);
// Of a checkpoint whose architecture is kDeepseekArchitecture.
base::Result<DeepseekConfig> ReadDeepseekConfig(const Checkpoint& checkpoint);

// Whether this config.json names the family; false also for what is no JSON.
bool IsDeepseekV41(std::string_view config_json);
bool IsDeepseekV41(const Checkpoint& checkpoint);

}  // namespace plumb::model
