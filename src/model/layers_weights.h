// model/layers_weights.h
// The weights that families are made of, each with its names in the file and its loader: what
// stands around the layers, attention with its variants, and the gated feed-forward. A family's
// Weights() and its loader call the same functions, so that what is expected is what is read.
// Tensor names: as GGUF files by llama.cpp's converter have them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/weight_reader.h"
#include "tensor/aligned_buffer.h"
#include "tensor/packed_matrix.h"
#include "tensor/rotary.h"
#include "tensor/weight_arena.h"

namespace plumb::model {

// "blk.3.attn_q"
std::string LayerName(uint32_t layer, std::string_view name);

// Widths that follow from a config.
uint64_t QueryWidth(const Config& config);  // heads * head_dim
uint64_t KeyWidth(const Config& config);    // kv_heads * head_dim

struct Projection {
  tensor::PackedMatrix matrix;
  std::vector<float> bias;  // empty = none

  // bias.data() of an empty vector may be anything.
  const float* bias_or_null() const { return bias.empty() ? nullptr : bias.data(); }
};

// Rows of the embedding as the file stores them, expanded row by row when used. Empty where the
// output matrix holds the same rows.
struct EmbeddingTable {
  tensor::AlignedBuffer rows;
  tensor::DType type = tensor::DType::kF32;
  uint64_t row_bytes = 0;
};

// What stands around the layers.
struct OuterWeights {
  tensor::WeightArena arena;  // of every matrix of the model, so it must outlive them
  EmbeddingTable embedding;
  std::vector<float> output_norm;   // [embedding]
  tensor::PackedMatrix output;      // [vocabulary, embedding]
  std::vector<float> rope_factors;  // [rope_dims / 2], or empty
  uint64_t resident_bytes = 0;      // of the whole model
};

struct AttentionWeights {
  Projection query;                         // [heads * head_dim, embedding]
  Projection key, value;                    // [kv_heads * head_dim, embedding]
  Projection output;                        // [embedding, heads * head_dim]
  std::vector<float> query_norm, key_norm;  // [head_dim], of each head; empty = none
};

struct GatedWeights {
  tensor::PackedMatrix gate, up;  // [feed_forward, embedding]
  tensor::PackedMatrix down;      // [embedding, feed_forward]
};

// Whether a family normalises the heads of queries and keys.
enum class HeadNorms : uint8_t { kNo, kYes };

// What the file must and may hold, added to `specs`.
void ExpectOuter(const Config& config, std::vector<WeightSpec>& specs);
void ExpectVector(uint32_t layer, std::string_view name, uint64_t size,
                  std::vector<WeightSpec>& specs);
void ExpectAttention(const Config& config, HeadNorms norms, uint32_t layer,
                     std::vector<WeightSpec>& specs);
void ExpectGated(const Config& config, uint32_t layer, std::vector<WeightSpec>& specs);

// Whether a packed matrix of this type gives back the file's rows bit for bit.
bool RowsSurvivePacking(tensor::DType type);

// Errors: WeightReader's, and kOverloaded.
base::Result<EmbeddingTable> LoadEmbedding(WeightReader& reader, const Config& config);
base::Result<AttentionWeights> LoadAttention(WeightReader& reader, const Config& config,
                                             HeadNorms norms, uint32_t layer);
base::Result<GatedWeights> LoadGated(WeightReader& reader, const Config& config, uint32_t layer);
// The rest of `outer`, whose arena `reader` fills; called last, since it counts the bytes.
base::Status FinishOuter(WeightReader& reader, const Config& config, OuterWeights& outer);

}  // namespace plumb::model
