// net/address.h
// Host and port as people write them, and whether a host is this machine alone (serve refuses other
// addresses without a key). Pure text: nothing is looked up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plumb::net {

struct HostPort {
  std::string host;  // IPv6 without brackets
  uint16_t port = 0;
};

// "127.0.0.1:8000", "[::1]:8000", "host", ":8000"; a missing part takes the default.
// kInvalidArgument: empty, a port out of [0, 65535], an IPv6 address without brackets, other bytes.
base::Result<HostPort> ParseHostPort(std::string_view text, const HostPort& defaults);

// The inverse; brackets where needed.
std::string FormatHostPort(const HostPort& address);

// A whole IPv4 address in four decimal parts, or an IPv6 address without brackets.
bool IsAddress(std::string_view host);

// 127.0.0.0/8, ::1 (and ::ffff:127.0.0.0/104), "localhost". False for anything that is not exactly
// one of these, other names included: what they resolve to is not known.
bool IsLoopback(std::string_view host);

struct HttpUrl {
  HostPort address;
  std::string host_header;  // as it goes into Host
  std::string target;       // path and query, starts with '/'
};
// "http://host[:port][/path][?query]". kUnsupported: https. kInvalidArgument: anything else.
base::Result<HttpUrl> ParseHttpUrl(std::string_view url);

}  // namespace plumb::net
