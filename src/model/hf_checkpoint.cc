// model/hf_checkpoint.cc
// The parts, put together in order: files, metadata, tensors.
#include "model/hf_checkpoint.h"

#include <fmt/format.h>

#include <utility>

#include "model/hf_config.h"
#include "model/hf_folder.h"

namespace plumb::model {

using base::Result;

Result<std::unique_ptr<HfCheckpoint>> HfCheckpoint::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const HfFolder folder, HfFolder::Open(path));
  ASSIGN_OR_RETURN(const std::string config, folder.Read("config.json", kHfSmallFileBytesMax));
  HfTextFiles text{.config = config};
  ASSIGN_OR_RETURN(text.tokenizer, folder.ReadIfAny("tokenizer.json", kHfTokenizerBytesMax));
  ASSIGN_OR_RETURN(text.tokenizer_config,
                   folder.ReadIfAny("tokenizer_config.json", kHfSmallFileBytesMax));
  ASSIGN_OR_RETURN(text.generation_config,
                   folder.ReadIfAny("generation_config.json", kHfSmallFileBytesMax));
  ASSIGN_OR_RETURN(text.chat_template,
                   folder.ReadIfAny("chat_template.jinja", kHfSmallFileBytesMax));
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
