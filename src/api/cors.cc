// api/cors.cc
// See cors.h. Credentials (cookies) are never allowed, so a key stands in a header that the page
// sets itself.
#include "api/cors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/header_exchange.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Status;
using net::HttpHeaders;

namespace {

constexpr std::string_view kField = "--cors-origin";
// What a page's script may read of an answer besides its body.
constexpr std::string_view kExposed =
    "X-Request-Id, request-id, Retry-After, Idempotent-Replayed, x-ratelimit-limit-requests, "
    "x-ratelimit-remaining-requests, x-ratelimit-reset-requests, x-ratelimit-limit-tokens, "
    "x-ratelimit-remaining-tokens, x-ratelimit-reset-tokens";
// "*" does not stand for Authorization.
constexpr std::string_view kRequestHeaders = "Authorization, *";
constexpr std::string_view kPreflightSeconds = "600";

bool IsSchemeCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
}

bool IsHostCharacter(char c) {
  return IsSchemeCharacter(c) || c == ':' || c == '[' || c == ']' || c == '_';
}

Status CheckOrigin(const std::string& origin) {
  const auto refuse = [&](std::string_view why) {
    const std::string_view shown = std::string_view(origin).substr(0, kCorsOriginBytesMax);
    return InvalidArgument(std::string(kField), fmt::format("{}: '{}' {}", kField, shown, why));
  };
  if (origin == "*" || origin == "null")
    return refuse("would let any page call; name each origin that may");
  if (origin.size() > kCorsOriginBytesMax) return refuse("is too long for an origin");
  const size_t mark = origin.find("://");
  if (mark == 0 || mark == std::string::npos)
    return refuse("is no origin; write https://host or http://host:port");
  const std::string_view scheme = std::string_view(origin).substr(0, mark);
  const std::string_view host = std::string_view(origin).substr(mark + 3);
  if (host.ends_with('/')) return refuse("ends with a slash, which an origin never does");
  if (host.empty() || !std::ranges::all_of(scheme, IsSchemeCharacter) ||
      !std::ranges::all_of(host, IsHostCharacter)) {
    return refuse("is no origin: a scheme, a host and perhaps a port, in lower case, without path");
  }
  const bool default_port =
      (scheme == "https" && host.ends_with(":443")) || (scheme == "http" && host.ends_with(":80"));
  if (default_port) return refuse("names its scheme's own port, which browsers leave out");
  return base::OkStatus();
}

}  // namespace

base::Result<CorsPolicy> CorsPolicy::FromOrigins(std::vector<std::string> origins) {
  if (origins.size() > kCorsOriginsMax) {
    return InvalidArgument(std::string(kField),
                           fmt::format("{}: {} origins are given; at most {} are allowed", kField,
                                       origins.size(), kCorsOriginsMax));
  }
  for (const std::string& origin : origins) RETURN_IF_ERROR(CheckOrigin(origin));
  CorsPolicy policy;
  policy.origins_ = std::move(origins);
  return policy;
}

bool CorsPolicy::Allows(std::optional<std::string_view> origin) const {
  return origin && std::ranges::find(origins_, *origin) != origins_.end();
}

bool CorsPolicy::MayAct(const net::HttpRequest& request) const {
  const auto origin = request.headers.Get("Origin");
  if (!origin || Allows(origin)) return true;
  const std::string_view host = request.headers.Get("Host").value_or("");
  return !host.empty() &&
         (*origin == fmt::format("http://{}", host) || *origin == fmt::format("https://{}", host));
}

bool CorsPolicy::IsPreflight(const net::HttpRequest& request) const {
  return request.method == net::HttpMethod::kOptions && Allows(request.headers.Get("Origin")) &&
         request.headers.Get("Access-Control-Request-Method").has_value();
}

net::HttpResponse CorsPolicy::PreflightResponse(std::string_view methods) {
  net::HttpResponse response{.status = 204, .headers = {}, .body = ""};
  response.headers.Add("Access-Control-Allow-Methods", std::string(methods));
  response.headers.Add("Access-Control-Allow-Headers", std::string(kRequestHeaders));
  response.headers.Add("Access-Control-Max-Age", std::string(kPreflightSeconds));
  return response;
}

void CorsPolicy::AddHeaders(const net::HttpRequest& request, HttpHeaders& headers) const {
  if (!enabled()) return;
  headers.Add("Vary", "Origin");  // caches must not show one origin what was meant for another
  const auto origin = request.headers.Get("Origin");
  if (!Allows(origin)) return;
  headers.Add("Access-Control-Allow-Origin", std::string(*origin));
  headers.Add("Access-Control-Expose-Headers", std::string(kExposed));
}

std::unique_ptr<net::HttpExchange> CorsPolicy::Wrap(
    const net::HttpRequest& request, std::unique_ptr<net::HttpExchange> exchange) const {
  if (!enabled()) return exchange;
  HttpHeaders headers;
  AddHeaders(request, headers);
  return std::make_unique<HeaderExchange>(std::move(exchange), std::move(headers));
}

}  // namespace plumb::api
