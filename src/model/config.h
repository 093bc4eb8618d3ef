// model/config.h
// A model's numbers, out of a GGUF file's metadata and tensor shapes, each checked against a range.
// What would change the arithmetic and is not implemented is refused here, by name, rather than
// ignored. Read next: model/layers.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"

namespace plumb::model {

enum class Family : uint8_t {
  kLlama,        // Llama 2 and 3, SmolLM2, Mistral, TinyLlama
  kQwen2,        // Qwen2 and Qwen2.5
  kQwen3,        // Qwen3, dense
  kMixtral,      // Mixtral: architecture llama with experts
  kQwen3Moe,     // Qwen3 with experts
  kGemma3,       // Gemma 3, text
  kDeepseekV41,  // DeepSeek-V4.1, text; its own numbers: families/deepseek_v41_config.h
};

// How the rotary embedding pairs a head's dimensions: (2i, 2i + 1), or (i, i + half).
enum class RotaryPairs : uint8_t { kAdjacent, kHalves };

struct Config {
  Family family = Family::kLlama;
  std::string architecture;  // as the file says
  std::string name;          // general.name, cut to 128 printable characters; may be empty
  uint32_t layers = 0;
  uint32_t embedding = 0;     // width of the residual stream
  uint32_t feed_forward = 0;  // width of the gated layer; of each expert, if there are experts
  uint32_t heads = 0;
  uint32_t kv_heads = 0;  // divides heads
  uint32_t head_dim = 0;
  uint32_t vocabulary = 0;              // rows of token_embd.weight
  uint32_t context_max = 0;             // positions the model was made for
  uint32_t sliding_window = 0;          // positions that a row sees in layers with a window
  std::vector<uint32_t> layer_windows;  // the same by layer, itself included; 0 = all
  bool windows_unknown = false;  // the file does not say which layers have the window it names
  float attention_scale = 0;     // of scores
  float final_soft_cap = 0;      // of logits; 0 = none
  float rms_epsilon = 0;
  float rope_base = 0;
  float rope_base_local = 0;  // Gemma 3: of layers with a window, whose positions are not scaled
  float rope_scale = 1;       // positions are divided by it ("linear" scaling)
  uint32_t rope_dims = 0;     // leading dimensions of a head that rotate; even
  RotaryPairs rope_pairs = RotaryPairs::kAdjacent;
  bool tied_output = false;   // no output.weight: token_embd.weight serves
  bool qkv_bias = false;      // attn_q.bias and its kin exist, in every layer
  bool output_bias = false;   // attn_output.bias, likewise
  uint32_t experts = 0;       // feed-forward networks of a layer to choose from; 0 = one for all
  uint32_t experts_used = 0;  // of them for each row
  bool expert_norm = true;    // the chosen experts' weights are made to sum to 1
};

// Accepted values of the numbers above; the ranges hold every published model of the families.
constexpr uint32_t kLayersMax = 256;
constexpr uint32_t kEmbeddingMax = 1u << 15;
constexpr uint32_t kFeedForwardMax = 1u << 17;
constexpr uint32_t kHeadsMax = 256;
constexpr uint32_t kHeadDimMax = 256;
constexpr uint32_t kExpertsMax = 512;
constexpr uint32_t kExpertsUsedMax = 32;
constexpr uint32_t kVocabularyMax = 1u << 20;
constexpr uint32_t kContextMax = 1u << 21;

// For DeepSeek-V4.1, whose checkpoint has no such metadata, only what it shares with the others.
// kUnsupported: unknown architecture, or a feature not implemented (field() and message name the
// key); kCorrupt: a key or tensor is missing, of the wrong type or out of range.
base::Result<Config> ReadConfig(const Checkpoint& gguf);

}  // namespace plumb::model
