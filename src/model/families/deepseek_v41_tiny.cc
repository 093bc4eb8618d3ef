// model/families/deepseek_v41_tiny.cc
// Weights are drawn as codes, not rounded to them: E4M3 bytes without NaN have a root mean square
// of about 100, E2M1 codes of about 3, so a scale of gain / (that * sqrt(inputs)) keeps activations
// near one. Names, shapes and primes are written apart from the loader, so that a mistake there
// shows.
#include "model/families/deepseek_v41_tiny.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace plumb::model {
namespace {

using nlohmann::ordered_json;

constexpr double kF8Rms = 100, kF4Rms = 2.9;

uint64_t Blocks(uint64_t count) { return (count + 31) / 32; }

// The first `count` primes from `first` on.
std::vector<uint64_t> PrimesFrom(uint64_t first, size_t count) {
  std::vector<uint64_t> primes;
  for (uint64_t n = std::max<uint64_t>(first, 2); primes.size() < count; ++n) {
    bool prime = true;
    for (uint64_t d = 2; d * d <= n && prime; ++d) prime = n % d != 0;
    if (prime) primes.push_back(n);
  }
  return primes;
}

// Rows of each table: the sum of its primes, none of which serves twice.
std::vector<uint64_t> TableRows(const DeepseekTinySpec& spec) {
  const size_t per_table = size_t{spec.engram_heads} * (spec.engram_ngram_max - 1);
  const std::vector<uint64_t> primes =
      PrimesFrom(spec.engram_bucket, per_table * spec.engram_layers.size());
  std::vector<uint64_t> rows(spec.engram_layers.size());
  for (size_t i = 0; i < primes.size(); ++i) rows[i / per_table] += primes[i];
  return rows;
}

class TinyMaker {
 public:
  explicit TinyMaker(const DeepseekTinySpec& spec) : s_(spec), rng_(spec.seed) {}

  DeepseekTiny Run() {
    Config();
    BFloat("embed.weight", {s_.vocabulary, s_.hidden}, 1);
    BFloat("head.weight", {s_.vocabulary, s_.hidden},
           2 / std::sqrt(static_cast<double>(s_.hidden)));
    if (s_.norm_in_f32) {
      Float("norm.weight", {s_.hidden}, 0.1, 1);
    } else {
      Norm("norm.weight", s_.hidden);
    }
    for (uint32_t layer = 0; layer < s_.ratios.size(); ++layer) Layer(layer);
    for (uint32_t block = 0; block < s_.draft_blocks; ++block) {
      const std::string prefix = fmt::format("mtp.{}.", block);
      F8(prefix + "attn.wq_a", s_.query_rank, s_.hidden, 1);
      Norm(prefix + "attn_norm.weight", s_.hidden);
    }
    if (s_.vision) {
      Norm("vision.norm.weight", 64);
      BFloat("aligner.w1.bias", {s_.hidden}, 1);
      BFloat("image_start", {s_.hidden}, 1);
    }
    if (s_.model_prefix) {
      for (DeepseekTinyTensor& tensor : out_.tensors) tensor.name = "model." + tensor.name;
    }
    if (!s_.engram_layers.empty()) TokenMap();
    return std::move(out_);
  }

 private:
  void Config();
  ordered_json TextConfig() const;
  void AddFeatures(ordered_json& text) const;
  void TokenMap();
  void Layer(uint32_t layer);
  void Attention(const std::string& prefix, uint32_t layer);
  void Engram(const std::string& prefix, uint64_t rows);
  void Feed(const std::string& prefix);

  bool Holds(const std::vector<uint32_t>& layers, uint32_t layer) const {
    return std::find(layers.begin(), layers.end(), layer) != layers.end();
  }

  // About normal, standard deviation 1.
  double Noise() {
    const double sum = rng_.Uniform() + rng_.Uniform() + rng_.Uniform() + rng_.Uniform();
    return (sum - 2) * std::sqrt(3.0);
  }

