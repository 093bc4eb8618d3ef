// cli/file_lock.h
// One process at a time: an advisory lock on a file, which the system frees when its holder ends,
// however it ends.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace plumb::cli {

// A resource type.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Makes the file when missing. When another process holds it: kOverloaded when `on_wait` is
  // empty, else calls it and waits. kInternal: the file cannot be written.
  base::Status Take(const std::string& path, const std::function<void()>& on_wait);

 private:
  int fd_ = -1;
};

}  // namespace plumb::cli
