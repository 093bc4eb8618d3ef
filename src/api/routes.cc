// api/routes.cc
// See routes.h.
#include "api/routes.h"

#include <utility>

namespace plumb::api {

using net::HttpMethod;

namespace {

// Cuts the first segment, and the slash before it, off `path`: false when it begins with no slash.
bool TakeSegment(std::string_view& path, std::string_view& segment) {
  if (path.empty() || path.front() != '/') return false;
  const size_t end = path.find('/', 1);
  segment = path.substr(1, end == std::string_view::npos ? end : end - 1);
  path = end == std::string_view::npos ? std::string_view() : path.substr(end);
  return true;
}

}  // namespace

bool Route::Takes(HttpMethod given) const {
  return given == method || (given == HttpMethod::kHead && method == HttpMethod::kGet);
}

bool Route::Matches(std::string_view path, std::vector<std::string>& names) const {
  names.clear();
  std::string_view rest = pattern;
  std::string_view wanted;
  std::string_view given;
  while (TakeSegment(rest, wanted)) {
    if (wanted == "{*}") {
      if (path.size() < 2 || path.front() != '/') return false;
      names.emplace_back(path.substr(1));
      return true;
    }
    if (!TakeSegment(path, given)) return false;
    if (wanted == "{}") {
      if (given.empty()) return false;
      names.emplace_back(given);
    } else if (given != wanted) {
      return false;
    }
  }
  return path.empty();
}

FoundRoute FindRoute(const std::vector<Route>& routes, HttpMethod method, std::string_view path) {
  FoundRoute found;
  std::vector<std::string> names;
  for (const Route& route : routes) {
    // What a fixed path does not take is not looked for in a pattern that has it by chance.
    if (found.nearest != nullptr && route.pattern != found.nearest->pattern) continue;
    if (!route.Matches(path, names)) continue;
    if (route.Takes(method)) {
      found.route = &route;
      found.names = std::move(names);
      return found;
    }
    found.nearest = &route;
    std::string name(net::MethodName(route.method));
    if (route.method == HttpMethod::kGet) name += ", HEAD";
    if (found.allowed.find(name) != std::string::npos) continue;
    found.allowed += (found.allowed.empty() ? "" : ", ") + name;
  }
  return found;
}

}  // namespace plumb::api
