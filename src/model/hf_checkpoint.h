// model/hf_checkpoint.h
// A Hugging Face folder as a checkpoint: config.json, safetensors files, tokenizer and template, as
// save_pretrained writes them, seen as a GGUF file of the same model would be. So a folder and a
// GGUF file with the same weights give the same logits, bit for bit. In reading order: hf_folder.h
// (files), hf_config.h and hf_text.h (metadata), safetensors.h and hf_tensors.h (weights).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/hf_tensors.h"
#include "model/hf_text.h"
#include "model/metadata.h"
#include "model/safetensors.h"

namespace plumb::model {

// Immutable after construction. Thread: any. Maps the weight files; they must not be cut while it
// lives (a loaded model no longer needs them).
class HfCheckpoint final : public Checkpoint {
 public:
  // The errors of HfFolder, ReadHfConfig, ReadHfText and HfTensors::Map. Messages hold no path.
  static base::Result<std::unique_ptr<HfCheckpoint>> Open(const std::string& folder);
  // From parts at hand; `name` becomes general.name.
  static base::Result<std::unique_ptr<HfCheckpoint>> Assemble(
      std::string_view name, const HfTextFiles& text,
      std::vector<std::unique_ptr<Safetensors>> files);

  const std::map<std::string_view, GgufValue>& values() const override {
    return metadata_.values();
  }
  std::span<const GgufTensor> tensors() const override { return tensors_.tensors(); }
  const GgufTensor* FindTensor(std::string_view name) const override { return tensors_.Find(name); }
  base::Result<std::span<const std::byte>> Rows(const GgufTensor& tensor, RowRange range,
                                                tensor::AlignedBuffer& scratch) const override {
    return tensors_.Rows(tensor, range, scratch);
  }
  std::string Format() const override;
  uint64_t file_bytes() const override;

 private:
  HfCheckpoint() = default;

  std::vector<std::unique_ptr<Safetensors>> files_;
  Metadata metadata_;
  HfTensors tensors_;  // borrows files_
};

}  // namespace plumb::model
