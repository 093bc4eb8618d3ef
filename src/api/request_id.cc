// api/request_id.cc
// See request_id.h.
#include "api/request_id.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/random.h"

namespace plumb::api {

namespace {

constexpr size_t kBytesMax = 128;

bool IsRequestId(std::string_view id) {
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= kBytesMax && std::all_of(id.begin(), id.end(), allowed);
}

}  // namespace

std::string ChooseRequestId(const net::HttpHeaders& headers) {
  const auto given = headers.Get("X-Request-Id");
  return given && IsRequestId(*given) ? std::string(*given) : DrawRequestId();
}

std::string DrawRequestId() { return fmt::format("req-{:016x}", base::EntropySeed()); }

}  // namespace plumb::api
