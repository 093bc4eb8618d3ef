// cli/model_logits.cc: the sequence goes through the model in steps of --rows, each step's logits
// to the end of the file.
#include "cli/model_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/disk.h"
#include "base/thread.h"
#include "cli/arithmetic.h"
#include "cli/engine_settings.h"
#include "cli/model_memory.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/signals.h"
#include "engine/vocabulary.h"
#include "model/config.h"
#include "model/load.h"
#include "text/deepseek_token_classes.h"

namespace plumb::cli {
namespace {

using base::TokenId;

constexpr uint64_t kIdsBytesMax = 64 << 20;
constexpr uint32_t kRowsOfStepMax = 4096;
constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
// Behind the output's name while it is written; nobody else's files end so.
constexpr char kUnfinished[] = ".computing";

// Pages and state of the one sequence.
class Sequence {
 public:
  Sequence(const model::ModelInfo& info, std::span<const TokenId> tokens, uint32_t replay_from)
      : tokens_(tokens), replay_from_(replay_from), state_(info.state_bytes) {
    const size_t count = (tokens.size() + model::kPageTokens - 1) / model::kPageTokens;
    memory_.assign(count, std::vector<std::byte>(info.page_bytes));
    for (auto& page : memory_) pages_.push_back(page.data());
  }
  bool done() const { return position_ == tokens_.size(); }
  // The next rows, at most `rows_max`, with logits for those that have them.
  model::SequenceRows Take(uint32_t rows_max) {
    const auto left = static_cast<uint32_t>(tokens_.size()) - position_;
    const uint32_t count = std::min(left, rows_max);
    const uint32_t end = position_ + count;
    const model::SequenceRows rows = {
        .tokens = tokens_.subspan(position_, count),
        .position = position_,
        .pages = pages_,
        .logits_rows = std::min(count, end - std::min(end, replay_from_)),
        .state = state_.empty() ? nullptr : state_.data(),
        .replay_from = replay_from_};
    position_ = end;
    return rows;
  }

