// model/hf_tensors.cc
// From a stored tensor's name to its place: two tables of names, then checks of the shapes that
// reading relies on. Shapes against the model's numbers are checked later, for all checkpoints
// alike, by CheckWeights.
#include "model/hf_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/check.h"

namespace plumb::model {
namespace {

using base::Corrupt;
using base::Result;
using base::Status;

constexpr std::string_view kScaleSuffix = "_scale_inv";
constexpr std::string_view kLayerPrefix = "model.layers.";
// Saved by old versions, computed by all.
constexpr std::string_view kIgnored = "self_attn.rotary_emb.inv_freq";

enum class Kind : uint8_t { kPlain, kNorm, kQuery, kKey, kExpert, kGateUpStack, kStack };

// In which layers the reference reads a tensor; elsewhere it would be left out in silence.
enum class Of : uint8_t { kAll, kHeadNorms, kDense, kMixtral, kQwenExperts, kExperts };

// A name within a layer.
struct NameEntry {
  std::string_view stored;
  std::string_view gguf;
  Kind kind = Kind::kPlain;
  Of of = Of::kAll;
};
constexpr NameEntry kTopNames[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight", Kind::kNorm},
    {"lm_head.weight", "output.weight"},
};
constexpr NameEntry kLayerNames[] = {
    {"input_layernorm.weight", "attn_norm.weight", Kind::kNorm},
    {"self_attn.q_proj.weight", "attn_q.weight", Kind::kQuery},
    {"self_attn.k_proj.weight", "attn_k.weight", Kind::kKey},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias", Kind::kQuery},
    {"self_attn.k_proj.bias", "attn_k.bias", Kind::kKey},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.o_proj.bias", "attn_output.bias"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight", Kind::kNorm, Of::kHeadNorms},
    {"self_attn.k_norm.weight", "attn_k_norm.weight", Kind::kNorm, Of::kHeadNorms},
    {"mlp.gate_proj.weight", "ffn_gate.weight", Kind::kPlain, Of::kDense},
    {"mlp.up_proj.weight", "ffn_up.weight", Kind::kPlain, Of::kDense},
    {"mlp.down_proj.weight", "ffn_down.weight", Kind::kPlain, Of::kDense},
    {"mlp.gate.weight", "ffn_gate_inp.weight", Kind::kPlain, Of::kExperts},
    {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight", Kind::kPlain, Of::kMixtral},
    {"mlp.experts.gate_up_proj", "", Kind::kGateUpStack, Of::kExperts},
    {"mlp.experts.down_proj", "ffn_down_exps.weight", Kind::kStack, Of::kExperts},
};
// Here the families differ.
constexpr NameEntry kNormNames[] = {
    {"post_attention_layernorm.weight", "ffn_norm.weight", Kind::kNorm}};
constexpr NameEntry kGemmaNormNames[] = {
    {"post_attention_layernorm.weight", "post_attention_norm.weight", Kind::kNorm},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight", Kind::kNorm},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight", Kind::kNorm},
};
constexpr NameEntry kExpertNames[] = {
    {"gate_proj.weight", "ffn_gate_exps.weight", Kind::kExpert, Of::kQwenExperts},
    {"up_proj.weight", "ffn_up_exps.weight", Kind::kExpert, Of::kQwenExperts},
    {"down_proj.weight", "ffn_down_exps.weight", Kind::kExpert, Of::kQwenExperts},
    {"w1.weight", "ffn_gate_exps.weight", Kind::kExpert, Of::kMixtral},
    {"w3.weight", "ffn_up_exps.weight", Kind::kExpert, Of::kMixtral},
    {"w2.weight", "ffn_down_exps.weight", Kind::kExpert, Of::kMixtral},
};
constexpr std::string_view kQwenExperts = "mlp.experts.";
constexpr std::string_view kMixtralExperts = "block_sparse_moe.experts.";

bool Has(const HfConfig& config, Of of) {
  const bool mixtral = config.architecture == "llama" && config.experts != 0;
  switch (of) {
    case Of::kAll:
      return true;
    case Of::kHeadNorms:
      return config.architecture != "llama" && config.architecture != "qwen2";
    case Of::kDense:
      return config.experts == 0;
    case Of::kMixtral:
      return mixtral;
    case Of::kQwenExperts:
      return config.experts != 0 && !mixtral;
    case Of::kExperts:
      return config.experts != 0;
  }
  return false;
}

const NameEntry* FindName(std::span<const NameEntry> names, std::string_view name) {
  for (const NameEntry& entry : names) {
    if (entry.stored == name) return &entry;
  }
  return nullptr;
}

// Takes "12." off the text.
std::optional<uint32_t> TakeIndex(std::string_view& text) {
  uint32_t index = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, index);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '.') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()) + 1);
  return index;
}

