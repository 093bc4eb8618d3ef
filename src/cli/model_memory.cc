// cli/model_memory.cc
// A sum and a comparison, behind cli/model_memory.h.
#include "cli/model_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/engine_settings.h"
#include "cli/format.h"

namespace plumb::cli {
namespace {

struct Need {
  uint64_t weights = 0;
  uint64_t activations = 0;
  uint64_t keys_values = 0;

  uint64_t Sum() const { return weights + activations + keys_values; }
};

Need NeedFor(const model::Inspection& inspection, uint64_t kv_bytes) {
  const model::MemoryNeed& memory = inspection.memory;
  const uint64_t least = memory.page_bytes + memory.state_bytes;
  return {.weights = inspection.deepseek ? 0 : memory.weight_bytes,
          .activations = memory.workspace_bytes,
          .keys_values = kv_bytes != 0 ? kv_bytes : least};
}

}  // namespace

uint64_t BytesToServe(const model::Inspection& inspection, uint64_t kv_bytes) {
  return NeedFor(inspection, kv_bytes).Sum();
}

base::Status CheckModelMemory(const model::Inspection& inspection, uint64_t kv_bytes,
                              uint64_t available_bytes) {
  const Need need = NeedFor(inspection, kv_bytes);
  if (need.Sum() <= available_bytes) return base::OkStatus();
  return base::Status(
      base::Code::kOverloaded,
      fmt::format("it needs {} of memory ({} for weights, {} for activations, {} for keys and "
                  "values), and {} are available here: take a smaller quantisation or model, {}or "
                  "give the process more",
                  FormatBytes(need.Sum()), FormatBytes(need.weights), FormatBytes(need.activations),
                  FormatBytes(need.keys_values), FormatBytes(available_bytes),
                  kv_bytes != 0 ? "less --kv-memory, " : ""));
}

base::Status CheckModelMemory(const model::Checkpoint& file, uint64_t kv_bytes) {
  ASSIGN_OR_RETURN(const model::Inspection inspection, model::Inspect(file));
  return CheckModelMemory(inspection, kv_bytes, AvailableMemory());
}

}  // namespace plumb::cli
