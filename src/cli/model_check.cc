// cli/model_check.cc
// Two opinions, of weights and of text, behind cli/model_check.h.
#include "cli/model_check.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/model_text.h"
#include "model/hf_text.h"
#include "model/load.h"

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

base::Status CheckText(const model::Checkpoint& file) {
  RETURN_IF_ERROR(CheckTokenizerJson(file));
  return base::ToStatus(LoadModelText(file));
}

}  // namespace

base::Result<model::Inspection> Examine(const ModelReference& reference) {
  const auto file = model::OpenModelFile(reference.path);
  if (!file.ok()) return InModel(reference, file.status());
  base::Result<model::Inspection> inspection = model::Inspect(**file);
  if (!inspection.ok()) return InModel(reference, inspection.status());
  if (inspection->unsupported.ok()) {
    inspection->unsupported = CheckText(**file);
  }
  return inspection;
}

base::Status CheckWhole(const ModelReference& reference, const model::Inspection& inspection) {
  const base::Status& status = inspection.unsupported;
  if (status.ok() || status.code() == base::Code::kUnsupported) return base::OkStatus();
  return InModel(reference, status);
}

}  // namespace plumb::cli