Status Named(Status status, const SafetensorsTensor& tensor) {
  return std::move(status).WithField(tensor.name);
}

uint32_t GgufTypeOf(StoredType type) {
  constexpr uint32_t kF32 = 0, kF16 = 1, kBF16 = 30;
  if (type == StoredType::kF16) return kF16;
  return type == StoredType::kBF16 ? kBF16 : kF32;
}

}  // namespace

// Lives only during Map.
class HfMapper {
 public:
  HfMapper(const HfConfig& config, HfTensors& out) : config_(config), out_(out) {
    norm_names_ = config.norms_lack_one ? std::span<const NameEntry>(kGemmaNormNames)
                                        : std::span<const NameEntry>(kNormNames);
  }

  Status Run(std::span<const SafetensorsTensor* const> stored) {
    out_.block_ = config_.f8_block.value_or(ScaleBlock{});
    for (const SafetensorsTensor* tensor : stored) {
      const std::string_view name = tensor->name;
      if (!name.ends_with(kScaleSuffix)) continue;
      scales_.emplace(name.substr(0, name.size() - kScaleSuffix.size()), tensor);
    }
    // No reallocation later: index_ and the caller point into it.
    out_.tensors_.reserve(2 * stored.size() + 1);
    for (const SafetensorsTensor* tensor : stored) {
      if (!tensor->name.ends_with(kScaleSuffix)) RETURN_IF_ERROR(Take(*tensor));
    }
    if (!scales_.empty()) {
      const SafetensorsTensor& left = *scales_.begin()->second;
      return Named(Corrupt(fmt::format("tensor {} scales no tensor", left.name)), left);
    }
    RETURN_IF_ERROR(CheckStacks());
    if (!config_.tied_output && !out_.index_.contains("output.weight")) {
      return Corrupt(
                 "the folder has no tensor lm_head.weight, and config.json does not say "
                 "tie_word_embeddings")
          .WithField("lm_head.weight");
    }
    AddRopeFactors();
    for (size_t i = 0; i < out_.tensors_.size(); ++i) SetView(out_.tensors_[i], out_.origins_[i]);
    return base::OkStatus();
  }

 private:
  Status Take(const SafetensorsTensor& tensor) {
    if (tensor.name == "lm_head.weight" && config_.tied_output) {
      scales_.erase("lm_head.weight");
      return base::OkStatus();
    }
    if (const NameEntry* entry = FindName(kTopNames, tensor.name)) {
      return Place(tensor, *entry, std::string(entry->gguf));
    }
    std::string_view rest = tensor.name;
    if (rest.starts_with(kLayerPrefix)) {
      rest.remove_prefix(kLayerPrefix.size());
      const std::optional<uint32_t> layer = TakeIndex(rest);
      if (layer && *layer < config_.layers) return TakeOfLayer(tensor, *layer, rest);
    }
    return Unknown(tensor);
  }

