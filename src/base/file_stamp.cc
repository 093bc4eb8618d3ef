// base/file_stamp.cc
// One call of stat, behind base/file_stamp.h.
#include "base/file_stamp.h"

#include <sys/stat.h>

#include "base/posix_file.h"

namespace plumb::base {

Result<FileStamp> StampFile(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return FromErrno("inspect", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  const auto ns = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return FileStamp{.size = static_cast<uint64_t>(info.st_size),
                   .modified_ns = ns(info.st_mtim),
                   .changed_ns = ns(info.st_ctim),
                   .inode = info.st_ino,
                   .device = info.st_dev};
}

}  // namespace plumb::base
