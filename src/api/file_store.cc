// api/file_store.cc
// See file_store.h.
#include "api/file_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/json_writer.h"
#include "api/stored_record.h"
#include "base/check.h"
#include "base/folder.h"
#include "base/share.h"

namespace plumb::api {

using base::Result;
using base::Status;

namespace {

constexpr std::string_view kRecord = ".json";
constexpr std::string_view kData = ".data";
constexpr std::string_view kPart = ".part";
constexpr int64_t kExpiryPauseSeconds = 10;
constexpr uint32_t kFullRetryMs = 60'000;

std::string RecordJson(const StoredFile& file) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("id").String(file.id).Key("sequence").Uint(file.sequence);
  json.Key("caller").String(HexOf(file.caller)).Key("filename").String(file.filename);
  json.Key("purpose").String(file.purpose).Key("bytes").Uint(file.bytes);
  json.Key("created_at").Int(file.created_at).Key("expires_at").Int(file.expires_at).EndObject();
  return out;
}

Result<StoredFile> ReadRecord(std::string_view text) {
  ASSIGN_OR_RETURN(const StoredRecord record, StoredRecord::Parse(text));
  StoredFile file;
  ASSIGN_OR_RETURN(file.id, record.Text("id"));
  ASSIGN_OR_RETURN(file.caller, record.Hash("caller"));
  ASSIGN_OR_RETURN(file.filename, record.Text("filename"));
  ASSIGN_OR_RETURN(file.purpose, record.Text("purpose"));
  ASSIGN_OR_RETURN(const int64_t sequence, record.Integer("sequence", {1, INT64_MAX - 1}));
  ASSIGN_OR_RETURN(const int64_t bytes, record.Integer("bytes", {1, INT64_MAX}));
  ASSIGN_OR_RETURN(file.created_at, record.Integer("created_at", {0, INT64_MAX}));
  ASSIGN_OR_RETURN(file.expires_at, record.Integer("expires_at", {0, INT64_MAX}));
  file.sequence = static_cast<uint64_t>(sequence);
  file.bytes = static_cast<uint64_t>(bytes);
  return file;
}

Status Full(base::Code code, std::string reason, std::string message) {
  return Status(code, std::move(message))
      .WithReason(std::move(reason))
      .WithRetryAfterMs(kFullRetryMs);
}

// `own_files`: of who is told.
Status AllFull(uint64_t own_files) {
  return Full(base::Code::kOverloaded, "storage_full",
              fmt::format("the server keeps as much as it may for all; {}try again later",
                          own_files > 0 ? "delete some files of yours, or " : ""));
}

Status ShareFull(uint64_t own_files, uint64_t own_bytes) {
  return Full(base::Code::kQuotaExceeded, "storage_share",
              fmt::format("you have {} files here and {} bytes, answers of running batches among "
                          "them, and with this would have more than is left for all others; {}",
                          own_files, own_bytes,
                          own_files > 0 ? "delete some of your files" : "try again later"));
}

}  // namespace

FileWriter::~FileWriter() {
  if (file_ != nullptr) (void)base::RemoveFile(path_);
}

Status FileWriter::Append(std::string_view bytes) {
  if (Status status = file_->Append(bytes); !status.ok()) return StorageError(status);
  bytes_ += bytes.size();
  return base::OkStatus();
}

Result<std::unique_ptr<FileStore>> FileStore::Open(std::string folder, const FileLimits& limits,
                                                   const base::Clock& clock,
                                                   telemetry::Logger& logger) {
  RETURN_IF_ERROR(base::MakeFolder(folder));
  std::unique_ptr<FileStore> store(new FileStore(std::move(folder), limits, clock, logger));
  RETURN_IF_ERROR(store->Load());
  return store;
}

std::string FileStore::Path(std::string_view id, std::string_view kind) const {
  CHECK(IsStoredId(id, kFileIdPrefix)) << "not an id of ours: " << id;
  return fmt::format("{}/{}{}", folder_, id, kind);
}