  Status TakeOfLayer(const SafetensorsTensor& tensor, uint32_t layer, std::string_view rest) {
    if (rest == kIgnored) return base::OkStatus();
    const NameEntry* entry = FindName(kLayerNames, rest);
    if (entry == nullptr) entry = FindName(norm_names_, rest);
    if (entry != nullptr && !Has(config_, entry->of)) return Unknown(tensor);
    const auto gguf = [&](std::string_view name) { return fmt::format("blk.{}.{}", layer, name); };
    if (entry != nullptr && entry->kind == Kind::kGateUpStack) {
      RETURN_IF_ERROR(PlaceStack(tensor, gguf("ffn_gate_exps.weight"), {.first = 0, .count = 2}));
      return PlaceStack(tensor, gguf("ffn_up_exps.weight"), {.first = 1, .count = 2});
    }
    if (entry != nullptr && entry->kind == Kind::kStack) {
      return PlaceStack(tensor, gguf(entry->gguf), {.first = 0, .count = 1});
    }
    if (entry != nullptr) return Place(tensor, *entry, gguf(entry->gguf));
    const std::string_view prefix = Has(config_, Of::kMixtral) ? kMixtralExperts : kQwenExperts;
    if (!rest.starts_with(prefix)) return Unknown(tensor);
    std::string_view name = rest.substr(prefix.size());
    const std::optional<uint32_t> expert = TakeIndex(name);
    entry = FindName(kExpertNames, name);
    if (expert && *expert < config_.experts && entry != nullptr && Has(config_, entry->of)) {
      return PlaceExpert(tensor, *expert, gguf(entry->gguf));
    }
    return Unknown(tensor);
  }

  Status Unknown(const SafetensorsTensor& tensor) const {
    return Named(base::Unsupported(
                     fmt::format("tensor {} has no place in the {} architecture; computing without "
                                 "it would give wrong answers",
                                 tensor.name, config_.architecture)),
                 tensor);
  }

  // The stored tensor's rows with its scale, checked so that reading cannot leave either.
  Result<HfPiece> PieceOf(const SafetensorsTensor& tensor) {
    HfPiece piece{.stored = &tensor, .first_row = 0, .rows = tensor.rows()};
    const auto scale = scales_.find(tensor.name);
    if (tensor.type == StoredType::kOther) {
      return Named(base::Unsupported(fmt::format("tensor {} is stored as {}, which is not "
                                                 "supported",
                                                 tensor.name, tensor.type_name)),
                   tensor);
    }
    if (tensor.type != StoredType::kF8E4M3) {
      if (scale == scales_.end()) return piece;
      return Named(Corrupt(fmt::format("tensor {} has a scale, but is stored as {}", tensor.name,
                                       tensor.type_name)),
                   tensor);
    }
    if (!config_.f8_block || scale == scales_.end() || tensor.dims_count != 2) {
      return Named(Corrupt(fmt::format("tensor {} is stored as F8_E4M3, but {}", tensor.name,
                                       !config_.f8_block        ? "config.json has no fp8 "
                                                                  "quantization_config"
                                       : tensor.dims_count != 2 ? "it is no matrix"
                                                                : "it has no weight_scale_inv")),
                   tensor);
    }
    piece.scale = scale->second;
    scales_.erase(scale);
    const auto blocks = [](uint64_t size, uint64_t block) { return (size + block - 1) / block; };
    const SafetensorsTensor& found = *piece.scale;
    const bool numbers = found.type != StoredType::kOther && found.type != StoredType::kF8E4M3;
    if (!numbers || found.dims_count != 2 ||
        found.dims[0] != blocks(tensor.dims[0], config_.f8_block->outputs) ||
        found.dims[1] != blocks(tensor.dims[1], config_.f8_block->inputs)) {
      return Named(
          Corrupt(fmt::format("tensor {} does not hold one F32, F16 or BF16 scale for each "
                              "block of {} x {}",
                              found.name, config_.f8_block->outputs, config_.f8_block->inputs)),
          found);
    }
    return piece;
  }

