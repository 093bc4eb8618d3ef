// cli/content_hash.h
// What names a model's weights: SHA-256 over its files, every byte of them. A file that is as it
// was when its digest was kept is not read again, since a model of hundreds of gigabytes must not
// be read whole at each start.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "cli/kept_digests.h"
#include "tensor/thread_pool.h"

namespace plumb::cli {

// `on_progress` gets the bytes read so far, `on_start` before that those to read, if there are any.
// One thread at a time calls them, not always the same.
struct HashProgress {
  std::function<void(uint64_t bytes)> on_start;
  std::function<void(uint64_t bytes)> on_progress;
};

// Of a file its SHA-256; of a folder that of the names and hashes of its files (those of
// model::HfFolder::FileNames). Every byte is read, one file after the other. kNotFound, kCorrupt,
// kInvalidArgument, kInternal: a file that cannot be read; of a folder, the message names the file
// alone.
base::Result<std::string> ContentHash(const std::string& path, const HashProgress& progress = {});

// A file changed so short a time before it was looked at may be changed again without another time.
constexpr int64_t kYoungSeconds = 5;

struct KnownHash {
  std::string content;  // as above
  base::Status kept;    // why the digests of files that were read could not be kept; or ok
};
// The same, with what `kept` has of files whose stamp is the same; the others are read, as many at
// a time as the pool has threads, and kept, but for those that are younger than kYoungSeconds or
// changed meanwhile. Thread: the pool's.
base::Result<KnownHash> FindContentHash(const std::string& path, const KeptDigests& kept,
                                        const base::Clock& clock, tensor::ThreadPool& pool,
                                        const HashProgress& progress = {});

}  // namespace plumb::cli
