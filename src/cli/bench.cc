// cli/bench.cc
// From settings to a table, behind cli/bench.h: load, probe, measure, report.
#include "cli/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/disk.h"
#include "base/thread.h"
#include "cli/bench_cost.h"
#include "cli/bench_engine.h"
#include "cli/bench_machine.h"
#include "cli/bench_plot.h"
#include "cli/bench_report.h"
#include "cli/format.h"
#include "cli/help_texts.h"
#include "cli/model_memory.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "engine/vocabulary.h"
#include "model/config.h"
#include "model/families/deepseek_v41_config.h"
#include "model/load.h"
#include "tensor/caller_pin.h"
#include "tensor/cpu_features.h"
#include "text/deepseek_token_classes.h"

namespace plumb::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kChunkDefault = 512;  // rows of a step, as model/load.h has by default
constexpr uint32_t kBatchMax = 256;
constexpr uint32_t kRepeatMax = 1000;
constexpr uint32_t kDecodeTokensMax = 4096;

Option IntegerList(std::string name, std::vector<uint32_t>& values, IntegerRange range,
                   std::string kind, std::string help, bool* given = nullptr) {
  const std::string initial = fmt::format("{}", fmt::join(values, ","));
  auto set = [&values, range, given](std::string_view text) -> base::Status {
    ASSIGN_OR_RETURN(values, ParseIntegers(text, range));
    if (given != nullptr) *given = true;
    return base::OkStatus();
  };
  return {std::move(name), std::move(kind), initial, std::move(help), false, set};
}

// What was loaded for the measurement, in order of construction.
struct Loaded {
  ModelReference reference;
  const tensor::KernelTable* kernels = nullptr;
  std::unique_ptr<tensor::ThreadPool> pool;
  std::unique_ptr<model::Model> model;
  ModelCost cost;
  uint64_t file_bytes = 0;
};

base::Result<Loaded> Load(const BenchSettings& settings, const VariableReader& variables,
                          const base::Clock& clock) {
  Loaded loaded;
  ASSIGN_OR_RETURN(loaded.reference, LocateEngineModel(settings.engine, variables));
  ASSIGN_OR_RETURN(loaded.kernels, KernelsByFlag(settings.engine.kernels));
  loaded.pool = std::make_unique<tensor::ThreadPool>(tensor::ThreadPoolOptions{
      .threads = settings.engine.threads, .pin = settings.engine.pin_threads});
  const auto file = model::OpenModelFile(loaded.reference.path);
  if (!file.ok()) return InModel(loaded.reference, file.status());
  if (const base::Status fits = CheckModelMemory(**file, 0); !fits.ok()) {
    return InModel(loaded.reference, fits);
  }

  const uint32_t batch_max = *std::ranges::max_element(settings.batches);
  Progress progress(clock, ErrorTerminal(), "load", ProgressUnit::kBytes);
  const model::LoadOptions options{
      .pool = *loaded.pool,
      .kernels = *loaded.kernels,
      .rows_max = std::max({kChunkDefault, settings.chunk, batch_max}),
      .logits_rows_max = batch_max,
      .progress =
          [&, started = false](const model::LoadProgress& state) mutable {
            if (!std::exchange(started, true)) {
              progress.Start("load " + loaded.reference.id, 0, state.bytes_total);
            }
            progress.Update(state.bytes_done);
          },
      .token_classes = [&file]() -> base::Result<std::vector<uint32_t>> {
        ASSIGN_OR_RETURN(const auto tokenizer, engine::MakeTokenizer(**file));
        return text::DeepseekTokenClasses(*tokenizer);
      }};
  auto model = model::LoadModel(**file, options);
  progress.Finish();
  if (!model.ok()) return InModel(loaded.reference, model.status());
  loaded.model = std::move(model).value();

  const model::ModelInfo& info = loaded.model->info();
  const auto inspection = model::Inspect(**file);
  if (!inspection.ok()) return InModel(loaded.reference, inspection.status());
  CostSource source = {.info = info,
                       .inspection = *inspection,
                       .experts = (*file)->Has(info.architecture + ".expert_count")};
  if (model::IsDeepseekV41(**file)) {
    ASSIGN_OR_RETURN(source.deepseek, model::ReadDeepseekConfig(**file));
  }
  loaded.cost = CostOf(source);
  loaded.file_bytes = (*file)->file_bytes();
  return loaded;
}

