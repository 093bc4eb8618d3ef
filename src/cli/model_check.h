// cli/model_check.h
// Whether a model file would serve, found out without loading its weights: what `plumb model
// inspect` shows and `plumb model verify` insists on.
#pragma once

#include "base/result.h"
#include "cli/model_store.h"
#include "model/inspect.h"

namespace plumb::cli {

// model::Inspect, and tokenizer and template built as serving builds them: what is wrong with them
// stands in `unsupported`, unless the weights have said something already. Errors: a file that
// cannot be read at all; messages name it.
base::Result<model::Inspection> Examine(const ModelReference& reference);

// Whether all weights are finite numbers; reads them. kCorrupt: the message names file and tensor.
base::Status CheckValues(const ModelReference& reference);

// Ok when the file is whole, and also when plumb lacks what it takes to run it (kUnsupported, which
// is no fault of the file's). kCorrupt, kNotFound: what is damaged or missing; the message names
// the file.
base::Status CheckWhole(const ModelReference& reference, const model::Inspection& inspection);

}  // namespace plumb::cli
