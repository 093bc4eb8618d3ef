// cli/perplexity.cc
// From files to figures, behind cli/perplexity.h.
#include "cli/perplexity.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/thread.h"
#include "cli/format.h"
#include "cli/local_engine.h"
#include "cli/perplexity_measure.h"
#include "cli/perplexity_model.h"
#include "cli/report.h"
#include "model/config.h"
#include "tensor/cpu_features.h"

namespace plumb::cli {
namespace {

// What is printed, whichever the form.
struct PerplexityView {
  const PerplexitySettings& settings;
  const ModelReference& model;
  const ModelReference* reference;
  uint64_t tokens;
  std::string tokens_digest;
  std::string numerics_id;
  const Measurement& found;
};

std::string LikelihoodText(const ModelReference& model, const Likelihood& likelihood) {
  return fmt::format("perplexity {:.4f} +- {:.4f} ({:.6f} nat a token)  {}\n",
                     likelihood.perplexity(), likelihood.perplexity_error(), likelihood.mean_nll,
                     Printable(model.id, 100));
}

std::string PerplexityText(const PerplexityView& view) {
  const Measurement& found = view.found;
  std::string text = LikelihoodText(view.model, found.model);
  if (found.reference) text += LikelihoodText(*view.reference, *found.reference);
  if (found.divergence) {
    const Divergence& kl = *found.divergence;
    text += fmt::format(
        "KL from the reference: mean {:.3e}, median {:.3e}, 99 % below {:.3e}, largest {:.3e} nat\n"
        "same likeliest token: {:.3f} %\n",
        kl.mean, kl.median, kl.p99, kl.largest, 100 * kl.agreement);
  }
  const uint32_t context = view.settings.context;
  return text + fmt::format(
                    "counted: {} positions, the last {} of each of {} windows of {} tokens; the "
                    "text has {}\n",
                    found.positions, context - context / 2 - 1, found.windows, context,
                    view.tokens);
}

std::string PerplexityJson(const PerplexityView& view) {
  const Measurement& found = view.found;
  const auto likelihood = [](const ModelReference& model, const Likelihood& one) {
    return nlohmann::ordered_json{{"model", model.id},
                                  {"perplexity", one.perplexity()},
                                  {"perplexity_error", one.perplexity_error()},
                                  {"mean_nll", one.mean_nll}};
  };
  nlohmann::ordered_json json = likelihood(view.model, found.model);
  json["numerics_id"] = view.numerics_id;
  json["context"] = view.settings.context;
  json["tokens"] = view.tokens;
  json["tokens_sha256"] = view.tokens_digest;
  json["windows"] = found.windows;
  json["positions"] = found.positions;
  if (found.reference) json["reference"] = likelihood(*view.reference, *found.reference);
  if (found.divergence) {
    const Divergence& kl = *found.divergence;
    json["kl"] = {{"mean", kl.mean},
                  {"median", kl.median},
                  {"p99", kl.p99},
                  {"largest", kl.largest},
                  {"top1_agreement", kl.agreement}};
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

PerplexitySettings::PerplexitySettings() : threads(base::UsableProcessors()) {}

CLI::App* DeclarePerplexity(CLI::App& model_app, PerplexitySettings& settings) {
  CLI::App* app = model_app.add_subcommand(
      "perplexity",
      "Measure how well a model predicts a text, and how far it is from a reference. The text is\n"
      "cut into windows; the first half of each is context only, every later token is predicted\n"
      "from all before it in its window.");
  app->footer(
      "Examples:\n  plumb model perplexity --model smollm2-135m --text book.txt\n"
      "  plumb model perplexity --model q4.gguf --reference f32.gguf --text book.txt --json");
  app->add_option("--model", settings.model, "An alias of 'plumb model list', or a model's path.")
      ->required();
  app->add_option("--text", settings.text, "A UTF-8 text of at least one window.")->required();
  app->add_option("--context", settings.context, "Tokens of a window [default: 512]")
      ->type_name("TOKENS")
      ->check(CLI::Range(uint64_t{kMeasureContextMin}, uint64_t{model::kContextMax}));
  app->add_option("--windows", settings.windows, "Measure at most so many; 0 = all [default: 0]")
      ->type_name("COUNT")
      ->check(CLI::Range(uint64_t{0}, kMeasureWindowsMax));
  app->add_option("--reference", settings.reference,
                  "A model of the same vocabulary: also give the divergence from it.");
  app->add_option("--threads", settings.threads, "Threads that compute [default: all processors]")
      ->check(CLI::Range(1u, tensor::kThreadsMax));
  app->add_option("--kernels", settings.kernels, "Vector instructions: auto, scalar, avx2, avx512");
  app->add_flag("--json", settings.json, "Print JSON.");
  return app;
}

base::Status RunPerplexity(const PerplexitySettings& settings, const ModelReference& model,
                           const ModelReference* reference) {
  const auto content = ReadMeasuredText(settings.text);
  if (!content.ok()) return NamingFlag(content.status(), "--text");
  ASSIGN_OR_RETURN(const tensor::KernelTable* kernels, KernelsByFlag(settings.kernels));
  tensor::ThreadPool pool({.threads = settings.threads});
  const base::SystemClock clock;
  const ProgressOutput output = ErrorTerminal();
  const MeasureSurroundings surroundings{pool, *kernels, clock, output};

  ASSIGN_OR_RETURN(const MeasuredModel measured,
                   LoadToMeasure(model, settings.context, surroundings));
  const base::Result<MeasuredText> text = Tokenize(*content, *measured.tokenizer);
  if (!text.ok()) return NamingFlag(text.status(), "--text");
  MeasuredModel other;
  if (reference != nullptr) {
    ASSIGN_OR_RETURN(other, LoadToMeasure(*reference, settings.context, surroundings));
    ASSIGN_OR_RETURN(const MeasuredText same, Tokenize(*content, *other.tokenizer));
    const bool sizes_equal =
        other.model->info().vocabulary_size == measured.model->info().vocabulary_size;
    if (!sizes_equal || same.tokens != text->tokens || same.bos != text->bos) {
      return base::InvalidArgument("--reference",
                                   "--reference: the models have different vocabularies");
    }
  }
  const MeasureJob job{text->tokens, settings.context, text->bos, settings.windows};
  base::Result<Measurement> found =
      MeasureWithProgress(job, {pool, *measured.model, other.model.get(), {}}, surroundings);
  if (!found.ok())
    return NamingFlag(found.status(), found.status().field() == "text" ? "--text" : "");
  const PerplexityView view{settings,
                            model,
                            reference,
                            text->tokens.size(),
                            Digest(text->tokens),
                            measured.model->info().numerics_id,
                            *found};
  Print(settings.json ? PerplexityJson(view) : PerplexityText(view));
  return base::OkStatus();
}

}  // namespace plumb::cli
