// api/batch_store.cc
// See batch_store.h.
#include "api/batch_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/file_store.h"
#include "api/stored_record.h"
#include "base/check.h"
#include "base/disk.h"
#include "base/folder.h"

namespace plumb::api {

using base::Result;
using base::Status;

namespace {

constexpr std::string_view kRecord = ".json";
constexpr std::string_view kJournal = ".journal";
constexpr uint32_t kFullRetryMs = 60'000;

Status TooMany(base::Code code, std::string message) {
  return Status(code, std::move(message)).WithReason("batches_max").WithRetryAfterMs(kFullRetryMs);
}

}  // namespace

Result<std::unique_ptr<BatchStore>> BatchStore::Open(std::string folder,
                                                     const BatchStoreLimits& limits,
                                                     telemetry::Logger& logger) {
  RETURN_IF_ERROR(base::MakeFolder(folder));
  std::unique_ptr<BatchStore> store(new BatchStore(std::move(folder), limits, logger));
  RETURN_IF_ERROR(store->Load());
  return store;
}

std::string BatchStore::Path(const std::string& id, std::string_view kind) const {
  CHECK(IsStoredId(id, kBatchIdPrefix)) << "not an id of ours: " << id;
  return fmt::format("{}/{}{}", folder_, id, kind);
}

std::string BatchStore::JournalPath(const std::string& id) const { return Path(id, kJournal); }

// A journal without an unfinished batch is what a crash left between the last two steps.
Status BatchStore::Load() {
  constexpr size_t kNamesPerBatch = 3;
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   base::ListFolder(folder_, kNamesPerBatch * limits_.batches_max));
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find('.'));
    if (!IsStoredId(id, kBatchIdPrefix) || name.substr(id.size()) != kRecord) continue;
    const Status status = LoadRecord(id);
    if (status.ok()) continue;
    logger_.Log(telemetry::LogLevel::kWarn, "a stored batch cannot be read and is left out",
                {{"id", std::string_view(id)}, {"error", std::string_view(status.message())}});
  }
  const std::vector<Batch> unfinished = Unfinished();
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find('.'));
    const std::string_view kind = std::string_view(name).substr(id.size());
    if (!IsStoredId(id, kBatchIdPrefix)) continue;
    const bool known = sequences_.contains(id);
    const bool runs =
        std::ranges::any_of(unfinished, [&](const Batch& batch) { return batch.id == id; });
    const bool half = kind.starts_with(".json.tmp") || (kind == kJournal && known && !runs);
    if (half) RETURN_IF_ERROR(base::RemoveFile(folder_ + "/" + name));
  }
  return base::OkStatus();
}

Status BatchStore::LoadRecord(const std::string& id) {
  ASSIGN_OR_RETURN(const std::string text, base::ReadFile(Path(id, kRecord), kRecordBytesMax));
  ASSIGN_OR_RETURN(Batch batch, ReadBatchRecord(text));
  if (batch.id != id) return base::Corrupt("the record is of " + batch.id);
  const auto shelf = shelves_.find(batch.caller);
  if (shelf != shelves_.end() && shelf->second.contains(batch.sequence))
    return base::Corrupt("another batch has its place");
  Keep(std::move(batch));
  return base::OkStatus();
}

void BatchStore::Keep(Batch batch) {
  next_sequence_ = std::max(next_sequence_, batch.sequence + 1);
  sequences_[batch.id] = batch.sequence;
  Shelf& shelf = shelves_[batch.caller];
  shelf.insert_or_assign(batch.sequence, std::move(batch));
}

const Batch* BatchStore::OldestEnded(const Shelf& shelf) {
  for (const auto& [sequence, batch] : shelf)
    if (HasEnded(batch.status)) return &batch;
  return nullptr;
}

Status BatchStore::Forget(const Batch& batch) {
  if (Status status = base::RemoveFile(Path(batch.id, kRecord)); !status.ok())
    return StorageError(status);
  const auto shelf = shelves_.find(batch.caller);
  const uint64_t sequence = batch.sequence;
  sequences_.erase(batch.id);
  shelf->second.erase(sequence);
  if (shelf->second.empty()) shelves_.erase(shelf);
  return base::OkStatus();
}

