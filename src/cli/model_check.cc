// cli/model_check.cc
// Two opinions, of weights and of text, behind cli/model_check.h.
#include "cli/model_check.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "cli/model_text.h"
#include "engine/vocabulary.h"
#include "model/deepseek_checkpoint.h"
#include "model/families/deepseek_v41_classes.h"
#include "model/families/deepseek_v41_config.h"
#include "model/families/engram.h"
#include "model/hf_text.h"
#include "model/load.h"
#include "model/weight_reader.h"
#include "tensor/thread_pool.h"
#include "text/deepseek_token_classes.h"

namespace plumb::cli {
namespace {

// A tokenizer.json that is none at all, which its reader tells from one of an unknown kind only by
// its words.
base::Status CheckTokenizerJson(const model::Checkpoint& file) {
  if (!file.Has(model::kHfTokenizerKey)) return base::OkStatus();
  ASSIGN_OR_RETURN(const std::string_view text, file.Text(model::kHfTokenizerKey));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("model") && json["model"].is_object()) {
    return base::OkStatus();
  }
  return base::Corrupt("tokenizer: tokenizer.json is no JSON object with a \"model\"");
}

// The places of DeepSeek-V4.1's n-gram rows, made as loading makes them.
base::Status CheckTokenClasses(const model::Checkpoint& file) {
  if (!model::IsDeepseekV41(file)) return base::OkStatus();
  ASSIGN_OR_RETURN(const model::DeepseekConfig config, model::ReadDeepseekConfig(file));
  if (config.engram_layers.empty()) return base::OkStatus();
  const auto make = [&]() -> base::Result<std::vector<uint32_t>> {
    ASSIGN_OR_RETURN(const auto tokenizer, engine::MakeTokenizer(file));
    return text::DeepseekTokenClasses(*tokenizer);
  };
  ASSIGN_OR_RETURN(const auto classes, model::DeepseekClasses(file, config, make));
  return base::ToStatus(model::EngramAddresses::Create(config, classes));
}

base::Status CheckText(const model::Checkpoint& file) {
  RETURN_IF_ERROR(CheckTokenizerJson(file));
  RETURN_IF_ERROR(CheckTokenClasses(file));
  return base::ToStatus(LoadModelText(file));
}

}  // namespace

base::Result<model::Inspection> Examine(const ModelReference& reference) {
  auto file = model::OpenModelFile(reference.path);
  if (!file.ok()) {
    // Of this family config.json says all that people ask before they download the weights.
    auto numbers = model::DeepseekCheckpoint::OpenNumbers(reference.path);
    if (numbers.ok()) file = std::unique_ptr<model::Checkpoint>(std::move(numbers).value());
  }
  if (!file.ok()) return InModel(reference, file.status());
  base::Result<model::Inspection> inspection = model::Inspect(**file);
  if (!inspection.ok()) return InModel(reference, inspection.status());
  if (inspection->unsupported.ok()) {
    inspection->unsupported = CheckText(**file);
  }
  return inspection;
}

base::Status CheckValues(const ModelReference& reference) {
  const auto file = model::OpenModelFile(reference.path);
  if (!file.ok()) return InModel(reference, file.status());
  tensor::ThreadPool pool({.threads = base::UsableProcessors()});
  return InModel(reference, model::CheckValues(**file, pool));
}

base::Status CheckWhole(const ModelReference& reference, const model::Inspection& inspection) {
  const base::Status& status = inspection.unsupported;
  if (status.ok() || status.code() == base::Code::kUnsupported) return base::OkStatus();
  return InModel(reference, status);
}

}  // namespace plumb::cli
