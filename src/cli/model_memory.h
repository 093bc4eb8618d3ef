// cli/model_memory.h
// Whether a model fits into the memory available, before it is loaded: what does not fit ends as a
// process that the system kills without a word. Sizes come from model/inspect.h, so nothing is read
// but the file's directory. Read next: cli/local_engine.cc.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "model/checkpoint.h"
#include "model/inspect.h"

namespace plumb::cli {

// What loading `inspection`'s model would take for good: packed weights (DeepSeek-V4.1 computes
// from the mapped files, which may be larger than memory, so its weights count nothing), the
// activations of a step, and `kv_bytes` of keys and values, or what one page and state need where
// nobody says how much.
uint64_t BytesToServe(const model::Inspection& inspection, uint64_t kv_bytes);

// kOverloaded: BytesToServe is more than `available_bytes`; the message has both, and what to do.
base::Status CheckModelMemory(const model::Inspection& inspection, uint64_t kv_bytes,
                              uint64_t available_bytes);
// The same of a file, with AvailableMemory(). Also the errors of model::Inspect.
base::Status CheckModelMemory(const model::Checkpoint& file, uint64_t kv_bytes);

}  // namespace plumb::cli
