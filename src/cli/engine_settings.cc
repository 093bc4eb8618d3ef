// cli/engine_settings.cc
// Flags, and what the system says of memory; behind cli/engine_settings.h.
#include "cli/engine_settings.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/cgroup.h"
#include "base/thread.h"
#include "cli/format.h"
#include "cli/line_reader.h"
#include "cli/model_command.h"
#include "cli/report.h"
#include "model/config.h"
#include "model/model.h"
#include "tensor/cpu_features.h"
#include "tensor/thread_pool.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kKvMemoryMin = 1u << 20;
constexpr uint64_t kKvMemoryMax = 1ull << 46;
constexpr uint32_t kSequencesMax = 1024;
constexpr uint32_t kCheckpointsMax = 1u << 24;

// The number after `key` in a file of the system ("MemAvailable:   123 kB"); nothing when there is
// no such file, line or number.
std::optional<uint64_t> NumberIn(const char* path, std::string_view key) {
  const auto reader = LineReader::Open(path, 1000);
  if (!reader.ok()) return std::nullopt;
  while (true) {
    const auto line = (*reader)->Next();
    if (!line.ok() || !line->has_value()) return std::nullopt;
    std::string_view text = (*line)->text;
    if (!text.starts_with(key)) continue;
    text.remove_prefix(std::min(text.find_first_not_of(" \t", key.size()), text.size()));
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
  }
}

// What a limit of the process's address space leaves (ulimit -v), where there is one. Mapped files
// count in it.
std::optional<uint64_t> AddressSpaceLeft() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const uint64_t used = 1024 * NumberIn("/proc/self/status", "VmSize:").value_or(0);
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace

EngineSettings::EngineSettings() : threads(base::UsableProcessors()) {}

