// api/file_store.h
// Files that callers have uploaded, and those that batches made, in a folder of their own:
// <id>.data, the bytes, and <id>.json, which says whose they are. A file is there exactly when its
// record is, and the record comes last, in one step: a crash at any moment leaves a whole file or
// none. Ids are ours; a caller's file name is a label and never part of a path. Each caller sees
// its own files and nobody else's. Read next: api/file_calls.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/disk.h"
#include "base/hash.h"
#include "base/result.h"
#include "telemetry/log.h"

namespace plumb::api {

constexpr std::string_view kFileIdPrefix = "file-";

struct FileLimits {
  uint64_t file_bytes_max = 512u << 20;
  uint64_t storage_bytes_max = 16ull << 30;  // of all callers
  size_t caller_files_max = 10'000;
  size_t files_max = 100'000;
  // Of the last and the one before, each caller has a share (base/share.h). False: there is one
  // caller, and all is his.
  bool shared = true;
};

// A value type.
struct StoredFile {
  std::string id;
  uint64_t sequence = 0;  // in order of storing
  base::Hash256 caller;   // engine::Request::isolation
  std::string filename;
  std::string purpose;
  uint64_t bytes = 0;
  int64_t created_at = 0;  // Unix seconds
  int64_t expires_at = 0;  // 0: never
};

// A file on its way to the disk; gone again when it is not committed.
class FileWriter {
 public:
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  base::Status Append(std::string_view bytes);  // StorageError

 private:
  friend class FileStore;
  FileWriter(std::string path, std::unique_ptr<base::AppendFile> file)
      : path_(std::move(path)), file_(std::move(file)) {}
  const std::string path_;
  std::unique_ptr<base::AppendFile> file_;
  uint64_t bytes_ = 0;
};

// A resource type. Thread: one at a time; writing takes as long as the disk does.
class FileStore {
 public:
  // Reads what is there. Half files that a crash left are removed, records that cannot be read are
  // logged and left alone. One process at a time, which the caller sees to. kInternal and the rest
  // of base/disk.h, for the operator: the folder cannot be made, read or written.
  static base::Result<std::unique_ptr<FileStore>> Open(std::string folder, const FileLimits& limits,
                                                       const base::Clock& clock,
                                                       telemetry::Logger& logger);

  // For one more file of so many bytes, before it is taken; 0: of a size that nobody knows yet.
  // kInvalidArgument (reason request_too_large): the file alone; kQuotaExceeded (reason files_max,
  // storage_share): the caller has too many, or more than is left for others; kOverloaded (reason
  // storage_full): all together have.
  base::Status CheckRoom(const base::Hash256& caller, uint64_t bytes) const;
  // Bytes of a caller that are not in a file yet and will be: from now on they count as if they
  // were, until they are given back. kQuotaExceeded, kOverloaded: as above, and nothing is held.
  base::Status Hold(const base::Hash256& caller, uint64_t bytes);
  // Whether there is room or not: they are there.
  void HoldAnyway(const base::Hash256& caller, uint64_t bytes);
  void GiveBack(const base::Hash256& caller, uint64_t bytes);  // CHECK: no more than it holds
  base::Result<std::unique_ptr<FileWriter>> Begin(const std::string& id);
  // Id, caller, filename, purpose and expires_at are given; the rest is filled in. CHECK: not
  // empty, and no file has that id. On an error there is none. The pointer is valid until it is
  // removed.
  base::Result<const StoredFile*> Commit(std::unique_ptr<FileWriter> writer, StoredFile file);

  // Null: it was never there, is gone, or is another caller's.
  const StoredFile* Find(const base::Hash256& caller, const std::string& id) const;
  // A caller's, oldest first.
  std::vector<const StoredFile*> List(const base::Hash256& caller) const;
  // The bytes, as long as somebody holds them, also once the file is removed.
  base::Result<std::shared_ptr<const base::MappedFile>> Map(const StoredFile& file) const;
  // An id that is not there is no error.
  base::Status Remove(const base::Hash256& caller, const std::string& id);
  // Those of which the time is over, but for those that are in use.
  void RemoveExpired(const std::function<bool(const std::string& id)>& in_use);

  uint64_t bytes() const { return bytes_; }
  size_t count() const { return sequences_.size(); }
  const FileLimits& limits() const { return limits_; }

 private:
  struct Shelf {                           // one caller's
    std::map<uint64_t, StoredFile> files;  // by sequence
    uint64_t bytes = 0;
  };

  FileStore(std::string folder, const FileLimits& limits, const base::Clock& clock,
            telemetry::Logger& logger)
      : folder_(std::move(folder)), limits_(limits), clock_(clock), logger_(logger) {}
  std::string Path(std::string_view id, std::string_view kind) const;
  base::Status Load();
  base::Status LoadRecord(const std::string& id);
  const StoredFile* Keep(StoredFile file);
  uint64_t OwnBytes(const base::Hash256& caller) const;  // what it holds among them
  base::Status CheckBytes(const base::Hash256& caller, uint64_t bytes) const;

  const std::string folder_;
  const FileLimits limits_;
  const base::Clock& clock_;
  telemetry::Logger& logger_;
  std::map<base::Hash256, Shelf> shelves_;     // none is empty
  std::map<std::string, uint64_t> sequences_;  // by id
  uint64_t next_sequence_ = 1;
  uint64_t bytes_ = 0;                      // of files
  std::map<base::Hash256, uint64_t> held_;  // none is 0
  uint64_t held_bytes_ = 0;                 // of all
  int64_t first_expiry_ = INT64_MAX;        // no file is to be removed before
};

}  // namespace plumb::api
