// api/host_policy.h
// Which Host a request may name. Without keys a server is open to whoever reaches it, and a web
// page reaches 127.0.0.1 by a name of its own that is made to lead there (DNS rebinding): the
// browser then takes the server for the page's origin. What the browser cannot change is the name
// in Host, so names that nobody has allowed are refused. Numeric addresses and localhost lead
// nowhere else and are always good. Thread: any; immutable.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace plumb::api {

constexpr size_t kAllowedHostsMax = 64;

// A value type.
class HostPolicy {
 public:
  HostPolicy() = default;  // nothing is checked: callers have keys

  // Numeric addresses, localhost, names below it, and these names, without port.
  // kInvalidArgument, field "--allowed-host": not a host's name, or too many of them.
  static base::Result<HostPolicy> Local(std::vector<std::string> names);

  // kForbidden, reason "host_not_allowed", naming what may be done. Absent (HTTP/1.0) is good:
  // every browser sends it.
  base::Status Check(const net::HttpHeaders& headers) const;

 private:
  bool checks_ = false;
  std::vector<std::string> names_;  // lower case, without a dot at the end
};

}  // namespace plumb::api
