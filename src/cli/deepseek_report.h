// cli/deepseek_report.h
// What `plumb model inspect` adds for DeepSeek-V4.1, whose weights are computed from where they are
// mapped: what must fit into memory, what a token touches, and how fast this machine could decode.
// Read next: model_report.h.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/families/deepseek_v41_need.h"

namespace plumb::cli {

struct MachineReads {
  double bytes_per_second = 0;  // all threads, from memory; 0 = not measured
  uint64_t memory_bytes = 0;    // 0 = unknown
};
// Measures for some tenths of a second. kOverloaded: no memory for it; kUnsupported: no such
// kernels.
base::Result<MachineReads> MeasureReads();

// Whether the weights stay in memory once they are read; else most of each token's come from the
// disk. Of unknown memory: yes.
bool HeldInMemory(const model::DeepseekNeed& need, const MachineReads& machine);

// Label and text of each line.
using ReportLines = std::vector<std::pair<std::string, std::string>>;
ReportLines DeepseekLines(const model::DeepseekNeed& need, const MachineReads& machine);
nlohmann::ordered_json DeepseekJson(const model::DeepseekNeed& need, const MachineReads& machine);

// Tokens per second at batch 1 if nothing but reading took time; 0 when not measured.
double DecodeEstimate(const model::DeepseekNeed& need, const MachineReads& machine);

}  // namespace plumb::cli
