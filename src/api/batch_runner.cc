// api/batch_runner.cc
// See batch_runner.h.
#include "api/batch_runner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace plumb::api {

using base::Result;
using base::Status;

// Those that were under way are at once again, so that their counts are those of their journals
// before anybody can ask.
BatchRunner::BatchRunner(const BatchRunnerOptions& options, BatchParts parts)
    : options_(options), parts_(std::move(parts)) {
  CHECK(options_.lines_at_once > 0 && options_.batches_at_once > 0);
  for (Batch& batch : parts_.batches.Unfinished()) {
    if (batch.in_progress_at == 0) {
      waiting_.push_back(std::move(batch));
      continue;
    }
    runs_.push_back(std::make_unique<BatchRun>(std::move(batch), parts_, options_.input));
    runs_.back()->Work();
  }
}

Result<const Batch*> BatchRunner::Create(Batch batch) {
  batch.created_at = BatchNow(parts_.clock);
  batch.expires_at = batch.created_at + options_.window_seconds;
  ASSIGN_OR_RETURN(const Batch* added, parts_.batches.Add(std::move(batch)));
  waiting_.push_back(*added);
  return added;
}

BatchRun* BatchRunner::FindRun(const std::string& id) {
  for (const auto& run : runs_)
    if (run->batch().id == id) return run.get();
  return nullptr;
}

Status BatchRunner::Cancel(const Batch& batch) {
  if (BatchRun* run = FindRun(batch.id)) return run->Cancel();
  BatchRun alone(batch, parts_, options_.input);  // nothing of it runs: what it says is written
  RETURN_IF_ERROR(alone.Cancel());
  for (Batch& waiting : waiting_)
    if (waiting.id == batch.id) waiting = alone.batch();
  return base::OkStatus();
}

void BatchRunner::Take(LineAnswer answer) {
  BatchRun* run = FindRun(answer.batch_id);
  CHECK(run != nullptr) << "an answer of a batch that does not run: " << answer.batch_id;
  run->Take(std::move(answer));
}

bool BatchRunner::Turn() {
  StartWaiting();
  bool more = false;
  for (const auto& run : runs_) more = run->Work() || more;
  for (const auto& run : runs_) {
    if (!run->ended()) continue;
    CHECK(run->running() == 0) << "a batch ended before its lines";
    const Batch& batch = run->batch();
    parts_.logger.Log(telemetry::LogLevel::kInfo, "batch",
                      {{"id", std::string_view(batch.id)},
                       {"status", BatchStatusName(batch.status)},
                       {"completed", int64_t{batch.counts.completed}},
                       {"failed", int64_t{batch.counts.failed}},
                       {"total", int64_t{batch.counts.total}}});
  }
  std::erase_if(runs_, [](const auto& run) { return run->ended(); });
  if (!paused_.load()) SendLines();
  const bool kept = std::ranges::none_of(runs_, [](const auto& run) { return run->HasResults(); });
  return more || !kept || (!waiting_.empty() && runs_.size() < options_.batches_at_once);
}

void BatchRunner::StartWaiting() {
  const auto running_of = [this](const Batch& batch) {
    return std::ranges::count_if(
        runs_, [&](const auto& run) { return run->batch().caller == batch.caller; });
  };
  while (runs_.size() < options_.batches_at_once && !waiting_.empty()) {
    const auto next = std::ranges::min_element(waiting_, {}, running_of);
    runs_.push_back(std::make_unique<BatchRun>(std::move(*next), parts_, options_.input));
    waiting_.erase(next);
  }
}

void BatchRunner::SendLines() {
  size_t running = 0;
  for (const auto& run : runs_) running += run->running();
  const bool alone = !parts_.live || parts_.live() <= running;
  const size_t running_max = alone ? options_.lines_at_once
                                   : std::min(options_.lines_at_once, options_.lines_beside_others);
  size_t tried = 0;  // runs in a row that had nothing to send
  while (running < running_max && tried < runs_.size()) {
    BatchRun& run = *runs_[next_run_++ % runs_.size()];
    ++tried;
    if (!run.HasLine()) continue;
    run.SendLine();
    ++running;
    tried = 0;
  }
}

bool BatchRunner::Uses(const std::string& file_id) const {
  const auto reads = [&](const Batch& batch) { return batch.input_file_id == file_id; };
  return std::ranges::any_of(waiting_, reads) ||
         std::ranges::any_of(runs_, [&](const auto& run) { return reads(run->batch()); });
}

}  // namespace plumb::api
