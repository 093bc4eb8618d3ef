// api/batch_run.cc
// See batch_run.h.
#include "api/batch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "api/json_writer.h"
#include "api/stored_record.h"
#include "base/check.h"
#include "base/folder.h"

namespace plumb::api {

using base::Result;
using base::Status;

namespace {

constexpr uint64_t kCheckBytes = 1u << 20;  // of lines, in one piece of work
constexpr base::Duration kDiskPause = base::Seconds(30);
constexpr int64_t kRetrySecondsMax = 30;
constexpr uint64_t kRefusedBytes = 640;  // of a line's refusal, at most, but for its custom_id

// The same each time: a line that is done again after a crash is the same request.
std::string LineId(const Batch& batch, uint32_t line) {
  const std::string_view id = batch.id;
  const auto number = std::as_bytes(std::span(&line, 1));
  return "batch_req_" + HexOf(base::Blake3({number, std::as_bytes(std::span(id))})).substr(0, 24);
}

std::string ResultJson(const Batch& batch, uint32_t line, std::string_view custom_id,
                       const LineAnswer& answer) {
  std::string body = answer.response.body;
  std::ranges::replace(body, '\n', ' ');  // between values: within strings it is escaped
  std::string out;
  JsonWriter json(out);
  const std::string id = LineId(batch, line);
  json.BeginObject().Key("id").String(id).Key("custom_id").String(custom_id);
  json.Key("response").BeginObject().Key("status_code").Int(answer.response.status);
  json.Key("request_id").String(id).Key("body").Raw(body).EndObject();
  json.Key("error").Null().EndObject();
  return out;
}

// Of a line that was never answered.
std::string UnansweredJson(const Batch& batch, uint32_t line, std::string_view custom_id,
                           BatchStatus outcome) {
  const bool cancelled = outcome == BatchStatus::kCancelled;
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(LineId(batch, line)).Key("custom_id").String(custom_id);
  json.Key("response").Null().Key("error").BeginObject();
  json.Key("code").String(cancelled ? "batch_cancelled" : "batch_expired").Key("message");
  json.String(cancelled ? "This request was not answered before its batch was cancelled."
                        : "This request could not be executed before the completion window "
                          "expired.");
  json.EndObject().EndObject();
  return out;
}

// Of a line for whose answer there is no room.
std::string RefusedJson(const Batch& batch, uint32_t line, std::string_view custom_id,
                        const Status& full) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(LineId(batch, line)).Key("custom_id").String(custom_id);
  json.Key("response").Null().Key("error").BeginObject();
  json.Key("code").String(full.reason()).Key("message");
  json.String("There is no room for the answer of this request: " + std::string(full.message()));
  json.EndObject().EndObject();
  return out;
}

// How long whoever refuses for lack of room wants to be left alone.
base::Duration RetryAfter(const net::HttpResponse& response) {
  int64_t seconds = 1;
  if (const auto header = response.headers.Get("Retry-After"))
    std::from_chars(header->data(), header->data() + header->size(), seconds);
  return base::Milliseconds(1000 * std::clamp<int64_t>(seconds, 1, kRetrySecondsMax));
}

}  // namespace

bool BatchRun::Work() {
  if (ended() || parts_.clock.Now() < work_from_) return false;
  const Result<bool> more = DoWork();
  if (more.ok()) return *more;
  work_from_ = parts_.clock.Now() + kDiskPause;
  parts_.logger.Log(
      telemetry::LogLevel::kWarn, "a batch cannot go on for now",
      {{"id", std::string_view(batch_.id)}, {"error", std::string_view(more.status().message())}});
  return false;
}

