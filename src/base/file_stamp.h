// base/file_stamp.h
// Whether a file is still the one that it was, told without reading it.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace plumb::base {

// Every write changes a file's times, and nobody can set the second one, the time of the last
// change to its content or to what the system knows of it. The times are the file system's own,
// often steps of milliseconds, so a file younger than a step may change and keep them.
struct FileStamp {
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970-01-01 UTC, as the next one
  int64_t changed_ns = 0;
  uint64_t inode = 0;
  uint64_t device = 0;
  bool operator==(const FileStamp&) const = default;
};
// Links are followed. kNotFound; kInvalidArgument: not a regular file; kInternal: refused.
Result<FileStamp> StampFile(const std::string& path);

}  // namespace plumb::base
