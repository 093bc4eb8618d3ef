// base/affinity.h
// Which processors a thread may run on, asked and told, on machines of any size; and how many a
// process should use of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plumb::base {

// Numbers of the processors that the calling thread may run on, ascending; empty where the system
// does not say.
std::vector<uint32_t> AllowedProcessors();

// Restricts the calling thread to these; whether the system did so. An empty list changes nothing.
bool RestrictToProcessors(std::span<const uint32_t> processors);

// How many threads are worth having: of a quota that is no whole number the rest is left, since a
// thread more would only be throttled; at least 1.
unsigned ProcessorsOf(size_t allowed, std::optional<double> quota);

}  // namespace plumb::base
