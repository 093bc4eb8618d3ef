// base/cgroup.cc
// /proc/self/cgroup names the process's group in each hierarchy, /proc/self/mountinfo where the
// hierarchy is mounted and which group of it is the top one there; then the files of the group and
// of its ancestors. A quota or a limit may stand in any of them.
#include "base/cgroup.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/disk.h"

namespace plumb::base {
namespace {

constexpr uint64_t kTableBytesMax = 4u << 20;  // of a table in /proc/self; mounts may be thousands
constexpr uint64_t kValueBytesMax = 256;       // of a group's file
constexpr uint64_t kStatBytesMax = 64u << 10;  // of memory.stat
constexpr size_t kGroupPathMax = 4096;
constexpr uint64_t kProcessorsMax = 1u << 20;  // more are no quota

std::string ReadOrEmpty(const std::string& path, uint64_t size_max) {
  auto content = ReadFile(path, size_max);
  return content.ok() ? *std::move(content) : "";
}

// Takes what stands before the first `separator`, or all, off the front of `rest`.
std::string_view Next(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return piece;
}

bool Lists(std::string_view list, char separator, std::string_view name) {
  while (!list.empty()) {
    if (Next(list, separator) == name) return true;
  }
  return false;
}

// The number that is the first word of `text`; nothing for "max", "-1" and what does not fit.
std::optional<uint64_t> Number(std::string_view text) {
  const std::string_view word = text.substr(0, text.find_first_of(" \n"));
  uint64_t value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == word.data() + word.size();
  return whole ? std::optional(value) : std::nullopt;
}

// mountinfo writes a space, a tab, a newline and a backslash as \040, \011, \012 and \134.
std::string Unescaped(std::string_view text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  while (!text.empty()) {
    const bool escaped =
        text[0] == '\\' && text.size() > 3 && octal(text[1]) && octal(text[2]) && octal(text[3]);
    plain += escaped ? static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + text[3] - '0')
                     : text[0];
    text.remove_prefix(escaped ? 4 : 1);
  }
  return plain;
}

// Where a hierarchy is mounted, and its group that is the top one there.
struct Mount {
  std::string group;
  std::string folder;
};

// `controller` empty: of version 2.
std::optional<Mount> FindMount(std::string_view table, std::string_view controller) {
  while (!table.empty()) {
    std::string_view line = Next(table, '\n');
    for (int i = 0; i < 3; ++i) Next(line, ' ');  // mount id, parent's id, device
    const std::string_view group = Next(line, ' ');
    const std::string_view folder = Next(line, ' ');
    while (!line.empty() && Next(line, ' ') != "-") continue;  // options, of any number
    const std::string_view type = Next(line, ' ');
    Next(line, ' ');  // source
    const bool found =
        controller.empty() ? type == "cgroup2" : type == "cgroup" && Lists(line, ',', controller);
    if (found) return Mount{Unescaped(group), Unescaped(folder)};
  }
  return std::nullopt;
}

// The process's group in the hierarchy; nothing where it is in none.
std::optional<std::string_view> FindGroup(std::string_view table, std::string_view controller) {
  while (!table.empty()) {
    std::string_view line = Next(table, '\n');
    const std::string_view id = Next(line, ':');
    const std::string_view controllers = Next(line, ':');
    const bool found =
        controller.empty() ? id == "0" && controllers.empty() : Lists(controllers, ',', controller);
    if (found) return line;
  }
  return std::nullopt;
}

// The group as seen from the mount: "" is the mount's own, else "/a/b". A group that lies outside
// (as in another namespace, where paths begin with "..") is not to be seen; the mount's own binds.
std::string Below(const Mount& mount, std::string_view group) {
  const std::string_view top = mount.group == "/" ? std::string_view() : mount.group;
  const bool inside = group.size() <= kGroupPathMax && group.starts_with('/') &&
                      group.starts_with(top) && !Lists(group, '/', "..");
  if (!inside) return "";
  std::string_view below = group.substr(top.size());
  if (!below.empty() && below[0] != '/') return "";  // "/ab" is not below "/a"
  while (below.ends_with('/')) below.remove_suffix(1);
  return std::string(below);
}

struct Tables {
  std::string groups, mounts;
};

// Calls visit(folder) for the process's group and each above it, as far as they are mounted.
template <typename Visit>
void ForGroups(const std::string& root, const Tables& tables, std::string_view controller,
               const Visit& visit) {
  const auto mount = FindMount(tables.mounts, controller);
  const auto group = FindGroup(tables.groups, controller);
  if (!mount || !group) return;
  std::string below = Below(*mount, *group);
  while (true) {
    visit(root + mount->folder + below);
    if (below.empty()) return;
    below.resize(below.rfind('/'));  // begins with one, so it is found
  }
}

template <typename T>
void TakeLess(std::optional<T>& least, T value) {
  least = std::min(least.value_or(value), value);
}

void TakeQuota(CgroupLimits& limits, std::string_view quota_text, std::string_view period_text) {
  const auto quota = Number(quota_text), period = Number(period_text);
  if (!quota || !period || *quota == 0 || *period == 0) return;
  const double processors = static_cast<double>(*quota) / static_cast<double>(*period);
  if (processors <= kProcessorsMax) TakeLess(limits.processors, processors);
}

// Bytes in memory.stat that stand for cached files: `prefix` is "total_" in version 1, where a
// line without it leaves out the groups below.
uint64_t CachedFiles(std::string_view stat, std::string_view prefix) {
  uint64_t bytes = 0;
  while (!stat.empty()) {
    std::string_view line = Next(stat, '\n');
    if (!line.starts_with(prefix)) continue;
    line.remove_prefix(prefix.size());
    const std::string_view key = Next(line, ' ');
    if (key != "inactive_file" && key != "active_file") continue;
    const uint64_t value = Number(line).value_or(0);
    bytes += std::min(value, UINT64_MAX - bytes);
  }
  return bytes;
}

struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* stat_prefix;
};

