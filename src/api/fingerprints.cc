// api/fingerprints.cc
// A short list under a lock, behind api/fingerprints.h.
#include "api/fingerprints.h"

namespace plumb::api {

void Fingerprints::Add(uint32_t version, std::string fingerprint) {
  base::MutexLock lock(mutex_);
  std::erase_if(added_, [&](const auto& entry) { return entry.first == version; });
  if (added_.size() == kVersionsMax) added_.erase(added_.begin());
  added_.emplace_back(version, std::move(fingerprint));
}

std::string Fingerprints::Of(uint32_t version) const {
  base::MutexLock lock(mutex_);
  for (const auto& [known, fingerprint] : added_) {
    if (known == version) return fingerprint;
  }
  return first_;
}

}  // namespace plumb::api
