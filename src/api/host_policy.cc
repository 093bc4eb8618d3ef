// api/host_policy.cc
// See host_policy.h.
#include "api/host_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "net/address.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kFlag = "--allowed-host";
constexpr size_t kShownBytesMax = 80;

// As names are compared: in lower case, without the dot that a full name may end with.
std::string Plain(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (name.ends_with('.')) name.pop_back();
  return name;
}

Status Refused(std::string_view host) {
  return Status(base::Code::kForbidden,
                fmt::format("this server has no keys, so it answers only to localhost and numeric "
                            "addresses, not to the Host '{}': ask at http://127.0.0.1, or start "
                            "the server with {} and that name, or with --api-key",
                            host.substr(0, kShownBytesMax), kFlag))
      .WithReason("host_not_allowed");
}

}  // namespace

Result<HostPolicy> HostPolicy::Local(std::vector<std::string> names) {
  if (names.size() > kAllowedHostsMax) {
    return InvalidArgument(std::string(kFlag),
                           fmt::format("{}: {} names are given; at most {} are allowed", kFlag,
                                       names.size(), kAllowedHostsMax));
  }
  HostPolicy policy;
  policy.checks_ = true;
  for (std::string& name : names) {
    const bool has_port = name.find(':') != std::string::npos;
    if (has_port || !net::ParseHostPort(name, {"", 0}).ok()) {
      return InvalidArgument(std::string(kFlag),
                             fmt::format("{}: '{}' is no name of a host; give it without scheme, "
                                         "port or path",
                                         kFlag, name.substr(0, kShownBytesMax)));
    }
    policy.names_.push_back(Plain(std::move(name)));
  }
  return policy;
}

Status HostPolicy::Check(const net::HttpHeaders& headers) const {
  const auto given = headers.Get("Host");
  if (!checks_ || !given) return base::OkStatus();
  const Result<net::HostPort> parsed = net::ParseHostPort(*given, {"", 0});
  if (!parsed.ok()) return Refused(*given);
  const std::string host = Plain(parsed->host);
  const bool local = host == "localhost" || host.ends_with(".localhost") || net::IsAddress(host);
  if (local || std::ranges::find(names_, host) != names_.end()) return base::OkStatus();
  return Refused(*given);
}

}  // namespace plumb::api
