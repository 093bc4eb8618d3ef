// cli/serve_limits.cc
// Behind cli/serve_limits.h: names checked first, then each key's three numbers looked up.
#include "cli/serve_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "cli/config_file.h"
#include "cli/format.h"
#include "cli/suggest.h"

namespace plumb::cli {

using base::Result;
using base::Status;
using tenancy::KeyLimits;

namespace {

constexpr size_t kShownBytesMax = 60;

struct LimitName {
  const char* name;
  uint32_t KeyLimits::* value;
};
constexpr LimitName kLimits[] = {
    {"requests-per-minute", &KeyLimits::requests_per_minute},
    {"tokens-per-minute", &KeyLimits::tokens_per_minute},
    {"concurrent-requests", &KeyLimits::concurrent_requests},
};

Status Refuse(std::string message) {
  return base::InvalidArgument("--limits", "--limits: " + std::move(message));
}

Status CheckEntry(const ConfigFile& file, const ConfigEntry& entry,
                  const std::vector<std::string>& keys) {
  if (!entry.section.empty() && std::ranges::find(keys, entry.section) == keys.end()) {
    return Refuse(
        fmt::format("{}:{}: no key is called '{}'{}; a key's name stands before it: 'NAME KEY' in "
                    "--api-key-file",
                    file.path, entry.line, Printable(entry.section, kShownBytesMax),
                    DidYouMean(entry.section, keys)));
  }
  std::vector<std::string> known;
  for (const LimitName& limit : kLimits) known.emplace_back(limit.name);
  if (std::ranges::find(known, entry.key) == known.end())
    return Refuse(file.Where(entry) + ": no such limit" + DidYouMean(entry.key, known));
  if (entry.texts.size() != 1) return Refuse(file.Where(entry) + ": takes one value, not a list");
  return base::OkStatus();
}

Result<uint32_t> ReadNumber(const ConfigFile& file, const ConfigEntry& entry) {
  const std::string& text = entry.texts.front();
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value <= tenancy::kLimitMax) return value;
  return Refuse(fmt::format("{}: '{}' is no whole number from 0 (no limit) to {}",
                            file.Where(entry), Printable(text, kShownBytesMax),
                            tenancy::kLimitMax));
}

}  // namespace

Result<std::vector<KeyLimits>> ReadLimits(const std::string& path,
                                          const std::vector<CallerKey>& keys) {
  if (path.empty()) return std::vector<KeyLimits>();
  const Result<ConfigFile> loaded = ConfigFile::Load(path);
  if (!loaded.ok()) return Refuse(loaded.status().message());
  const ConfigFile& file = *loaded;
  std::vector<std::string> names;
  for (const CallerKey& key : keys)
    if (!key.name.empty()) names.push_back(key.name);
  for (const ConfigEntry& entry : file.entries) {
    RETURN_IF_ERROR(CheckEntry(file, entry, names));
    RETURN_IF_ERROR(base::ToStatus(ReadNumber(file, entry)));
  }
  std::vector<KeyLimits> limits(std::max<size_t>(1, keys.size()));
  for (size_t i = 0; i < limits.size(); ++i) {
    const std::string section = keys.empty() ? "" : keys[i].name;
    for (const LimitName& limit : kLimits) {
      const ConfigEntry* entry = file.Find(section, limit.name);
      if (entry == nullptr) continue;
      ASSIGN_OR_RETURN(limits[i].*limit.value, ReadNumber(file, *entry));
    }
  }
  return limits;
}

}  // namespace plumb::cli
