// cli/line_reader.cc
// A buffer over read(2), behind cli/line_reader.h.
#include "cli/line_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace plumb::cli {
namespace {
constexpr size_t kBufferBytes = 1u << 18;
}  // namespace

base::Result<std::unique_ptr<LineReader>> LineReader::Open(const std::string& path,
                                                           uint64_t line_bytes_max) {
  // Without O_NONBLOCK a pipe would wait here for somebody to write it, only to be refused.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const int error = errno;
    const std::string message = "cannot open '" + path + "': " + std::strerror(error);
    return error == ENOENT ? base::NotFound(message) : base::Internal(message);
  }
  std::unique_ptr<LineReader> reader(new LineReader(fd, line_bytes_max));
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return base::InvalidArgument("", "'" + path + "' is not a regular file");
  }
  reader->buffer_.resize(kBufferBytes);
  return reader;
}

LineReader::~LineReader() { close(fd_); }

base::Result<std::optional<FileLine>> LineReader::Next() {
  FileLine line{.number = number_ + 1, .offset = offset_};
  bool any = false;
  while (!line.terminated) {
    if (begin_ == end_) {
      const ssize_t got = read(fd_, buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0)
        return base::Internal(std::string("cannot read a line: ") + std::strerror(errno));
      if (got == 0) break;
      begin_ = 0;
      end_ = static_cast<size_t>(got);
    }
    any = true;
    const char* first = buffer_.data() + begin_;
    const char* last = buffer_.data() + end_;
    const char* stop = std::find(first, last, '\n');
    line.terminated = stop != last;
    const auto size = static_cast<size_t>(stop - first);
    const size_t kept = std::min<size_t>(size, line_bytes_max_ - line.text.size());
    line.text.append(first, kept);
    line.too_long |= kept < size;
    const size_t taken = size + (line.terminated ? 1 : 0);
    begin_ += taken;
    offset_ += taken;
  }
  if (!any) return std::optional<FileLine>();
  line.size = offset_ - line.offset;
  if (line.terminated && line.text.ends_with('\r')) line.text.pop_back();
  ++number_;
  return std::optional<FileLine>(std::move(line));
}

}  // namespace plumb::cli