void AddEngineOptions(OptionTable& table, EngineSettings& settings) {
  table.Add(
      Text("model", settings.model, "MODEL",
           "What to load: an alias of 'plumb model list', the path of a .gguf file, or a Hugging "
           "Face folder (config.json, safetensors, tokenizer.json)."));
  table.Add(Switch("no-pull", settings.no_pull,
                   "Fail when the model's alias is not in the cache, instead of pulling it."));
  table.Add(Integer("threads", settings.threads, {1, tensor::kThreadsMax}, "COUNT",
                    "Threads that compute. Answers do not depend on it."));
  table.Add(Integer("context", settings.context, {0, model::kContextMax}, "TOKENS",
                    "Longest prompt and answer together; 0 = the model's, up to 131072."));
  table.Add(Bytes("kv-memory", settings.kv_memory, {kKvMemoryMin, kKvMemoryMax}, "automatic",
                  "Memory for keys and values, and for the states and checkpoints of models that "
                  "have them (suffixes K, M, G, T). Automatic: enough for --sequences answers of "
                  "2048 tokens, at most half of the memory available."));
  table.Add(Integer("checkpoints", settings.checkpoints, {0, kCheckpointsMax}, "COUNT",
                    "Of models that need one to go on from what is cached (DeepSeek-V4.1): "
                    "checkpoints kept, inside --kv-memory; 0 = an eighth of it, or four for each "
                    "of --sequences. 'plumb model inspect' says how large one is."));
  table.Add(
      Integer("sequences", settings.sequences, {1, kSequencesMax}, "COUNT",
              "Answers computed at once; more wait their turn. Answers do not depend on it."));
  table.Add(Choice("kernels", settings.kernels, {"auto", "scalar", "avx2", "avx512"},
                   "Vector instructions to use. Answers do not depend on it."));
  table.Add(
      Choice("kv-format", settings.kv_format, {"f16", "q8"},
             "How keys and values are stored. q8 takes about half the memory and rounds them "
             "to 8 bits, so answers differ from f16's (and system_fingerprint says so). Not for "
             "DeepSeek-V4.1."));
  table.Add(Choice("numerics", settings.numerics, {"f32", "kvq", "full"},
                   "Of DeepSeek-V4.1: what is rounded. f32: nothing; kvq, the usual: keys and "
                   "values, to the formats they are stored in; full: activations too, as GPU "
                   "engines do. Answers differ (and system_fingerprint says so)."));
  table.Add(Text("replay", settings.replay, "ROWS|off",
                 "Of DeepSeek-V4.1: the upper layers compute only a prompt's last so many rows, at "
                 "least the model's window and 6; off: all. Usual: 140, or the window and 12 where "
                 "that is more. Answers differ (and system_fingerprint says so)."));
  table.Add(Choice("tool-format", settings.tool_format,
                   {"auto", "none", "hermes", "llama", "mistral", "mistral-named"},
                   "How the model writes calls of tools. auto: as its chat template writes them; "
                   "none: it takes no tools. DeepSeek-V4.1 has a format of its own."));
  table.Add(Choice("prefix-cache", settings.prefix_cache, {"on", "off"},
                   "Keep what was computed for requests that begin alike. Answers do not depend on "
                   "it."));
  table.Add(
      Text("speculation", settings.speculation, "off|ngram|draft:MODEL|auto",
           "Where guesses of the next tokens come from, for requests that do not say: from the "
           "text itself (ngram), a smaller model of the same vocabulary, or whichever pays "
           "(auto). Answers do not depend on it."));
  table.Add(Integer("itl-target-ms", settings.itl_target_ms, {0, 60'000}, "MS",
                    "Time between two tokens of a running answer that prompts of others must not "
                    "push it beyond; 0 = a balance of both."));
  table.Add(
      Switch("synchronous", settings.synchronous,
             "Make text and masks between two steps instead of beside them: slower, easier to "
             "follow. Answers do not depend on it."));
  table.Add(
      Switch("pin-threads", settings.pin_threads,
             "Bind each computing thread to a processor; for machines that do nothing else."));
  table.Add(Switch("no-memory-check", settings.no_memory_check,
                   "Load the model also when weights, keys and values are more than the memory "
                   "available: slow from swap, and without swap the system may end the process."));
}

uint64_t KvMemory(const KvNeed& need, uint64_t available_bytes) {
  constexpr uint64_t kPage = model::kPageTokens;
  const uint64_t whole = (need.context_max + kPage - 1) / kPage;
  const uint64_t typical = need.sequences * std::min(whole, kTypicalTokens / kPage);
  const uint64_t pages = std::max({typical, whole, uint64_t{1}});
  const uint64_t affordable = std::max<uint64_t>(available_bytes / 2 / need.page_bytes, 1);
  return std::min(pages, affordable) * need.page_bytes;
}

uint64_t AvailableMemory() {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  if (const auto kilobytes = NumberIn("/proc/meminfo", "MemAvailable:")) {
    available = *kilobytes * 1024;
  }
  available = std::min(available, AddressSpaceLeft().value_or(available));
  return std::min(available, base::ReadCgroupLimits().memory_left_bytes.value_or(available));
}

base::Result<SpeculationChoice> ParseSpeculation(const std::string& text) {
  constexpr std::string_view kDraft = "draft:";
  if (text == "off") return SpeculationChoice{engine::Speculation::kOff, ""};
  if (text == "ngram") return SpeculationChoice{engine::Speculation::kNgram, ""};
  if (text == "auto") return SpeculationChoice{engine::Speculation::kAuto, ""};
  if (text.starts_with(kDraft) && text.size() > kDraft.size()) {
    return SpeculationChoice{engine::Speculation::kDraft, text.substr(kDraft.size())};
  }
  return base::InvalidArgument("--speculation",
                               fmt::format("--speculation: '{}' is not off, ngram, auto or "
                                           "draft:MODEL",
                                           Printable(text, 60)));
}

base::Result<const tensor::KernelTable*> KernelsByFlag(const std::string& name) {
  auto kernels = tensor::SelectKernels(name);
  // Of "auto" there is nothing to change: the processor lacks what any of them needs.
  if (kernels.ok() || name == "auto") return kernels;
  return NamingFlag(kernels.status(), "--kernels");
}

base::Result<ModelReference> LocateEngineModel(const EngineSettings& settings,
                                               const VariableReader& variables) {
  return LocateModel(settings.model, !settings.no_pull, variables);
}

base::Result<EngineModels> LocateEngineModels(const EngineSettings& settings,
                                              const VariableReader& variables) {
  ASSIGN_OR_RETURN(const SpeculationChoice speculation, ParseSpeculation(settings.speculation));
  EngineModels models;
  ASSIGN_OR_RETURN(models.target, LocateEngineModel(settings, variables));
  ASSIGN_OR_RETURN(models.cache_folder, CacheFolder(variables));
  if (speculation.draft_model.empty()) return models;
  auto draft = LocateModel(speculation.draft_model, !settings.no_pull, variables);
  if (!draft.ok()) return NamingFlag(draft.status(), "--speculation");
  models.draft = std::move(draft).value();
  return models;
}

}  // namespace plumb::cli
