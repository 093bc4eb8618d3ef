// model/tiny_model.h
// Small models with random weights, as GGUF files in memory: what tests run instead of a download.
// Any quantisation, any family, with a byte-level vocabulary so that text can go in and out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plumb::model {

struct TinyModelSpec {
  std::string architecture = "llama";  // qwen2, qwen3, qwen3moe, gemma3
  uint32_t layers = 2;
  uint32_t embedding = 64;
  uint32_t feed_forward = 96;
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t head_dim = 16;
  uint32_t vocabulary = 320;  // >= 260 when `tokenizer`
  uint32_t context = 1024;
  uint32_t sliding_window = 0;
  uint32_t window_period = 0;  // Gemma 3: every so many layers, one sees all; 0 = not said
  uint32_t experts = 0;        // llama with experts is Mixtral
  uint32_t experts_used = 0;
  bool expert_norm = true;
  float soft_cap = 0;  // of logits, Gemma 3
  // ggml types of the matrices, taken in turn; rows must be whole blocks of each.
  std::vector<uint32_t> types = {8};  // Q8_0
  uint32_t embedding_type = 1;        // F16
  bool tied_output = true;
  bool qkv_bias = false;
  bool rope_freqs = false;
  bool tokenizer = true;  // vocabulary: 256 bytes, <|endoftext|>, <|im_start|>, <|im_end|>, unused
  uint64_t seed = 1;
};

// The file. The same spec gives the same bytes.
std::string TinyModel(const TinyModelSpec& spec);

// `elements` random weights of about 1 / sqrt(inputs), packed as the ggml type says. Aborts for a
// type that tensor does not read.
std::string RandomWeights(uint32_t type, uint64_t elements, uint64_t inputs, uint64_t seed);

}  // namespace plumb::model
