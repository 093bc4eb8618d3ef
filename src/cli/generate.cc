// cli/generate.cc
// Settings, model, run; behind cli/generate.h.
#include "cli/generate.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "cli/line_reader.h"
#include "cli/line_run.h"
#include "cli/local_engine.h"
#include "cli/report.h"
#include "model/config.h"

namespace plumb::cli {

std::unique_ptr<OptionTable> DeclareGenerate(CLI::App& app, GenerateSettings& settings) {
  const bool rollout = settings.kind == LineKind::kRollout;
  auto table = std::make_unique<OptionTable>(app, rollout ? "rollout" : "generate");
  table->Add(Text("input", settings.input, "FILE", "Requests, one JSON object a line."));
  table->Add(Text("output", settings.output, "FILE",
                  "Answers, one JSON object a line; continued when it is there."));
  AddEngineOptions(*table, settings.engine);
  if (rollout) {
    table->Add(Integer("samples", settings.samples, {1, kRolloutSamplesMax}, "COUNT",
                       "Answers to each prompt, for lines that give no n."));
  }
  table->Add(Integer("seed", settings.seed, {0, (uint64_t{1} << 63) - 1}, "NUMBER",
                     "Lines without a seed get one made of this and their place in the file."));
  table->Add(Integer("max-tokens", settings.max_tokens, {0, model::kContextMax}, "TOKENS",
                     "For lines that give no max_tokens; 0 = to the end of the context."));
  table->Add(Switch("strict", settings.strict,
                    "End at the first malformed line, before anything is computed, instead of "
                    "answering it with an error."));
  return table;
}

namespace {

base::Status CheckFiles(const GenerateSettings& settings) {
  if (settings.input.empty()) {
    return base::InvalidArgument("--input", "--input: give the file with the requests");
  }
  if (settings.output.empty()) {
    return base::InvalidArgument("--output", "--output: give the file for the answers");
  }
  const auto input = LineReader::Open(settings.input, kInputLineBytesMax);
  if (input.ok()) return base::OkStatus();
  return base::InvalidArgument("--input", "--input: " + input.status().message());
}

// Everything that decides an answer besides its line. The context does, by the default max_tokens.
std::string SettingsKey(const GenerateSettings& settings, LocalEngine& local) {
  std::string key = fmt::format("{} {} {} {}", local.fingerprint(), settings.seed,
                                settings.max_tokens, local.engine().context_max());
  if (settings.kind == LineKind::kRollout) key += fmt::format(" rollout {}", settings.samples);
  return key;
}

}  // namespace

base::Status RunGenerate(const GenerateSettings& settings, const VariableReader& variables) {
  RETURN_IF_ERROR(CheckFiles(settings));
  const base::SystemClock clock;
  ASSIGN_OR_RETURN(EngineModels models, LocateEngineModels(settings.engine, variables));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalEngine> local,
      LocalEngine::Load(std::move(models), settings.engine, {.clock = clock}, ErrorTerminal()));
  const LineJob job{.input = settings.input,
                    .output = settings.output,
                    .defaults = {.seed = settings.seed,
                                 .tokens_max = settings.max_tokens,
                                 .vocabulary_size = local->tokenizer().size(),
                                 .abilities = local->chat_format().abilities(),
                                 .kind = settings.kind,
                                 .samples = settings.samples},
                    .strict = settings.strict,
                    .settings_key = SettingsKey(settings, *local),
                    .in_flight_max = 2 * settings.engine.sequences};
  const LineParts parts{.generator = local->engine(),
                        .model = {local->chat_format(), local->tokenizer(),
                                  local->engine().context_max(), &local->grammars()},
                        .clock = clock,
                        .progress = ErrorTerminal(),
                        .weights = {local->content(), local->numerics_id(), local->fingerprint()}};
  const base::Instant start = clock.Now();
  ASSIGN_OR_RETURN(const LineTotals totals, AnswerLines(job, parts));
  const double seconds = (clock.Now() - start).seconds();
  PrintError(fmt::format(
      "{} line{} in {}: {} answered before, {} error{} now, {} tokens in {:.1f} s\n", totals.lines,
      totals.lines == 1 ? "" : "s", settings.output, totals.answered_before, totals.errors,
      totals.errors == 1 ? "" : "s", totals.tokens, seconds));
  local->engine().Stop();
  return base::OkStatus();
}

}  // namespace plumb::cli
