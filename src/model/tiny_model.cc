// model/tiny_model.cc
// Quantised weights are made directly in their stored form: random bits for the quants, and scales
// that bring them to the size wanted. So no quantiser is needed, and every bit pattern of a block
// occurs.
#include "model/tiny_model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>

#include "base/check.h"
#include "base/random.h"
#include "model/gguf_writer.h"
#include "tensor/dtype.h"
#include "tensor/float16.h"

namespace plumb::model {
namespace {

using tensor::DType;

constexpr uint32_t kF32 = 0;

// Where a block keeps its f16 scale and offset, and their size for quants of standard deviation 1.
struct BlockScales {
  int scale_at;   // byte, -1 = none
  int offset_at;  // byte, -1 = none
  float scale;    // 1 / standard deviation of the rest
  float offset;   // in units of the scale
};

BlockScales ScalesOf(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return {0, -1, 1 / 4.6f, 0};
    case DType::kQ4_1:
      return {0, 2, 1 / 4.6f, -7.5f};
    case DType::kQ5_0:
      return {0, -1, 1 / 9.2f, 0};
    case DType::kQ5_1:
      return {0, 2, 1 / 9.2f, -15.5f};
    case DType::kQ8_0:
      return {0, -1, 1 / 74.0f, 0};
    case DType::kQ4_K:
      return {0, 2, 1 / (32 * 9.0f), 7.5f};
    case DType::kQ5_K:
      return {0, 2, 1 / (32 * 18.0f), 15.5f};
    case DType::kQ6_K:
      return {208, -1, 1 / (74 * 18.0f), 0};
    default:
      return {-1, -1, 0, 0};
  }
}

void PutHalf(std::string& block, int at, float value) {
  const uint16_t half = tensor::FloatToHalf(value);
  std::memcpy(block.data() + at, &half, sizeof half);
}

// About normal: the sum of four uniforms, standard deviation 1.
float Noise(base::Rng& rng) {
  const double sum = rng.Uniform() + rng.Uniform() + rng.Uniform() + rng.Uniform();
  return static_cast<float>((sum - 2.0) * std::sqrt(3.0));
}

std::string FloatWeight(DType type, float value) {
  std::string bytes(tensor::Traits(type).block_bytes, '\0');
  if (type == DType::kF32) {
    std::memcpy(bytes.data(), &value, sizeof value);
  } else if (type == DType::kF16) {
    PutHalf(bytes, 0, value);
  } else {
    std::memcpy(bytes.data(), reinterpret_cast<const char*>(&value) + 2, 2);  // bf16, truncated
  }
  return bytes;
}

// GPT-2's printable stand-ins for the 256 bytes: printable Latin-1 stands for itself, the rest for
// U+0100 upwards, in order.
std::string ByteToken(uint32_t byte, uint32_t& next_free) {
  const bool itself =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  const uint32_t code = itself ? byte : 0x100 + next_free++;
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

void WriteTokenizer(GgufWriter& writer, uint32_t vocabulary) {
  CHECK(vocabulary >= 260) << vocabulary;
  constexpr int32_t kNormal = 1, kControl = 3, kUnused = 5;
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds(vocabulary, kUnused);
  uint32_t next_free = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    kinds[byte] = kNormal;
    tokens.push_back(ByteToken(byte, next_free));
  }
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    kinds[tokens.size()] = kControl;
    tokens.push_back(name);
  }
  // One merge, of two letters: loaders may refuse a vocabulary without any.
  kinds[tokens.size()] = kNormal;
  tokens.push_back("th");
  while (tokens.size() < vocabulary) tokens.push_back(fmt::format("<unused{}>", tokens.size()));
  const std::string merges[] = {"t h"};
  writer.Text("tokenizer.ggml.model", "gpt2").Text("tokenizer.ggml.pre", "gpt-2");
  writer.Texts("tokenizer.ggml.tokens", tokens).Values("tokenizer.ggml.token_type", kinds);
  writer.Texts("tokenizer.ggml.merges", merges);
  writer.Value<uint32_t>("tokenizer.ggml.bos_token_id", 257);
  writer.Value<uint32_t>("tokenizer.ggml.eos_token_id", 258);
  writer.Value("tokenizer.ggml.add_bos_token", false);
  writer.Text("tokenizer.chat_template",
              "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
              "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
}

// Adds tensors with names, shapes and seeds in a fixed order.
class TensorSource {
 public:
  TensorSource(GgufWriter& writer, const TinyModelSpec& spec) : writer_(writer), spec_(spec) {}

