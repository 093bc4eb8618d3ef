// model/quantize.h
// Carries out a QuantizePlan: reads a model tensor by tensor, quantises on all threads, and streams
// a GGUF file, so that memory stays small whatever the model's size. The bytes do not depend on the
// number of threads. Read first: model/quantize_plan.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "model/quantize_plan.h"
#include "tensor/thread_pool.h"

namespace plumb::model {

struct QuantizeProgress {
  uint64_t bytes_done = 0;  // of tensors written
  uint64_t bytes_total = 0;
};

struct QuantizeOptions {
  tensor::ThreadPool& pool;
  // Called now and then, on the calling thread. May be empty.
  std::function<void(const QuantizeProgress&)> progress = {};
  // Asked as often, by the same thread; once it says yes, the writing ends. May be empty.
  std::function<bool()> cancelled = {};
};

// Bytes of the file that WriteQuantized makes.
uint64_t QuantizedFileBytes(const Checkpoint& source, const QuantizePlan& plan);

// Writes the file to `path`, whose former content is lost, and makes it last (fsync). Metadata is
// the source's, but for general.file_type and general.quantization_version. After an error the file
// is unfinished. kCorrupt: a weight that is not finite, or too large for its type (message and
// field() name the tensor); kCancelled: as asked for; kInternal: disk full or gone.
base::Status WriteQuantized(const Checkpoint& source, const QuantizePlan& plan,
                            const QuantizeOptions& options, const std::string& path);

}  // namespace plumb::model