void TakeMemory(CgroupLimits& limits, const std::string& folder, const MemoryFiles& files) {
  const auto limit = Number(ReadOrEmpty(folder + files.limit, kValueBytesMax));
  if (!limit) return;
  const uint64_t used = Number(ReadOrEmpty(folder + files.used, kValueBytesMax)).value_or(0);
  const uint64_t cached =
      CachedFiles(ReadOrEmpty(folder + "/memory.stat", kStatBytesMax), files.stat_prefix);
  const uint64_t bound = used - std::min(used, cached);
  TakeLess(limits.memory_left_bytes, *limit - std::min(*limit, bound));
}

}  // namespace

CgroupLimits ReadCgroupLimits(const std::string& root) {
  const Tables tables = {ReadOrEmpty(root + "/proc/self/cgroup", kTableBytesMax),
                         ReadOrEmpty(root + "/proc/self/mountinfo", kTableBytesMax)};
  CgroupLimits limits;
  ForGroups(root, tables, "", [&](const std::string& folder) {
    const std::string content = ReadOrEmpty(folder + "/cpu.max", kValueBytesMax);
    std::string_view rest = content;  // "<quota> <period>", microseconds, or "max <period>"
    const std::string_view quota = Next(rest, ' ');
    TakeQuota(limits, quota, rest);
    TakeMemory(limits, folder, {"/memory.max", "/memory.current", ""});
  });
  ForGroups(root, tables, "cpu", [&](const std::string& folder) {
    TakeQuota(limits, ReadOrEmpty(folder + "/cpu.cfs_quota_us", kValueBytesMax),
              ReadOrEmpty(folder + "/cpu.cfs_period_us", kValueBytesMax));
  });
  ForGroups(root, tables, "memory", [&](const std::string& folder) {
    // Without a limit it holds the largest multiple of a page, which is none to anybody.
    TakeMemory(limits, folder, {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"});
  });
  return limits;
}

}  // namespace plumb::base
