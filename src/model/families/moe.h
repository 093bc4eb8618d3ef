// model/families/moe.h: Mixtral and Qwen3 with routed experts. Only model/load.cc and
// model/inspect.cc need it.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/config.h"
#include "model/load.h"

namespace plumb::model {

// As LoadLlama.
base::Result<std::unique_ptr<Model>> LoadMoe(const Checkpoint& checkpoint, const Config& config,
                                             const LoadOptions& options);
// As CheckLlama.
base::Status CheckMoe(const Checkpoint& checkpoint, const Config& config);

}  // namespace plumb::model
