// cli/line_run.cc
// Two passes over the input: the first counts lines and checks what is answered already; the second
// keeps a bounded number of answers in the engine and writes each line when it is complete.
#include "cli/line_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/bounded_queue.h"
#include "base/check.h"
#include "cli/format.h"
#include "cli/generate_output.h"
#include "cli/line_reader.h"
#include "engine/best_of.h"

namespace plumb::cli {
namespace {

constexpr base::Duration kFlushPace = base::Seconds(1);

// A line between its reading and its writing. Thread: main, but for the samples' members, which the
// generator's thread fills until their request is completed.
struct OpenLine {
  LineHead head;
  LineRequest asked;
  text::ChatPrompt shape;  // of messages
  LineAnswer answer;
  uint32_t requests_open = 0;
  bool all_submitted = false;
  base::Status failed;  // the first reason
};

// One of a line's requests in the engine: gathers its events, says when it is complete.
class RequestSink final : public engine::EventSink {
 public:
  RequestSink(OpenLine& line, uint32_t first_sample, uint32_t samples,
              base::BoundedQueue<engine::RequestId>& completed)
      : line_(line),
        first_sample_(first_sample),
        samples_(samples),
        unfinished_(samples),
        completed_(completed) {}

  // Thread: the generator's.
  void OnEvent(engine::TokenEvent event) override {
    SampleAnswer& sample = line_.answer.samples[first_sample_ + event.sample_index];
    sample.text += event.text;
    std::ranges::copy(event.tokens, std::back_inserter(sample.tokens));
    std::ranges::move(event.logprobs, std::back_inserter(sample.logprobs));
    std::ranges::move(event.prompt_logprobs, std::back_inserter(line_.answer.prompt_logprobs));
    if (!event.finish) return;
    sample.finish = std::move(*event.finish);
    if (--unfinished_ == 0) CHECK(completed_.Push(engine::RequestId{event.request}));
  }

  // Where the engine's events go; the likeliest of `computed` samples come here when there are
  // more of them than are wanted.
  engine::EventSink& Entrance(uint32_t computed, bool logprobs) {
    if (computed == samples_) return *this;
    best_ = std::make_unique<engine::BestOf>(
        engine::BestOf::Counts{.samples = computed, .keep = samples_}, logprobs, *this);
    return *best_;
  }
  // Once it is completed.
  uint64_t completion_tokens() const {
    if (best_ != nullptr) return best_->completion_tokens();
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < samples_; ++i) {
      tokens += line_.answer.samples[first_sample_ + i].finish.completion_tokens;
    }
    return tokens;
  }

  OpenLine& line() const { return line_; }
  uint32_t first_sample() const { return first_sample_; }
  uint32_t samples() const { return samples_; }

