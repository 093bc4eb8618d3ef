// model/families/deepseek_v41_tiny.h
// Small DeepSeek-V4.1 checkpoints with random weights, as the files of their folder: real names and
// storage types, any shape. Config, tensors and token map can be changed before they are written,
// so that a test damages what it likes. Twin for other families: model/tiny_model.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/deepseek_v41_config.h"
#include "model/hf_writer.h"

namespace plumb::model {

// Widths are multiples of 32. Names as in DeepseekConfig.
struct DeepseekTinySpec {
  uint32_t vocabulary = 96;
  uint32_t hidden = 64;
  uint32_t context_max = 1024;
  std::vector<uint32_t> ratios = {0, 2, 2, 1, 1};  // of the layers
  std::vector<uint32_t> kv_sources = {1, 3};
  std::vector<uint32_t> index_sources = {1, 3, 4};

  uint32_t heads = 4;
  uint32_t head_dim = 32;
  uint32_t rope_dims = 8;
  uint32_t query_rank = 32;
  uint32_t output_rank = 32;
  uint32_t output_groups = 2;
  uint32_t window = 6;
  bool yarn = true;

  uint32_t index_heads = 4;
  uint32_t index_dim = 32;
  uint32_t index_top = 6;
  uint32_t candidate_source = 3;  // kNoLayer: none
  uint32_t candidate_blocks = 3;
  uint32_t candidate_block_rows = 4;

  uint32_t experts = 6;
  uint32_t experts_used = 2;
  uint32_t expert_width = 32;

  uint32_t streams = 4;
  uint32_t sinkhorn_iterations = 20;

  std::vector<uint32_t> engram_layers = {1};
  uint32_t engram_ngram_max = 3;
  uint32_t engram_heads = 2;
  uint32_t engram_head_dim = 32;
  uint32_t engram_bucket = 50;
  uint32_t engram_classes = 80;

  uint32_t draft_blocks = 1;  // a few of their tensors, since nothing reads them
  bool vision = true;         // likewise
  bool model_prefix = false;  // names begin with "model."
  bool norm_in_f32 = false;   // norm.weight
  // Exponents are lowered where a layer's contributions enter the streams: 6 makes a network that
  // is not chaotic, for comparisons that round.
  uint32_t damping = 0;
  // False: names, types and shapes alone, for sizes that no test can hold (WriteDeepseekSparse).
  bool values = true;
  uint64_t seed = 1;
};

struct DeepseekTinyTensor {
  std::string name;
  std::string type;  // "F8_E8M0"
  std::vector<uint64_t> shape;
  std::string bytes;
};

struct DeepseekTiny {
  nlohmann::ordered_json config;
  std::vector<DeepseekTinyTensor> tensors;
  std::vector<uint32_t> token_map;  // empty = no engram_token_map.json

  // Aborts when there is none.
  DeepseekTinyTensor& Tensor(std::string_view name);
};

// The same spec gives the same bytes.
DeepseekTiny MakeDeepseekTiny(const DeepseekTinySpec& spec);

// config.json, the token map and the weights, in one file or, with an index, in several.
HfFiles DeepseekTinyFiles(const DeepseekTiny& tiny, uint32_t shards = 1);

// The same into a folder, but weights are holes in files as long as they would be: zeros that take
// no space. Needs a file system that has such files.
void WriteDeepseekSparse(const std::string& folder, const DeepseekTiny& tiny, uint32_t shards);

}  // namespace plumb::model
