// tests/fuzz/safetensors_fuzz.cc
// Arbitrary bytes as the one safetensors file of a small model whose config.json is fixed: parsed,
// put under GGUF's names, every row read (F8, stacks and reordered rows among them), inspected,
// and, when it still is a model, loaded and run for a token.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/hf_checkpoint.h"
#include "model/inspect.h"
#include "model/load.h"
#include "model/safetensors.h"
#include "tensor/cpu_features.h"

namespace {

namespace model = plumb::model;

constexpr uint64_t kReadBytesMax = 16u << 20;
constexpr uint64_t kWeightBytesMax = 4u << 20;

// A plain model in F8 or floats, and one with experts.
constexpr std::string_view kConfigs[] = {
    R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":1,"hidden_size":32,
        "intermediate_size":32,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,
        "max_position_embeddings":16,"vocab_size":8,"rms_norm_eps":1e-5,"tie_word_embeddings":true,
        "quantization_config":{"quant_method":"fp8","weight_block_size":[24,20]}})",
    R"({"architectures":["MixtralForCausalLM"],"num_hidden_layers":1,"hidden_size":32,
        "intermediate_size":32,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":16,
        "max_position_embeddings":16,"vocab_size":8,"rms_norm_eps":1e-5,"tie_word_embeddings":true,
        "num_local_experts":2,"num_experts_per_tok":1})",
};

void ReadEverything(const model::Checkpoint& checkpoint) {
  uint64_t sum = 0;
  for (const model::GgufTensor& tensor : checkpoint.tensors()) {
    CHECK(checkpoint.FindTensor(tensor.name) == &tensor) << tensor.name;
    const uint64_t rows = tensor.elements / tensor.dims[0];
    if (tensor.elements > kReadBytesMax / sizeof(float)) continue;
    plumb::tensor::AlignedBuffer scratch;
    for (const uint64_t first : {uint64_t{0}, rows / 2, rows - 1}) {
      const auto bytes = checkpoint.Rows(tensor, {first, rows - first}, scratch);
      CHECK(bytes.ok()) << bytes.status().ToString();
      for (const std::byte b : *bytes) sum += static_cast<uint64_t>(b);
    }
  }
  CHECK(sum < uint64_t{1} << 60) << sum;
}

void LoadAndRun(const model::Checkpoint& checkpoint) {
  static plumb::tensor::ThreadPool pool({.threads = 1});
  auto loaded = model::LoadModel(checkpoint, {.pool = pool,
                                              .kernels = **plumb::tensor::SelectKernels("auto"),
                                              .rows_max = 1,
                                              .logits_rows_max = 1,
                                              .context_max = 4});
  if (!loaded.ok()) return;
  std::vector<std::byte> page((*loaded)->info().page_bytes);
  std::byte* const pages[] = {page.data()};
  const plumb::base::TokenId tokens[] = {plumb::base::TokenId{0}};
  std::vector<float> logits((*loaded)->info().vocabulary_size);
  const model::SequenceRows rows[] = {{tokens, 0, pages, 1}};
  (*loaded)->Forward(rows, logits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const std::string_view config : kConfigs) {
    auto file = model::Safetensors::Parse(std::as_bytes(std::span(data, size)));
    if (!file.ok()) {
      CHECK(!file.status().message().empty());
      return 0;
    }
    std::vector<std::unique_ptr<model::Safetensors>> files;
    files.push_back(*std::move(file));
    const auto checkpoint =
        model::HfCheckpoint::Assemble("fuzz", {.config = config}, std::move(files));
    if (!checkpoint.ok()) {
      CHECK(!checkpoint.status().message().empty());
      continue;
    }
    ReadEverything(**checkpoint);
    const auto inspection = model::Inspect(**checkpoint);
    if (inspection.ok() && inspection->memory.weight_bytes <= kWeightBytesMax) {
      LoadAndRun(**checkpoint);
    }
  }
  return 0;
}
