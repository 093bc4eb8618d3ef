// cli/weights_owner.cc
// Locate, replace, remember; behind cli/weights_owner.h.
#include "cli/weights_owner.h"

#include <utility>

#include "cli/model_command.h"

namespace plumb::cli {

WeightsOwner::WeightsOwner(LocalEngine& local, const base::Clock& clock, VariableReader variables,
                           Announce announce)
    : local_(local),
      clock_(clock),
      variables_(std::move(variables)),
      announce_(std::move(announce)),
      current_{local.id(), local.fingerprint(), local.engine().weights_version()} {}

api::ServedWeights WeightsOwner::Current() const {
  base::MutexLock lock(mutex_);
  return current_;
}

base::Result<api::ServedWeights> WeightsOwner::Replace(const std::string& model,
                                                       base::Duration patience) {
  const base::Instant deadline = clock_.Now() + patience;
  ASSIGN_OR_RETURN(ModelReference reference, LocateModel(model, /*pull=*/false, variables_));
  RETURN_IF_ERROR(local_.Replace(std::move(reference), deadline, announce_));
  base::MutexLock lock(mutex_);
  current_ = {model, local_.fingerprint(), local_.engine().weights_version()};
  return current_;
}

}  // namespace plumb::cli
