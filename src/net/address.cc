// net/address.cc
// See address.h.
#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace plumb::net {

using base::InvalidArgument;
using base::Result;

namespace {

constexpr size_t kHostBytesMax = 253;  // of a DNS name, RFC 1035

std::optional<uint16_t> ParsePort(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return port;
}

bool IsHostChar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '_';
}

bool IsIpv6(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

}  // namespace

Result<HostPort> ParseHostPort(std::string_view text, const HostPort& defaults) {
  const auto refuse = [&](std::string_view why) {
    return InvalidArgument("", fmt::format("'{}' is no address: {}; write host:port or "
                                           "[ipv6]:port",
                                           text.substr(0, kHostBytesMax), why));
  };
  HostPort address = defaults;
  std::string_view rest = text;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) return refuse("the bracket is not closed");
    address.host = rest.substr(1, end - 1);
    if (!IsIpv6(address.host)) return refuse("no IPv6 address stands in the brackets");
    rest.remove_prefix(end + 1);
    if (!rest.empty() && rest[0] != ':') return refuse("something follows the bracket");
  } else {
    const size_t colon = rest.find(':');
    const std::string_view host = rest.substr(0, colon);
    if (host.size() > kHostBytesMax || !std::all_of(host.begin(), host.end(), IsHostChar)) {
      return refuse("the host has a character that no host has, or is too long");
    }
    if (!host.empty()) address.host = host;
    rest.remove_prefix(host.size());
  }
  if (!rest.empty()) {
    const auto port = ParsePort(rest.substr(1));
    if (!port) return refuse("the port must be a number from 0 to 65535");
    address.port = *port;
  }
  if (address.host.empty()) return refuse("the host is missing");
  return address;
}

std::string FormatHostPort(const HostPort& address) {
  const bool brackets = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", address.host, brackets ? "]" : "",
                     address.port);
}

// inet_pton wants a terminator, and refuses what is not all address.
bool IsAddress(std::string_view host) {
  const std::string text(host);
  if (text.find('\0') != std::string::npos) return false;
  in_addr ignored;
  return IsIpv6(text) || inet_pton(AF_INET, text.c_str(), &ignored) == 1;
}

bool IsLoopback(std::string_view host) {
  if (host == "localhost") return true;
  if (!IsAddress(host)) return false;
  const std::string text(host);
  in_addr v4;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return true;
  return IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127;
}

Result<HttpUrl> ParseHttpUrl(std::string_view url) {
  constexpr std::string_view kHttp = "http://";
  if (url.starts_with("https://")) {
    return base::Unsupported("https is not built in; give an http:// URL");
  }
  if (!url.starts_with(kHttp)) {
    return InvalidArgument("", "a URL must start with http://");
  }
  const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::all_of(url.begin(), url.end(), is_visible)) {
    return InvalidArgument("", "a URL must not contain spaces or characters outside ASCII");
  }
  url.remove_prefix(kHttp.size());
  const size_t end = url.find_first_of("/?#");
  const std::string_view authority = url.substr(0, end);
  ASSIGN_OR_RETURN(HostPort address, ParseHostPort(authority, {"", 80}));
  std::string target(end == std::string_view::npos ? "" : url.substr(end));
  target.erase(std::min(target.find('#'), target.size()));
  if (!target.starts_with('/')) target.insert(0, "/");
  return HttpUrl{std::move(address), std::string(authority), std::move(target)};
}

}  // namespace plumb::net
