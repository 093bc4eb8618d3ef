// cli/serve_limits.h
// The file of --limits: what each key may ask for. A TOML file without secrets: what stands at the
// top holds for every key, a table [NAME] for the key of that name, and wins over the top.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/serve_keys.h"
#include "tenancy/limiter.h"

namespace plumb::cli {

// The limits of each key, in the order of `keys`; without keys one entry, of all callers together.
// Empty without a file. kInvalidArgument, field "--limits": the file cannot be read, or says what
// no limit or no key is called (the message names file and line).
base::Result<std::vector<tenancy::KeyLimits>> ReadLimits(const std::string& path,
                                                         const std::vector<CallerKey>& keys);

}  // namespace plumb::cli