Result<bool> BatchRun::DoWork() {
  if (batch_.in_progress_at == 0) {
    // Nothing of it was sent, so there is nothing to write.
    if (batch_.cancelling_at != 0) {
      RETURN_IF_ERROR(End(BatchStatus::kCancelled, &Batch::cancelled_at));
      return false;
    }
    if (expired()) {
      RETURN_IF_ERROR(End(BatchStatus::kExpired, &Batch::expired_at));
      return false;
    }
  }
  if (input_ == nullptr) RETURN_IF_ERROR(OpenInput());
  if (ended()) return false;
  if (batch_.status == BatchStatus::kValidating) {
    bool done = false;
    RETURN_IF_ERROR(Check(done));
    return !ended();
  }
  RETURN_IF_ERROR(Keep());
  const bool answered = journal_->done() == input_->size();
  if (!answered && (batch_.cancelling_at != 0 || expired())) StopLines();
  if (answered || (stopped_ && running_.empty())) RETURN_IF_ERROR(Finish());
  return false;
}

Status BatchRun::OpenInput() {
  const StoredFile* file = parts_.files.Find(batch_.caller, batch_.input_file_id);
  if (file == nullptr) {
    return FailWith({{.code = "input_file_missing",
                      .message = "the input file is not there any more",
                      .param = "input_file_id"}});
  }
  ASSIGN_OR_RETURN(auto map, parts_.files.Map(*file));
  auto split = BatchInput::Split(std::move(map), limits_);
  if (auto* error = std::get_if<BatchError>(&split)) return FailWith({std::move(*error)});
  auto input = std::get<std::unique_ptr<BatchInput>>(std::move(split));
  if (batch_.in_progress_at != 0) {
    auto journal = BatchJournal::Open(parts_.batches.JournalPath(batch_.id), input->size());
    if (!journal.ok()) return StorageError(journal.status());
    journal_ = *std::move(journal);
    held_ = RefusedBytes(*input) + journal_->bytes();
    parts_.files.HoldAnyway(batch_.caller, held_);
  }
  input_ = std::move(input);
  return base::OkStatus();
}

Status BatchRun::Check(bool& done) {
  if (check_ == nullptr) check_ = std::make_unique<BatchCheck>(*input_, batch_.endpoint, limits_);
  done = check_->GoOn(kCheckBytes);
  if (!done) return base::OkStatus();
  std::vector<BatchError> errors = check_->TakeErrors();
  check_.reset();
  return errors.empty() ? Begin() : FailWith(std::move(errors));
}

Status BatchRun::FailWith(std::vector<BatchError> errors) {
  Batch next = batch_;
  next.errors = std::move(errors);
  next.status = BatchStatus::kFailed;
  next.failed_at = BatchNow(parts_.clock);
  return Put(std::move(next));
}

// Room to refuse all of its lines is taken before the first is asked.
// A journal of an earlier try that was never told of has nothing in it.
Status BatchRun::Begin() {
  if (held_ == 0) {
    const Status room = parts_.files.Hold(batch_.caller, RefusedBytes(*input_));
    if (!room.ok()) return FailWith({{.code = room.reason(), .message = room.message()}});
    held_ = RefusedBytes(*input_);
  }
  auto journal = BatchJournal::Open(parts_.batches.JournalPath(batch_.id), input_->size());
  if (!journal.ok()) return StorageError(journal.status());
  Batch next = batch_;
  next.status = BatchStatus::kInProgress;
  next.in_progress_at = BatchNow(parts_.clock);
  next.counts.total = input_->size();
  RETURN_IF_ERROR(Put(std::move(next)));
  journal_ = *std::move(journal);
  return base::OkStatus();
}

Status BatchRun::Put(Batch next) {
  RETURN_IF_ERROR(parts_.batches.Put(next));
  batch_ = std::move(next);
  return base::OkStatus();
}

// What cannot be kept is asked again later; the answer is the same then.
Status BatchRun::Keep() {
  std::vector<LineResult> results = std::exchange(results_, {});
  const uint64_t held_before = held_;
  for (LineResult& result : results) Hold(result);
  if (Status status = journal_->Append(results); !status.ok()) {
    parts_.files.GiveBack(batch_.caller, held_ - held_before);
    held_ = held_before;
    for (const LineResult& result : results) again_.push_back(result.line);
    return status;
  }
  batch_.counts.completed = journal_->count(ResultKind::kOutput);
  batch_.counts.failed = journal_->count(ResultKind::kError);
  parts_.batches.ShowCounts(batch_);
  return base::OkStatus();
}