 private:
  std::span<const TokenId> tokens_;
  uint32_t replay_from_ = 0;
  uint32_t position_ = 0;
  std::vector<std::byte> state_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::byte*> pages_;
};

base::Status Append(base::AppendFile& file, std::span<const float> values) {
  return file.Append({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

base::Status Compute(const LogitsSettings& settings, model::Model& model,
                     std::span<const TokenId> tokens, uint32_t replay_rows) {
  const auto count = static_cast<uint32_t>(tokens.size());
  const uint32_t replay_from = replay_rows == 0 ? 0 : count - std::min(count, replay_rows);
  const uint64_t vocabulary = model.info().vocabulary_size;
  UnfinishedFile unfinished;
  RETURN_IF_ERROR(unfinished.Begin(settings.output + kUnfinished));
  ASSIGN_OR_RETURN(const auto file, base::AppendFile::Open(unfinished.path(), 0));
  RETURN_IF_ERROR(file->Append(NpyHeader(count - replay_from, vocabulary)));
  Sequence sequence(model.info(), tokens, replay_from);
  std::vector<float> logits(uint64_t{model.rows_max()} * vocabulary);
  const base::SystemClock clock;
  Progress progress(clock, ErrorTerminal(), "logits", ProgressUnit::kItems);
  progress.Start("tokens", 0, count);
  const Signals signals({SIGINT, SIGTERM});  // Ctrl-C must not leave the unfinished file
  base::Status status;
  uint64_t computed = 0;
  while (status.ok() && !sequence.done()) {
    const model::SequenceRows rows[] = {sequence.Take(model.rows_max())};
    const auto out = std::span(logits).first(rows[0].logits_rows * vocabulary);
    model.Forward(rows, out);
    status = std::ranges::all_of(out, [](float logit) { return std::isfinite(logit); })
                 ? Append(*file, out)
                 : base::Corrupt(fmt::format(
                       "a logit of the {} tokens from token {} on is not finite: the model's "
                       "weights overflow",
                       rows[0].tokens.size(), rows[0].position));
    if (signals.count() > 0) status = base::Status(base::Code::kCancelled, "stopped");
    computed += rows[0].tokens.size();
    progress.Update(computed);
  }
  progress.Finish();
  RETURN_IF_ERROR(status);
  RETURN_IF_ERROR(CheckReplaceable(settings.output, "--out", kNpyMagic, ".npy file"));
  RETURN_IF_ERROR(unfinished.Rename(settings.output));
  Print(fmt::format("{}: f32 [{}, {}], {}\n", settings.output, count - replay_from, vocabulary,
                    model.info().numerics_id));
  return base::OkStatus();
}

}  // namespace

LogitsSettings::LogitsSettings() : threads(base::UsableProcessors()) {}

void DeclareLogits(CLI::App& model_app, LogitsSettings& settings) {
  CLI::App* app = model_app.add_subcommand(
      "logits",
      "Write the logits of every position of a sequence of token ids as a .npy file, f32\n"
      "[tokens, vocabulary], to compare with other implementations.");
  app->footer(
      "Examples:\n  plumb model logits --model ./DeepSeek-V4.1-Flash --ids ids.json --out l.npy\n"
      "  plumb model logits --model v41-mini --ids ids.txt --numerics f32 --replay 140 --out "
      "l.npy");
  app->add_option("--model", settings.model, "An alias of 'plumb model list', or a model's path.")
      ->required();
  app->add_option("--ids", settings.ids,
                  "A file with the token ids: a JSON array, or numbers between white space.")
      ->required();
  app->add_option("--out", settings.output,
                  "The .npy file to write; one that is there is replaced, any other file is not.")
      ->required();
  app->add_option("--numerics", settings.numerics,
                  "DeepSeek-V4.1: f32 (nothing is rounded), kvq (keys and values as stored) or "
                  "full (activations too, as GPU engines do) [default: kvq]");
  app->add_option("--replay", settings.replay,
                  "DeepSeek-V4.1: upper layers compute only the last so many rows, and only these "
                  "are written; off: all [default: off]")
      ->type_name("ROWS|off");
  app->add_option("--rows", settings.rows,
                  "Rows computed in a step; changes no value [default: 128]")
      ->type_name("COUNT")
      ->check(CLI::Range(1u, kRowsOfStepMax));
  app->add_option("--threads", settings.threads, "Threads that compute [default: all processors]")
      ->check(CLI::Range(1u, tensor::kThreadsMax));
  app->add_option("--kernels", settings.kernels, "Vector instructions: auto, scalar, avx2, avx512");
  settings.app = app;
}

base::Result<std::vector<TokenId>> ParseIds(std::string_view text, uint32_t vocabulary) {
  constexpr std::string_view kSpace = " \t\r\n";
  const auto wrong = [](std::string what) {
    return base::InvalidArgument("--ids", "--ids: " + std::move(what));
  };
  const auto skip_space = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  };
  std::vector<TokenId> ids;
  skip_space();
  const bool array = text.starts_with('[');
  if (array) text.remove_prefix(1);
  for (skip_space(); !text.empty() && !text.starts_with(']'); skip_space()) {
    uint32_t id = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), id);
    if (parsed.ec != std::errc()) {
      return wrong(fmt::format("after {} ids comes what is no number", ids.size()));
    }
    if (id >= vocabulary) {
      return wrong(fmt::format("id {} is not below the vocabulary size {}", id, vocabulary));
    }
    ids.push_back(static_cast<TokenId>(id));
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
    const size_t before = text.size();
    skip_space();
    const bool separated = text.size() < before;
    if (array && text.starts_with(',')) {
      text.remove_prefix(1);
      skip_space();
      if (text.starts_with(']')) return wrong("a number is missing behind the last comma");
    } else if (array ? !text.starts_with(']') : !separated && !text.empty()) {
      return wrong(fmt::format("id {} is not followed by a separator", ids.size()));
    }
  }
  if (array) {
    if (!text.starts_with(']')) return wrong("the array does not end");
    text.remove_prefix(1);
    skip_space();
  }
  if (!text.empty()) return wrong("there is more behind the ids");
  if (ids.empty()) return wrong("there are no ids");
  return ids;
}

std::string NpyHeader(uint64_t rows, uint64_t columns) {
  std::string shape =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  constexpr size_t kPrefix = 10, kAlignment = 64;
  const size_t total = (kPrefix + shape.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  shape.append(total - kPrefix - 1 - shape.size(), ' ');
  shape += '\n';
  std::string header = std::string(kNpyMagic) + std::string("\x01\x00", 2);
  header += static_cast<char>(shape.size() & 0xff);
  header += static_cast<char>(shape.size() >> 8);
  return header + shape;
}

base::Status RunLogits(const LogitsSettings& settings, const ModelReference& model) {
  for (const std::string& path : {settings.output, settings.output + kUnfinished}) {
    RETURN_IF_ERROR(CheckReplaceable(path, "--out", kNpyMagic, ".npy file"));
  }
  ASSIGN_OR_RETURN(const tensor::KernelTable* kernels, KernelsByFlag(settings.kernels));
  const auto text = base::ReadFile(settings.ids, kIdsBytesMax);
  if (!text.ok()) return NamingFlag(text.status(), "--ids");
  const auto checkpoint = model::OpenModelFile(model.path);
  if (!checkpoint.ok()) return InModel(model, checkpoint.status());
  ASSIGN_OR_RETURN(const Arithmetic arithmetic,
                   ArithmeticOf({settings.numerics, settings.replay}, **checkpoint));
  if (const base::Status fits = CheckModelMemory(**checkpoint, 0); !fits.ok()) {
    return InModel(model, fits);
  }
  const auto config = model::ReadConfig(**checkpoint);
  if (!config.ok()) return InModel(model, config.status());
  ASSIGN_OR_RETURN(const std::vector<TokenId> ids, ParseIds(*text, config->vocabulary));
  if (ids.size() > config->context_max) {
    return base::InvalidArgument(
        "--ids", fmt::format("--ids: {} ids are more than the model's context of {}", ids.size(),
                             config->context_max));
  }
  const uint32_t replay_rows = arithmetic.replay_rows.value_or(0);
  tensor::ThreadPool pool({.threads = settings.threads});
  const model::LoadOptions options{.pool = pool,
                                   .kernels = *kernels,
                                   .rows_max = settings.rows,
                                   .logits_rows_max = settings.rows,
                                   .context_max = static_cast<uint32_t>(ids.size()),
                                   .roundings = arithmetic.roundings,
                                   .replay_rows = replay_rows,
                                   .token_classes = [&]() -> base::Result<std::vector<uint32_t>> {
                                     ASSIGN_OR_RETURN(const auto tokenizer,
                                                      engine::MakeTokenizer(**checkpoint));
                                     return text::DeepseekTokenClasses(*tokenizer);
                                   }};
  const auto loaded = model::LoadModel(**checkpoint, options);
  if (!loaded.ok()) return InModel(model, NamingReplay(loaded.status()));
  return Compute(settings, **loaded, ids, replay_rows);
}

}  // namespace plumb::cli
