// base/folder.cc
// POSIX behind base/folder.h and base/posix_file.h.
#include "base/folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/posix_file.h"

namespace plumb::base {
namespace {

constexpr uint32_t kDiskFullRetryMs = 30'000;

// A name is in its folder for good once the folder has been flushed.
Status FlushFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return FromErrno("open", folder);
  // Some file systems have nothing to flush here and say so.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return FromErrno("flush", folder);
  return OkStatus();
}

}  // namespace

Status NotRegular(const std::string& path) {
  return Status(Code::kInvalidArgument, "'" + path + "' is not a regular file");
}

Status FromErrno(std::string_view what, const std::string& path) {
  const int error = errno;
  std::string message = "cannot " + std::string(what) + " '" + path + "': " + std::strerror(error);
  if (error == ENOENT) return NotFound(std::move(message));
  // A pipe that nobody reads, or a socket.
  if (error == ENXIO) return NotRegular(path);
  // EFBIG: the limit of a process or of a file system.
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return Status(Code::kOverloaded, std::move(message))
        .WithReason("disk_full")
        .WithRetryAfterMs(kDiskFullRetryMs);
  }
  return Internal(std::move(message));
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) return FromErrno("replace", to);
  return FlushFolderOf(to);
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return OkStatus();
  return FromErrno("remove", path);
}

Status MakeFolder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return FromErrno("make", folder);
    if (end == std::string::npos) break;
  }
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return FromErrno("inspect", path);
  if (!S_ISDIR(info.st_mode)) return Internal("'" + path + "' is no folder");
  return FlushFolderOf(path);
}

Result<std::vector<std::string>> ListFolder(const std::string& path, size_t count_max) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(path, error);
  if (error == std::errc::no_such_file_or_directory)
    return NotFound("there is no folder '" + path + "'");
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
    if (names.size() > count_max)
      return Status(Code::kInvalidArgument,
                    "'" + path + "' has more than " + std::to_string(count_max) + " entries");
  }
  if (error) return Internal("cannot list '" + path + "': " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace plumb::base
