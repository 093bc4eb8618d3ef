// cli/serve_keys.cc
// Files of keys, one a line; behind cli/serve_keys.h.
#include "cli/serve_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "base/disk.h"
#include "cli/serve.h"
#include "net/address.h"
#include "tenancy/api_key.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kKeyFileBytesMax = 1u << 20;
constexpr size_t kNameBytesMax = 64;

bool IsNameCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

// "NAME KEY", or a key alone. No key has a space, so a wrong name is a wrong key, which is told so.
CallerKey SplitName(std::string_view text) {
  const size_t space = text.find(' ');
  const std::string_view name = text.substr(0, space);
  const bool named = space != text.npos && !name.empty() && name.size() <= kNameBytesMax &&
                     std::ranges::all_of(name, IsNameCharacter);
  if (!named) return {.name = {}, .text = std::string(text)};
  const size_t begin = std::min(text.find_first_not_of(' ', space), text.size());
  return {.name = std::string(name), .text = std::string(text.substr(begin))};
}

// A name that two of the keys have; nothing when there is none.
std::string DoubledName(const std::vector<CallerKey>& keys) {
  std::set<std::string_view> names;
  for (const CallerKey& key : keys)
    if (!key.name.empty() && !names.insert(key.name).second) return key.name;
  return {};
}

// The keys of a file. `flag` names it in errors.
base::Result<std::vector<CallerKey>> ReadKeyFile(const std::string& path, const char* flag) {
  const base::Result<std::string> content = base::ReadFile(path, kKeyFileBytesMax);
  if (!content.ok()) {
    return base::InvalidArgument(flag, fmt::format("{}: {}", flag, content.status().message()));
  }
  std::vector<CallerKey> keys;
  std::string_view rest = *content;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with('#')) keys.push_back(SplitName(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  base::Status status = base::ToStatus(tenancy::ApiKeys::FromKeys(KeyTexts(keys)));
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

base::Result<std::vector<CallerKey>> ReadKeys(const KeySource& source) {
  std::vector<CallerKey> keys;
  for (const std::string& text : source.keys) keys.push_back(SplitName(text));
  if (!source.file.empty()) {
    ASSIGN_OR_RETURN(std::vector<CallerKey> more, ReadKeyFile(source.file, source.file_flag));
    std::ranges::move(more, std::back_inserter(keys));
  }
  // What is wrong with the file's own has been said.
  base::Status status = base::ToStatus(tenancy::ApiKeys::FromKeys(KeyTexts(keys)));
  const std::string doubled = DoubledName(keys);
  if (status.ok() && !doubled.empty())
    status = base::InvalidArgument("", "two keys are called '" + doubled + "'");
  if (status.ok()) return keys;
  return base::InvalidArgument(source.key_flag,
                               fmt::format("{}: {}", source.key_flag, status.message()));
}

}  // namespace

std::vector<std::string> KeyTexts(const std::vector<CallerKey>& keys) {
  std::vector<std::string> texts;
  for (const CallerKey& key : keys) texts.push_back(key.text);
  return texts;
}

base::Result<std::vector<CallerKey>> CollectKeys(const ServeSettings& settings) {
  ASSIGN_OR_RETURN(std::vector<CallerKey> keys, ReadKeys({settings.api_keys, settings.api_key_file,
                                                          "--api-key", "--api-key-file"}));
  if (!keys.empty() || net::IsLoopback(settings.host)) return keys;
  return base::InvalidArgument(
      "--host", "--host: '" + settings.host +
                    "' can be reached by others, so callers must have a key: give --api-key (or "
                    "PLUMB_API_KEY), or serve on 127.0.0.1");
}

base::Result<std::vector<std::string>> CollectAdminKeys(const ServeSettings& settings,
                                                        const std::vector<CallerKey>& callers) {
  if (!settings.admin_port) return std::vector<std::string>();
  ASSIGN_OR_RETURN(
      const std::vector<CallerKey> keys,
      ReadKeys({settings.admin_keys, settings.admin_key_file, "--admin-key", "--admin-key-file"}));
  if (keys.empty()) {
    return base::InvalidArgument(
        "--admin-port",
        "--admin-port: operators must have a key of their own, on any address: "
        "give --admin-key (or PLUMB_ADMIN_KEY)");
  }
  for (const CallerKey& key : keys) {
    if (std::ranges::find(callers, key.text, &CallerKey::text) == callers.end()) continue;
    return base::InvalidArgument("--admin-key",
                                 "--admin-key: a key of callers must not be an operator's too");
  }
  return KeyTexts(keys);
}

}  // namespace plumb::cli
