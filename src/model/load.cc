// model/load.cc: options are checked, then the family's loader is called. A new family is one case
// of the switch and one file.
#include "model/load.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "model/config.h"
#include "model/deepseek_checkpoint.h"
#include "model/families/deepseek_v41.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/gemma3.h"
#include "model/families/llama.h"
#include "model/families/moe.h"
#include "model/gguf.h"
#include "model/hf_checkpoint.h"
#include "model/hf_folder.h"

namespace plumb::model {

using base::Result;

namespace {

Result<std::unique_ptr<Checkpoint>> OpenFolder(const std::string& path) {
  ASSIGN_OR_RETURN(const HfFolder folder, HfFolder::Open(path));
  ASSIGN_OR_RETURN(const std::string config, folder.Read("config.json", kHfSmallFileBytesMax));
  if (IsDeepseekV41(config)) {
    ASSIGN_OR_RETURN(auto checkpoint, DeepseekCheckpoint::Open(path));
    return std::unique_ptr<Checkpoint>(std::move(checkpoint));
  }
  ASSIGN_OR_RETURN(auto checkpoint, HfCheckpoint::Open(path));
  return std::unique_ptr<Checkpoint>(std::move(checkpoint));
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> OpenModelFile(const std::string& path) {
  std::error_code ignored;  // an unreadable path fails in Open
  const std::filesystem::path file(path);
  if (std::filesystem::is_directory(file, ignored)) {
    return OpenFolder(path);
  }
  if (file.extension() == ".safetensors") {
    return base::Unsupported(
               "a .safetensors file holds weights only; give the folder with its config.json")
        .WithField("model");
  }
  ASSIGN_OR_RETURN(auto gguf, Gguf::Open(path));
  return std::unique_ptr<Checkpoint>(std::move(gguf));
}

Result<std::unique_ptr<Model>> LoadModel(const Checkpoint& gguf, const LoadOptions& options) {
  if (options.rows_max < 1 || options.rows_max > kRowsMax) {
    return base::InvalidArgument(
        "rows_max", fmt::format("rows_max is {}, expected 1 to {}", options.rows_max, kRowsMax));
  }
  if (options.logits_rows_max < 1 || options.logits_rows_max > options.rows_max) {
    return base::InvalidArgument("logits_rows_max",
                                 fmt::format("logits_rows_max is {}, expected 1 to rows_max ({})",
                                             options.logits_rows_max, options.rows_max));
  }
  ASSIGN_OR_RETURN(const Config config, ReadConfig(gguf));
  switch (config.family) {
    case Family::kLlama:
    case Family::kQwen2:
    case Family::kQwen3:
      return LoadLlama(gguf, config, options);
    case Family::kMixtral:
    case Family::kQwen3Moe:
      return LoadMoe(gguf, config, options);
    case Family::kGemma3:
      return LoadGemma3(gguf, config, options);
    case Family::kDeepseekV41:
      return LoadDeepseekV41(gguf, options);
  }
  return base::Internal("a family without a loader");
}

}  // namespace plumb::model
