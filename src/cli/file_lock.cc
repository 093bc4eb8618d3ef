// cli/file_lock.cc
// Flock behind cli/file_lock.h.
#include "cli/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace plumb::cli {

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

base::Status FileLock::Take(const std::string& path, const std::function<void()>& on_wait) {
  CHECK(fd_ < 0);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) {
    return base::Internal("cannot write '" + path + "': " + std::strerror(errno));
  }
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return base::OkStatus();
  if (!on_wait) {
    return base::Status(base::Code::kOverloaded, "another process is using '" + path + "'");
  }
  on_wait();
  while (flock(fd_, LOCK_EX) != 0) {
    if (errno != EINTR) {
      return base::Internal("cannot lock '" + path + "': " + std::strerror(errno));
    }
  }
  return base::OkStatus();
}

}  // namespace plumb::cli
