// cli/output_file.h
// A command's output takes the place of its own kind of file only, and only once it is complete:
// it grows under another name beside the place it is for, and gets its name last.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "cli/file_lock.h"

namespace plumb::cli {

// Whether `path` may be written: nothing is there, or an empty file, or one that begins with
// `start`, as `kind` ("report") does. kInvalidArgument with field `flag`: something else is.
base::Status CheckReplaceable(const std::string& path, const char* flag, std::string_view start,
                              std::string_view kind);

// The file while it grows; removed unless it got its name. A resource type.
class UnfinishedFile {
 public:
  UnfinishedFile() = default;
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  // Once: makes `path` and keeps other runs from it, so that two do not mix their bytes. The errors
  // of FileLock::Take.
  base::Status Begin(const std::string& path);
  const std::string& path() const { return path_; }
  // kInternal: refused; the file is removed as if this had not been called.
  base::Status Rename(const std::string& to);

 private:
  FileLock lock_;
  std::string path_;  // empty: nothing to remove
};

}  // namespace plumb::cli
