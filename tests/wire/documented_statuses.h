// tests/wire/documented_statuses.h
// Which statuses /openapi.json names, so that every talk holds it to what the server gives.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "net/http.h"

namespace plumb::wire {

// A value type.
class DocumentedStatuses {
 public:
  DocumentedStatuses();

  // False: the document has the operation, and not this status of it. What it does not describe
  // (unknown paths, methods that a path does not take) may be answered in any way. `path`: as sent,
  // a query included.
  bool Allow(net::HttpMethod method, std::string path, int status) const;

 private:
  const nlohmann::json* Find(const std::string& path) const;

  nlohmann::json paths_;
};

}  // namespace plumb::wire