// Only names of our form are touched: a folder may hold what its operator put there.
Status FileStore::Load() {
  constexpr size_t kNamesPerFile = 3;
  ASSIGN_OR_RETURN(const std::vector<std::string> names,
                   base::ListFolder(folder_, kNamesPerFile * limits_.files_max));
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find('.'));
    const std::string_view kind = std::string_view(name).substr(id.size());
    if (!IsStoredId(id, kFileIdPrefix) || kind != kRecord) continue;
    const Status status = LoadRecord(id);
    if (status.ok()) continue;
    logger_.Log(telemetry::LogLevel::kWarn, "a stored file cannot be read and is left out",
                {{"id", std::string_view(id)}, {"error", std::string_view(status.message())}});
  }
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find('.'));
    const std::string_view kind = std::string_view(name).substr(id.size());
    if (!IsStoredId(id, kFileIdPrefix) || kind == kRecord) continue;
    const bool stray = !std::ranges::binary_search(names, id + std::string(kRecord));
    const bool half = kind == kPart || kind.starts_with(".json.tmp") || (kind == kData && stray);
    if (half) RETURN_IF_ERROR(base::RemoveFile(folder_ + "/" + name));
  }
  return base::OkStatus();
}

Status FileStore::LoadRecord(const std::string& id) {
  ASSIGN_OR_RETURN(const std::string text, base::ReadFile(Path(id, kRecord), kRecordBytesMax));
  ASSIGN_OR_RETURN(StoredFile file, ReadRecord(text));
  if (file.id != id) return base::Corrupt("the record is of " + file.id);
  ASSIGN_OR_RETURN(const auto data, base::MappedFile::Open(Path(id, kData)));
  if (data->bytes().size() != file.bytes) {
    return base::Corrupt(
        fmt::format("{} bytes are there and {} should be", data->bytes().size(), file.bytes));
  }
  const auto shelf = shelves_.find(file.caller);
  if (shelf != shelves_.end() && shelf->second.files.contains(file.sequence))
    return base::Corrupt("another file has its place");
  Keep(std::move(file));
  return base::OkStatus();
}

Status FileStore::CheckRoom(const base::Hash256& caller, uint64_t bytes) const {
  if (bytes > limits_.file_bytes_max) {
    return base::InvalidArgument("file", fmt::format("the file has {} bytes; at most {} are taken",
                                                     bytes, limits_.file_bytes_max))
        .WithReason("request_too_large");
  }
  const auto shelf = shelves_.find(caller);
  const uint64_t own_files = shelf == shelves_.end() ? 0 : shelf->second.files.size();
  if (own_files >= limits_.caller_files_max) {
    return Full(base::Code::kQuotaExceeded, "files_max",
                fmt::format("you have {} files here, as many as you may; delete some", own_files));
  }
  const base::Share of_files{.max = limits_.files_max, .all = count() + 1, .own = own_files + 1};
  if (!base::FitsAll(of_files)) return AllFull(own_files);
  if (limits_.shared && !base::FitsShare(of_files)) return ShareFull(own_files, OwnBytes(caller));
  return CheckBytes(caller, bytes);
}

Status FileStore::CheckBytes(const base::Hash256& caller, uint64_t bytes) const {
  const auto shelf = shelves_.find(caller);
  const uint64_t own_files = shelf == shelves_.end() ? 0 : shelf->second.files.size();
  const uint64_t own_bytes = OwnBytes(caller);
  const base::Share share{.max = limits_.storage_bytes_max,
                          .all = bytes_ + held_bytes_ + bytes,
                          .own = own_bytes + bytes};
  if (!base::FitsAll(share)) return AllFull(own_files);
  if (limits_.shared && !base::FitsShare(share)) return ShareFull(own_files, own_bytes);
  return base::OkStatus();
}

uint64_t FileStore::OwnBytes(const base::Hash256& caller) const {
  const auto shelf = shelves_.find(caller);
  const auto held = held_.find(caller);
  return (shelf == shelves_.end() ? 0 : shelf->second.bytes) +
         (held == held_.end() ? 0 : held->second);
}

Status FileStore::Hold(const base::Hash256& caller, uint64_t bytes) {
  RETURN_IF_ERROR(CheckBytes(caller, bytes));
  HoldAnyway(caller, bytes);
  return base::OkStatus();
}

void FileStore::HoldAnyway(const base::Hash256& caller, uint64_t bytes) {
  if (bytes == 0) return;
  held_[caller] += bytes;
  held_bytes_ += bytes;
}

void FileStore::GiveBack(const base::Hash256& caller, uint64_t bytes) {
  if (bytes == 0) return;
  const auto held = held_.find(caller);
  CHECK(held != held_.end() && held->second >= bytes) << "more is given back than was held";
  held->second -= bytes;
  held_bytes_ -= bytes;
  if (held->second == 0) held_.erase(held);
}

