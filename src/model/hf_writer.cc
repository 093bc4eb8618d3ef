// model/hf_writer.cc: the reader's work, backwards: names, row order, norms, stacks. Written apart
// from the reader's tables, so that a mistake there shows.
#include "model/hf_writer.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "base/disk.h"
#include "tensor/aligned_buffer.h"

namespace plumb::model {
namespace {

using nlohmann::ordered_json;

constexpr uint32_t kF32 = 0, kF16 = 1, kBF16 = 30;

std::string TypeName(uint32_t type) {
  CHECK(type == kF32 || type == kF16 || type == kBF16) << type;
  return type == kF32 ? "F32" : type == kF16 ? "F16" : "BF16";
}

// What a family calls itself, and where it differs.
struct FamilyNames {
  const char* class_name;
  const char* model_type;
  bool pairs_adjacent = false;
  bool gemma = false;
  const char* experts = nullptr;  // "mlp.experts", ...
};
FamilyNames NamesOf(const Checkpoint& model) {
  const std::string name(*model.Text("general.architecture"));
  const bool experts = model.Has(name + ".expert_count");
  if (name == "llama" && experts) {
    return {"MixtralForCausalLM", "mixtral", true, false, "block_sparse_moe"};
  }
  if (name == "llama") return {"LlamaForCausalLM", "llama", true};
  if (name == "qwen2") return {"Qwen2ForCausalLM", "qwen2"};
  if (name == "qwen3") return {"Qwen3ForCausalLM", "qwen3"};
  if (name == "qwen3moe") return {"Qwen3MoeForCausalLM", "qwen3_moe", false, false, "mlp"};
  CHECK(name == "gemma3") << name;
  return {"Gemma3ForCausalLM", "gemma3_text", false, true};
}

class FolderWriter {
 public:
  FolderWriter(const Checkpoint& model, const HfWriteOptions& options)
      : model_(model), options_(options), names_(NamesOf(model)) {
    architecture_ = *model.Text("general.architecture");
  }

  HfFiles Run() {
    for (const GgufTensor& tensor : model_.tensors()) Take(tensor);
    HfFiles files = {{"config.json", Config()}};
    if (options_.shards == 1) {
      SafetensorsWriter writer;
      for (const Stored& stored : stored_) Write(writer, stored);
      files.emplace_back("model.safetensors", writer.Finish());
    } else {
      Shards(files);
    }
    if (!options_.tokenizer_json.empty()) {
      files.emplace_back("tokenizer.json", options_.tokenizer_json);
    }
    if (!options_.tokenizer_config.empty()) {
      files.emplace_back("tokenizer_config.json", options_.tokenizer_config);
    }
    return files;
  }

 private:
  struct Stored {
    std::string name;
    uint32_t type;
    std::vector<uint64_t> shape;
    std::string bytes;
  };

  static void Write(SafetensorsWriter& writer, const Stored& stored) {
    writer.Tensor(stored.name, TypeName(stored.type), stored.shape, stored.bytes);
  }

  void Shards(HfFiles& files) const {
    ordered_json map;
    for (uint32_t shard = 0; shard < options_.shards; ++shard) {
      const std::string name =
          fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, options_.shards);
      SafetensorsWriter writer;
      for (size_t i = shard; i < stored_.size(); i += options_.shards) {
        Write(writer, stored_[i]);
        map[stored_[i].name] = name;
      }
      files.emplace_back(name, writer.Finish());
    }
    files.emplace_back("model.safetensors.index.json",
                       ordered_json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
  }

  uint64_t Unsigned(std::string_view key) const {
    return *model_.Unsigned(fmt::format("{}.{}", architecture_, key));
  }
  std::optional<double> Number(std::string_view key) const {
    const std::string whole = fmt::format("{}.{}", architecture_, key);
    return model_.Has(whole) ? std::optional(*model_.Number(whole)) : std::nullopt;
  }

