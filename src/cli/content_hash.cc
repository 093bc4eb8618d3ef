// cli/content_hash.cc
// Which files, which of them are known, the others read side by side; behind cli/content_hash.h.
#include "cli/content_hash.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cli/sha256.h"
#include "model/hf_folder.h"

namespace plumb::cli {
namespace {
namespace fs = std::filesystem;

struct HashedFile {
  std::string name;  // in its folder; empty: there is none
  std::string path;
  base::FileStamp stamp;
  std::string digest;  // empty: not known yet
};

base::Result<std::vector<HashedFile>> FilesOf(const std::string& path) {
  std::vector<HashedFile> files;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    files.push_back({.name = "", .path = path, .stamp = {}, .digest = ""});
  } else {
    ASSIGN_OR_RETURN(const model::HfFolder folder, model::HfFolder::Open(path));
    ASSIGN_OR_RETURN(const std::vector<std::string> names, folder.FileNames());
    for (const std::string& name : names) {
      ASSIGN_OR_RETURN(std::string file, folder.PathOf(name));
      files.push_back({.name = name, .path = std::move(file), .stamp = {}, .digest = ""});
    }
  }
  for (HashedFile& file : files) {
    ASSIGN_OR_RETURN(file.stamp, base::StampFile(file.path));
  }
  return files;
}

std::string Combined(const std::vector<HashedFile>& files) {
  if (files[0].name.empty()) return files[0].digest;
  Sha256 hash;
  for (const HashedFile& file : files) hash.Update(file.name + " " + file.digest + "\n");
  return hash.Finish();
}

// Reads the files without a digest, side by side where there is a pool; gives their places.
base::Result<std::vector<uint32_t>> ReadUnknown(std::vector<HashedFile>& files,
                                                tensor::ThreadPool* pool,
                                                const HashProgress& progress) {
  std::vector<uint32_t> unknown;
  uint64_t bytes_total = 0;
  for (uint32_t i = 0; i < files.size(); ++i) {
    if (!files[i].digest.empty()) continue;
    unknown.push_back(i);
    bytes_total += files[i].stamp.size;
  }
  if (unknown.empty()) return unknown;
  if (progress.on_start) progress.on_start(bytes_total);
  base::Mutex mutex;  // guards bytes_done and calls of on_progress
  uint64_t bytes_done = 0;
  std::vector<base::Status> ends(unknown.size());
  const auto read = [&](uint32_t item) {
    HashedFile& file = files[unknown[item]];
    uint64_t before = 0;
    auto digest = Sha256OfFile(file.path, [&](uint64_t done) {
      base::MutexLock lock(mutex);
      bytes_done += done - std::exchange(before, done);
      if (progress.on_progress) progress.on_progress(bytes_done);
    });
    ends[item] = digest.status();
    if (digest.ok()) file.digest = std::move(digest).value();
  };
  const auto count = static_cast<uint32_t>(unknown.size());
  if (pool != nullptr) {
    pool->ParallelFor(count, read);
  } else {
    for (uint32_t item = 0; item < count; ++item) read(item);
  }
  for (const base::Status& end : ends) RETURN_IF_ERROR(end);
  return unknown;
}

// What names a file or model in what is kept.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return error ? path : whole.string();
}

std::string KeyOf(const HashedFile& file) {
  Sha256 hash;
  hash.Update(Absolute(file.path));
  return hash.Finish();
}

// Looked at that second, it had been as it was for a while, and it still is.
bool MayBeKept(const HashedFile& file, int64_t looked_at_seconds) {
  const int64_t changed_ns = std::max(file.stamp.modified_ns, file.stamp.changed_ns);
  const auto now = base::StampFile(file.path);
  return changed_ns / 1'000'000'000 <= looked_at_seconds - kYoungSeconds && now.ok() &&
         *now == file.stamp;
}

}  // namespace

base::Result<std::string> ContentHash(const std::string& path, const HashProgress& progress) {
  ASSIGN_OR_RETURN(std::vector<HashedFile> files, FilesOf(path));
  RETURN_IF_ERROR(base::ToStatus(ReadUnknown(files, nullptr, progress)));
  return Combined(files);
}

base::Result<KnownHash> FindContentHash(const std::string& path, const KeptDigests& kept,
                                        const base::Clock& clock, tensor::ThreadPool& pool,
                                        const HashProgress& progress) {
  const int64_t looked_at_seconds = clock.UnixSeconds();
  ASSIGN_OR_RETURN(std::vector<HashedFile> files, FilesOf(path));
  const std::vector<KeptDigest> known = kept.Load(Absolute(path));
  std::vector<std::string> keys;
  for (HashedFile& file : files) {
    keys.push_back(KeyOf(file));
    const auto found = std::find_if(known.begin(), known.end(), [&](const KeptDigest& entry) {
      return entry.path_digest == keys.back() && entry.stamp == file.stamp;
    });
    if (found != known.end()) file.digest = found->digest;
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> read, ReadUnknown(files, &pool, progress));
  KnownHash result{.content = Combined(files), .kept = base::OkStatus()};
  std::vector<KeptDigest> entries;
  bool fresh = false;
  for (uint32_t i = 0; i < files.size(); ++i) {
    const bool was_read = std::binary_search(read.begin(), read.end(), i);
    if (was_read && !MayBeKept(files[i], looked_at_seconds)) continue;
    fresh = fresh || was_read;
    entries.push_back({keys[i], files[i].stamp, files[i].digest});
  }
  if (fresh) result.kept = kept.Save(Absolute(path), entries);
  return result;
}

}  // namespace plumb::cli
