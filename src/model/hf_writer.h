// model/hf_writer.h
// Writes small safetensors files and Hugging Face folders, for tests: tensors of any kind, also
// nonsense, and a whole folder out of a GGUF file of the same model. Read next: model/tiny_model.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/checkpoint.h"

namespace plumb::model {

// A value type; one thread at a time.
class SafetensorsWriter {
 public:
  // `bytes` should be what type ("BF16") and shape need.
  SafetensorsWriter& Tensor(std::string_view name, std::string_view type,
                            std::span<const uint64_t> shape, std::string_view bytes);
  SafetensorsWriter& Tensor(std::string_view name, std::string_view type,
                            std::initializer_list<uint64_t> shape, std::string_view bytes) {
    return Tensor(name, type, std::span(shape.begin(), shape.size()), bytes);
  }
  // An entry of the header as given, for tests of readers.
  SafetensorsWriter& Entry(std::string_view json, std::string_view bytes);
  std::string Finish() const;

  // A file with this header and data, whatever they are.
  static std::string File(std::string_view header, std::string_view data);

 private:
  std::string header_, data_;
};

// A file's name and content.
using HfFiles = std::vector<std::pair<std::string, std::string>>;

struct HfWriteOptions {
  uint32_t shards = 1;           // > 1: with model.safetensors.index.json
  bool stacked_experts = false;  // as transformers 5 holds them, instead of a tensor each
  std::string tokenizer_json;    // empty = none
  std::string tokenizer_config;  // empty = none
};
// The folder of a model with F32, F16 and BF16 weights: what save_pretrained would write. Aborts
// for what has no counterpart there.
HfFiles HfFolderOf(const Checkpoint& model, const HfWriteOptions& options = {});
void WriteFiles(const std::string& folder, const HfFiles& files);

}  // namespace plumb::model
