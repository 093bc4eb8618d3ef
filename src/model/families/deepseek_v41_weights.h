// model/families/deepseek_v41_weights.h
// Where a DeepSeek-V4.1 checkpoint's weights lie in its mapped files. Nothing is copied but small
// vectors; matrices are views, computed from as they are stored. Names and shapes: docs of the
// checkpoint (docs/deepseek_v41.md). Read next: deepseek_v41.cc.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/engram.h"
#include "model/load.h"
#include "tensor/block_matrix.h"

namespace plumb::model {

using tensor::BlockMatrix;
using Floats = std::vector<float>;

// The mix of a sub-layer's streams (hc_*).
struct HyperWeights {
  BlockMatrix fn;  // [2 m + m m, m hidden] f32, m = streams
  Floats base;     // [2 m + m m]
  float scale[3] = {};
};

struct CompressorWeights {
  BlockMatrix value;  // wkv [head_dim, hidden]
  BlockMatrix gate;   // wgate; weights null where ratio is 1
  Floats norm;        // [head_dim]
  BlockMatrix key;    // indexer.wk [index_dim, head_dim]
  Floats key_norm;    // [index_dim]
};

struct IndexerWeights {
  BlockMatrix query;    // wq_b [index_heads * index_dim, query_rank]
  BlockMatrix weights;  // weights_proj [index_heads, hidden]
};

struct DeepseekAttention {
  BlockMatrix query_a;           // wq_a [query_rank, hidden]
  Floats query_norm;             // [query_rank]
  BlockMatrix query_b;           // wq_b [heads * head_dim, query_rank]
  BlockMatrix kv;                // wkv [head_dim, hidden]
  Floats kv_norm;                // [head_dim]
  Floats sinks;                  // [heads]
  BlockMatrix output_a;          // wo_a [groups * output_rank, heads * head_dim / groups]
  BlockMatrix output_b;          // wo_b [hidden, groups * output_rank]
  CompressorWeights compressor;  // where owns_kv
  IndexerWeights indexer;        // where owns_index
};

struct DeepseekExpert {
  BlockMatrix gate;  // w1 [expert_width, hidden]
  BlockMatrix up;    // w3
  BlockMatrix down;  // w2 [hidden, expert_width]
};

struct DeepseekFeed {
  BlockMatrix router;  // gate.weight [experts, hidden]
  Floats bias;         // [experts]
  Floats bias_image;   // gate.bias_vl
  DeepseekExpert shared;
  std::vector<DeepseekExpert> experts;
};

struct EngramWeights {
  EngramTable table;  // [rows, engram_head_dim]
  BlockMatrix kv;    // wkv [(m + 1) hidden, (ngram_max - 1) heads head_dim]: m keys, then the value
  Floats query_key;  // [m, hidden]: q_weight * k_weight, each product rounded once
};

struct DeepseekLayerWeights {
  Floats attention_norm;  // [hidden]
  Floats feed_norm;       // [hidden]
  HyperWeights attention_mix;
  HyperWeights feed_mix;
  DeepseekAttention attention;
  DeepseekFeed feed;
  EngramWeights engram;  // where it has one
};

struct DeepseekWeights {
  BlockMatrix embedding;  // [vocabulary, hidden]
  BlockMatrix head;       // [vocabulary, hidden]
  Floats norm;            // [hidden]
  std::vector<DeepseekLayerWeights> layers;
  // Class of each token id below vocabulary, for the n-gram tables; empty without Engram layers.
  std::vector<uint32_t> token_classes;
  std::shared_ptr<const void> files;  // what the views lie in: Checkpoint::Keep
  uint64_t weight_bytes = 0;          // mapped, without n-gram tables
  uint64_t table_bytes = 0;           // of these
  uint64_t parameters = 0;            // of both
};

// Finds every tensor and checks its type and shape; then reads what could be infinite or NaN, which
// is refused: F32, BF16 and F8 values and all scales, but not the codes of n-gram tables. On
// options.loader(), with progress. Tensors of the draft blocks and of vision are left alone; any
// other that the family does not know is refused, since a weight left out gives wrong answers. The
// result may outlive the checkpoint. kCorrupt: a tensor is missing, has another type or shape or
// such a value, or the classes of tokens do not fit the config; kUnsupported: an unknown tensor, or
// nobody gives classes; field() and message name it; and the errors of options.token_classes.
base::Result<DeepseekWeights> MapDeepseekWeights(const Checkpoint& checkpoint,
                                                 const DeepseekConfig& config,
                                                 const LoadOptions& options);

// The same without reading any value and without classes: whether the tensors are the config's.
base::Status CheckDeepseekTensors(const Checkpoint& checkpoint, const DeepseekConfig& config);

}  // namespace plumb::model
