// cli/weights_owner.h
// POST /admin/weights, from the name of a model to the weights that answer.
#pragma once

#include <functional>
#include <string>

#include "api/admin.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "cli/local_engine.h"
#include "cli/option_table.h"

namespace plumb::cli {

// A resource type. Borrows what it is given. Threads: as api::WeightsOwner says.
class WeightsOwner final : public api::WeightsOwner {
 public:
  // Tells whoever shows fingerprints which one a version has, before it answers.
  using Announce = std::function<void(uint32_t version, const std::string& fingerprint)>;

  WeightsOwner(LocalEngine& local, const base::Clock& clock, VariableReader variables,
               Announce announce);

  api::ServedWeights Current() const override;
  // A model that is on this machine: nothing is pulled. kNotFound otherwise; the errors of
  // LocalEngine::Replace.
  base::Result<api::ServedWeights> Replace(const std::string& model,
                                           base::Duration patience) override;

 private:
  LocalEngine& local_;
  const base::Clock& clock_;
  const VariableReader variables_;
  const Announce announce_;
  mutable base::Mutex mutex_;
  api::ServedWeights current_ GUARDED_BY(mutex_);
};

}  // namespace plumb::cli
