// cli/serve_data.cc
// See serve_data.h.
#include "cli/serve_data.h"

#include <algorithm>
#include <string>

#include "api/file_calls.h"
#include "base/folder.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kFormBytesMax = 64u << 10;  // of an upload, besides the file
constexpr base::Duration kUploadTimeMax = base::Seconds(600);
constexpr uint32_t kBatchLinesMax = 1024;
constexpr uint64_t kUploadsAtOnce = 3;

base::Status Refused(const std::string& why) {
  return base::InvalidArgument("--data-dir", "--data-dir: " + why);
}

}  // namespace

void AddDataOptions(OptionTable& table, ServeSettings& settings) {
  table.Add(Text("data-dir", settings.data_dir, "FOLDER",
                 "Serve /v1/files and /v1/batches, and keep them in this folder; it is made when "
                 "missing, for its owner alone. Without it nothing that callers send is written."));
  table.Add(Bytes("data-bytes", settings.data_bytes, {1u << 20, 1ull << 50}, "",
                  "Files in --data-dir, of all callers together (suffixes K, M, G, T); of several "
                  "keys each has at most as much as it leaves to the others."));
  table.Add(Bytes("file-bytes", settings.file_bytes, {1024, 1ull << 33}, "",
                  "One uploaded file. It is held in memory until it is on the disk."));
  table.Add(Integer("batch-lines", settings.batch_lines, {1, kBatchLinesMax}, "COUNT",
                    "Lines of batches asked at once, all batches together."));
}

void AllowUploads(const ServeSettings& settings, net::HttpLimits& limits) {
  if (settings.data_dir.empty()) return;
  const uint64_t bytes_max = std::max(settings.file_bytes + kFormBytesMax, limits.body_bytes_max);
  limits.body_limits.push_back(
      {.path = std::string(api::kFilesRoute), .bytes_max = bytes_max, .time_max = kUploadTimeMax});
  // Two callers may upload at once, each with its share (base/share.h), and leave the others one
  // upload and as much as there is without.
  limits.bodies_bytes_max += kUploadsAtOnce * bytes_max;
}

base::Result<std::unique_ptr<api::DataFolder>> OpenData(const ServeSettings& settings, size_t keys,
                                                        const base::Clock& clock,
                                                        telemetry::Logger& logger, FileLock& lock) {
  if (settings.data_dir.empty()) return std::unique_ptr<api::DataFolder>();
  if (const base::Status made = base::MakeFolder(settings.data_dir); !made.ok())
    return Refused(made.message());
  const base::Status locked = lock.Take(settings.data_dir + "/lock", {});
  if (locked.code() == base::Code::kOverloaded)
    return Refused("another server is using '" + settings.data_dir + "'; give another folder");
  if (!locked.ok()) return Refused(locked.message());
  api::DataLimits limits;
  limits.files.file_bytes_max = settings.file_bytes;
  limits.files.storage_bytes_max = settings.data_bytes;
  limits.files.shared = keys > 1;
  limits.runner.lines_at_once = settings.batch_lines;
  limits.calls_bytes_max = std::max(limits.calls_bytes_max, kUploadsAtOnce * settings.file_bytes);
  auto folder = api::DataFolder::Open(settings.data_dir, limits, clock, logger);
  if (!folder.ok()) return Refused(folder.status().message());
  return folder;
}

}  // namespace plumb::cli
