// cli/generate.cc
// Two passes over the input: the first counts lines and checks what is answered already; the second
// keeps a bounded number of requests in the engine and writes each answer when it is complete.
#include "cli/generate.h"

#include <fmt/format.h>

#include <deque>
#include <unordered_map>

#include "base/bounded_queue.h"
#include "cli/format.h"
#include "cli/generate_output.h"
#include "cli/line_reader.h"
#include "cli/report.h"
#include "model/config.h"

namespace plumb::cli {
namespace {

constexpr base::Duration kFlushPace = base::Seconds(1);

// One request in the engine: gathers its events, says when it is complete.
class LineSink final : public engine::EventSink {
 public:
  LineSink(LineHead line_head, base::BoundedQueue<engine::RequestId>& completed)
      : head(std::move(line_head)), completed_(completed) {}

  // Thread: the generator's.
  void OnEvent(engine::TokenEvent event) override {
    answer.text += event.text;
    std::ranges::move(event.logprobs, std::back_inserter(answer.logprobs));
    if (!event.finish) return;
    answer.finish = std::move(*event.finish);
    CHECK(completed_.Push(engine::RequestId{event.request}));
  }

  const LineHead head;
  LineAnswer answer;  // the generator's until the request is completed

 private:
  base::BoundedQueue<engine::RequestId>& completed_;
};

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r") == text.npos; }

// Thread: main.
class Run {
 public:
  Run(const GenerateJob& job, const GenerateParts& parts)
      : job_(job),
        parts_(parts),
        completed_(job.in_flight_max),
        progress_(parts.clock, parts.progress, "generate", ProgressUnit::kItems) {}

  base::Result<GenerateTotals> Do() {
    ASSIGN_OR_RETURN(output_, GenerateOutput::Open(job_.output));
    RETURN_IF_ERROR(Survey());
    started_ = flushed_ = parts_.clock.Now();
    progress_.Start("generate", totals_.answered_before, totals_.lines);
    base::Status status = AnswerAll();
    if (!status.ok()) CancelAll();
    if (status.ok()) status = output_->Flush();
    progress_.Finish();
    RETURN_IF_ERROR(status);
    RETURN_IF_ERROR(output_->Sort());
    return totals_;
  }

 private:
  std::string KeyOf(const FileLine& line) const { return LineKey(line.text, job_.settings_key); }

  // First pass: counts, and refuses an output that answers other questions.
  base::Status Survey() {
    ASSIGN_OR_RETURN(const auto reader, LineReader::Open(job_.input, kInputLineBytesMax));
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<FileLine> line, reader->Next());
      if (!line) break;
      if (IsBlank(line->text)) continue;
      ++totals_.lines;
      if (job_.strict) RETURN_IF_ERROR(CheckStrictly(*line));
      const auto found = output_->found().find(line->number - 1);
      if (found == output_->found().end()) continue;
      ++totals_.answered_before;
      if (found->second != KeyOf(*line)) return OtherQuestion(line->number);
    }
    if (totals_.answered_before == output_->found().size()) return base::OkStatus();
    return base::InvalidArgument(
        "--output",
        fmt::format("--output: '{}' answers lines that '{}' does not have; choose another "
                    "output",
                    job_.output, job_.input));
  }

  base::Status OtherQuestion(uint64_t number) const {
    return base::InvalidArgument(
        "--output",
        fmt::format("--output: the answer to line {} in '{}' is for another input, model or "
                    "setting; choose another output, or delete it to begin again",
                    number, job_.output));
  }

  base::Status CheckStrictly(const FileLine& line) const {
    base::Status status = TooLong(line);
    if (status.ok()) {
      status = base::ToStatus(ParseLine(line.text, line.number - 1, job_.defaults));
    }
    if (status.ok()) return status;
    return base::InvalidArgument(
        "--input", fmt::format("line {} of '{}': {}", line.number, job_.input, status.message()));
  }