uint64_t BatchRun::RefusedBytes(const BatchInput& input) {
  return input.bytes() + kRefusedBytes * input.size();
}

// A refusal has its room since Begin.
void BatchRun::Hold(LineResult& result) {
  if (!full_.ok()) return void(result = Refused(result.line));
  const uint64_t bytes = BatchJournal::BytesOf(result);
  full_ = parts_.files.Hold(batch_.caller, bytes);
  if (!full_.ok()) return void(result = Refused(result.line));
  held_ += bytes;
}

LineResult BatchRun::Refused(uint32_t line) const {
  auto read = ReadBatchLine(input_->Line(line), batch_.endpoint, limits_);
  return {.line = line,
          .kind = ResultKind::kError,
          .text = RefusedJson(batch_, line, std::get<BatchLine>(read).custom_id, full_)};
}

bool BatchRun::HasResults() const { return !results_.empty() && parts_.clock.Now() >= work_from_; }

bool BatchRun::HasLine() const {
  if (batch_.status != BatchStatus::kInProgress || journal_ == nullptr || stopped_) return false;
  const base::Instant now = parts_.clock.Now();
  if (now < work_from_ || now < send_from_ || running_.size() >= room_) return false;
  if (!again_.empty()) return true;
  uint32_t line = next_;
  while (line < input_->size() && journal_->Has(line)) ++line;
  return line < input_->size();
}

void BatchRun::SendLine() {
  CHECK(HasLine());
  while (next_ < input_->size() && journal_->Has(next_)) ++next_;
  uint32_t line = next_;
  if (line < input_->size()) {
    ++next_;
  } else {
    line = again_.front();
    again_.pop_front();
  }
  if (!full_.ok()) {
    results_.push_back(Refused(line));
    return;
  }
  auto read = ReadBatchLine(input_->Line(line), batch_.endpoint, limits_);
  auto* good = std::get_if<BatchLine>(&read);
  CHECK(good != nullptr) << "a line that was checked";
  auto call = std::make_shared<LineCall>();
  running_.emplace(line, call);
  auto exchange = std::make_unique<LineExchange>(
      call, [answered = parts_.answered, id = batch_.id, line](net::HttpResponse response) {
        answered({.batch_id = id, .line = line, .response = std::move(response)});
      });
  parts_.send({.endpoint = batch_.endpoint,
               .body = std::move(good->body),
               .request_id = LineId(batch_, line),
               .caller = batch_.caller,
               .exchange = std::move(exchange)});
}

void BatchRun::Take(LineAnswer answer) {
  const uint32_t line = answer.line;
  CHECK(running_.erase(line) == 1) << "line " << line << " was not sent";
  const int status = answer.response.status;
  if (stopped_ && status != 200) return;  // given up
  // No room, a limit of the caller's key, or the server is stopping.
  if (status == 503 || status == 429) {
    again_.push_back(line);
    send_from_ = parts_.clock.Now() + RetryAfter(answer.response);
    room_ = std::max<size_t>(1, std::min(room_, running_.size() + 1) / 2);
    return;
  }
  if (room_ < SIZE_MAX) ++room_;
  auto read = ReadBatchLine(input_->Line(line), batch_.endpoint, limits_);
  results_.push_back(
      {.line = line,
       .kind = status == 200 ? ResultKind::kOutput : ResultKind::kError,
       .text = ResultJson(batch_, line, std::get<BatchLine>(read).custom_id, answer)});
}

Status BatchRun::Cancel() {
  if (batch_.cancelling_at != 0) return base::OkStatus();
  if (ended() || batch_.status == BatchStatus::kFinalizing) {
    return base::InvalidArgument("batch_id",
                                 fmt::format("the batch is {} and cannot be cancelled any more",
                                             BatchStatusName(batch_.status)))
        .WithReason("batch_not_cancellable");
  }
  Batch next = batch_;
  next.status = BatchStatus::kCancelling;
  next.cancelling_at = BatchNow(parts_.clock);
  RETURN_IF_ERROR(Put(std::move(next)));
  StopLines();
  return base::OkStatus();
}

