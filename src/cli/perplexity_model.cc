// cli/perplexity_model.cc
// Loading and tokenizing behind cli/perplexity_model.h.
#include "cli/perplexity_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/disk.h"
#include "cli/model_memory.h"
#include "cli/sha256.h"
#include "engine/vocabulary.h"
#include "model/inspect.h"
#include "model/load.h"
#include "text/deepseek_token_classes.h"

namespace plumb::cli {
namespace {

using base::TokenId;

}  // namespace

base::Result<MeasuredModel> LoadToMeasure(const ModelReference& reference, uint32_t context,
                                          const MeasureSurroundings& surroundings) {
  const auto file = model::OpenModelFile(reference.path);
  if (!file.ok()) return InModel(reference, file.status());
  auto tokenizer = engine::MakeTokenizer(**file);
  if (!tokenizer.ok()) return InModel(reference, tokenizer.status());
  if (const base::Status fits = CheckModelMemory(**file, 0); !fits.ok()) {
    return InModel(reference, fits);
  }

  Progress progress(surroundings.clock, surroundings.output, "load", ProgressUnit::kBytes);
  const model::LoadOptions options{
      .pool = surroundings.pool,
      .kernels = surroundings.kernels,
      .rows_max = kMeasureRows,
      .logits_rows_max = kMeasureLogitsRows,
      .context_max = context,
      .replay_rows = 0,  // every position is measured, so each has all layers
      .progress =
          [&, started = false](const model::LoadProgress& state) mutable {
            if (!std::exchange(started, true)) {
              progress.Start("load " + reference.id, 0, state.bytes_total);
            }
            progress.Update(state.bytes_done);
          },
      .token_classes = [&] { return text::DeepseekTokenClasses(**tokenizer); }};
  auto loaded = model::LoadModel(**file, options);
  progress.Finish();
  if (!loaded.ok()) return InModel(reference, loaded.status());
  const uint32_t context_max = (*loaded)->info().context_max;
  if (context_max < context) {
    return base::InvalidArgument(
        "--context", fmt::format("--context: {} is more than the {} tokens of '{}'", context,
                                 context_max, reference.id));
  }
  return MeasuredModel{*std::move(loaded), *std::move(tokenizer)};
}

base::Result<MeasuredText> Tokenize(std::string_view text, const text::Tokenizer& tokenizer) {
  constexpr auto kAsText = text::ControlTokens::kAsText;
  auto tokens = tokenizer.Encode(text, kAsText, true);
  auto around = tokenizer.Encode("", kAsText, true);
  for (const auto* result : {&tokens, &around}) {
    if (result->ok()) continue;
    return base::InvalidArgument("text", result->status().message());
  }
  MeasuredText measured{*std::move(tokens), std::nullopt};
  if (!around->empty() && tokenizer.bos() == around->front()) measured.bos = around->front();
  return measured;
}

base::Result<std::string> ReadMeasuredText(const std::string& path) {
  auto content = base::ReadFile(path, text::Tokenizer::kTextBytesMax);
  if (!content.ok()) return base::InvalidArgument("text", content.status().message());
  return content;
}

base::Status CheckMeasurable(const model::Checkpoint& file, std::string_view text,
                             uint32_t context) {
  ASSIGN_OR_RETURN(const model::Inspection inspection, model::Inspect(file));
  RETURN_IF_ERROR(inspection.unsupported);
  if (inspection.config.context_max < context) {
    return base::InvalidArgument(
        "context", fmt::format("a window has {} tokens, more than the model's context of {}",
                               context, inspection.config.context_max));
  }
  ASSIGN_OR_RETURN(const auto tokenizer, engine::MakeTokenizer(file));
  ASSIGN_OR_RETURN(const MeasuredText measured, Tokenize(text, *tokenizer));
  return CheckJob({.tokens = measured.tokens, .context = context, .bos = measured.bos});
}

std::string Digest(std::span<const TokenId> tokens) {
  Sha256 hash;
  for (const TokenId token : tokens) {
    const auto id = static_cast<uint32_t>(token);
    const char bytes[] = {static_cast<char>(id), static_cast<char>(id >> 8),
                          static_cast<char>(id >> 16), static_cast<char>(id >> 24)};
    hash.Update({bytes, sizeof bytes});
  }
  return hash.Finish();
}

base::Result<Measurement> MeasureWithProgress(const MeasureJob& job, MeasureParts parts,
                                              const MeasureSurroundings& surroundings) {
  Progress progress(surroundings.clock, surroundings.output, "measure", ProgressUnit::kItems);
  if (WindowsOf(job) > 0) progress.Start("windows", 0, WindowsOf(job));
  parts.progress = [&](uint64_t done, double perplexity) {
    progress.Update(done, fmt::format("perplexity {:.3f}", perplexity));
  };
  auto measured = Measure(job, parts);
  progress.Finish();
  return measured;
}

}  // namespace plumb::cli