  static base::Status TooLong(const FileLine& line) {
    if (!line.too_long) return base::OkStatus();
    return base::InvalidArgument("", "the line is longer than " + FormatBytes(kInputLineBytesMax));
  }

  // Second pass.
  base::Status AnswerAll() {
    ASSIGN_OR_RETURN(const auto reader, LineReader::Open(job_.input, kInputLineBytesMax));
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<FileLine> line, reader->Next());
      if (!line) break;
      const bool answered = output_->found().contains(line->number - 1);
      if (answered || IsBlank(line->text)) continue;
      while (live_.size() >= job_.in_flight_max) RETURN_IF_ERROR(FinishOne());
      RETURN_IF_ERROR(Begin(*line));
      while (const auto id = completed_.TryPop()) RETURN_IF_ERROR(Finish(*id));
    }
    while (!live_.empty()) RETURN_IF_ERROR(FinishOne());
    return base::OkStatus();
  }

  // Submits the line's request, or writes why it is none.
  base::Status Begin(const FileLine& line) {
    LineHead head{line.number - 1, KeyOf(line), ""};
    if (const base::Status status = TooLong(line); !status.ok()) return WriteError(head, status);
    const auto parsed = ParseLine(line.text, head.index, job_.defaults, &head.id_json);
    if (!parsed.ok()) return WriteError(head, parsed.status());
    auto request = BuildRequest(*parsed, job_.defaults, parts_.model);
    if (!request.ok()) return WriteError(head, request.status());

    request->id = engine::RequestId{++last_id_};
    auto sink = std::make_unique<LineSink>(head, completed_);
    sink->answer.seed = request->sampling.seed;
    sink->answer.with_logprobs = request->sampling.logprobs;
    LineSink& target = *sink;
    const engine::RequestId id = request->id;
    live_.emplace(static_cast<uint64_t>(id), std::move(sink));
    const base::Status submitted = parts_.generator.Submit(*request, target);
    if (submitted.ok()) return submitted;
    live_.erase(static_cast<uint64_t>(id));
    if (submitted.code() == base::Code::kInvalidArgument) return WriteError(head, submitted);
    return submitted;
  }

  base::Status FinishOne() {
    const std::optional<engine::RequestId> id = completed_.Pop();
    CHECK(id.has_value());
    return Finish(*id);
  }

  base::Status Finish(engine::RequestId id) {
    const auto live = live_.extract(static_cast<uint64_t>(id));
    CHECK(!live.empty());
    const LineSink& sink = *live.mapped();
    const engine::Finish& finish = sink.answer.finish;
    if (finish.reason == engine::FinishReason::kCancelled) {
      return base::Status(base::Code::kCancelled, "the run was stopped");
    }
    totals_.tokens += finish.completion_tokens;
    if (finish.reason == engine::FinishReason::kError) return WriteError(sink.head, finish.status);
    return Write(AnswerLine(sink.head, sink.answer, parts_.model.tokenizer));
  }

  base::Status WriteError(const LineHead& head, const base::Status& status) {
    ++totals_.errors;
    return Write(ErrorLine(head, status));
  }

  base::Status Write(const std::string& line) {
    RETURN_IF_ERROR(output_->Append(line));
    ++written_;
    const base::Instant now = parts_.clock.Now();
    if (now - flushed_ >= kFlushPace) {
      RETURN_IF_ERROR(output_->Flush());
      flushed_ = now;
    }
    const double seconds = std::max((now - started_).seconds(), 1e-3);
    progress_.Update(totals_.answered_before + written_,
                     fmt::format("{:.0f} tokens/s", static_cast<double>(totals_.tokens) / seconds));
    return base::OkStatus();
  }

  // After an error of ours: nothing may refer to the sinks when they go.
  void CancelAll() {
    for (const auto& [id, sink] : live_) parts_.generator.Cancel(engine::RequestId{id});
    while (!live_.empty()) {
      const std::optional<engine::RequestId> id = completed_.Pop();
      CHECK(id.has_value());
      live_.erase(static_cast<uint64_t>(*id));
    }
  }

  const GenerateJob& job_;
  const GenerateParts& parts_;
  std::unique_ptr<GenerateOutput> output_;
  base::BoundedQueue<engine::RequestId> completed_;  // as large as live_ may become
  std::unordered_map<uint64_t, std::unique_ptr<LineSink>> live_;
  Progress progress_;
  GenerateTotals totals_;
  uint64_t written_ = 0;
  uint64_t last_id_ = 0;
  base::Instant started_{};
  base::Instant flushed_{};
};

}  // namespace