  // A new tensor under GGUF's name; null when the name is taken.
  Result<HfOrigin*> Add(const SafetensorsTensor& tensor, std::string name,
                        std::span<const uint64_t> dims) {
    if (out_.index_.contains(name)) {
      return Named(
          Corrupt(fmt::format("tensor {} has the place of another ({})", tensor.name, name)),
          tensor);
    }
    GgufTensor added{};
    added.name = out_.names_.emplace_back(std::move(name));
    added.dims_count = static_cast<uint32_t>(dims.size());
    added.dims.fill(1);
    added.elements = 1;
    for (size_t i = 0; i < dims.size(); ++i) {
      added.dims[i] = dims[i];
      added.elements *= dims[i];  // as many as are stored, or fewer
    }
    added.type = GgufTypeOf(tensor.type);
    added.stored_type = tensor.type_name;
    out_.index_.emplace(added.name, static_cast<uint32_t>(out_.tensors_.size()));
    CHECK(out_.tensors_.size() < out_.tensors_.capacity());
    out_.tensors_.push_back(added);
    return &out_.origins_.emplace_back();
  }

  // A tensor of its own.
  Status Place(const SafetensorsTensor& tensor, const NameEntry& entry, std::string name) {
    ASSIGN_OR_RETURN(const HfPiece piece, PieceOf(tensor));
    if (tensor.dims_count != 1 && tensor.dims_count != 2) {
      return Named(Corrupt(fmt::format("tensor {} has {} dimensions, expected 1 or 2", tensor.name,
                                       tensor.dims_count)),
                   tensor);
    }
    std::vector<uint64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.dims_count);
    std::reverse(dims.begin(), dims.end());
    ASSIGN_OR_RETURN(HfOrigin* const origin, Add(tensor, std::move(name), dims));
    origin->pieces.push_back(piece);
    GgufTensor& added = out_.tensors_.back();
    added.stored_bytes =
        tensor.bytes.size() + (piece.scale != nullptr ? piece.scale->bytes.size() : 0);
    if (entry.kind == Kind::kNorm && config_.norms_lack_one) {
      origin->add_one = true;
      added.type = GgufTypeOf(StoredType::kF32);
    }
    if (config_.adjacent_pairs && (entry.kind == Kind::kQuery || entry.kind == Kind::kKey)) {
      origin->heads = entry.kind == Kind::kQuery ? config_.heads : config_.kv_heads;
      if (tensor.dims[0] != uint64_t{origin->heads} * config_.head_dim ||
          config_.head_dim % 2 != 0) {
        return Named(
            Corrupt(fmt::format("tensor {} has {} rows, expected {} heads of {}", tensor.name,
                                tensor.dims[0], origin->heads, config_.head_dim)),
            tensor);
      }
    }
    return base::OkStatus();
  }

  // One matrix of a stack.
  Status PlaceExpert(const SafetensorsTensor& tensor, uint32_t expert, std::string name) {
    ASSIGN_OR_RETURN(const HfPiece piece, PieceOf(tensor));
    if (tensor.dims_count != 2) {
      return Named(Corrupt(fmt::format("tensor {} is no matrix", tensor.name)), tensor);
    }
    auto found = out_.index_.find(name);
    if (found == out_.index_.end()) {
      const uint64_t dims[] = {tensor.dims[1], tensor.dims[0], config_.experts};
      ASSIGN_OR_RETURN(HfOrigin* const added, Add(tensor, name, dims));
      added->pieces.resize(config_.experts);
      found = out_.index_.find(name);
    }
    GgufTensor& stack = out_.tensors_[found->second];
    HfOrigin& origin = out_.origins_[found->second];
    if (origin.pieces.size() != config_.experts || origin.pieces[expert].stored != nullptr) {
      return Named(Corrupt(fmt::format("tensor {} has the place of another", tensor.name)), tensor);
    }
    if (tensor.dims[1] != stack.dims[0] || tensor.dims[0] != stack.dims[1] ||
        tensor.type_name != stack.stored_type) {
      return Named(Corrupt(fmt::format("tensor {} differs in shape or type from the layer's other "
                                       "experts",
                                       tensor.name)),
                   tensor);
    }
    origin.pieces[expert] = piece;
    stack.stored_bytes +=
        tensor.bytes.size() + (piece.scale != nullptr ? piece.scale->bytes.size() : 0);
    return base::OkStatus();
  }

  // All experts of a layer in one stored tensor [experts, outputs, inputs], or the `first` of
  // `count` parts of the outputs.
  Status PlaceStack(const SafetensorsTensor& tensor, std::string name, RowRange part) {
    ASSIGN_OR_RETURN(HfPiece piece, PieceOf(tensor));
    if (tensor.dims_count != 3 || tensor.dims[0] != config_.experts ||
        tensor.dims[1] % part.count != 0) {
      return Named(Corrupt(fmt::format("tensor {} is not a stack of {} experts", tensor.name,
                                       config_.experts)),
                   tensor);
    }
    const uint64_t outputs = tensor.dims[1] / part.count;
    const uint64_t dims[] = {tensor.dims[2], outputs, config_.experts};
    ASSIGN_OR_RETURN(HfOrigin* const origin, Add(tensor, std::move(name), dims));
    piece.rows = outputs;
    for (uint32_t i = 0; i < config_.experts; ++i) {
      piece.first_row = i * tensor.dims[1] + part.first * outputs;
      origin->pieces.push_back(piece);
    }
    out_.tensors_.back().stored_bytes = tensor.bytes.size() / part.count;
    return base::OkStatus();
  }

  Status CheckStacks() const {
    for (size_t i = 0; i < out_.tensors_.size(); ++i) {
      const std::vector<HfPiece>& pieces = out_.origins_[i].pieces;
      const auto missing = std::find_if(pieces.begin(), pieces.end(), [](const HfPiece& piece) {
        return piece.stored == nullptr;
      });
      if (missing == pieces.end()) continue;
      const std::string name(out_.tensors_[i].name);
      return Corrupt(
                 fmt::format("the folder lacks expert {} of {}", missing - pieces.begin(), name))
          .WithField(name);
    }
    return base::OkStatus();
  }

  void AddRopeFactors() {
    if (config_.rope_factors.empty()) return;
    out_.rope_factors_ = config_.rope_factors;
    GgufTensor factors{};
    factors.name = out_.names_.emplace_back("rope_freqs.weight");
    factors.type = GgufTypeOf(StoredType::kF32);
    factors.stored_type = "F32";
    factors.dims_count = 1;
    factors.dims.fill(1);
    factors.dims[0] = factors.elements = out_.rope_factors_.size();
    factors.bytes = std::as_bytes(std::span(out_.rope_factors_));
    factors.stored_bytes = factors.bytes.size();
    out_.index_.emplace(factors.name, static_cast<uint32_t>(out_.tensors_.size()));
    out_.tensors_.push_back(factors);
    out_.origins_.emplace_back();
  }

  // Bytes that may be handed out as they lie in the file.
  static void SetView(GgufTensor& tensor, const HfOrigin& origin) {
    if (origin.pieces.size() != 1 || origin.heads != 0 || origin.add_one) return;
    const HfPiece& piece = origin.pieces[0];
    if (piece.scale != nullptr || piece.rows != piece.stored->rows()) return;
    const auto address = reinterpret_cast<uintptr_t>(piece.stored->bytes.data());
    if (address % piece.stored->element_bytes == 0) tensor.bytes = piece.stored->bytes;
  }

  const HfConfig& config_;
  HfTensors& out_;
  std::span<const NameEntry> norm_names_;
  std::map<std::string_view, const SafetensorsTensor*> scales_;  // by the scaled tensor's name
};

Status HfTensors::Map(std::span<const SafetensorsTensor* const> stored, const HfConfig& config) {
  CHECK(tensors_.empty()) << "mapped twice";
  return HfMapper(config, *this).Run(stored);
}

const GgufTensor* HfTensors::Find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace plumb::model
