// model/families/gemma3.h: the Gemma 3 family, text only. Only model/load.cc and
// model/inspect.cc need it.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/config.h"
#include "model/load.h"

namespace plumb::model {

// As LoadLlama.
base::Result<std::unique_ptr<Model>> LoadGemma3(const Checkpoint& checkpoint, const Config& config,
                                                const LoadOptions& options);
// As CheckLlama.
base::Status CheckGemma3(const Checkpoint& checkpoint, const Config& config);

}  // namespace plumb::model
