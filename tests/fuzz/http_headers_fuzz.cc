// tests/fuzz/http_headers_fuzz.cc
// Arbitrary text as a request's query (the first line) and header fields (the others), given to all
// that reads them. Besides not crashing: a query's parameters are those that a judge finds, a
// refusal can stand in an answer, and what an answer repeats of them stays within its field.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/console.h"
#include "api/cors.h"
#include "api/errors.h"
#include "api/host_policy.h"
#include "api/idempotency.h"
#include "api/multipart.h"
#include "api/page.h"
#include "api/request_id.h"
#include "base/check.h"
#include "net/outbox.h"
#include "net/request_parser.h"
#include "net/response_parser.h"
#include "refusal.h"
#include "tenancy/api_key.h"

namespace {

namespace api = plumb::api;
namespace net = plumb::net;

using plumb::base::Code;

constexpr std::string_view kOrigin = "https://page.example";
constexpr std::string_view kName = "plumb.example";
constexpr std::string_view kKey = "sk-0123456789";

// The request, or nothing where its header is refused.
std::optional<net::HttpRequest> RequestOf(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string wire = fmt::format("POST /v1/files?{} HTTP/1.1\r\n", text.substr(0, end));
  for (const char c : text.substr(std::min(end + 1, text.size()))) {
    if (c == '\n') wire += '\r';
    wire += c;
  }
  const net::HttpLimits limits;
  net::RequestParser parser(limits);
  parser.Append(wire + "\r\n\r\n");
  if (parser.Advance() != net::RequestParser::Phase::kDone) return std::nullopt;
  return parser.TakeRequest();
}

std::optional<std::string> JudgeDecode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  while (!text.empty()) {
    if (text[0] == '%') {
      constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
      if (text.size() < 3) return std::nullopt;
      const size_t high = kDigits.find(text[1]);
      const size_t low = kDigits.find(text[2]);
      if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
      decoded += static_cast<char>((high % 16) << 4 | low % 16);
      text.remove_prefix(3);
    } else {
      decoded += plus_is_space && text[0] == '+' ? ' ' : text[0];
      text.remove_prefix(1);
    }
  }
  return decoded;
}

std::optional<std::string> JudgeParam(std::string_view query, std::string_view name) {
  for (size_t at = 0; at <= query.size();) {
    const size_t end = std::min(query.find('&', at), query.size());
    const std::string_view pair = query.substr(at, end - at);
    const size_t equals = std::min(pair.find('='), pair.size());
    at = end + 1;
    if (pair.empty() || JudgeDecode(pair.substr(0, equals), false) != name) continue;
    return JudgeDecode(pair.substr(std::min(equals + 1, pair.size())), true);
  }
  return std::nullopt;
}

void CheckQuery(std::string_view query) {
  for (const std::string_view name : {"limit", "order", "after", "purpose", "stream", "&", "a=b"})
    CHECK(net::QueryParam(query, name) == JudgeParam(query, name)) << name;
  constexpr api::PageLimits kLimits;
  const auto page = api::ReadPage(query, kLimits);
  if (!page.ok()) return plumb::fuzz::CheckRefusal(page.status());
  CHECK(page->limit >= 1 && page->limit <= kLimits.limit_max) << page->limit;
  CHECK(page->after == net::QueryParam(query, "after"));
}

void CheckKey(const net::HttpHeaders& headers) {
  const auto key = api::IdempotencyKeyOf(headers);
  const auto given = headers.Get("Idempotency-Key");
  if (!key.ok()) {
    CHECK(given.has_value());
    return plumb::fuzz::CheckRefusal(key.status());
  }
  CHECK(key->has_value() == given.has_value());
  if (given) CHECK(**key == *given && !given->empty());
}

