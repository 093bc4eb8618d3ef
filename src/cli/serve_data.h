// cli/serve_data.h
// Where `plumb serve` keeps what outlives it, uploaded files and batches: only with --data-dir,
// since what callers send is written to the disk there. Read next: api/batches.h.
#pragma once

#include <memory>

#include "api/batches.h"
#include "base/clock.h"
#include "base/result.h"
#include "cli/file_lock.h"
#include "cli/option_table.h"
#include "cli/serve.h"
#include "net/http_server.h"
#include "telemetry/log.h"

namespace plumb::cli {

// --data-dir, --data-bytes, --file-bytes, --batch-lines.
void AddDataOptions(OptionTable& table, ServeSettings& settings);

// Uploads may be larger than other bodies, and take longer.
void AllowUploads(const ServeSettings& settings, net::HttpLimits& limits);

// Null without --data-dir. `lock` is taken, so that two servers never share a folder; with several
// keys each has its share of the folder. kInvalidArgument, field "--data-dir": another server has
// it, or it cannot be made, read or written.
base::Result<std::unique_ptr<api::DataFolder>> OpenData(const ServeSettings& settings, size_t keys,
                                                        const base::Clock& clock,
                                                        telemetry::Logger& logger, FileLock& lock);

}  // namespace plumb::cli