  void Matrix(const std::string& name, uint64_t outputs, uint64_t inputs) {
    MatrixOf(name, spec_.types[matrix_count_++ % spec_.types.size()], outputs, inputs);
  }
  void MatrixOf(const std::string& name, uint32_t type, uint64_t outputs, uint64_t inputs) {
    const uint64_t dims[] = {inputs, outputs};
    writer_.Tensor(name, type, dims, RandomWeights(type, outputs * inputs, inputs, NextSeed()));
  }
  // One matrix for each expert.
  void Stack(const std::string& name, uint64_t outputs, uint64_t inputs) {
    const uint32_t type = spec_.types[matrix_count_++ % spec_.types.size()];
    const uint64_t dims[] = {inputs, outputs, spec_.experts};
    writer_.Tensor(name, type, dims,
                   RandomWeights(type, spec_.experts * outputs * inputs, inputs, NextSeed()));
  }
  // base + spread * noise
  void Vector(const std::string& name, uint64_t size, float base, float spread) {
    base::Rng rng(NextSeed());
    std::string bytes;
    for (uint64_t i = 0; i < size; ++i) {
      bytes += FloatWeight(DType::kF32, base + spread * Noise(rng));
    }
    const uint64_t dims[] = {size};
    writer_.Tensor(name, kF32, dims, bytes);
  }

 private:
  uint64_t NextSeed() { return spec_.seed * 1000003 + ++seeds_; }

  GgufWriter& writer_;
  const TinyModelSpec& spec_;
  uint32_t matrix_count_ = 0;
  uint64_t seeds_ = 0;
};

void WriteConfig(GgufWriter& writer, const TinyModelSpec& spec) {
  const auto key = [&](const char* name) { return spec.architecture + "." + name; };
  writer.Text("general.architecture", spec.architecture).Text("general.name", "tiny");
  writer.Value(key("block_count"), spec.layers).Value(key("context_length"), spec.context);
  writer.Value(key("embedding_length"), spec.embedding);
  writer.Value(key("feed_forward_length"), spec.feed_forward);
  writer.Value(key("attention.head_count"), spec.heads);
  writer.Value(key("attention.head_count_kv"), spec.kv_heads);
  writer.Value(key("attention.key_length"), spec.head_dim);
  writer.Value(key("attention.value_length"), spec.head_dim);
  writer.Value(key("attention.layer_norm_rms_epsilon"), 1e-5f);
  writer.Value(key("rope.freq_base"), 10000.0f);
  if (spec.sliding_window != 0) writer.Value(key("attention.sliding_window"), spec.sliding_window);
  if (spec.window_period != 0) {
    writer.Value(key("attention.sliding_window_pattern"), spec.window_period);
  }
  if (spec.experts != 0) {
    writer.Value(key("expert_count"), spec.experts);
    writer.Value(key("expert_used_count"), spec.experts_used);
    writer.Value(key("expert_weights_norm"), spec.expert_norm);
  }
  if (spec.soft_cap != 0) writer.Value(key("final_logit_softcapping"), spec.soft_cap);
}

void WriteLayer(TensorSource& source, const TinyModelSpec& spec, uint32_t layer) {
  const auto name = [&](const char* part) { return fmt::format("blk.{}.{}", layer, part); };
  const uint64_t query_width = uint64_t{spec.heads} * spec.head_dim;
  const uint64_t key_width = uint64_t{spec.kv_heads} * spec.head_dim;
  source.Vector(name("attn_norm.weight"), spec.embedding, 1.0f, 0.1f);
  source.Matrix(name("attn_q.weight"), query_width, spec.embedding);
  source.Matrix(name("attn_k.weight"), key_width, spec.embedding);
  source.Matrix(name("attn_v.weight"), key_width, spec.embedding);
  if (spec.qkv_bias) {
    source.Vector(name("attn_q.bias"), query_width, 0.0f, 0.5f);
    source.Vector(name("attn_k.bias"), key_width, 0.0f, 0.5f);
    source.Vector(name("attn_v.bias"), key_width, 0.0f, 0.5f);
  }
  source.Matrix(name("attn_output.weight"), spec.embedding, query_width);
  const bool gemma = spec.architecture == "gemma3";
  if (gemma || spec.architecture.starts_with("qwen3")) {
    source.Vector(name("attn_q_norm.weight"), spec.head_dim, 1.0f, 0.1f);
    source.Vector(name("attn_k_norm.weight"), spec.head_dim, 1.0f, 0.1f);
  }
  if (gemma) {
    source.Vector(name("post_attention_norm.weight"), spec.embedding, 1.0f, 0.1f);
    source.Vector(name("post_ffw_norm.weight"), spec.embedding, 1.0f, 0.1f);
  }
  source.Vector(name("ffn_norm.weight"), spec.embedding, 1.0f, 0.1f);
  if (spec.experts != 0) {
    source.MatrixOf(name("ffn_gate_inp.weight"), kF32, spec.experts, spec.embedding);
    source.Stack(name("ffn_gate_exps.weight"), spec.feed_forward, spec.embedding);
    source.Stack(name("ffn_up_exps.weight"), spec.feed_forward, spec.embedding);
    source.Stack(name("ffn_down_exps.weight"), spec.embedding, spec.feed_forward);
    return;
  }
  source.Matrix(name("ffn_gate.weight"), spec.feed_forward, spec.embedding);
  source.Matrix(name("ffn_up.weight"), spec.feed_forward, spec.embedding);
  source.Matrix(name("ffn_down.weight"), spec.embedding, spec.feed_forward);
}

}  // namespace

