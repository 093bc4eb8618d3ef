// api/batches.cc
// See batches.h.
#include "api/batches.h"

#include <utility>

#include "api/batch_calls.h"
#include "api/errors.h"
#include "api/file_calls.h"
#include "base/check.h"
#include "base/share.h"

namespace plumb::api {

using base::Result;
using base::Status;

namespace {

constexpr uint32_t kRetryAfterMs = 2000;
// How long nobody looks whether a batch's or a file's time is over.
constexpr base::Duration kTick = base::Milliseconds(500);
constexpr base::Duration kIdleTick = base::Seconds(30);

Status Busy() {
  return Status(base::Code::kOverloaded, "too many calls of files and batches wait; try again")
      .WithRetryAfterMs(kRetryAfterMs);
}

}  // namespace

Result<std::unique_ptr<DataFolder>> DataFolder::Open(const std::string& path,
                                                     const DataLimits& limits,
                                                     const base::Clock& clock,
                                                     telemetry::Logger& logger) {
  auto folder = std::make_unique<DataFolder>();
  folder->limits = limits;
  ASSIGN_OR_RETURN(folder->files, FileStore::Open(path + "/files", limits.files, clock, logger));
  ASSIGN_OR_RETURN(folder->batches, BatchStore::Open(path + "/batches", limits.batches, logger));
  return folder;
}

// `own` is nothing where all callers are one.
bool BatchInbox::Fits(const Load& all, const Load& own) const {
  return base::FitsShare({.max = calls_max_, .all = all.calls, .own = own.calls}) &&
         base::FitsShare({.max = calls_bytes_max_, .all = all.bytes, .own = own.bytes});
}

bool BatchInbox::Push(Call& call) {
  base::MutexLock lock(mutex_);
  const auto with_call = [bytes = call.request.body.size()](Load load) {
    return Load{.calls = load.calls + 1, .bytes = load.bytes + bytes};
  };
  const Load all = with_call(load_);
  const bool has_key = call.isolation != base::Hash256{};
  const auto found = loads_.find(call.isolation);
  const Load own = with_call(found == loads_.end() ? Load{} : found->second);
  if (waiting_.closed || !Fits(all, has_key ? own : Load{})) return false;
  load_ = all;
  if (has_key) loads_[call.isolation] = own;
  waiting_.calls.push_back(std::move(call));
  changed_.NotifyOne();
  return true;
}

void BatchInbox::Push(LineAnswer answer) {
  base::MutexLock lock(mutex_);
  if (waiting_.closed) return;
  waiting_.answers.push_back(std::move(answer));
  changed_.NotifyOne();
}

void BatchInbox::Close() {
  base::MutexLock lock(mutex_);
  waiting_.closed = true;
  changed_.NotifyOne();
}

BatchInbox::Taken BatchInbox::Take(base::Duration time) {
  base::MutexLock lock(mutex_);
  changed_.WaitFor(lock, time, [&]() HOLDS(mutex_) {
    return waiting_.closed || !waiting_.calls.empty() || !waiting_.answers.empty();
  });
  Taken taken = std::move(waiting_);
  waiting_ = {.answers = {}, .calls = {}, .closed = taken.closed};
  load_ = {};
  loads_.clear();
  return taken;
}

Batches::Batches(std::unique_ptr<DataFolder> folder, Parts parts)
    : folder_(std::move(folder)),
      parts_(std::move(parts)),
      inbox_(
          std::make_shared<BatchInbox>(folder_->limits.calls_max, folder_->limits.calls_bytes_max)),
      runner_(
          folder_->limits.runner,
          {.files = *folder_->files,
           .batches = *folder_->batches,
           .clock = parts_.clock,
           .logger = parts_.logger,
           .send = parts_.send,
           .answered = [inbox = inbox_](LineAnswer answer) { inbox->Push(std::move(answer)); }}),
      thread_("batches", [this] { Run(); }) {}

Batches::~Batches() { Stop(); }

void Batches::Stop() {
  inbox_->Close();
  if (thread_.joinable()) thread_.Join();
}

void Batches::Handle(Call call) {
  if (!inbox_->Push(call)) parts_.answer(call, {ErrorResponse(ErrorFromStatus(Busy())), nullptr});
}

// Answers first, so that a turn flushes all of them at once.
void Batches::Run() {
  bool more = true;
  for (bool closed = false; !closed;) {
    const base::Duration wait = more ? base::Duration() : runner_.idle() ? kIdleTick : kTick;
    BatchInbox::Taken taken = inbox_->Take(wait);
    closed = taken.closed;
    for (LineAnswer& answer : taken.answers) runner_.Take(std::move(answer));
    for (Call& call : taken.calls) {
      DataAnswer answer = Answer(call);
      call.request.body = {};
      parts_.answer(call, std::move(answer));
    }
    folder_->files->RemoveExpired([this](const std::string& id) { return runner_.Uses(id); });
    more = runner_.Turn();
  }
}

// Of two endpoints with one path, the method decides; the routing table let no other through.
DataAnswer Batches::Answer(const Call& call) {
  const bool post = call.request.method == net::HttpMethod::kPost;
  FileCalls files{*folder_->files, runner_, parts_.clock, parts_.logger};
  BatchCalls batches{*folder_->files, *folder_->batches, runner_, parts_.endpoints, parts_.logger};
  if (call.route == kFileContentRoute) return files.Content(call);
  if (call.route == kFilesRoute) return {post ? files.Upload(call) : files.List(call), nullptr};
  if (call.route == kFileRoute) {
    const bool deletes = call.request.method == net::HttpMethod::kDelete;
    return {deletes ? files.Delete(call) : files.Get(call), nullptr};
  }
  if (call.route == kBatchesRoute)
    return {post ? batches.Create(call) : batches.List(call), nullptr};
  if (call.route == kBatchRoute) return {batches.Get(call), nullptr};
  CHECK(call.route == kBatchCancelRoute) << "not a route of files or batches: " << call.route;
  return {batches.Cancel(call), nullptr};
}

}  // namespace plumb::api
