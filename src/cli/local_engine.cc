// cli/local_engine.cc
// From a model's name to a running engine, behind cli/local_engine.h.
#include "cli/local_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/thread.h"
#include "cli/format.h"
#include "cli/line_reader.h"
#include "cli/model_command.h"
#include "cli/sha256.h"
#include "cli/version_command.h"
#include "engine/vocabulary.h"
#include "model/config.h"
#include "model/load.h"
#include "tensor/cpu_features.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kKvMemoryMin = 1u << 20;
constexpr uint64_t kKvMemoryMax = 1ull << 46;
constexpr uint32_t kSequencesMax = 1024;

// For models that only complete text. Its message reaches whoever asks them to chat.
constexpr std::string_view kNoTemplate =
    "{{ raise_exception('this model has no chat template: it completes text and does not chat') }}";

// The error, naming the file that was loaded. What is wrong with a file is no wrong usage: that is
// only an option of ours out of its range.
base::Status Named(const ModelReference& reference, const base::Status& status) {
  const bool of_option = status.field() == "context_max" || status.field().ends_with("rows_max");
  const bool of_file = status.code() == base::Code::kInvalidArgument && !of_option;
  const base::Code code = of_file ? base::Code::kCorrupt : status.code();
  std::string message = "cannot load '" + reference.path + "': " + status.message();
  if (code == base::Code::kCorrupt && reference.entry != nullptr) {
    message += fmt::format("; delete it and run 'plumb model pull {}'", reference.id);
  }
  return base::Status(code, std::move(message));
}

// The number after `key` in a file of the system ("MemAvailable:   123 kB"), or its first; nothing
// when there is no such file, line or number ("max").
std::optional<uint64_t> NumberIn(const char* path, std::string_view key) {
  const auto reader = LineReader::Open(path, 1000);
  if (!reader.ok()) return std::nullopt;
  while (true) {
    const auto line = (*reader)->Next();
    if (!line.ok() || !line->has_value()) return std::nullopt;
    std::string_view text = (*line)->text;
    if (!text.starts_with(key)) continue;
    text.remove_prefix(std::min(text.find_first_not_of(' ', key.size()), text.size()));
    uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
  }
}

// By the catalogue, else by every byte of the files.
base::Result<std::string> KnownHash(const ModelReference& reference) {
  if (reference.entry != nullptr) return std::string(reference.entry->sha256);
  return ContentHash(reference.path);
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
                  "Memory for keys and values (suffixes K, M, G, T). Automatic: enough for "
                  "--sequences answers of 2048 tokens, at most half of the memory available."));
  table.Add(
      Integer("sequences", settings.sequences, {1, kSequencesMax}, "COUNT",
              "Answers computed at once; more wait their turn. Answers do not depend on it."));
  table.Add(Choice("kernels", settings.kernels, {"auto", "scalar", "avx2", "avx512"},
                   "Vector instructions to use. Answers do not depend on it."));
  table.Add(Choice("kv-format", settings.kv_format, {"f16", "q8"},
                   "How keys and values are stored. q8 takes about half the memory and rounds them "
                   "to 8 bits, so answers differ from f16's (and system_fingerprint says so)."));
  table.Add(Choice("prefix-cache", settings.prefix_cache, {"on", "off"},
                   "Keep what was computed for requests that begin alike. Answers do not depend on "
                   "it."));
  table.Add(
      Switch("pin-threads", settings.pin_threads,
             "Bind each computing thread to a processor; for machines that do nothing else."));
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
  const std::optional<uint64_t> limit = NumberIn("/sys/fs/cgroup/memory.max", "");
  const std::optional<uint64_t> used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (limit && used) available = std::min(available, *limit - std::min(*limit, *used));
  return available;
}

base::Result<ModelReference> LocateEngineModel(const EngineSettings& settings,
                                               const VariableReader& variables) {
  return LocateModel(settings.model, !settings.no_pull, variables);
}

base::Result<std::unique_ptr<LocalEngine>> LocalEngine::Load(ModelReference reference,
                                                             const EngineSettings& settings,
                                                             const Surroundings& surroundings,
                                                             const ProgressOutput& output) {
  std::unique_ptr<LocalEngine> local(new LocalEngine);
  local->reference_ = std::move(reference);
  RETURN_IF_ERROR(local->LoadParts(settings, surroundings, output));
  local->engine_->Start();
  return local;
}

