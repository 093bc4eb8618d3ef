// model/families/finite_scan.h
// Reads stored bytes once, on all threads, to see that none is infinite or NaN: a damaged scale
// would make every answer worthless. For weights that are computed from as they lie in a mapped
// file; those that are repacked are checked by weight_reader.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "model/load.h"
#include "tensor/thread_pool.h"

namespace plumb::model {

enum class ScanKind : uint8_t { kF32, kBf16, kF8E4M3, kF8E8M0 };

struct ScanJob {
  ScanKind kind = ScanKind::kF32;
  std::span<const std::byte> bytes;  // whole elements, of any alignment
};

// The first job that holds such a value; nothing when all are good. `progress` (may be empty) is
// called on this thread as bytes get done.
std::optional<size_t> FindNotFinite(std::span<const ScanJob> jobs, tensor::ThreadPool& pool,
                                    const std::function<void(const LoadProgress&)>& progress);

}  // namespace plumb::model
