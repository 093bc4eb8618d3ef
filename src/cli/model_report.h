// cli/model_report.h
// The texts of `plumb model list` and `plumb model inspect`, for people and as JSON.
#pragma once

#include <string>

#include "cli/deepseek_report.h"
#include "cli/model_store.h"
#include "model/inspect.h"

namespace plumb::cli {

std::string ListText(const ModelStore& store);
std::string ListJson(const ModelStore& store);

struct InspectView {
  const ModelReference& reference;
  const model::Inspection& inspection;
  uint64_t context_tokens;    // for which memory is given
  bool whole_template;        // else its first lines
  MachineReads machine = {};  // for DeepSeek-V4.1
};
std::string InspectText(const InspectView& view);
std::string InspectJson(const InspectView& view);

}  // namespace plumb::cli
