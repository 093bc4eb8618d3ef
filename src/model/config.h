// model/config.h
// A model's numbers, out of a GGUF file's metadata and tensor shapes, each checked against a range.
// What would change the arithmetic and is not implemented is refused here, by name, rather than
// ignored. Read next: model/layers.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/checkpoint.h"

namespace plumb::model {

enum class Family : uint8_t {
  kLlama,   // Llama 2 and 3, SmolLM2, Mistral, TinyLlama
  kQwen2,   // Qwen2 and Qwen2.5
  kGemma3,  // can be inspected, not yet loaded
};

// How the rotary embedding pairs a head's dimensions: (2i, 2i + 1), or (i, i + half).
enum class RotaryPairs : uint8_t { kAdjacent, kHalves };

struct Config {
  Family family = Family::kLlama;
  std::string architecture;  // as the file says
  std::string name;          // general.name, cut to 128 printable characters; may be empty
  uint32_t layers = 0;
  uint32_t embedding = 0;     // width of the residual stream
  uint32_t feed_forward = 0;  // width of the gated layer
  uint32_t heads = 0;
  uint32_t kv_heads = 0;  // divides heads
  uint32_t head_dim = 0;
  uint32_t vocabulary = 0;      // rows of token_embd.weight
  uint32_t context_max = 0;     // positions the model was made for
  uint32_t sliding_window = 0;  // a row sees so many positions, itself included; 0 = all
  float rms_epsilon = 0;
  float rope_base = 0;
  float rope_scale = 1;    // positions are divided by it ("linear" scaling)
  uint32_t rope_dims = 0;  // leading dimensions of a head that rotate; even
  RotaryPairs rope_pairs = RotaryPairs::kAdjacent;
  bool tied_output = false;  // no output.weight: token_embd.weight serves
  bool qkv_bias = false;     // attn_q.bias and its kin exist
};

// Accepted values of the numbers above; the ranges hold every published model of the families.
constexpr uint32_t kLayersMax = 256;
constexpr uint32_t kEmbeddingMax = 1u << 15;
constexpr uint32_t kFeedForwardMax = 1u << 17;
constexpr uint32_t kHeadsMax = 256;
constexpr uint32_t kHeadDimMax = 256;
constexpr uint32_t kVocabularyMax = 1u << 20;
constexpr uint32_t kContextMax = 1u << 21;

// kUnsupported: unknown architecture, or a feature not implemented (field() and message name the
// key); kCorrupt: a key or tensor is missing, of the wrong type or out of range.
base::Result<Config> ReadConfig(const Checkpoint& gguf);

}  // namespace plumb::model
