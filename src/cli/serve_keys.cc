// cli/serve_keys.cc
// Files of keys, one a line; behind cli/serve_keys.h.
#include "cli/serve_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/disk.h"
#include "cli/serve.h"
#include "net/address.h"
#include "tenancy/api_key.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kKeyFileBytesMax = 1u << 20;

// The keys of a file. `flag` names it in errors.
base::Result<std::vector<std::string>> ReadKeyFile(const std::string& path, const char* flag) {
  const base::Result<std::string> content = base::ReadFile(path, kKeyFileBytesMax);
  if (!content.ok()) {
    return base::InvalidArgument(flag, fmt::format("{}: {}", flag, content.status().message()));
  }
  std::vector<std::string> keys;
  std::string_view rest = *content;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) keys.emplace_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  base::Status status = base::ToStatus(tenancy::ApiKeys::FromKeys(keys));
  if (keys.empty()) status = base::InvalidArgument("", "the file holds no key");
  if (status.ok()) return keys;
  return base::InvalidArgument(flag, fmt::format("{}: '{}': {}", flag, path, status.message()));
}

struct KeySource {
  const std::vector<std::string>& keys;
  const std::string& file;
  const char* key_flag;
  const char* file_flag;
};

base::Result<std::vector<std::string>> ReadKeys(const KeySource& source) {
  std::vector<std::string> keys = source.keys;
  if (!source.file.empty()) {
    ASSIGN_OR_RETURN(std::vector<std::string> more, ReadKeyFile(source.file, source.file_flag));
    std::ranges::move(more, std::back_inserter(keys));
  }
  // What is wrong with the file's own has been said.
  const base::Status status = base::ToStatus(tenancy::ApiKeys::FromKeys(keys));
  if (status.ok()) return keys;
  return base::InvalidArgument(source.key_flag,
                               fmt::format("{}: {}", source.key_flag, status.message()));
}

}  // namespace

base::Result<std::vector<std::string>> CollectKeys(const ServeSettings& settings) {
  ASSIGN_OR_RETURN(
      std::vector<std::string> keys,
      ReadKeys({settings.api_keys, settings.api_key_file, "--api-key", "--api-key-file"}));
  if (!keys.empty() || net::IsLoopback(settings.host)) return keys;
  return base::InvalidArgument(
      "--host", "--host: '" + settings.host +
                    "' can be reached by others, so callers must have a key: give --api-key (or "
                    "PLUMB_API_KEY), or serve on 127.0.0.1");
}

base::Result<std::vector<std::string>> CollectAdminKeys(const ServeSettings& settings,
                                                        const std::vector<std::string>& callers) {
  if (!settings.admin_port) return std::vector<std::string>();
  ASSIGN_OR_RETURN(
      std::vector<std::string> keys,
      ReadKeys({settings.admin_keys, settings.admin_key_file, "--admin-key", "--admin-key-file"}));
  if (keys.empty()) {
    return base::InvalidArgument(
        "--admin-port",
        "--admin-port: operators must have a key of their own, on any address: "
        "give --admin-key (or PLUMB_ADMIN_KEY)");
  }
  for (const std::string& key : keys) {
    if (std::ranges::find(callers, key) == callers.end()) continue;
    return base::InvalidArgument("--admin-key",
                                 "--admin-key: a key of callers must not be an operator's too");
  }
  return keys;
}

}  // namespace plumb::cli