  void Add(const std::string& name, std::string type, std::vector<uint64_t> shape,
           std::string bytes) {
    out_.tensors.push_back({name, std::move(type), std::move(shape), std::move(bytes)});
  }
  void Float(const std::string& name, std::vector<uint64_t> shape, double deviation,
             double middle = 0) {
    std::string bytes;
    uint64_t count = 1;
    for (const uint64_t dim : shape) count *= dim;
    if (!s_.values) count = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(middle + deviation * Noise());
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    Add(name, "F32", std::move(shape), std::move(bytes));
  }
  // Truncated to 16 bits.
  void BFloat(const std::string& name, std::vector<uint64_t> shape, double deviation,
              double middle = 0) {
    Float(name, std::move(shape), deviation, middle);
    DeepseekTinyTensor& tensor = out_.tensors.back();
    tensor.type = "BF16";
    std::string bytes;
    for (size_t i = 0; i < tensor.bytes.size(); i += 4) bytes += tensor.bytes.substr(i + 2, 2);
    tensor.bytes = std::move(bytes);
  }
  void Norm(const std::string& name, uint64_t size) { BFloat(name, {size}, 0.1, 1); }

  // Scales of about gain / (rms * sqrt(inputs)), each up or down by a power of two.
  std::string Scales(uint64_t count, double gain, double rms, uint64_t inputs) {
    const double exponent = std::log2(gain / rms / std::sqrt(static_cast<double>(inputs)));
    std::string bytes;
    if (!s_.values) return bytes;
    for (uint64_t i = 0; i < count; ++i) {
      const int up = static_cast<int>(rng_.Below(3)) - 1;
      bytes += static_cast<char>(127 + static_cast<int>(std::lround(exponent)) + up);
    }
    return bytes;
  }
  std::string F8Codes(uint64_t count) {
    std::string bytes;
    if (!s_.values) return bytes;
    for (uint64_t i = 0; i < count; ++i) {
      const auto bits = static_cast<uint8_t>(rng_.Next() >> 56);
      bytes += static_cast<char>((bits & 0x7f) == 0x7f ? bits - 1 : bits);
    }
    return bytes;
  }
  void F8(const std::string& name, uint64_t outputs, uint64_t inputs, double gain) {
    Add(name + ".weight", "F8_E4M3", {outputs, inputs}, F8Codes(outputs * inputs));
    Add(name + ".scale", "F8_E8M0", {Blocks(outputs), Blocks(inputs)},
        Scales(Blocks(outputs) * Blocks(inputs), gain, kF8Rms, inputs));
  }
  void F4(const std::string& name, uint64_t outputs, uint64_t inputs, double gain) {
    std::string bytes;
    for (uint64_t i = 0; s_.values && i < outputs * inputs / 2; ++i) {
      bytes += static_cast<char>(rng_.Next() >> 56);
    }
    Add(name + ".weight", "I8", {outputs, inputs / 2}, std::move(bytes));
    Add(name + ".scale", "F8_E8M0", {outputs, inputs / 32},
        Scales(outputs * inputs / 32, gain, kF4Rms, inputs));
  }
  double Damped(double gain) const { return std::ldexp(gain, -static_cast<int>(s_.damping)); }

