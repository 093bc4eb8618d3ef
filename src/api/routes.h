// api/routes.h
// Which endpoint a request is for: a table of methods and path patterns, each with who may call it
// and how its errors are shaped. Paths are matched as they are, segment by segment; nothing is
// decoded, rebuilt or guessed, so what was authorised is what is served. Read next: api/service.h.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/errors.h"
#include "base/hash.h"
#include "net/http_server.h"

namespace plumb::api {

// One request on its way to its endpoint. Whoever has it answers it, once.
struct Call {
  net::HttpRequest request;
  std::unique_ptr<net::HttpExchange> exchange;
  std::string request_id;
  std::string_view route;          // its pattern, empty before routing
  std::vector<std::string> names;  // what the pattern's {} stand for
  uint32_t caller = 0;             // index of its key; 0 where there are no keys
  base::Hash256 isolation;         // engine::Request: equal for one caller's requests alone
};

// What a route takes for a body. Said by the header, so that nothing else is received.
enum class BodyType {
  kNone,  // nothing; what comes is ignored, up to kIgnoredBodyBytesMax
  kJson,  // application/json: a web page may not send that across origins unasked
  kForm,  // multipart/form-data
};
constexpr uint64_t kIgnoredBodyBytesMax = 4096;

struct Route {
  net::HttpMethod method;
  // "/v1/responses/{}/cancel": {} is one segment, not empty; {*} at the end is one or more of them.
  // Static text: metrics and logs call the route so.
  std::string_view pattern;
  // Thread: an I/O thread; must not block.
  std::function<void(Call call)> serve;
  bool key_needed = true;  // when keys are configured at all
  bool while_draining = false;
  BodyType body = BodyType::kNone;
  // It changes what is kept, and not only by answering: refused to web pages that may not call, of
  // which browsers send forms, and what has no body, without asking.
  bool acts = false;
  ApiError (*absent)() = nullptr;  // set: not served here, and why
  net::HttpResponse (*error)(const ApiError& error) = ErrorResponse;

  // Where GET is taken HEAD is, as HTTP wants it; net leaves the body out.
  bool Takes(net::HttpMethod given) const;
  // Whether the pattern is that of `path`; `names` then has what its {} stand for.
  bool Matches(std::string_view path, std::vector<std::string>& names) const;
};

// What Find found: a route; or none, and then the methods that the path takes ("GET, HEAD"), empty
// when there is nothing at it. `nearest` is a route of the same path, or nullptr.
struct FoundRoute {
  const Route* route = nullptr;
  const Route* nearest = nullptr;
  std::string allowed;
  std::vector<std::string> names;
};

// The first pattern that matches wins, so a fixed path stands before a pattern of it.
FoundRoute FindRoute(const std::vector<Route>& routes, net::HttpMethod method,
                     std::string_view path);

}  // namespace plumb::api
