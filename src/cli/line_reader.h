// cli/line_reader.h
// Lines of a file, one at a time, however large the file is: with number, place and size, and
// without ever holding more than one line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace plumb::cli {

struct FileLine {
  uint64_t number = 0;      // from 1
  uint64_t offset = 0;      // of its first byte in the file
  uint64_t size = 0;        // in the file, line end included
  std::string text;         // without the line end (LF or CR LF)
  bool too_long = false;    // text was cut at the limit
  bool terminated = false;  // an LF ended it; false only for the last line of a file
};

// A resource type. Thread: one at a time.
class LineReader {
 public:
  // kNotFound; kInvalidArgument: not a regular file; kInternal: not readable.
  static base::Result<std::unique_ptr<LineReader>> Open(const std::string& path,
                                                        uint64_t line_bytes_max);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Nothing at the end. kInternal: a read failed.
  base::Result<std::optional<FileLine>> Next();

 private:
  LineReader(int fd, uint64_t line_bytes_max) : fd_(fd), line_bytes_max_(line_bytes_max) {}

  const int fd_;
  const uint64_t line_bytes_max_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // unread part of the buffer
  size_t end_ = 0;
  uint64_t offset_ = 0;
  uint64_t number_ = 0;
};

}  // namespace plumb::cli
