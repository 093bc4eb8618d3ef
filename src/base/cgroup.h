// base/cgroup.h
// What the control groups of this process grant of the machine: a container or a service may hold a
// part of its processors and memory only. Both versions are read, and every group from the
// process's own up to what is mounted, since each of them binds. Sources: the kernel's documents
// admin-guide/cgroup-v2 and cgroup-v1, and proc(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace plumb::base {

struct CgroupLimits {
  std::optional<double> processors;           // the least quota over its period; > 0
  std::optional<uint64_t> memory_left_bytes;  // the least of limit - usage; 0 when it is exceeded
  // Pages of files that the kernel would give up under pressure do not count as used.
};

// Never fails: what cannot be read, or makes no sense, is no limit. Reads a bounded part of each
// file. `root` precedes every path (a tree of a test's own). Thread: any.
CgroupLimits ReadCgroupLimits(const std::string& root = "");

}  // namespace plumb::base
