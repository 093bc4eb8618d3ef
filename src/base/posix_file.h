// base/posix_file.h
// Internal to base: what base/disk.h and base/folder.h are both made of.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace plumb::base {

// Closes on every way out.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// "'x' is not a regular file".
Status NotRegular(const std::string& path);

// What errno says of an attempt: kNotFound; kOverloaded with reason "disk_full"; kInvalidArgument
// for what is no file; else kInternal.
Status FromErrno(std::string_view what, const std::string& path);

}  // namespace plumb::base
