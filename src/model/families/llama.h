// model/families/llama.h: the Llama and Qwen2 families. Only model/load.cc and model/inspect.cc
// need it; the model itself is seen through model/model.h.
#pragma once

#include <memory>

#include "base/result.h"
#include "model/config.h"
#include "model/load.h"

namespace plumb::model {

// `config` is what ReadConfig made of `checkpoint`; options are in range. Errors: as LoadModel.
base::Result<std::unique_ptr<Model>> LoadLlama(const Checkpoint& checkpoint, const Config& config,
                                               const LoadOptions& options);

// Ok when LoadLlama can serve such a model: what config and tensor types tell before any weight is
// read. kUnsupported otherwise.
base::Status CheckLlama(const Checkpoint& checkpoint, const Config& config);

}  // namespace plumb::model