  const DeepseekTinySpec& s_;
  base::Rng rng_;
  DeepseekTiny out_;
};

ordered_json TinyMaker::TextConfig() const {
  std::vector<uint32_t> ratios = s_.ratios;
  ratios.resize(ratios.size() + s_.draft_blocks, 0);
  ordered_json text = {
      {"model_type", "deepseek_v41_text"},
      {"vocab_size", s_.vocabulary},
      {"hidden_size", s_.hidden},
      {"moe_intermediate_size", s_.expert_width},
      {"num_hidden_layers", s_.ratios.size()},
      {"num_attention_heads", s_.heads},
      {"num_key_value_heads", 1},
      {"head_dim", s_.head_dim},
      {"qk_rope_head_dim", s_.rope_dims},
      {"q_lora_rank", s_.query_rank},
      {"o_lora_rank", s_.output_rank},
      {"o_groups", s_.output_groups},
      {"hidden_act", "silu"},
      {"swiglu_limit", 10.0},
      {"rms_norm_eps", 1e-20},
      {"attention_bias", false},
      {"attention_dropout", 0.0},
      {"tie_word_embeddings", false},
      {"max_position_embeddings", s_.context_max},
      {"rope_theta", 10000},
      {"rope_scaling", nullptr},
      {"n_routed_experts", s_.experts},
      {"n_shared_experts", 1},
      {"num_experts_per_tok", s_.experts_used},
      {"scoring_func", "sqrtsoftplus"},
      {"topk_method", "noaux_tc"},
      {"norm_topk_prob", true},
      {"routed_scaling_factor", 1.5},
      {"sliding_window", s_.window},
      {"compress_ratios", ratios},
      {"compress_rope_theta", 160000},
      {"kv_source_layer_ids", s_.kv_sources},
      {"index_source_layer_ids", s_.index_sources},
      {"index_n_heads", s_.index_heads},
      {"index_head_dim", s_.index_dim},
      {"index_topk", s_.index_top},
      {"hc_mult", s_.streams},
      {"hc_sinkhorn_iters", s_.sinkhorn_iterations},
      {"hc_eps", 1e-6},
      {"num_nextn_predict_layers", s_.draft_blocks},
  };
  text["rope_scaling"] = nullptr;
  if (s_.yarn) {
    text["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", 16},
                            {"beta_fast", 32},
                            {"beta_slow", 1},
                            {"original_max_position_embeddings", 256}};
  }
  AddFeatures(text);
  return text;
}

// What a spec may leave out.
void TinyMaker::AddFeatures(ordered_json& text) const {
  if (s_.candidate_source != kNoLayer) {
    text["candidate_source_layer_id"] = s_.candidate_source;
    text["candidate_topk_blocks"] = s_.candidate_blocks;
    text["candidate_block_size"] = s_.candidate_block_rows;
  }
  if (!s_.engram_layers.empty()) {
    text["engram_layer_ids"] = s_.engram_layers;
    text["engram_num_embeddings"] = TableRows(s_);
    text["engram_max_ngram_size"] = s_.engram_ngram_max;
    text["engram_vocab_size"] = s_.engram_bucket;
    text["engram_n_heads"] = s_.engram_heads;
    text["engram_head_dim"] = s_.engram_head_dim;
    text["engram_pad_token_id"] = 2;
    text["engram_compressed_vocab_size"] = s_.engram_classes;
  }
  if (s_.draft_blocks > 0) {
    text["dspark_block_size"] = 5;
    text["dspark_noise_token_id"] = s_.vocabulary - 2;
    text["dspark_target_layer_ids"] = ordered_json::array({s_.ratios.size() - 1});
    text["dspark_markov_rank"] = 16;
    text["dspark_n_routed_experts"] = 2;
    text["dspark_num_experts_per_tok"] = 1;
  }
}

void TinyMaker::Config() {
  out_.config = {
      {"architectures", ordered_json::array({"DeepseekV41ForCausalLM"})},
      {"model_type", "deepseek_v41"},
      {"dtype", "bfloat16"},
      {"bos_token_id", 0},
      {"eos_token_id", 1},
      {"pad_token_id", 2},
      {"image_token_id", s_.vocabulary - 1},
      {"quantization_config",
       {{"quant_method", "fp8"},
        {"activation_scheme", "dynamic"},
        {"weight_block_size", {32, 32}},
        {"scale_fmt", "ue8m0"},
        {"expert_dtype", "fp4"}}},
      {"text_config", TextConfig()},
  };
  if (s_.vision) out_.config["vision_config"] = {{"hidden_size", 64}};
}

// Every class occurs.
void TinyMaker::TokenMap() {
  for (uint32_t id = 0; id < s_.vocabulary; ++id) {
    out_.token_map.push_back(
        id < s_.engram_classes ? id : static_cast<uint32_t>(rng_.Below(s_.engram_classes)));
  }
}