Result<std::unique_ptr<FileWriter>> FileStore::Begin(const std::string& id) {
  std::string path = Path(id, kPart);
  auto file = base::AppendFile::Open(path, 0);
  if (!file.ok()) return StorageError(file.status());
  return std::unique_ptr<FileWriter>(new FileWriter(std::move(path), *std::move(file)));
}

Result<const StoredFile*> FileStore::Commit(std::unique_ptr<FileWriter> writer, StoredFile file) {
  CHECK(writer->bytes_ > 0 && !sequences_.contains(file.id)) << file.id << " is empty or not new";
  file.bytes = writer->bytes_;
  file.sequence = next_sequence_;
  file.created_at = clock_.UnixSeconds();
  const std::string data = Path(file.id, kData);
  Status status = writer->file_->Flush();
  if (status.ok()) status = base::RenameFile(writer->path_, data);
  if (!status.ok()) return StorageError(status);
  writer->file_.reset();  // it has its name: nothing is left to remove
  status = base::WriteFileAtomic(Path(file.id, kRecord), RecordJson(file));
  if (!status.ok()) {
    (void)base::RemoveFile(data);
    return StorageError(status);
  }
  return Keep(std::move(file));
}

const StoredFile* FileStore::Keep(StoredFile file) {
  next_sequence_ = std::max(next_sequence_, file.sequence + 1);
  bytes_ += file.bytes;
  if (file.expires_at != 0) first_expiry_ = std::min(first_expiry_, file.expires_at);
  sequences_[file.id] = file.sequence;
  Shelf& shelf = shelves_[file.caller];
  shelf.bytes += file.bytes;
  const uint64_t sequence = file.sequence;
  const auto [kept, is_new] = shelf.files.emplace(sequence, std::move(file));
  CHECK(is_new) << "another file has its place";
  return &kept->second;
}

const StoredFile* FileStore::Find(const base::Hash256& caller, const std::string& id) const {
  const auto sequence = sequences_.find(id);
  const auto shelf = shelves_.find(caller);
  if (sequence == sequences_.end() || shelf == shelves_.end()) return nullptr;
  const auto file = shelf->second.files.find(sequence->second);
  const bool found = file != shelf->second.files.end() && file->second.id == id;
  return found ? &file->second : nullptr;
}

std::vector<const StoredFile*> FileStore::List(const base::Hash256& caller) const {
  std::vector<const StoredFile*> files;
  const auto shelf = shelves_.find(caller);
  if (shelf == shelves_.end()) return files;
  for (const auto& [sequence, file] : shelf->second.files) files.push_back(&file);
  return files;
}

Result<std::shared_ptr<const base::MappedFile>> FileStore::Map(const StoredFile& file) const {
  auto data = base::MappedFile::Open(Path(file.id, kData));
  if (!data.ok()) return StorageError(data.status());
  return std::shared_ptr<const base::MappedFile>(*std::move(data));
}

// The record first: without it the data is nothing, and goes when the store is opened next.
Status FileStore::Remove(const base::Hash256& caller, const std::string& id) {
  const StoredFile* file = Find(caller, id);
  if (file == nullptr) return base::OkStatus();
  if (Status status = base::RemoveFile(Path(id, kRecord)); !status.ok())
    return StorageError(status);
  const std::string path = Path(id, kData);
  bytes_ -= file->bytes;
  const auto shelf = shelves_.find(caller);
  shelf->second.bytes -= file->bytes;
  sequences_.erase(file->id);
  shelf->second.files.erase(file->sequence);
  if (shelf->second.files.empty()) shelves_.erase(shelf);
  (void)base::RemoveFile(path);
  return base::OkStatus();
}

void FileStore::RemoveExpired(const std::function<bool(const std::string& id)>& in_use) {
  const int64_t now = clock_.UnixSeconds();
  if (now < first_expiry_) return;
  std::vector<std::pair<base::Hash256, std::string>> expired;
  first_expiry_ = INT64_MAX;
  for (const auto& [caller, shelf] : shelves_) {
    for (const auto& [sequence, file] : shelf.files) {
      if (file.expires_at == 0) continue;
      if (file.expires_at <= now && !in_use(file.id)) expired.emplace_back(caller, file.id);
      first_expiry_ = std::min(first_expiry_, std::max(file.expires_at, now + kExpiryPauseSeconds));
    }
  }
  // What cannot be removed is tried again, since first_expiry_ counts it.
  for (const auto& [caller, id] : expired) (void)Remove(caller, id);
}

}  // namespace plumb::api