// Lengths of the default lists that the model does not support are left out; the caller's own are
// refused by CheckPlan.
EngineBenchPlan PlanFor(const BenchSettings& settings, uint32_t context_max) {
  EngineBenchPlan plan{.prompts = settings.prompts,
                       .contexts = settings.contexts,
                       .batches = settings.batches,
                       .decode_tokens = settings.decode_tokens,
                       .repeat = settings.repeat,
                       .chunk_rows = settings.chunk == 0 ? kChunkDefault : settings.chunk};
  if (!settings.prompts_given) {
    std::erase_if(plan.prompts, [&](uint32_t prompt) { return prompt > context_max; });
  }
  if (!settings.contexts_given) {
    std::erase_if(plan.contexts, [&](uint32_t context) {
      return uint64_t{context} + settings.decode_tokens > context_max;
    });
  }
  return plan;
}

// Whether both names lead to one file, there or not.
bool SameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  const fs::path first = fs::weakly_canonical(a, error);
  if (error) return a == b;
  const fs::path second = fs::weakly_canonical(b, error);
  return error ? a == b : first == second;
}

// A report written over another, or over the model that was measured, is a loss nobody asked for.
base::Status CheckApart(const std::string& path, const char* flag, const std::string& other,
                        std::string_view what) {
  if (path.empty() || other.empty() || !SameFile(path, other)) return base::OkStatus();
  return base::InvalidArgument(
      flag, fmt::format("{}: '{}' is {} too; choose another file", flag, path, what));
}

// Finds out before the work, not after it, that a report cannot be written, or would take the place
// of something else: a report begins with `start`.
base::Status CheckWritable(const std::string& path, const char* flag, std::string_view start) {
  if (path.empty()) return base::OkStatus();
  RETURN_IF_ERROR(CheckReplaceable(path, flag, start, "report"));
  std::error_code error;
  const bool there = fs::exists(path, error);
  if (const auto file = base::AppendFile::Open(path); !file.ok()) {
    return base::InvalidArgument(flag, fmt::format("{}: {}", flag, file.status().message()));
  }
  if (!there) fs::remove(path, error);  // until there is something to say
  return base::OkStatus();
}

base::Status WriteReports(const BenchSettings& settings, const EngineBenchReport& report) {
  Print(settings.json ? BenchJson(report) : BenchTable(report));
  if (!settings.csv.empty()) {
    RETURN_IF_ERROR(base::WriteFileAtomic(settings.csv, BenchCsv(report)));
  }
  if (!settings.plot.empty()) {
    RETURN_IF_ERROR(base::WriteFileAtomic(settings.plot, BenchPlot(report)));
  }
  return base::OkStatus();
}

}  // namespace

base::Result<std::vector<uint32_t>> ParseIntegers(std::string_view text, IntegerRange range) {
  std::vector<uint32_t> values;
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    uint64_t value = 0;
    const auto parsed = std::from_chars(item.data(), item.data() + item.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != item.data() + item.size() || value < range.min ||
        value > range.max || values.size() == kBenchListMax) {
      return base::InvalidArgument(
          "", fmt::format("'{}' is not a list of at most {} integers from {} to {} with commas "
                          "between them",
                          Printable(text, 60), kBenchListMax, range.min, range.max));
    }
    values.push_back(static_cast<uint32_t>(value));
    if (end == text.size()) return values;
    text.remove_prefix(end + 1);
  }
}