// One goes for the one that comes: of the caller's own, or when all together are too many, of
// whoever has most. Those that run go never.
Status BatchStore::MakeRoom(const base::Hash256& caller) {
  const auto shelf = shelves_.find(caller);
  const size_t kept = shelf == shelves_.end() ? 0 : shelf->second.size();
  const bool full = sequences_.size() >= limits_.batches_max;
  if (!full && kept < limits_.caller_batches_max) return base::OkStatus();
  const Batch* ended = kept > 0 ? OldestEnded(shelf->second) : nullptr;
  size_t most = 0;
  for (const auto& [other, batches] : shelves_) {
    if (!full || kept > 0 || batches.size() <= most) continue;
    if (const Batch* batch = OldestEnded(batches)) {
      ended = batch;
      most = batches.size();
    }
  }
  if (ended != nullptr) return Forget(*ended);
  if (full) {
    return TooMany(base::Code::kOverloaded,
                   "the server keeps as many batches as it may; try again later");
  }
  return TooMany(base::Code::kQuotaExceeded,
                 fmt::format("{} batches of yours have not ended, as many as may wait; try again "
                             "when one has, or cancel one",
                             kept));
}

Result<const Batch*> BatchStore::Add(Batch batch) {
  RETURN_IF_ERROR(MakeRoom(batch.caller));
  batch.id = NewStoredId(kBatchIdPrefix);
  batch.sequence = next_sequence_;
  batch.output_file_id = NewStoredId(kFileIdPrefix);
  batch.error_file_id = NewStoredId(kFileIdPrefix);
  const Status status = base::WriteFileAtomic(Path(batch.id, kRecord), BatchRecordJson(batch));
  if (!status.ok()) return StorageError(status);
  const base::Hash256 caller = batch.caller;
  const std::string id = batch.id;
  Keep(std::move(batch));
  return Find(caller, id);
}

Status BatchStore::Put(const Batch& batch) {
  Batch* kept = FindKept(batch.caller, batch.id);
  CHECK(kept != nullptr) << "a batch that was never added: " << batch.id;
  const Status status = base::WriteFileAtomic(Path(batch.id, kRecord), BatchRecordJson(batch));
  if (!status.ok()) return StorageError(status);
  *kept = batch;
  return base::OkStatus();
}

void BatchStore::ShowCounts(const Batch& batch) {
  Batch* kept = FindKept(batch.caller, batch.id);
  CHECK(kept != nullptr) << "a batch that was never added: " << batch.id;
  kept->counts = batch.counts;
}

Batch* BatchStore::FindKept(const base::Hash256& caller, const std::string& id) {
  const auto sequence = sequences_.find(id);
  const auto shelf = shelves_.find(caller);
  if (sequence == sequences_.end() || shelf == shelves_.end()) return nullptr;
  const auto batch = shelf->second.find(sequence->second);
  const bool found = batch != shelf->second.end() && batch->second.id == id;
  return found ? &batch->second : nullptr;
}

const Batch* BatchStore::Find(const base::Hash256& caller, const std::string& id) const {
  return const_cast<BatchStore*>(this)->FindKept(caller, id);
}

std::vector<const Batch*> BatchStore::List(const base::Hash256& caller) const {
  std::vector<const Batch*> batches;
  const auto shelf = shelves_.find(caller);
  if (shelf == shelves_.end()) return batches;
  for (const auto& [sequence, batch] : shelf->second) batches.push_back(&batch);
  return batches;
}

std::vector<Batch> BatchStore::Unfinished() const {
  std::vector<Batch> batches;
  for (const auto& [caller, shelf] : shelves_) {
    for (const auto& [sequence, batch] : shelf)
      if (!HasEnded(batch.status)) batches.push_back(batch);
  }
  std::ranges::sort(batches, {}, &Batch::sequence);
  return batches;
}

}  // namespace plumb::api
