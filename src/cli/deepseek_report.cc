// cli/deepseek_report.cc
// Sums of model/families/deepseek_v41_need.h in words.
#include "cli/deepseek_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/bench_machine.h"
#include "cli/format.h"
#include "model/model.h"
#include "tensor/cpu_features.h"
#include "tensor/probe.h"

namespace plumb::cli {
namespace {

constexpr uint32_t kReadings = 8;

std::string SpeedText(const model::DeepseekNeed& need, const MachineReads& machine) {
  const double tokens = DecodeEstimate(need, machine);
  if (tokens <= 0) return "not estimated: this machine's memory could not be measured";
  std::string text = fmt::format(
      "about {} tokens/s here at batch 1, if nothing but reading took time (estimate: {} a token "
      "at {}/s, the best of {} readings just now; on a busy machine that is too low)",
      tokens < 100 ? fmt::format("{:.3g}", tokens) : fmt::format("{:.0f}", tokens),
      FormatBytes(need.active_weight_bytes),
      FormatBytes(static_cast<uint64_t>(machine.bytes_per_second)), kReadings);
  if (!HeldInMemory(need, machine)) {
    text += fmt::format("; far less in truth, since {} of memory do not hold the weights",
                        FormatBytes(machine.memory_bytes));
  }
  return text;
}

}  // namespace

base::Result<MachineReads> MeasureReads() {
  const base::SystemClock clock;
  tensor::ThreadPool pool({.threads = base::UsableProcessors()});
  ASSIGN_OR_RETURN(const tensor::KernelTable* kernels, tensor::SelectKernels("auto"));
  ASSIGN_OR_RETURN(const tensor::ProbeTable* loops, tensor::SelectProbe(kernels->name));
  ASSIGN_OR_RETURN(const ReadProbe probe, ReadProbe::Create(*loops, pool, clock));
  // The best, as `plumb bench engine` takes it: whatever else runs only makes a reading slower.
  double best = 0;
  for (uint32_t i = 0; i < kReadings; ++i) best = std::max(best, probe.Rate(1));
  return MachineReads{best, DescribeMachine().memory_bytes};
}

bool HeldInMemory(const model::DeepseekNeed& need, const MachineReads& machine) {
  return machine.memory_bytes == 0 || machine.memory_bytes >= need.weight_bytes;
}

double DecodeEstimate(const model::DeepseekNeed& need, const MachineReads& machine) {
  return machine.bytes_per_second / static_cast<double>(need.active_weight_bytes);
}

ReportLines DeepseekLines(const model::DeepseekNeed& need, const MachineReads& machine) {
  ReportLines lines;
  lines.emplace_back("weights",
                     fmt::format("{} mapped from the files, {} of them routed experts",
                                 FormatBytes(need.weight_bytes), FormatBytes(need.expert_bytes)));
  if (need.table_bytes != 0) {
    lines.emplace_back(
        "",
        fmt::format("{} of n-gram tables beside them, {} read for a token: they may stay on disk",
                    FormatBytes(need.table_bytes), FormatBytes(need.table_row_bytes)));
  }
  if (need.draft_bytes != 0) {
    lines.emplace_back(
        "", fmt::format("{} of draft blocks, not used yet", FormatBytes(need.draft_bytes)));
  }
  lines.emplace_back(
      "sequence",
      fmt::format("{} a token ({} a page of {}), {} of state, {} a checkpoint",
                  FormatBytes(need.token_bytes), FormatBytes(need.page_bytes), model::kPageTokens,
                  FormatBytes(need.state_bytes), FormatBytes(need.checkpoint_bytes)));
  lines.emplace_back("decode", fmt::format("{} parameters active, {} read for a token",
                                           FormatCount(need.active_parameters),
                                           FormatBytes(need.active_weight_bytes)));
  lines.emplace_back("speed", SpeedText(need, machine));
  return lines;
}

nlohmann::ordered_json DeepseekJson(const model::DeepseekNeed& need, const MachineReads& machine) {
  return {{"weight_bytes", need.weight_bytes},
          {"table_bytes", need.table_bytes},
          {"expert_bytes", need.expert_bytes},
          {"draft_bytes", need.draft_bytes},
          {"active_parameters", need.active_parameters},
          {"active_weight_bytes", need.active_weight_bytes},
          {"token_bytes", need.token_bytes},
          {"page_bytes", need.page_bytes},
          {"state_bytes", need.state_bytes},
          {"checkpoint_bytes", need.checkpoint_bytes},
          {"held_in_memory", HeldInMemory(need, machine)},
          {"read_bytes_per_second", machine.bytes_per_second},
          {"tokens_per_second_estimate", DecodeEstimate(need, machine)}};
}

}  // namespace plumb::cli