std::unique_ptr<OptionTable> DeclareBench(CLI::App& app, BenchSettings& settings) {
  app.require_subcommand(1);
  CLI::App* engine = app.add_subcommand("engine", kBenchEngineHelp.what);
  engine->footer(kBenchEngineHelp.examples);
  auto table = std::make_unique<OptionTable>(*engine, "bench");
  EngineSettings& of_engine = settings.engine;
  table->Add(
      Text("model", of_engine.model, "MODEL",
           "What to load: an alias of 'plumb model list', or the path of a .gguf file or of a "
           "Hugging Face folder."));
  table->Add(Switch("no-pull", of_engine.no_pull,
                    "Fail when the model's alias is not in the cache, instead of pulling it."));
  const IntegerRange lengths{1, model::kContextMax};
  table->Add(IntegerList("prompt", settings.prompts, lengths, "TOKENS,...",
                         "Prompt lengths whose prefill is timed.", &settings.prompts_given));
  table->Add(IntegerList("context", settings.contexts, {0, model::kContextMax}, "TOKENS,...",
                         "Tokens already in the pages of a sequence that decodes.",
                         &settings.contexts_given));
  table->Add(IntegerList("batch", settings.batches, {1, kBatchMax}, "COUNT,...",
                         "Sequences that decode at once."));
  table->Add(Integer("threads", of_engine.threads, {1, tensor::kThreadsMax}, "COUNT",
                     "Threads that compute."));
  table->Add(Choice("kernels", of_engine.kernels, {"auto", "scalar", "avx2", "avx512"},
                    "Vector instructions to use; the probe uses the same."));
  table->Add(
      Switch("pin-threads", of_engine.pin_threads, "Bind each computing thread to a processor."));
  table->Add(Integer("repeat", settings.repeat, {1, kRepeatMax}, "COUNT",
                     "Samples of each point, after a warm-up."));
  table->Add(Integer("decode", settings.decode_tokens, {1, kDecodeTokensMax}, "TOKENS",
                     "Tokens that each sequence decodes in a sample."));
  table->Add(Integer("chunk", settings.chunk, {0, model::kRowsMax}, "ROWS",
                     "Prompt rows of one step; 0 = 512."));
  table->Add(Text("note", settings.note, "TEXT", "Goes into the reports: a commit, a condition."));
  table->Add(Text("csv", settings.csv, "FILE", "Every sample, with the machine's description."));
  table->Add(Text("plot", settings.plot, "FILE", "The plot, SVG."));
  table->Add(Switch("json", settings.json, "Print JSON instead of the table."));
  return table;
}

base::Status CheckBenchThreads(uint32_t threads, uint32_t processors) {
  const uint64_t threads_max = uint64_t{2} * processors;
  if (threads <= threads_max) return base::OkStatus();
  return base::InvalidArgument(
      "--threads",
      fmt::format("--threads: {} threads on {} processors measure how these are shared, "
                  "not the engine; at most {} here",
                  threads, processors, threads_max));
}

base::Status RunBench(const BenchSettings& settings, const VariableReader& variables) {
  RETURN_IF_ERROR(CheckBenchThreads(settings.engine.threads, base::UsableProcessors()));
  RETURN_IF_ERROR(CheckApart(settings.plot, "--plot", settings.csv, "the file of --csv"));
  RETURN_IF_ERROR(CheckApart(settings.csv, "--csv", settings.engine.model, "the model"));
  RETURN_IF_ERROR(CheckApart(settings.plot, "--plot", settings.engine.model, "the model"));
  RETURN_IF_ERROR(CheckWritable(settings.csv, "--csv", "# "));
  RETURN_IF_ERROR(CheckWritable(settings.plot, "--plot", "<svg"));
  const base::SystemClock clock;
  EngineBenchReport report;
  report.machine = DescribeMachine();
  report.unix_seconds = clock.UnixSeconds();
  ASSIGN_OR_RETURN(const Loaded loaded, Load(settings, variables, clock));
  const tensor::CallerPin pin(loaded.pool.get());
  EngineBenchPlan plan = PlanFor(settings, loaded.model->info().context_max);
  RETURN_IF_ERROR(CheckPlan(plan, *loaded.model));

  ASSIGN_OR_RETURN(const tensor::ProbeTable* loops, tensor::SelectProbe(loaded.kernels->name));
  ASSIGN_OR_RETURN(const ReadProbe read, ReadProbe::Create(*loops, *loaded.pool, clock));
  plan.kv_memory_max = AvailableMemory() / 2;
  report.probe = ProbeMachine(*loops, *loaded.pool, read, clock);
  report.model = loaded.model->info();
  report.cost = loaded.cost;
  report.model_id = loaded.reference.id;
  report.file_bytes = loaded.file_bytes;
  report.kernels = loaded.kernels->name;
  report.threads = loaded.pool->threads();
  report.chunk_rows = plan.chunk_rows;
  report.decode_tokens = plan.decode_tokens;
  report.note = settings.note;

  Progress progress(clock, ErrorTerminal(), "bench", ProgressUnit::kItems);
  const BenchHooks hooks{
      .progress =
          [&, started = false](uint64_t done, uint64_t total, std::string_view what) mutable {
            if (!std::exchange(started, true)) progress.Start("bench", 0, total);
            progress.Update(done, std::string(what));
          },
      .read_rate = [&read] { return read.Rate(1); }};
  ASSIGN_OR_RETURN(BenchMeasurement measured, MeasureEngine(*loaded.model, plan, clock, hooks));
  report.points = std::move(measured.points);
  report.read_rates = std::move(measured.read_rates);
  progress.Finish();
  return WriteReports(settings, report);
}

}  // namespace plumb::cli
