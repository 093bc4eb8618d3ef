// model/deepseek_checkpoint.h
// A DeepSeek-V4.1 folder as a checkpoint: tensors under their own names (less a "model." in front),
// each with the bytes and the type that the file has, since the model computes from those. Twin for
// folders told in GGUF's words: model/hf_checkpoint.h. Read next: families/deepseek_v41_weights.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/hf_text.h"
#include "model/metadata.h"
#include "model/safetensors.h"

namespace plumb::model {

// Immutable after construction. Thread: any. Maps the weight files; they must not be cut while it
// or a model made from it lives.
class DeepseekCheckpoint final : public Checkpoint {
 public:
  // The errors of HfFolder, ReadDeepseekConfig and ReadHfText; kCorrupt: a tensor occurs with and
  // without the prefix. Messages hold no path.
  static base::Result<std::unique_ptr<DeepseekCheckpoint>> Open(const std::string& folder);
  // For Inspect alone: without tensors where config.json is there and the weights are not, or not
  // all of them. Else as Open.
  static base::Result<std::unique_ptr<DeepseekCheckpoint>> OpenNumbers(const std::string& folder);
  // From parts at hand; `name` becomes general.name, `token_map` is engram_token_map.json.
  static base::Result<std::unique_ptr<DeepseekCheckpoint>> Assemble(
      std::string_view name, const HfTextFiles& text, const std::optional<std::string>& token_map,
      std::vector<std::unique_ptr<Safetensors>> files);

  const std::map<std::string_view, GgufValue>& values() const override {
    return metadata_.values();
  }
  std::span<const GgufTensor> tensors() const override { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const override;
  base::Result<std::span<const std::byte>> Rows(const GgufTensor& tensor, RowRange range,
                                                tensor::AlignedBuffer& scratch) const override;
  std::shared_ptr<const void> Keep() const override { return files_; }
  std::string FileOf(const GgufTensor& tensor) const override;
  std::string Format() const override;
  uint64_t file_bytes() const override;

 private:
  using Files = std::vector<std::unique_ptr<Safetensors>>;

  enum class Weights : uint8_t { kNeeded, kMayLack };

  DeepseekCheckpoint() = default;
  static base::Result<std::unique_ptr<DeepseekCheckpoint>> Open(const std::string& folder,
                                                                Weights weights);
  base::Status TakeTensors();

  std::shared_ptr<const Files> files_;
  Metadata metadata_;
  std::vector<GgufTensor> tensors_;  // borrow names and bytes from files_
  std::vector<uint32_t> by_name_;    // places in tensors_
};

}  // namespace plumb::model