void TinyMaker::Layer(uint32_t layer) {
  const std::string prefix = fmt::format("layers.{}.", layer);
  const uint64_t m = s_.streams;
  for (const char* mix : {"hc_attn", "hc_ffn"}) {
    Float(prefix + mix + "_fn", {(2 + m) * m, m * s_.hidden},
          1 / std::sqrt(static_cast<double>(m * s_.hidden)));
    Float(prefix + mix + "_base", {(2 + m) * m}, 0.5);
    Float(prefix + mix + "_scale", {3}, 0.2, 1);
  }
  Norm(prefix + "attn_norm.weight", s_.hidden);
  Norm(prefix + "ffn_norm.weight", s_.hidden);
  Attention(prefix + "attn.", layer);
  const auto engram = std::find(s_.engram_layers.begin(), s_.engram_layers.end(), layer);
  if (engram != s_.engram_layers.end()) {
    Engram(prefix + "engram.",
           TableRows(s_)[static_cast<size_t>(engram - s_.engram_layers.begin())]);
  }
  Feed(prefix + "ffn.");
}

void TinyMaker::Attention(const std::string& prefix, uint32_t layer) {
  const uint64_t queries = uint64_t{s_.heads} * s_.head_dim;
  F8(prefix + "wq_a", s_.query_rank, s_.hidden, 1);
  Norm(prefix + "q_norm.weight", s_.query_rank);
  F8(prefix + "wq_b", queries, s_.query_rank, 1.5);
  F8(prefix + "wkv", s_.head_dim, s_.hidden, 1);
  Norm(prefix + "kv_norm.weight", s_.head_dim);
  Float(prefix + "attn_sink", {s_.heads}, 1);
  const uint64_t ranks = uint64_t{s_.output_groups} * s_.output_rank;
  F8(prefix + "wo_a", ranks, queries / s_.output_groups, 2);
  F8(prefix + "wo_b", s_.hidden, ranks, Damped(2));
  const double width = 1 / std::sqrt(static_cast<double>(s_.hidden));
  if (Holds(s_.kv_sources, layer)) {
    BFloat(prefix + "compressor.wkv.weight", {s_.head_dim, s_.hidden}, width);
    if (s_.ratios[layer] == 2) {
      BFloat(prefix + "compressor.wgate.weight", {s_.head_dim, s_.hidden}, 2 * width);
    }
    Norm(prefix + "compressor.norm.weight", s_.head_dim);
    BFloat(prefix + "indexer.wk.weight", {s_.index_dim, s_.head_dim},
           1 / std::sqrt(static_cast<double>(s_.head_dim)));
    Norm(prefix + "indexer.k_norm.weight", s_.index_dim);
  }
  if (Holds(s_.index_sources, layer)) {
    F8(prefix + "indexer.wq_b", uint64_t{s_.index_heads} * s_.index_dim, s_.query_rank, 1);
    BFloat(prefix + "indexer.weights_proj.weight", {s_.index_heads, s_.hidden}, width);
  }
}

void TinyMaker::Engram(const std::string& prefix, uint64_t rows) {
  const uint64_t width = s_.engram_head_dim;
  Add(prefix + "embed.weight", "F8_E4M3", {rows, width}, F8Codes(rows * width));
  Add(prefix + "embed.scale", "F8_E8M0", {rows, width / 32},
      Scales(rows * width / 32, 1, kF8Rms, 1));
  F8(prefix + "wkv", uint64_t{s_.hidden} * (s_.streams + 1),
     (s_.engram_ngram_max - 1) * s_.engram_heads * width, 1);
  BFloat(prefix + "q_weight", {s_.streams, s_.hidden}, 0.3, 1);
  BFloat(prefix + "k_weight", {s_.streams, s_.hidden}, 0.3, 1);
}

