// api/fingerprints.h
// Which weights an answer came from, as system_fingerprint says it: weights may be replaced while a
// server runs (api/admin.h), and the generator tells only their version.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace plumb::api {

// Thread: any.
class Fingerprints {
 public:
  // Of the weights that the server starts with: of every version that Add has not named, and of 0
  // (no weights took part).
  explicit Fingerprints(std::string first) : first_(std::move(first)) {}

  // Before the generator may use that version; a version may be named again. The oldest of more
  // than kVersionsMax is forgotten.
  void Add(uint32_t version, std::string fingerprint);
  std::string Of(uint32_t version) const;

  static constexpr size_t kVersionsMax = 16;

 private:
  const std::string first_;
  mutable base::Mutex mutex_;
  std::vector<std::pair<uint32_t, std::string>> added_ GUARDED_BY(mutex_);  // the newest last
};

}  // namespace plumb::api
