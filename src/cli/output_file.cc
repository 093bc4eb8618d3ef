// cli/output_file.cc
// See cli/output_file.h: looks before it writes.
#include "cli/output_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/disk.h"

namespace plumb::cli {
namespace {

namespace fs = std::filesystem;

// What cannot be read might be anything.
bool BeginsWith(const std::string& path, std::string_view start) {
  const auto file = base::MappedFile::Open(path);
  if (!file.ok()) return false;
  const std::span<const std::byte> bytes = (*file)->bytes();
  const auto wanted = std::as_bytes(std::span(start));
  return bytes.size() >= wanted.size() && std::ranges::equal(wanted, bytes.first(wanted.size()));
}

}  // namespace

base::Status CheckReplaceable(const std::string& path, const char* flag, std::string_view start,
                              std::string_view kind) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return base::OkStatus();
  if (!fs::is_regular_file(status)) {
    return base::InvalidArgument(
        flag, fmt::format("{}: '{}' is not a regular file; choose another", flag, path));
  }
  const bool empty = fs::file_size(path, error) == 0 && !error;
  if (empty || BeginsWith(path, start)) return base::OkStatus();
  return base::InvalidArgument(
      flag, fmt::format("{}: '{}' is there and no {}; choose another file", flag, path, kind));
}

UnfinishedFile::~UnfinishedFile() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove(path_, ignored);
}

base::Status UnfinishedFile::Begin(const std::string& path) {
  RETURN_IF_ERROR(lock_.Take(path, {}));
  path_ = path;
  return base::OkStatus();
}

base::Status UnfinishedFile::Rename(const std::string& to) {
  std::error_code error;
  fs::rename(path_, to, error);
  if (error) return base::Internal("cannot write '" + to + "': " + error.message());
  path_.clear();
  return base::OkStatus();
}

}  // namespace plumb::cli