  std::string Config() const {
    ordered_json config = {
        {"architectures", ordered_json::array({names_.class_name})},
        {"model_type", names_.model_type},
        {"num_hidden_layers", Unsigned("block_count")},
        {"hidden_size", Unsigned("embedding_length")},
        {"intermediate_size", Unsigned("feed_forward_length")},
        {"num_attention_heads", Unsigned("attention.head_count")},
        {"num_key_value_heads", Unsigned("attention.head_count_kv")},
        {"head_dim",
         model_.FindTensor("blk.0.attn_q.weight")->dims[1] / Unsigned("attention.head_count")},
        {"max_position_embeddings", Unsigned("context_length")},
        {"vocab_size", model_.FindTensor("token_embd.weight")->dims[1]},
        {"rms_norm_eps", *Number("attention.layer_norm_rms_epsilon")},
        {"tie_word_embeddings", model_.FindTensor("output.weight") == nullptr},
    };
    config[names_.gemma ? "hidden_activation" : "hidden_act"] =
        names_.gemma ? "gelu_pytorch_tanh" : "silu";
    // What a GGUF file means that says nothing; the class's own default is another.
    if (names_.gemma) config["query_pre_attn_scalar"] = config["head_dim"];
    if (const auto base = Number("rope.freq_base")) config["rope_theta"] = *base;
    if (const auto base = Number("rope.freq_base_swa")) config["rope_local_base_freq"] = *base;
    if (const auto window = Number("attention.sliding_window")) {
      config["sliding_window"] = static_cast<uint64_t>(*window);
      if (!names_.gemma) config["architectures"] = ordered_json::array({"MistralForCausalLM"});
    }
    if (const auto period = Number("attention.sliding_window_pattern")) {
      config["sliding_window_pattern"] = static_cast<uint64_t>(*period);
    }
    if (const auto cap = Number("final_logit_softcapping")) {
      config["final_logit_softcapping"] = *cap;
    }
    if (names_.experts != nullptr) {
      const bool mixtral = names_.pairs_adjacent;
      config[mixtral ? "num_local_experts" : "num_experts"] = Unsigned("expert_count");
      config["num_experts_per_tok"] = Unsigned("expert_used_count");
      if (!mixtral) {
        config["moe_intermediate_size"] = model_.FindTensor("blk.0.ffn_gate_exps.weight")->dims[1];
        const std::string key = architecture_ + ".expert_weights_norm";
        config["norm_topk_prob"] = !model_.Has(key) || *model_.Bool(key);
      }
    }
    return config.dump(2);
  }

  // ---- tensors ----

  void Take(const GgufTensor& tensor) {
    const std::string name(tensor.name);
    if (name == "token_embd.weight") return Add("model.embed_tokens.weight", tensor);
    if (name == "output_norm.weight") return Add("model.norm.weight", tensor);
    if (name == "output.weight") return Add("lm_head.weight", tensor);
    CHECK(name.starts_with("blk.")) << name;
    const size_t dot = name.find('.', 4);
    const std::string layer = "model.layers." + name.substr(4, dot - 4) + ".";
    const std::string part = name.substr(dot + 1);
    if (part.ends_with("_exps.weight")) return AddExperts(layer, part, tensor);
    Add(layer + LayerName(part), tensor);
  }

