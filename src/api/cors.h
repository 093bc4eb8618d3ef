// api/cors.h
// Which web pages of other origins may call this server: none, unless their exact origin is on a
// list. A browser asks before it sends what a page of another origin wants to send (a preflight),
// and shows the page an answer only when the answer names the page's origin.
// Source: Fetch standard, section "CORS protocol". Thread: any; immutable.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http_server.h"

namespace plumb::api {

constexpr size_t kCorsOriginsMax = 64;
constexpr size_t kCorsOriginBytesMax = 256;

// A value type.
class CorsPolicy {
 public:
  CorsPolicy() = default;  // no origin

  // Origins as browsers write them: scheme://host[:port], lower case, no path. kInvalidArgument,
  // field "--cors-origin": anything else, "*" and "null" included (who may call is said one by
  // one), or too many.
  static base::Result<CorsPolicy> FromOrigins(std::vector<std::string> origins);

  bool enabled() const { return !origins_.empty(); }

  // Whether the request comes from no page, a page of this server, or one that may call. Browsers
  // send some requests of any page without asking (forms, and what has no body); one that does
  // something here is to be refused unless this holds.
  bool MayAct(const net::HttpRequest& request) const;

  // Whether this is the question of a page that may call. It needs no key: browsers send none.
  bool IsPreflight(const net::HttpRequest& request) const;
  // Its answer. `methods`: what the path takes ("GET, HEAD").
  static net::HttpResponse PreflightResponse(std::string_view methods);

  // Adds the headers that the request's origin is to have, whatever the answer.
  void AddHeaders(const net::HttpRequest& request, net::HttpHeaders& headers) const;
  // The exchange with the headers that the request's origin is to have, whatever the answer.
  std::unique_ptr<net::HttpExchange> Wrap(const net::HttpRequest& request,
                                          std::unique_ptr<net::HttpExchange> exchange) const;

 private:
  bool Allows(std::optional<std::string_view> origin) const;

  std::vector<std::string> origins_;
};

}  // namespace plumb::api
