// cli/kept_digests.h
// SHA-256 digests of models' files from earlier starts, in the cache folder, so that hundreds of
// gigabytes are not read again to name them. One small text file for each model,
// "<cache>/digests/<sha256 of the model's path>"; it ends with a checksum of itself, and one that
// is damaged counts as none. Whoever may write there can give a model another's fingerprint.
// Read next: cli/content_hash.h, which decides when a digest may be kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_stamp.h"
#include "base/result.h"

namespace plumb::cli {

struct KeptDigest {
  std::string path_digest;  // sha256 of the file's path, lower-case hex
  base::FileStamp stamp;    // as it was when the file was read
  std::string digest;       // sha256 of the content, likewise
  bool operator==(const KeptDigest&) const = default;
};

// A value type; reads and writes the disk when asked. Several processes may use one folder.
class KeptDigests {
 public:
  static constexpr uint32_t kModelsMax = 64;   // of more, those written longest ago go
  static constexpr uint32_t kFilesMax = 4352;  // of a model; of more nothing is kept

  // `cache_folder` may be missing; empty: nothing is kept.
  explicit KeptDigests(const std::string& cache_folder)
      : folder_(cache_folder.empty() ? "" : cache_folder + "/digests") {}

  // What was kept of the model at `path`; empty when nothing was, or what is there is not whole.
  std::vector<KeptDigest> Load(const std::string& path) const;
  // Replaces it, in one step. kOverloaded: disk full; kInternal: refused, as where nobody may
  // write; kInvalidArgument: more than kFilesMax files, or a folder of many times kModelsMax
  // entries.
  base::Status Save(const std::string& path, std::span<const KeptDigest> files) const;

 private:
  std::string FileOf(const std::string& path) const;
  base::Status DropOldest() const;

  std::string folder_;
};

}  // namespace plumb::cli