void TinyMaker::Feed(const std::string& prefix) {
  BFloat(prefix + "gate.weight", {s_.experts, s_.hidden},
         1.5 / std::sqrt(static_cast<double>(s_.hidden)));
  Float(prefix + "gate.bias", {s_.experts}, 0.1);
  Float(prefix + "gate.bias_vl", {s_.experts}, 0.3);
  for (const char* name : {"w1", "w3", "w2"}) {
    const bool down = name == std::string_view("w2");
    const uint64_t outputs = down ? s_.hidden : s_.expert_width;
    const uint64_t inputs = down ? s_.expert_width : s_.hidden;
    F8(prefix + "shared_experts." + name, outputs, inputs, down ? Damped(1.5) : 1.5);
    for (uint32_t expert = 0; expert < s_.experts; ++expert) {
      F4(fmt::format("{}experts.{}.{}", prefix, expert, name), outputs, inputs,
         down ? Damped(2) : 2);
    }
  }
}

}  // namespace

DeepseekTinyTensor& DeepseekTiny::Tensor(std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const DeepseekTinyTensor& t) { return t.name == name; });
  CHECK(found != tensors.end()) << name;
  return *found;
}

DeepseekTiny MakeDeepseekTiny(const DeepseekTinySpec& spec) { return TinyMaker(spec).Run(); }

namespace {

std::string ShardName(uint32_t shard, uint32_t shards) {
  return shards == 1 ? std::string("model.safetensors")
                     : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

// Everything but the weights.
HfFiles SideFiles(const DeepseekTiny& tiny, uint32_t shards) {
  HfFiles files = {{"config.json", tiny.config.dump()}};
  if (!tiny.token_map.empty()) {
    files.emplace_back("engram_token_map.json", nlohmann::json(tiny.token_map).dump());
  }
  if (shards == 1) return files;
  nlohmann::json map;
  for (size_t i = 0; i < tiny.tensors.size(); ++i) {
    map[tiny.tensors[i].name] = ShardName(static_cast<uint32_t>(i % shards), shards);
  }
  nlohmann::json index;
  index["weight_map"] = std::move(map);
  files.emplace_back("model.safetensors.index.json", index.dump());
  return files;
}

uint64_t BytesOf(const DeepseekTinyTensor& tensor) {
  uint64_t bytes = tensor.type == "F32" ? 4 : tensor.type == "BF16" ? 2 : 1;
  for (const uint64_t dim : tensor.shape) bytes *= dim;
  return bytes;
}

}  // namespace

HfFiles DeepseekTinyFiles(const DeepseekTiny& tiny, uint32_t shards) {
  HfFiles files = SideFiles(tiny, shards);
  for (uint32_t shard = 0; shard < shards; ++shard) {
    SafetensorsWriter writer;
    for (size_t i = shard; i < tiny.tensors.size(); i += shards) {
      const DeepseekTinyTensor& tensor = tiny.tensors[i];
      writer.Tensor(tensor.name, tensor.type, tensor.shape, tensor.bytes);
    }
    files.emplace_back(ShardName(shard, shards), writer.Finish());
  }
  return files;
}

void WriteDeepseekSparse(const std::string& folder, const DeepseekTiny& tiny, uint32_t shards) {
  HfFiles files = SideFiles(tiny, shards);
  std::vector<uint64_t> sizes;
  for (uint32_t shard = 0; shard < shards; ++shard) {
    std::string header = "{";
    uint64_t end = 0;
    for (size_t i = shard; i < tiny.tensors.size(); i += shards) {
      const DeepseekTinyTensor& tensor = tiny.tensors[i];
      const uint64_t begin = std::exchange(end, end + BytesOf(tensor));
      header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                            header.size() == 1 ? "" : ",", tensor.name, tensor.type,
                            fmt::join(tensor.shape.begin(), tensor.shape.end(), ","), begin, end);
    }
    files.emplace_back(ShardName(shard, shards), SafetensorsWriter::File(header + "}", ""));
    sizes.push_back(files.back().second.size() + end);
  }
  WriteFiles(folder, files);
  for (uint32_t shard = 0; shard < shards; ++shard) {
    std::filesystem::resize_file(folder + "/" + ShardName(shard, shards), sizes[shard]);
  }
}

}  // namespace plumb::model
