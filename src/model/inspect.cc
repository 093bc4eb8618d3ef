// model/inspect.cc: sums over the tensor directory; no weight is read. Resident sizes follow from
// the panel layout that tensor publishes; a test holds them against a loaded model.
#include "model/inspect.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/thread.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/deepseek_v41_weights.h"
#include "model/families/gemma3.h"
#include "model/families/llama.h"
#include "model/families/moe.h"
#include "model/hf_text.h"
#include "model/layers_weights.h"
#include "model/load.h"
#include "model/model.h"
#include "tensor/activations.h"
#include "tensor/attention.h"
#include "tensor/dtype.h"
#include "tensor/kv_page.h"
#include "tensor/packed_matrix.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;

// Bytes of a matrix after PackedMatrix::Pack.
uint64_t PackedBytes(tensor::DType type, uint64_t outputs, uint64_t inputs) {
  const uint64_t panels = (outputs + tensor::kPanelOutputs - 1) / tensor::kPanelOutputs;
  // BF16 whose rows are no whole groups is widened.
  const bool widened = type == tensor::DType::kBF16 && inputs % tensor::kGroupInputs != 0;
  const tensor::PanelLayout layout = tensor::LayoutOf(widened ? tensor::DType::kF32 : type);
  if (layout.quantized()) {
    return panels * (inputs / (tensor::kGroupInputs * layout.groups())) * layout.block_bytes();
  }
  const uint64_t each = widened ? sizeof(float) : tensor::Traits(type).block_bytes;
  return panels * tensor::kPanelOutputs * inputs * each;
}

// Bytes of a tensor whose rows are kept as they come from the checkpoint.
uint64_t StoredRows(tensor::DType type, const GgufTensor& tensor) {
  const tensor::DTypeTraits& traits = tensor::Traits(type);
  return tensor.elements / traits.block_inputs * traits.block_bytes;
}

// What LoadEmbedding keeps of the embedding's rows, of which a step reads a few.
uint64_t LookupBytes(const GgufTensor& embedding, const Config& config) {
  const auto type = tensor::DTypeFromGguf(embedding.type);
  if (!type || (config.tied_output && RowsSurvivePacking(*type))) return 0;
  return StoredRows(*type, embedding);
}

// What a loader keeps of a tensor. Types without kernels count as they lie in the file.
uint64_t ResidentBytes(const GgufTensor& tensor, const Config& config) {
  const auto type = tensor::DTypeFromGguf(tensor.type);
  if (!type) return tensor.stored_bytes;
  if (tensor.dims_count == 1) return tensor.elements * sizeof(float);
  const uint64_t matrices = tensor.dims[2] * tensor.dims[3];
  const uint64_t packed = matrices * PackedBytes(*type, tensor.dims[1], tensor.dims[0]);
  if (tensor.name != "token_embd.weight") return packed;
  return (config.tied_output ? packed : 0) + LookupBytes(tensor, config);
}

// As ForwardPass and ExpertLayer allocate them.
uint64_t Workspace(const Config& config) {
  const uint64_t inputs_max =
      std::max({uint64_t{config.embedding}, QueryWidth(config), uint64_t{config.feed_forward}});
  const uint64_t groups = (inputs_max + tensor::kGroupInputs - 1) / tensor::kGroupInputs;
  const uint64_t experts_floats =
      config.experts == 0 ? 0 : config.experts + 3 * uint64_t{config.embedding};
  const uint64_t floats = 2 * uint64_t{config.embedding} + 2 * QueryWidth(config) +
                          2 * KeyWidth(config) + 2 * uint64_t{config.feed_forward} + experts_floats;
  const uint64_t quants =
      groups * (tensor::kGroupInputs * sizeof(int16_t) + sizeof(tensor::ActivationGroup)) +
      sizeof(float);
  const tensor::KvLayout layout{config.layers, config.kv_heads, config.head_dim};
  const uint32_t context = std::min(config.context_max, kContextDefaultMax);
  return kWorkspaceRows * (floats * sizeof(float) + quants) +
         tensor::AttentionScratch::Bytes(layout, config.heads, context, base::UsableProcessors());
}

MemoryNeed Memory(const Checkpoint& gguf, const Config& config) {
  MemoryNeed need;
  for (const GgufTensor& tensor : gguf.tensors())
    need.weight_bytes += ResidentBytes(tensor, config);
  if (const GgufTensor* embedding = gguf.FindTensor("token_embd.weight")) {
    need.lookup_bytes = LookupBytes(*embedding, config);
  }
  need.page_bytes = tensor::KvLayout{config.layers, config.kv_heads, config.head_dim}.page_bytes();
  need.token_bytes = need.page_bytes / kPageTokens;
  need.workspace_bytes = Workspace(config);
  return need;
}

