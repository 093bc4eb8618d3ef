// cli/quantize.cc
// Plan, tell what is unusual in it, write under a name of its own, check, rename.
#include "cli/quantize.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <set>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/format.h"
#include "cli/output_file.h"
#include "cli/perplexity.h"
#include "cli/perplexity_model.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "model/load.h"
#include "model/quantize.h"

namespace plumb::cli {
namespace {

namespace fs = std::filesystem;

// One line for every pair of types of which one takes the other's place.
std::string Replacements(const model::QuantizePlan& plan) {
  struct Group {
    uint64_t tensors = 0;
    std::set<uint64_t> row_sizes;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const model::PlannedTensor& tensor : plan.tensors) {
    if (!tensor.instead_of) continue;
    Group& group = groups[{model::GgufTensorTypeName(tensor.type),
                           std::string(tensor::Name(*tensor.instead_of))}];
    ++group.tensors;
    group.row_sizes.insert(tensor.source->dims[0]);
  }
  std::string text;
  for (const auto& [types, group] : groups) {
    std::string sizes;
    for (const uint64_t size : group.row_sizes) {
      sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    }
    text +=
        fmt::format("note: {} tensor{} get{} {} instead of {}: rows of {} are no whole blocks\n",
                    group.tensors, group.tensors == 1 ? "" : "s", group.tensors == 1 ? "s" : "",
                    types.first, types.second, sizes);
  }
  return text;
}

base::Status CheckOutput(const QuantizeSettings& settings) {
  std::error_code ignored;
  const fs::file_status status = fs::status(settings.output, ignored);
  if (!fs::exists(status)) return base::OkStatus();
  if (!fs::is_regular_file(status)) {
    return base::InvalidArgument("--output",
                                 "--output: '" + settings.output + "' is not a regular file");
  }
  if (settings.force) return base::OkStatus();
  return base::InvalidArgument("--output",
                               "--output: '" + settings.output + "' exists; --force replaces it");
}

// Before anything is computed: what is wanted with the text comes to use last.
base::Status CheckMeasure(const QuantizeSettings& settings, const ModelReference& model,
                          const model::Checkpoint& source) {
  if (settings.measure.empty()) return base::OkStatus();
  const auto text = ReadMeasuredText(settings.measure);
  base::Status status =
      text.ok() ? CheckMeasurable(source, *text, PerplexitySettings().context) : text.status();
  if (!status.ok() && status.code() != base::Code::kInvalidArgument) {
    status = InModel(model, status);
  }
  return NamingFlag(status, "--measure");
}

// Before anything is computed; what the disk says while writing counts too.
base::Status CheckSpace(const std::string& output, uint64_t bytes) {
  std::error_code error;
  const fs::path folder = fs::path(output).parent_path();
  const fs::space_info space = fs::space(folder.empty() ? "." : folder, error);
  if (error) {
    return base::InvalidArgument(
        "--output", "--output: cannot use the folder of '" + output + "': " + error.message());
  }
  if (space.available >= bytes) return base::OkStatus();
  return base::Internal(fmt::format("'{}' needs {}, and {} are free there", output,
                                    FormatBytes(bytes), FormatBytes(space.available)));
}

// Behind the output's name while it is written; nobody else's files end so.
constexpr char kUnfinished[] = ".quantizing";

base::Status Write(const QuantizeSettings& settings, const ModelReference& model,
                   const model::Checkpoint& source, const model::QuantizePlan& plan) {
  RETURN_IF_ERROR(CheckSpace(settings.output, model::QuantizedFileBytes(source, plan)));
  const std::string unfinished = settings.output + kUnfinished;
  std::error_code error;
  if (fs::equivalent(unfinished, model.path, error)) {
    return base::InvalidArgument(
        "--output", "--output: '" + unfinished + "', the model, is needed while this is written");
  }
  UnfinishedFile file;
  RETURN_IF_ERROR(file.Begin(unfinished));
  tensor::ThreadPool pool({.threads = settings.threads});
  const base::SystemClock clock;
  Progress progress(clock, ErrorTerminal(), "quantize", ProgressUnit::kBytes);
  progress.Start("quantize " + model.id, 0, plan.data_bytes);
  // Ctrl-C must not leave the unfinished file.
  const Signals signals({SIGINT, SIGTERM});
  const base::Status written = model::WriteQuantized(
      source, plan,
      {.pool = pool,
       .progress = [&](const model::QuantizeProgress& state) { progress.Update(state.bytes_done); },
       .cancelled = [&] { return signals.count() > 0; }},
      file.path());
  progress.Finish();
  if (written.code() == base::Code::kCancelled) return written;
  if (!written.ok()) return InModel(model, written);
  RETURN_IF_ERROR(CheckOutput(settings));  // it may have come up meanwhile
  return file.Rename(settings.output);
}

// Perplexity before and after, and the divergence between the two.
base::Status MeasureBoth(const QuantizeSettings& settings, const ModelReference& model) {
  PerplexitySettings measure;
  measure.text = settings.measure;
  measure.threads = settings.threads;
  const ModelReference made{nullptr, settings.output, fs::path(settings.output).stem().string()};
  return RunPerplexity(measure, made, &model);
}

}  // namespace

QuantizeSettings::QuantizeSettings() : threads(base::UsableProcessors()) {}

CLI::App* DeclareQuantize(CLI::App& model_app, QuantizeSettings& settings) {
  CLI::App* app = model_app.add_subcommand(
      "quantize",
      "Write a model's weights in a smaller type, as a GGUF file. From F32, F16 or BF16; F32 as "
      "the\n"
      "type is exact, from any. The result does not depend on the number of threads.");
  app->footer(
      "Examples:\n  plumb model quantize --model bf16.gguf --type Q4_K_M --output q4.gguf\n"
      "  plumb model quantize --model q4.gguf --type F32 --output f32.gguf");
  app->add_option("--model", settings.model, "An alias of 'plumb model list', or a model's path.")
      ->required();
  app->add_option("--type", settings.type,
                  "One of " + std::string(model::FileTypeNames()) + ". Some mix types.")
      ->required();
  app->add_option("--output", settings.output, "The .gguf file to write.")->required();
  app->add_option("--threads", settings.threads, "Threads that compute [default: all processors]")
      ->check(CLI::Range(1u, tensor::kThreadsMax));
  app->add_option("--measure", settings.measure,
                  "A UTF-8 text: also print perplexity on it, before and after.");
  app->add_flag("--requantize", settings.requantize,
                "Accept weights that are quantised already; they lose a second time.");
  app->add_flag("--force", settings.force, "Replace the output if it exists.");
  return app;
}

base::Status RunQuantize(const QuantizeSettings& settings, const ModelReference& model) {
  const std::optional<model::FileType> type = model::FileTypeFromName(settings.type);
  if (!type) {
    return base::InvalidArgument(
        "--type", fmt::format("--type: '{}' is none of {}", settings.type, model::FileTypeNames()));
  }
  RETURN_IF_ERROR(CheckOutput(settings));
  const auto source = model::OpenModelFile(model.path);
  if (!source.ok()) return InModel(model, source.status());
  const auto plan = model::PlanQuantize(**source, *type);
  if (!plan.ok()) return InModel(model, plan.status());
  if (plan->requantized != nullptr && !settings.requantize) {
    return base::InvalidArgument(
        "--requantize",
        fmt::format("'{}' is quantised already ({} is {}); rounding it again loses more than one "
                    "step from the original would; --requantize does it all the same",
                    model.path, plan->requantized->name, plan->requantized->stored_type));
  }
  RETURN_IF_ERROR(CheckMeasure(settings, model, **source));
  PrintError(Replacements(*plan));
  RETURN_IF_ERROR(Write(settings, model, **source, *plan));
  Print(fmt::format("{}: {}, {} from {}\n", settings.output, model::Name(*type),
                    FormatBytes(model::QuantizedFileBytes(**source, *plan)),
                    FormatBytes((*source)->file_bytes())));
  if (settings.measure.empty()) return base::OkStatus();
  return MeasureBoth(settings, model);
}

}  // namespace plumb::cli
