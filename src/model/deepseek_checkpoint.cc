// model/deepseek_checkpoint.cc
// A directory over the files' own directories. The released model has 96,085 tensors, so names are
// found by halving a sorted list.
#include "model/deepseek_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/families/deepseek_v41_config.h"
#include "model/hf_folder.h"

namespace plumb::model {

using base::Result;
using base::Status;

namespace {

constexpr std::string_view kPrefix = "model.";
constexpr std::string_view kSingleFile = "model.safetensors";
// As large as a vocabulary may be, with seven digits and a comma for each.
constexpr uint64_t kTokenMapBytesMax = 16u << 20;

uint32_t GgufTypeOf(StoredType type) {
  constexpr uint32_t kF32 = 0, kF16 = 1, kBF16 = 30;
  switch (type) {
    case StoredType::kF32:
      return kF32;
    case StoredType::kF16:
      return kF16;
    case StoredType::kBF16:
      return kBF16;
    case StoredType::kF8E4M3:
    case StoredType::kOther:
      break;
  }
  return kNoGgufType;
}

GgufTensor ViewOf(const SafetensorsTensor& stored) {
  GgufTensor tensor{};
  tensor.name = stored.name;
  if (tensor.name.starts_with(kPrefix)) tensor.name.remove_prefix(kPrefix.size());
  tensor.type = GgufTypeOf(stored.type);
  tensor.dims_count = std::max(1u, stored.dims_count);
  tensor.dims.fill(1);
  for (uint32_t i = 0; i < stored.dims_count; ++i) {
    tensor.dims[i] = stored.dims[stored.dims_count - 1 - i];
  }
  tensor.elements = stored.elements;
  tensor.bytes = stored.bytes;
  tensor.stored_bytes = stored.bytes.size();
  tensor.stored_type = stored.type_name;
  return tensor;
}

}  // namespace

Result<std::unique_ptr<DeepseekCheckpoint>> DeepseekCheckpoint::Open(const std::string& path) {
  return Open(path, Weights::kNeeded);
}

Result<std::unique_ptr<DeepseekCheckpoint>> DeepseekCheckpoint::OpenNumbers(
    const std::string& path) {
  return Open(path, Weights::kMayLack);
}

Result<std::unique_ptr<DeepseekCheckpoint>> DeepseekCheckpoint::Open(const std::string& path,
                                                                     Weights weights) {
  ASSIGN_OR_RETURN(const HfFolder folder, HfFolder::Open(path));
  std::string config;
  ASSIGN_OR_RETURN(const HfTextFiles text, folder.TextFiles(config));
  ASSIGN_OR_RETURN(const auto token_map,
                   folder.ReadIfAny("engram_token_map.json", kTokenMapBytesMax));
  auto files = folder.OpenWeights();
  if (files.ok()) return Assemble(folder.Name(), text, token_map, std::move(files).value());
  // A file that the index lists; or neither an index nor the one file.
  const Status& status = files.status();
  const bool lack = status.code() == base::Code::kNotFound ||
                    (status.field() == kSingleFile && !folder.PathOf(kSingleFile).ok());
  if (weights == Weights::kNeeded || !lack) return status;
  return Assemble(folder.Name(), text, token_map, {});
}

Result<std::unique_ptr<DeepseekCheckpoint>> DeepseekCheckpoint::Assemble(
    std::string_view name, const HfTextFiles& text, const std::optional<std::string>& token_map,
    std::vector<std::unique_ptr<Safetensors>> files) {
  std::unique_ptr<DeepseekCheckpoint> checkpoint(new DeepseekCheckpoint);
  ASSIGN_OR_RETURN(const DeepseekConfig config, ReadDeepseekConfig(text.config, name));
  Metadata& metadata = checkpoint->metadata_;
  metadata.SetText("general.architecture", kDeepseekArchitecture);
  metadata.SetText("general.name", config.name);
  metadata.SetText(std::string(kDeepseekConfigKey), text.config);
  // What tools that know no family ask for: rows do not all use the same weights.
  metadata.SetUnsigned(fmt::format("{}.expert_count", kDeepseekArchitecture), config.experts);
  if (token_map) metadata.SetText(std::string(kDeepseekTokenMapKey), *token_map);
  RETURN_IF_ERROR(ReadHfText(text, metadata));
  checkpoint->files_ = std::make_shared<const Files>(std::move(files));
  RETURN_IF_ERROR(checkpoint->TakeTensors());
  return checkpoint;
}

Status DeepseekCheckpoint::TakeTensors() {
  for (const auto& file : *files_) {
    for (const SafetensorsTensor& stored : file->tensors()) tensors_.push_back(ViewOf(stored));
  }
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  const auto name = [&](uint32_t place) { return tensors_[place].name; };
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return name(a) < name(b); });
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(),
                                        [&](uint32_t a, uint32_t b) { return name(a) == name(b); });
  if (twice == by_name_.end()) return base::OkStatus();
  return base::Corrupt(fmt::format("the tensor {} occurs with and without '{}' in front",
                                   name(*twice), kPrefix))
      .WithField(std::string(name(*twice)));
}

const GgufTensor* DeepseekCheckpoint::FindTensor(std::string_view name) const {
  const auto found = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t place, std::string_view wanted) { return tensors_[place].name < wanted; });
  if (found == by_name_.end() || tensors_[*found].name != name) return nullptr;
  return &tensors_[*found];
}

Result<std::span<const std::byte>> DeepseekCheckpoint::Rows(
    const GgufTensor& tensor, RowRange range, tensor::AlignedBuffer& /*scratch*/) const {
  const uint64_t rows = tensor.elements / tensor.dims[0];
  CHECK(range.first <= rows && range.count <= rows - range.first) << tensor.name;
  const uint64_t row_bytes = tensor.bytes.size() / rows;
  return tensor.bytes.subspan(range.first * row_bytes, range.count * row_bytes);
}

std::string DeepseekCheckpoint::FileOf(const GgufTensor& tensor) const {
  if (files_->size() == 1) return "";
  for (const auto& file : *files_) {
    for (const SafetensorsTensor& stored : file->tensors()) {
      if (stored.bytes.data() == tensor.bytes.data()) return file->name();
    }
  }
  return "";
}

std::string DeepseekCheckpoint::Format() const {
  if (files_->empty()) return "config.json without weights";
  return fmt::format("safetensors, {} file{}", files_->size(), files_->size() == 1 ? "" : "s");
}

uint64_t DeepseekCheckpoint::file_bytes() const {
  uint64_t bytes = 0;
  for (const auto& file : *files_) bytes += file->file_bytes();
  return bytes;
}

}  // namespace plumb::model