MemoryNeed DeepseekMemory(const DeepseekConfig& config, const DeepseekNeed& need) {
  return {.weight_bytes = need.weight_bytes,
          .lookup_bytes = uint64_t{2} * config.vocabulary * config.hidden,
          .token_bytes = need.token_bytes,
          .page_bytes = need.page_bytes,
          .state_bytes = need.state_bytes,
          .workspace_bytes = need.workspace_bytes};
}

// Weights that a tensor stands for: two in each byte of an I8 tensor, none in a tensor of scales.
uint64_t Parameters(const GgufTensor& tensor) {
  if (tensor.type != kNoGgufType) return tensor.elements;
  if (tensor.stored_type == "F8_E8M0") return 0;
  return tensor.stored_type == "I8" ? 2 * tensor.elements : tensor.elements;
}

std::vector<TypeShare> Shares(const Checkpoint& gguf) {
  std::map<std::string, TypeShare> by_type;
  for (const GgufTensor& tensor : gguf.tensors()) {
    const std::string name = std::string(tensor.stored_type);
    TypeShare& share = by_type[name];
    share.type = name;
    ++share.tensors;
    share.elements += tensor.elements;
    share.bytes += tensor.stored_bytes;
  }
  std::vector<TypeShare> shares;
  for (auto& [name, share] : by_type) shares.push_back(std::move(share));
  std::sort(shares.begin(), shares.end(), [](const TypeShare& a, const TypeShare& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.type < b.type;
  });
  return shares;
}

std::string TextOrEmpty(const Checkpoint& gguf, std::string_view key) {
  auto text = gguf.Text(key);
  return text.ok() ? std::string(*text) : std::string();
}

}  // namespace

Result<Inspection> Inspect(const Checkpoint& gguf) {
  Inspection result;
  ASSIGN_OR_RETURN(result.config, ReadConfig(gguf));
  result.format = gguf.Format();
  result.file_bytes = gguf.file_bytes();
  result.tensors = gguf.tensors().size();
  for (const GgufTensor& tensor : gguf.tensors()) result.parameters += Parameters(tensor);
  result.types = Shares(gguf);
  if (result.config.family != Family::kDeepseekV41) result.memory = Memory(gguf, result.config);
  result.tokenizer_model = TextOrEmpty(gguf, "tokenizer.ggml.model");
  if (result.tokenizer_model.empty() && gguf.Has(kHfTokenizerKey)) {
    result.tokenizer_model = "tokenizer.json";
  }
  result.tokenizer_pre = TextOrEmpty(gguf, "tokenizer.ggml.pre");
  const auto tokens = gguf.values().find("tokenizer.ggml.tokens");
  if (tokens != gguf.values().end()) {
    result.vocabulary_tokens = static_cast<uint32_t>(tokens->second.count);
  }
  result.chat_template = TextOrEmpty(gguf, "tokenizer.chat_template");
  switch (result.config.family) {
    case Family::kLlama:
    case Family::kQwen2:
    case Family::kQwen3:
      result.unsupported = CheckLlama(gguf, result.config);
      break;
    case Family::kMixtral:
    case Family::kQwen3Moe:
      result.unsupported = CheckMoe(gguf, result.config);
      break;
    case Family::kGemma3:
      result.unsupported = CheckGemma3(gguf, result.config);
      break;
    case Family::kDeepseekV41: {
      ASSIGN_OR_RETURN(const DeepseekConfig config, ReadDeepseekConfig(gguf));
      result.deepseek = NeedOf(config);
      result.memory = DeepseekMemory(config, *result.deepseek);
      if (gguf.tensors().empty()) {
        result.parameters = result.deepseek->parameters;
        result.unsupported =
            base::NotFound("the folder has no weights, or not all of them").WithField("model");
      } else {
        result.unsupported = CheckDeepseekTensors(gguf, config);
      }
      break;
    }
  }
  return result;
}

uint64_t MemoryFor(const MemoryNeed& need, uint64_t context_tokens, uint64_t sequences) {
  const uint64_t pages = (context_tokens + kPageTokens - 1) / kPageTokens;
  return need.weight_bytes + need.workspace_bytes + pages * sequences * need.page_bytes +
         sequences * need.state_bytes;
}

}  // namespace plumb::model