base::Status LocalEngine::LoadParts(const EngineSettings& settings,
                                    const Surroundings& surroundings,
                                    const ProgressOutput& output) {
  ASSIGN_OR_RETURN(const tensor::KernelTable* kernels, tensor::SelectKernels(settings.kernels));
  kernels_name_ = kernels->name;
  pool_ = std::make_unique<tensor::ThreadPool>(
      tensor::ThreadPoolOptions{.threads = settings.threads, .pin = settings.pin_threads});

  base::Result<std::unique_ptr<model::Checkpoint>> file = model::OpenModelFile(reference_.path);
  if (!file.ok()) return Named(reference_, file.status());
  if (const base::Status status = LoadText(**file); !status.ok()) return Named(reference_, status);

  Progress progress(surroundings.clock, output, "load", ProgressUnit::kBytes);
  engine::EngineOptions options;
  options.metrics = surroundings.metrics;
  options.sequences_max = settings.sequences;
  options.waiting_max = std::max(options.waiting_max, 2 * settings.sequences);
  options.rows_max = std::max(options.rows_max, settings.sequences);
  const model::LoadOptions load{
      .pool = *pool_,
      .kernels = *kernels,
      .rows_max = options.rows_max,
      .logits_rows_max = options.sequences_max,
      .context_max = settings.context,
      .kv_format = settings.kv_format == "q8" ? tensor::KvFormat::kQ8 : tensor::KvFormat::kF16,
      .progress = [&, started = false](const model::LoadProgress& state) mutable {
        if (!std::exchange(started, true)) {
          progress.Start("load " + reference_.id, 0, state.bytes_total);
        }
        progress.Update(state.bytes_done);
      }};
  base::Result<std::unique_ptr<model::Model>> loaded = model::LoadModel(**file, load);
  progress.Finish();
  if (!loaded.ok()) return Named(reference_, loaded.status());
  model_ = std::move(loaded).value();

  ASSIGN_OR_RETURN(const std::string content, KnownHash(reference_));
  Sha256 hash;
  hash.Update(content + "|" + model_->info().numerics_id);
  fingerprint_ = "fp_" + hash.Finish().substr(0, 16);

  options.prefix_cache = settings.prefix_cache == "on";
  options.model_content = content;

  const model::ModelInfo& info = model_->info();
  options.kv_budget_bytes = settings.kv_memory;
  if (options.kv_budget_bytes == 0) {
    options.kv_budget_bytes =
        KvMemory({info.page_bytes, info.context_max, settings.sequences}, AvailableMemory());
  }
  if (options.kv_budget_bytes < info.page_bytes) {
    return base::InvalidArgument(
        "--kv-memory",
        fmt::format("--kv-memory: {} is less than one page of this model, {}",
                    FormatBytes(options.kv_budget_bytes), FormatBytes(info.page_bytes)));
  }
  kv_memory_ = options.kv_budget_bytes;
  ASSIGN_OR_RETURN(engine_,
                   engine::Engine::Create(*model_, *tokenizer_, surroundings.clock, options));
  return base::OkStatus();
}

base::Status LocalEngine::LoadText(const model::Checkpoint& file) {
  ASSIGN_OR_RETURN(tokenizer_, engine::MakeTokenizer(file));
  ASSIGN_OR_RETURN(const std::string source, engine::ReadChatTemplate(file));
  can_chat_ = !source.empty();
  text::TemplateVariables names;
  if (const auto bos = tokenizer_->bos()) names.bos_token = tokenizer_->TokenName(*bos);
  if (const auto eos = tokenizer_->eos()) names.eos_token = tokenizer_->TokenName(*eos);
  ASSIGN_OR_RETURN(chat_template_,
                   text::ChatTemplate::Compile(can_chat_ ? source : kNoTemplate, std::move(names)));
  return base::OkStatus();
}

std::string LocalEngine::Summary() const {
  const model::ModelInfo& info = model_->info();
  return fmt::format("{} parameters, context {}, {} thread{} ({}), {} for keys and values",
                     FormatCount(info.parameters), engine_->context_max(), pool_->threads(),
                     pool_->threads() == 1 ? "" : "s", kernels_name_, FormatBytes(kv_memory_));
}

}  // namespace plumb::cli