  std::string LayerName(const std::string& part) const {
    const std::map<std::string, std::string> names = {
        {"attn_norm.weight", "input_layernorm.weight"},
        {"attn_q.weight", "self_attn.q_proj.weight"},
        {"attn_k.weight", "self_attn.k_proj.weight"},
        {"attn_v.weight", "self_attn.v_proj.weight"},
        {"attn_q.bias", "self_attn.q_proj.bias"},
        {"attn_k.bias", "self_attn.k_proj.bias"},
        {"attn_v.bias", "self_attn.v_proj.bias"},
        {"attn_output.weight", "self_attn.o_proj.weight"},
        {"attn_q_norm.weight", "self_attn.q_norm.weight"},
        {"attn_k_norm.weight", "self_attn.k_norm.weight"},
        {"ffn_gate.weight", "mlp.gate_proj.weight"},
        {"ffn_up.weight", "mlp.up_proj.weight"},
        {"ffn_down.weight", "mlp.down_proj.weight"},
        {"ffn_gate_inp.weight",
         fmt::format("{}.gate.weight", names_.experts ? names_.experts : "")},
        {"ffn_norm.weight",
         names_.gemma ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight"},
        {"post_attention_norm.weight", "post_attention_layernorm.weight"},
        {"post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
    };
    const auto found = names.find(part);
    CHECK(found != names.end()) << part;
    return found->second;
  }

  void Add(std::string name, const GgufTensor& tensor) {
    Stored stored{std::move(name), tensor.type, {}, {}};
    for (uint32_t i = tensor.dims_count; i > 0; --i) stored.shape.push_back(tensor.dims[i - 1]);
    stored.bytes.assign(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
    const bool query = tensor.name.find("attn_q.") != std::string_view::npos;
    const bool key = tensor.name.find("attn_k.") != std::string_view::npos;
    if (names_.pairs_adjacent && (query || key)) {
      const uint64_t heads = Unsigned(query ? "attention.head_count" : "attention.head_count_kv");
      SplitHalves(stored, heads);
    }
    if (names_.gemma && stored.shape.size() == 1) TakeOne(stored);
    stored_.push_back(std::move(stored));
  }

  // Rows from (pair, half) to (half, pair), in each head.
  static void SplitHalves(Stored& stored, uint64_t heads) {
    const uint64_t rows = stored.shape[0], size = stored.bytes.size() / rows, dim = rows / heads;
    std::string out;
    for (uint64_t row = 0; row < rows; ++row) {
      const uint64_t head = row / dim, half = row % dim / (dim / 2), pair = row % dim % (dim / 2);
      out += stored.bytes.substr((head * dim + pair * 2 + half) * size, size);
    }
    stored.bytes = std::move(out);
  }

  static void TakeOne(Stored& stored) {
    CHECK(stored.type == kF32) << stored.type;
    for (size_t at = 0; at < stored.bytes.size(); at += sizeof(float)) {
      float value;
      std::memcpy(&value, stored.bytes.data() + at, sizeof value);
      value -= 1.0f;  // exact for values in [0.5, 2]
      std::memcpy(stored.bytes.data() + at, &value, sizeof value);
    }
  }

  void AddExperts(const std::string& layer, const std::string& part, const GgufTensor& tensor) {
    const uint64_t experts = tensor.dims[2];
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()),
                                 tensor.bytes.size());
    const uint64_t each = bytes.size() / experts;
    if (options_.stacked_experts) {
      // transformers 5 holds them so under this name in every family.
      Stack(layer + "mlp.experts.", part, tensor, bytes);
      return;
    }
    const bool mixtral = names_.pairs_adjacent;
    std::string name = mixtral ? "w1" : "gate_proj";
    if (part.starts_with("ffn_up")) name = mixtral ? "w3" : "up_proj";
    if (part.starts_with("ffn_down")) name = mixtral ? "w2" : "down_proj";
    for (uint64_t i = 0; i < experts; ++i) {
      stored_.push_back({fmt::format("{}{}.experts.{}.{}.weight", layer, names_.experts, i, name),
                         tensor.type,
                         {tensor.dims[1], tensor.dims[0]},
                         std::string(bytes.substr(i * each, each))});
    }
  }

  // [experts, 2 * outputs, inputs]: of each expert the gate, then the up matrix.
  void Stack(const std::string& prefix, const std::string& part, const GgufTensor& tensor,
             std::string_view bytes) {
    const uint64_t experts = tensor.dims[2];
    if (part.starts_with("ffn_down")) {
      stored_.push_back({prefix + "down_proj",
                         tensor.type,
                         {experts, tensor.dims[1], tensor.dims[0]},
                         std::string(bytes)});
      return;
    }
    if (part.starts_with("ffn_gate")) return;  // goes with the up matrix
    std::string name(tensor.name);
    name.replace(name.find("ffn_up"), 6, "ffn_gate");
    const std::span<const std::byte> stored = model_.FindTensor(name)->bytes;
    const std::string_view gate(reinterpret_cast<const char*>(stored.data()), stored.size());
    const uint64_t each = bytes.size() / experts;
    CHECK(gate.size() == bytes.size()) << name;
    std::string both;
    for (uint64_t i = 0; i < experts; ++i) {
      both += gate.substr(i * each, each);
      both += bytes.substr(i * each, each);
    }
    stored_.push_back({prefix + "gate_up_proj",
                       tensor.type,
                       {experts, 2 * tensor.dims[1], tensor.dims[0]},
                       std::move(both)});
  }

  const Checkpoint& model_;
  const HfWriteOptions& options_;
  const FamilyNames names_;
  std::string architecture_;
  std::vector<Stored> stored_;
};

}  // namespace

SafetensorsWriter& SafetensorsWriter::Tensor(std::string_view name, std::string_view type,
                                             std::span<const uint64_t> shape,
                                             std::string_view bytes) {
  const ordered_json entry = {{"dtype", type},
                              {"shape", std::vector<uint64_t>(shape.begin(), shape.end())},
                              {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
  return Entry(ordered_json(std::string(name)).dump() + ":" + entry.dump(), bytes);
}

SafetensorsWriter& SafetensorsWriter::Entry(std::string_view json, std::string_view bytes) {
  header_ += header_.empty() ? "" : ",";
  header_ += json;
  data_ += bytes;
  return *this;
}

std::string SafetensorsWriter::File(std::string_view header, std::string_view data) {
  const uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof size);
  file += header;
  file += data;
  return file;
}

std::string SafetensorsWriter::Finish() const {
  std::string header = R"({"__metadata__":{"format":"pt"})" +
                       std::string(header_.empty() ? "" : ",") + header_ + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return File(header, data_);
}

HfFiles HfFolderOf(const Checkpoint& model, const HfWriteOptions& options) {
  return FolderWriter(model, options).Run();
}

void WriteFiles(const std::string& folder, const HfFiles& files) {
  for (const auto& [name, content] : files) {
    const base::Status status = base::WriteFileAtomic(folder + "/" + name, content);
    CHECK(status.ok()) << status.ToString();
  }
}

}  // namespace plumb::model
