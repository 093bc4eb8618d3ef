// model/families/deepseek_v41.h
// DeepSeek-V4.1: hyper-connected streams, a causal encoder and a decoder, attention over a window
// and a selection of compressed rows, experts, n-gram tables. Arithmetic and what is kept of a
// sequence: docs/numerics_deepseek_v41.md. Read next: deepseek_v41.cc.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/families/deepseek_observer.h"
#include "model/load.h"
#include "model/model.h"

namespace plumb::model {

// The weights are used where they are mapped; the model keeps the files (Checkpoint::Keep), so it
// may outlive the checkpoint.
// kCorrupt, kUnsupported: as ReadDeepseekConfig and MapDeepseekWeights; kInvalidArgument, field
// "replay_rows" or "backtrack_rows": the options, naming both numbers; kOverloaded: out of memory.
base::Result<std::unique_ptr<Model>> LoadDeepseekV41(const Checkpoint& checkpoint,
                                                     const LoadOptions& options);

// The same with an observer, for tests; null = none. It must outlive the model.
base::Result<std::unique_ptr<Model>> LoadDeepseekV41Observed(const Checkpoint& checkpoint,
                                                             const LoadOptions& options,
                                                             DeepseekObserver* observer);

}  // namespace plumb::model
