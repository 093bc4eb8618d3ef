// base/disk.h
// Files. Whole reads and atomic writes for small ones, a read-only memory map for weights, an
// append-only file with flush for journals. The path in an error is the caller's own argument:
// these functions are for paths that an operator gave, and their errors must not reach an HTTP
// client. Opening never waits: a named pipe is refused as what it is, no regular file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plumb::base {

// The file's bytes. kNotFound; kInvalidArgument: larger than `size_max`, or not a regular file;
// kInternal: not readable.
Result<std::string> ReadFile(const std::string& path, uint64_t size_max);

// Replaces the file in one step (temporary file, fsync, rename): readers see old or new, never
// half.
Status WriteFileAtomic(const std::string& path, std::string_view content);

// A read-only map of a whole file, in large pages where the system can; a resource type. The span
// lives as long as the object.
class MappedFile {
 public:
  // kNotFound; kInvalidArgument: empty or not a regular file; kInternal: mmap refused.
  static Result<std::unique_ptr<MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, uint64_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  uint64_t size_;
};

// What is about to be done with mapped bytes. A hint: nothing but speed changes, and bytes that
// belong to no file are left alone. Thread: any.
enum class MapAdvice : uint8_t {
  kRandom,    // read here and there: nothing is fetched beside what is touched
  kWillNeed,  // read soon: the kernel begins to fetch them, nobody waits
};
void Advise(std::span<const std::byte> bytes, MapAdvice advice);

// Appends whole records; Flush makes them survive a crash (fdatasync). One thread at a time.
class AppendFile {
 public:
  // Creates the file when missing; existing content is kept and cut at `keep_size` if that is
  // smaller. kNotFound: no such folder; kInvalidArgument: not a regular file; kInternal: refused.
  static Result<std::unique_ptr<AppendFile>> Open(const std::string& path,
                                                  uint64_t keep_size = UINT64_MAX);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  Status Append(std::string_view record);  // kInternal: disk full or gone
  Status Flush();

 private:
  AppendFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_;
  std::string path_;
};

}  // namespace plumb::base