std::string RandomWeights(uint32_t type, uint64_t elements, uint64_t inputs, uint64_t seed) {
  const auto dtype = tensor::DTypeFromGguf(type);
  CHECK(dtype.has_value()) << type;
  const tensor::DTypeTraits& traits = tensor::Traits(*dtype);
  CHECK(elements % traits.block_inputs == 0) << elements;
  const float size = 1.0f / std::sqrt(static_cast<float>(inputs));
  const BlockScales scales = ScalesOf(*dtype);
  base::Rng rng(seed);
  std::string bytes;
  bytes.reserve(elements / traits.block_inputs * traits.block_bytes);
  for (uint64_t i = 0; i < elements / traits.block_inputs; ++i) {
    if (!traits.quantized) {
      bytes += FloatWeight(*dtype, size * Noise(rng));
      continue;
    }
    std::string block(traits.block_bytes, '\0');
    for (char& c : block) c = static_cast<char>(rng.Next() >> 56);
    const float scale = size * scales.scale * static_cast<float>(0.5 + rng.Uniform());
    PutHalf(block, scales.scale_at, scale);
    if (scales.offset_at >= 0) PutHalf(block, scales.offset_at, scale * scales.offset);
    bytes += block;
  }
  return bytes;
}

std::string TinyModel(const TinyModelSpec& spec) {
  GgufWriter writer;
  WriteConfig(writer, spec);
  if (spec.tokenizer) WriteTokenizer(writer, spec.vocabulary);
  TensorSource source(writer, spec);
  source.MatrixOf("token_embd.weight", spec.embedding_type, spec.vocabulary, spec.embedding);
  if (spec.rope_freqs) source.Vector("rope_freqs.weight", spec.head_dim / 2, 4.0f, 0.5f);
  for (uint32_t i = 0; i < spec.layers; ++i) WriteLayer(source, spec, i);
  source.Vector("output_norm.weight", spec.embedding, 1.0f, 0.1f);
  if (!spec.tied_output) source.Matrix("output.weight", spec.vocabulary, spec.embedding);
  return writer.Finish();
}

}  // namespace plumb::model
