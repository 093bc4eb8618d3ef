// base/disk.cc: POSIX files behind base/disk.h.
// Every call that may be interrupted is repeated; every way out closes what it opened.
#include "base/disk.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/folder.h"
#include "base/posix_file.h"

namespace plumb::base {
namespace {

// O_NONBLOCK matters for pipes alone, which would wait in open for their other end; a regular file
// reads and writes as without it.
constexpr int kOpenFlags = O_CLOEXEC | O_NONBLOCK;
constexpr uint64_t kReadStep = 4096;  // beyond the size that a file says it has

Status TooLarge(const std::string& path, const std::string& size, uint64_t size_max) {
  return Status(Code::kInvalidArgument, "'" + path + "' has " + size + " bytes; at most " +
                                            std::to_string(size_max) + " are allowed");
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FromErrno("write", path);
    content.remove_prefix(static_cast<size_t>(written));
  }
  return OkStatus();
}

// The size of an open regular file.
Result<uint64_t> RegularSize(int fd, const std::string& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return FromErrno("inspect", path);
  if (!S_ISREG(info.st_mode)) return NotRegular(path);
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, uint64_t size_max) {
  Fd fd(open(path.c_str(), O_RDONLY | kOpenFlags));
  if (fd.get() < 0) return FromErrno("open", path);
  ASSIGN_OR_RETURN(const uint64_t size, RegularSize(fd.get(), path));
  if (size > size_max) return TooLarge(path, std::to_string(size), size_max);
  // What `read` gives counts, not what the size says: the kernel's own files (/proc, /sys) have
  // size 0 and content all the same. One byte more than there should be, so that the end is seen.
  std::string content(size + 1, '\0');
  uint64_t done = 0;
  while (true) {
    const ssize_t got = read(fd.get(), content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno("read", path);
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
    if (done > size_max) return TooLarge(path, "more", size_max);
    if (done == content.size()) content.resize(done + kReadStep);
  }
  content.resize(done);
  return content;
}

Status WriteFileAtomic(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) return FromErrno("create", temporary);
  Status status = WriteAll(fd.get(), content, temporary);
  if (status.ok() && fsync(fd.get()) != 0) status = FromErrno("flush", temporary);
  if (status.ok()) status = RenameFile(temporary, path);
  if (!status.ok()) (void)unlink(temporary.c_str());  // what is half takes room for nothing
  return status;
}

Result<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | kOpenFlags));
  if (fd.get() < 0) return FromErrno("open", path);
  ASSIGN_OR_RETURN(const uint64_t size, RegularSize(fd.get(), path));
  if (size == 0) return Status(Code::kInvalidArgument, "'" + path + "' is empty");
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return FromErrno("map", path);
  // What the kernel has yet to fetch comes in pages of 2 MiB where the file system can (ext4 since
  // Linux 6.16, XFS): weights of gigabytes are read half as fast again. A wish, as below.
  (void)madvise(data, size, MADV_HUGEPAGE);
  return std::unique_ptr<MappedFile>(new MappedFile(static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() { munmap(const_cast<std::byte*>(data_), size_); }

// By whole pages: those within the bytes for kRandom, since neighbours may be read in order; those
// that hold any of them for kWillNeed.
void Advise(std::span<const std::byte> bytes, MapAdvice advice) {
  if (bytes.empty()) return;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = reinterpret_cast<uintptr_t>(bytes.data());
  auto end = begin + bytes.size();
  const bool random = advice == MapAdvice::kRandom;
  begin = (random ? begin + page - 1 : begin) / page * page;
  end = (random ? end : end + page - 1) / page * page;
  if (begin >= end) return;
  // A refusal is no fault of the caller's: hints are not needed for correctness.
  void* pages = reinterpret_cast<void*>(begin);
  (void)madvise(pages, end - begin, random ? MADV_RANDOM : MADV_WILLNEED);
  if (random) (void)madvise(pages, end - begin, MADV_NOHUGEPAGE);  // 2 MiB for one row otherwise
}

Result<std::unique_ptr<AppendFile>> AppendFile::Open(const std::string& path, uint64_t keep_size) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | kOpenFlags, 0644));
  if (fd.get() < 0) return FromErrno("open", path);
  ASSIGN_OR_RETURN(const uint64_t size, RegularSize(fd.get(), path));
  if (keep_size < size && ftruncate(fd.get(), static_cast<off_t>(keep_size)) != 0) {
    return FromErrno("cut", path);
  }
  return std::unique_ptr<AppendFile>(new AppendFile(fd.release(), path));
}

AppendFile::~AppendFile() { close(fd_); }

Status AppendFile::Append(std::string_view record) { return WriteAll(fd_, record, path_); }

Status AppendFile::Flush() { return fdatasync(fd_) == 0 ? OkStatus() : FromErrno("flush", path_); }

}  // namespace plumb::base