void CheckCaller(const net::HttpHeaders& headers) {
  const auto keys = plumb::tenancy::ApiKeys::FromKeys({std::string(kKey)});
  CHECK(keys.ok());
  const auto given = headers.Get("Authorization");
  const auto found = keys->Check(given);
  if (!found.ok()) return plumb::fuzz::CheckRefusal(found.status(), Code::kUnauthenticated);
  const size_t at = given->find(kKey);
  CHECK(at != given->npos && given->substr(at) == kKey) << *given;
  CHECK(net::EqualsIgnoreCase(given->substr(0, 6), "bearer")) << *given;
  CHECK(given->substr(6, at - 6).find_first_not_of(' ') == given->npos && at > 6) << *given;
}

// Only what leads here and the name that was allowed, whatever the port.
void CheckHost(const net::HttpHeaders& headers) {
  const auto policy = api::HostPolicy::Local({std::string(kName)});
  CHECK(policy.ok());
  const plumb::base::Status status = policy->Check(headers);
  if (!status.ok()) return plumb::fuzz::CheckRefusal(status, Code::kForbidden);
  std::string host(headers.Get("Host").value());
  if (host.starts_with('[')) {
    CHECK(host.find_first_not_of("0123456789abcdefABCDEF:.", 1) == host.find(']')) << host;
    return;
  }
  host = host.substr(0, host.find(':'));
  if (host.ends_with('.')) host.pop_back();
  const size_t localhost = host.size() - std::min<size_t>(host.size(), 9);
  const bool named = net::EqualsIgnoreCase(host, kName);
  const bool local = net::EqualsIgnoreCase(host.substr(localhost), "localhost") &&
                     (localhost == 0 || host[localhost - 1] == '.');
  CHECK(named || local || host.find_first_not_of("0123456789.") == host.npos) << host;
}

// What stands in an answer's header because it stood in the request's.
void CheckAnswer(const net::HttpRequest& request) {
  const auto cors = api::CorsPolicy::FromOrigins({std::string(kOrigin)});
  CHECK(cors.ok());
  net::HttpHeaders headers;
  api::AddRequestId(headers, api::ChooseRequestId(request.headers));
  cors->AddHeaders(request, headers);
  const auto origin = request.headers.Get("Origin");
  const auto shown = headers.Get("Access-Control-Allow-Origin");
  CHECK(shown.has_value() == (origin == kOrigin) && shown.value_or(kOrigin) == kOrigin);
  const std::string_view host = request.headers.Get("Host").value();
  if (cors->MayAct(request) && origin && origin != kOrigin)
    CHECK(!host.empty() && origin->ends_with(host) && origin->starts_with("http")) << *origin;
  CHECK(!cors->IsPreflight(request)) << "of a POST";

  // An origin of any bytes, as a careless policy would repeat it.
  headers.Add("X-Repeated", std::string(origin.value_or("")));
  const std::string head = net::RenderHead(200, headers, 0, false, true, net::HttpDate(0));
  constexpr uint32_t kHeadBytesMax = 64u << 10;
  net::ResponseParser parser(false, kHeadBytesMax);
  std::string body;
  CHECK(parser.Feed(head, body).ok() && parser.done() && body.empty()) << head;
  constexpr size_t kOfNet = 2;  // Date, Content-Length
  CHECK(parser.head().headers.fields().size() == headers.fields().size() + kOfNet) << head;
  CHECK(parser.head().headers.Get("X-Request-Id") == headers.Get("X-Request-Id"));
}

void CheckForm(const net::HttpRequest& request, std::string_view body) {
  const std::string_view type = request.headers.Get("Content-Type").value_or("");
  const auto form = api::ReadForm(type, body);
  if (!form.ok()) return plumb::fuzz::CheckRefusal(form.status());
  CHECK(api::IsForm(type) && !api::IsJson(request));
  CHECK(form->size() <= api::kFormPartsMax);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckQuery(text);
  const std::optional<net::HttpRequest> request = RequestOf(text);
  if (!request) return 0;
  CheckQuery(request->query);
  CheckKey(request->headers);
  CheckCaller(request->headers);
  CheckHost(request->headers);
  CheckAnswer(*request);
  CheckForm(*request, text);
  if (const auto tags = request->headers.Get("If-None-Match"))
    CHECK(!api::MatchesTag(*tags, "\"t\"") || tags->find_first_of("*t") != tags->npos) << *tags;
  return 0;
}