base::Result<GenerateTotals> Generate(const GenerateJob& job, const GenerateParts& parts) {
  return Run(job, parts).Do();
}

std::unique_ptr<OptionTable> DeclareGenerate(CLI::App& app, GenerateSettings& settings) {
  auto table = std::make_unique<OptionTable>(app, "generate");
  table->Add(Text("input", settings.input, "FILE", "Requests, one JSON object a line."));
  table->Add(Text("output", settings.output, "FILE",
                  "Answers, one JSON object a line; continued when it is there."));
  AddEngineOptions(*table, settings.engine);
  table->Add(Integer("seed", settings.seed, {0, (uint64_t{1} << 63) - 1}, "NUMBER",
                     "Lines without a seed get one made of this and their place in the file."));
  table->Add(Integer("max-tokens", settings.max_tokens, {0, model::kContextMax}, "TOKENS",
                     "For lines that give no max_tokens; 0 = to the end of the context."));
  table->Add(Switch("strict", settings.strict,
                    "End at the first malformed line, before anything is computed, instead of "
                    "answering it with an error."));
  return table;
}

base::Status RunGenerate(const GenerateSettings& settings, const VariableReader& variables) {
  if (settings.input.empty()) {
    return base::InvalidArgument("--input", "--input: give the file with the requests");
  }
  if (settings.output.empty()) {
    return base::InvalidArgument("--output", "--output: give the file for the answers");
  }
  if (const auto input = LineReader::Open(settings.input, kInputLineBytesMax); !input.ok()) {
    return base::InvalidArgument("--input", "--input: " + input.status().message());
  }
  const base::SystemClock clock;
  ASSIGN_OR_RETURN(const ModelReference model, LocateEngineModel(settings.engine, variables));
  ASSIGN_OR_RETURN(const std::unique_ptr<LocalEngine> local,
                   LocalEngine::Load(model, settings.engine, {clock}, ErrorTerminal()));
  const LineDefaults defaults{settings.seed, settings.max_tokens, local->tokenizer().size()};
  // Everything that decides an answer besides its line. The context does, by the default
  // max_tokens.
  const std::string settings_key = fmt::format("{} {} {} {}", local->fingerprint(), settings.seed,
                                               settings.max_tokens, local->engine().context_max());
  const GenerateJob job{settings.input,  settings.output, defaults,
                        settings.strict, settings_key,    2 * settings.engine.sequences};
  const GenerateParts parts{
      local->engine(),
      {local->chat_template(), local->tokenizer(), local->engine().context_max()},
      clock,
      ErrorTerminal()};
  const base::Instant start = clock.Now();
  ASSIGN_OR_RETURN(const GenerateTotals totals, Generate(job, parts));
  const double seconds = (clock.Now() - start).seconds();
  PrintError(fmt::format(
      "{} line{} in {}: {} answered before, {} error{} now, {} tokens in {:.1f} s\n", totals.lines,
      totals.lines == 1 ? "" : "s", settings.output, totals.answered_before, totals.errors,
      totals.errors == 1 ? "" : "s", totals.tokens, seconds));
  local->engine().Stop();
  return base::OkStatus();
}

}  // namespace plumb::cli
