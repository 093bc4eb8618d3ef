// model/hf_checkpoint.cc
// The parts, put together in order: files, metadata, tensors.
#include "model/hf_checkpoint.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "model/hf_config.h"
#include "model/hf_folder.h"

namespace plumb::model {

using base::Result;
using base::Status;

namespace {

struct Bias {
  std::string_view gguf;
  std::string_view folder;
};
constexpr Bias kQueryKeyValue[] = {{"attn_q.bias", "self_attn.q_proj.bias"},
                                   {"attn_k.bias", "self_attn.k_proj.bias"},
                                   {"attn_v.bias", "self_attn.v_proj.bias"}};
constexpr Bias kAttentionOutput[] = {{"attn_output.bias", "self_attn.o_proj.bias"}};

// Every layer has these biases, or none has them. One that is missing, or that the reference would
// not add, changes every answer.
Status CheckBiases(const HfTensors& tensors, const HfConfig& config, std::span<const Bias> biases,
                   bool wanted) {
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    for (const Bias& bias : biases) {
      const bool found = tensors.Find(fmt::format("blk.{}.{}", layer, bias.gguf)) != nullptr;
      if (found == wanted) continue;
      std::string name = fmt::format("model.layers.{}.{}", layer, bias.folder);
      std::string message = fmt::format(
          "{}, but tensor {} is {}", config.biases.why, name,
          found ? "there, and would be ignored: remove it, or correct config.json" : "missing");
      return base::Corrupt(std::move(message)).WithField(std::move(name));
    }
  }
  return base::OkStatus();
}

}  // namespace

Result<std::unique_ptr<HfCheckpoint>> HfCheckpoint::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const HfFolder folder, HfFolder::Open(path));
  std::string config;
  ASSIGN_OR_RETURN(const HfTextFiles text, folder.TextFiles(config));
  ASSIGN_OR_RETURN(auto files, folder.OpenWeights());
  return Assemble(folder.Name(), text, std::move(files));
}

Result<std::unique_ptr<HfCheckpoint>> HfCheckpoint::Assemble(
    std::string_view name, const HfTextFiles& text,
    std::vector<std::unique_ptr<Safetensors>> files) {
  std::unique_ptr<HfCheckpoint> checkpoint(new HfCheckpoint);
  checkpoint->files_ = std::move(files);
  ASSIGN_OR_RETURN(const HfConfig config, ReadHfConfig(text.config, name, checkpoint->metadata_));
  RETURN_IF_ERROR(ReadHfText(text, checkpoint->metadata_));
  std::vector<const SafetensorsTensor*> stored;
  for (const auto& file : checkpoint->files_) {
    for (const SafetensorsTensor& tensor : file->tensors()) stored.push_back(&tensor);
  }
  RETURN_IF_ERROR(checkpoint->tensors_.Map(stored, config));
  const HfAttentionBiases& biases = config.biases;
  RETURN_IF_ERROR(
      CheckBiases(checkpoint->tensors_, config, kQueryKeyValue, biases.query_key_value));
  RETURN_IF_ERROR(CheckBiases(checkpoint->tensors_, config, kAttentionOutput, biases.output));
  return checkpoint;
}

std::string HfCheckpoint::Format() const {
  return fmt::format("safetensors, {} file{}", files_.size(), files_.size() == 1 ? "" : "s");
}

uint64_t HfCheckpoint::file_bytes() const {
  uint64_t bytes = 0;
  for (const auto& file : files_) bytes += file->file_bytes();
  return bytes;
}

}  // namespace plumb::model
