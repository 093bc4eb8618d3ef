// model/load.h
// From a model file to a Model that computes: the family is chosen here, by a switch. Loading
// repacks every weight into the kernels' form, so the file is not needed afterwards; DeepSeek-V4.1
// alone computes from the mapped file. Read next: model/families/llama.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/gguf.h"
#include "model/model.h"
#include "tensor/kernel_table.h"
#include "tensor/kv_page.h"
#include "tensor/thread_pool.h"

namespace plumb::model {

// Which roundings DeepSeek-V4.1 is computed with; other families have none of these.
enum class Roundings : uint8_t {
  kF32,   // none: keys and values stay f32; for comparison with references
  kKvq,   // keys, values and index queries as their formats store them; the default
  kFull,  // besides, activations as GPU engines round them (BF16, F8); for comparison only
};
// DeepInfer's: the prompt's last rows that have all layers, and drafts that can be taken back.
constexpr uint32_t kReplayRows = 140;
constexpr uint32_t kBacktrackRows = 6;

struct LoadProgress {
  uint64_t bytes_done = 0;  // of weights in the file
  uint64_t bytes_total = 0;
};

struct LoadOptions {
  tensor::ThreadPool& pool;            // used by LoadModel and by the model's Forward
  const tensor::KernelTable& kernels;  // both must outlive the model
  // Packs the weights instead, so that a model which computes on `pool` can go on meanwhile; null =
  // `pool` does. Needed no longer than LoadModel.
  tensor::ThreadPool* load_pool = nullptr;
  uint32_t rows_max = 512;        // rows of one Forward; [1, kRowsMax]
  uint32_t logits_rows_max = 64;  // rows with logits among them; [1, rows_max]
  uint32_t context_max =
      0;  // serve at most so many tokens; 0 = the file's, up to kContextDefaultMax
  // How keys and values are stored: part of the numerics id.
  tensor::KvFormat kv_format = tensor::KvFormat::kF16;
  // For DeepSeek-V4.1 only. replay_rows 0: every row has all layers; else at least its window and
  // `backtrack_rows` (kInvalidArgument). None: kReplayRows, or window + 2 backtrack_rows where that
  // is more: as far above the window as DeepInfer's 140 is above its 128.
  Roundings roundings = Roundings::kKvq;
  std::optional<uint32_t> replay_rows;
  uint32_t backtrack_rows = kBacktrackRows;
  // Called after each tensor, on the loading thread. May be empty.
  std::function<void(const LoadProgress&)> progress;
  // DeepSeek-V4.1: the class of each token id for its n-gram tables, from the tokenizer's
  // normalised texts (text module); called at most once, on the loading thread, when the checkpoint
  // has no engram_token_map.json. May be empty; then such a checkpoint is refused.
  std::function<base::Result<std::vector<uint32_t>>()> token_classes = nullptr;

  tensor::ThreadPool& loader() const { return load_pool != nullptr ? *load_pool : pool; }
};

constexpr uint32_t kRowsMax = 8192;
// Served at most when the file says more and `context_max` is 0: the rotary table grows with it.
constexpr uint32_t kContextDefaultMax = 131072;

// Opens a path given by the operator: a .gguf file, or a Hugging Face folder. kUnsupported: a
// single .safetensors file; else the errors of Gguf::Open, HfCheckpoint::Open and
// DeepseekCheckpoint::Open.
base::Result<std::unique_ptr<Checkpoint>> OpenModelFile(const std::string& path);

// The model may outlive the checkpoint (Checkpoint::Keep). kUnsupported, kCorrupt: as ReadConfig
// and ReadDeepseekConfig, or a tensor with another shape or type than the family has (field() and
// message name it); kInvalidArgument: an option out of range; kOverloaded: out of memory.
base::Result<std::unique_ptr<Model>> LoadModel(const Checkpoint& gguf, const LoadOptions& options);

}  // namespace plumb::model