void BatchRun::StopLines() {
  if (std::exchange(stopped_, true)) return;
  for (const auto& [line, call] : running_) call->Leave();
}

Status BatchRun::Finish() {
  if (batch_.status == BatchStatus::kInProgress) {
    Batch next = batch_;
    next.status = BatchStatus::kFinalizing;
    next.finalizing_at = BatchNow(parts_.clock);
    RETURN_IF_ERROR(Put(std::move(next)));
  }
  stopped_ = true;
  const bool answered = journal_->done() == input_->size();
  if (batch_.cancelling_at != 0) {
    RETURN_IF_ERROR(WriteOutput());
    RETURN_IF_ERROR(WriteErrors(BatchStatus::kCancelled));
    return End(BatchStatus::kCancelled, &Batch::cancelled_at);
  }
  const BatchStatus outcome = answered ? BatchStatus::kCompleted : BatchStatus::kExpired;
  RETURN_IF_ERROR(WriteOutput());
  RETURN_IF_ERROR(WriteErrors(outcome));
  return End(outcome, answered ? &Batch::completed_at : &Batch::expired_at);
}

Status BatchRun::WriteOutput() {
  batch_.has_output = journal_->count(ResultKind::kOutput) > 0;
  if (!batch_.has_output || parts_.files.Find(batch_.caller, batch_.output_file_id) != nullptr)
    return base::OkStatus();  // as a try before a crash left it
  ASSIGN_OR_RETURN(auto writer, parts_.files.Begin(batch_.output_file_id));
  RETURN_IF_ERROR(journal_->Read(ResultKind::kOutput,
                                 [&](std::string_view text) { return writer->Append(text); }));
  return Commit(std::move(writer), batch_.output_file_id, "output");
}

// Answers that are errors, and then the lines that have no answer.
Status BatchRun::WriteErrors(BatchStatus outcome) {
  batch_.has_errors = journal_->count(ResultKind::kError) > 0 || journal_->done() < input_->size();
  if (!batch_.has_errors || parts_.files.Find(batch_.caller, batch_.error_file_id) != nullptr)
    return base::OkStatus();
  ASSIGN_OR_RETURN(auto writer, parts_.files.Begin(batch_.error_file_id));
  RETURN_IF_ERROR(journal_->Read(ResultKind::kError,
                                 [&](std::string_view text) { return writer->Append(text); }));
  for (uint32_t line = 0; line < input_->size(); ++line) {
    if (journal_->Has(line)) continue;
    auto read = ReadBatchLine(input_->Line(line), batch_.endpoint, limits_);
    const std::string text =
        UnansweredJson(batch_, line, std::get<BatchLine>(read).custom_id, outcome);
    RETURN_IF_ERROR(writer->Append(text + "\n"));
  }
  return Commit(std::move(writer), batch_.error_file_id, "error");
}

Status BatchRun::Commit(std::unique_ptr<FileWriter> writer, const std::string& id,
                        std::string_view what) {
  const int64_t after = batch_.output_expires_after;
  StoredFile file{.id = id,
                  .caller = batch_.caller,
                  .filename = fmt::format("{}_{}.jsonl", batch_.id, what),
                  .purpose = "batch_output",
                  .expires_at = after == 0 ? 0 : parts_.clock.UnixSeconds() + after};
  return base::ToStatus(parts_.files.Commit(std::move(writer), std::move(file)));
}

Status BatchRun::End(BatchStatus status, int64_t Batch::* time) {
  Batch next = batch_;
  next.status = status;
  next.*time = BatchNow(parts_.clock);
  RETURN_IF_ERROR(Put(std::move(next)));
  (void)base::RemoveFile(parts_.batches.JournalPath(batch_.id));  // else when it is opened next
  return base::OkStatus();
}

}  // namespace plumb::api