 private:
  OpenLine& line_;
  const uint32_t first_sample_;
  const uint32_t samples_;
  uint32_t unfinished_;
  base::BoundedQueue<engine::RequestId>& completed_;
  std::unique_ptr<engine::BestOf> best_;
};

// An error that the same line has wherever it is computed; any other is ours.
bool IsOfTheLine(const base::Status& status) {
  switch (status.code()) {
    case base::Code::kInvalidArgument:
    case base::Code::kUnsupported:
    case base::Code::kNotFound:
      return true;
    default:
      return false;
  }
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r") == text.npos; }

// Thread: main.
class Run {
 public:
  Run(const LineJob& job, const LineParts& parts)
      : job_(job),
        parts_(parts),
        label_(job.defaults.kind == LineKind::kRollout ? "rollout" : "generate"),
        completed_(std::max(job.in_flight_max, engine::kSamplesMax)),
        progress_(parts.clock, parts.progress, label_, ProgressUnit::kItems) {}

  base::Result<LineTotals> Do() {
    ASSIGN_OR_RETURN(output_, GenerateOutput::Open(job_.output));
    RETURN_IF_ERROR(Survey());
    started_ = flushed_ = parts_.clock.Now();
    progress_.Start(label_, totals_.answered_before, totals_.lines);
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
      RETURN_IF_ERROR(Begin(*line));
      while (const auto id = completed_.TryPop()) RETURN_IF_ERROR(Finish(*id));
    }
    while (!live_.empty()) RETURN_IF_ERROR(FinishOne());
    return base::OkStatus();
  }

  // Submits the line's requests, or writes why it has none.
  base::Status Begin(const FileLine& file_line) {
    auto line = std::make_unique<OpenLine>();
    line->head = {file_line.number - 1, KeyOf(file_line), ""};
    auto requests = Read(file_line, *line);
    if (!requests.ok()) return WriteError(line->head, requests.status());
    OpenLine& open = *line;
    open.answer.prompt = requests->front().prompt;
    open.answer.samples.resize(open.asked.samples);
    for (const engine::Request& request : *requests) {
      open.answer.seeds.push_back(request.sampling.seed);
    }
    lines_.emplace(open.head.index, std::move(line));
    uint32_t first_sample = 0;
    for (engine::Request& request : *requests) {
      const uint32_t samples = request.samples;
      RETURN_IF_ERROR(MakeRoom(Computed(open, samples)));
      if (!open.failed.ok()) break;  // what is left of it is not worth computing
      RETURN_IF_ERROR(Submit(std::move(request), open, first_sample));
      first_sample += samples;
    }
    open.all_submitted = true;
    return open.requests_open == 0 ? Close(open) : base::OkStatus();
  }

  base::Result<std::vector<engine::Request>> Read(const FileLine& file_line, OpenLine& line) {
    RETURN_IF_ERROR(TooLong(file_line));
    ASSIGN_OR_RETURN(line.asked,
                     ParseLine(file_line.text, line.head.index, job_.defaults, &line.head.id_json));
    return BuildRequests(line.asked, job_.defaults, parts_.model, &line.shape);
  }

  // Samples that a request with `samples` to give makes the engine compute.
  static uint32_t Computed(const OpenLine& line, uint32_t samples) {
    return std::max(samples, line.asked.best_of > line.asked.samples ? line.asked.best_of : 0);
  }

  base::Status MakeRoom(uint32_t samples) {
    while (samples_in_flight_ > 0 && samples_in_flight_ + samples > job_.in_flight_max) {
      RETURN_IF_ERROR(FinishOne());
    }
    return base::OkStatus();
  }

  // An error that is the line's own is kept in it; others end the run (IsOfTheLine).
  base::Status Submit(engine::Request request, OpenLine& line, uint32_t first_sample) {
    request.id = engine::RequestId{++last_id_};
    const uint32_t samples = request.samples;
    const uint32_t computed = Computed(line, samples);
    auto sink = std::make_unique<RequestSink>(line, first_sample, samples, completed_);
    engine::EventSink& target = sink->Entrance(computed, request.sampling.logprobs);
    if (computed > samples) request = engine::BestOf::Widen(std::move(request), computed);
    live_.emplace(last_id_, std::move(sink));
    ++line.requests_open;
    samples_in_flight_ += computed;
    const base::Status submitted = parts_.generator.Submit(std::move(request), target);
    if (submitted.ok()) return submitted;
    live_.erase(last_id_);
    --line.requests_open;
    samples_in_flight_ -= computed;
    if (!IsOfTheLine(submitted)) return submitted;
    line.failed = submitted;
    return base::OkStatus();
  }

  base::Status FinishOne() {
    const std::optional<engine::RequestId> id = completed_.Pop();
    CHECK(id.has_value());
    return Finish(*id);
  }

  base::Status Finish(engine::RequestId id) {
    const auto live = live_.extract(static_cast<uint64_t>(id));
    CHECK(!live.empty());
    const RequestSink& sink = *live.mapped();
    OpenLine& line = sink.line();
    samples_in_flight_ -= Computed(line, sink.samples());
    line.answer.completion_tokens += sink.completion_tokens();
    totals_.tokens += sink.completion_tokens();
    for (uint32_t i = 0; i < sink.samples(); ++i) {
      const engine::Finish& finish = line.answer.samples[sink.first_sample() + i].finish;
      if (finish.reason == engine::FinishReason::kCancelled) {
        return base::Status(base::Code::kCancelled, "the run was stopped");
      }
      if (finish.reason == engine::FinishReason::kError && line.failed.ok()) {
        line.failed = finish.status;
      }
    }
    --line.requests_open;
    return line.requests_open == 0 && line.all_submitted ? Close(line) : base::OkStatus();
  }

  base::Status Close(OpenLine& line) {
    const auto owned = lines_.extract(line.head.index);
    CHECK(!owned.empty());
    if (!line.failed.ok()) return WriteError(line.head, line.failed);
    const text::Tokenizer& tokenizer = parts_.model.tokenizer;
    if (job_.defaults.kind == LineKind::kRollout) {
      return Write(RolloutLine(line.head, line.answer, parts_.weights, tokenizer));
    }
    if (!line.asked.has_prompt()) {
      for (SampleAnswer& sample : line.answer.samples) {
        ReadParts(parts_.model.chat_format, line.shape, sample);
      }
    }
    return Write(AnswerLine(line.head, line.asked, line.answer, tokenizer));
  }

  // The answer to the line; or, when the fault is ours, the end of the run, without an answer to
  // it.
  base::Status WriteError(const LineHead& head, const base::Status& status) {
    if (!IsOfTheLine(status)) {
      return base::Status(status.code(),
                          fmt::format("line {} of '{}': {}; what is answered stays, and the same "
                                      "command goes on from there",
                                      head.index + 1, job_.input, status.message()))
          .WithReason(status.reason());
    }
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

  const LineJob& job_;
  const LineParts& parts_;
  const std::string label_;
  std::unique_ptr<GenerateOutput> output_;
  // As large as live_ may become: a request has a sample at least.
  base::BoundedQueue<engine::RequestId> completed_;
  std::unordered_map<uint64_t, std::unique_ptr<OpenLine>> lines_;    // by index
  std::unordered_map<uint64_t, std::unique_ptr<RequestSink>> live_;  // by request id
  uint32_t samples_in_flight_ = 0;
  Progress progress_;
  LineTotals totals_;
  uint64_t written_ = 0;
  uint64_t last_id_ = 0;
  base::Instant started_{};
  base::Instant flushed_{};
};

}  // namespace

base::Result<LineTotals> AnswerLines(const LineJob& job, const LineParts& parts) {
  return Run(job, parts).Do();
}

}  // namespace plumb::cli
