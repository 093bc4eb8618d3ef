// api/service.cc
// See service.h. The life of a call: request id, route, key, drain, endpoint.
#include "api/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "api/errors.h"
#include "api/health.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/random.h"

namespace plumb::api {

using base::Status;
using net::HttpMethod;
using net::HttpResponse;

namespace {

constexpr size_t kRequestIdBytesMax = 128;
constexpr uint32_t kDrainRetryAfterMs = 5000;

// What a client may choose as its request id: it goes into headers and logs.
bool IsRequestId(std::string_view id) {
  const auto allowed = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), allowed);
}

std::string ChooseRequestId(const net::HttpRequest& request) {
  const auto given = request.headers.Get("X-Request-Id");
  if (given && IsRequestId(*given)) return std::string(*given);
  return fmt::format("req-{:016x}", base::EntropySeed());
}

// A key is a tenant, as long as there are no projects: what was computed for one is not reused for
// another. Of a request whose key was found good.
base::Hash256 IsolationOf(const net::HttpRequest& request) {
  constexpr std::string_view kTag = "plumb.isolation.1";
  const auto header = request.headers.Get("Authorization");
  const auto token = tenancy::BearerToken(header.value_or(""));
  CHECK(token) << "a good key has a token";
  return base::Blake3({std::as_bytes(std::span(kTag)), std::as_bytes(std::span(*token))});
}

// What the endpoint must know of the model, from where it is already said.
ChatOptions CompleteOptions(const ServiceConfig& config, const ServiceParts& parts) {
  ChatOptions options = config.chat;
  options.model_names = config.model.names;
  options.limits.vocabulary_size = parts.tokenizer.size();
  options.limits.abilities = parts.chat_format.abilities();
  return options;
}

Status Draining() {
  return Status(base::Code::kUnavailable, "the server is stopping; send the request elsewhere")
      .WithReason("server_stopping")
      .WithRetryAfterMs(kDrainRetryAfterMs);
}

}  // namespace

struct Service::Call {
  net::HttpRequest request;
  std::unique_ptr<net::HttpExchange> exchange;
  std::string request_id;
  std::string_view route;   // its pattern, empty before routing
  base::Hash256 isolation;  // engine::Request
};

struct Service::Route {
  HttpMethod method;
  std::string_view path;
  bool prefix;      // `path` is followed by a name
  bool key_needed;  // when keys are configured at all
  bool while_draining;
  void (Service::*serve)(Call call);

  // Where GET is taken HEAD is, as HTTP wants it; net leaves the body out.
  bool Takes(HttpMethod given) const {
    return given == method || (given == HttpMethod::kHead && method == HttpMethod::kGet);
  }
  std::string Allowed() const {
    return std::string(net::MethodName(method)) + (method == HttpMethod::kGet ? ", HEAD" : "");
  }
  bool Matches(std::string_view requested) const {
    if (!prefix) return requested == path;
    return requested.size() > path.size() && requested.starts_with(path);
  }
};

const Service::Route Service::kRoutes[] = {
    {HttpMethod::kPost, ChatCompletions::kRoute, false, true, false, &Service::ServeChat},
    {HttpMethod::kGet, "/v1/models", false, true, false, &Service::ServeModelList},
    {HttpMethod::kGet, "/v1/models/", true, true, false, &Service::ServeModel},
    {HttpMethod::kGet, "/metrics", false, true, true, &Service::ServeMetrics},
    {HttpMethod::kGet, "/health", false, false, true, &Service::ServeHealth},
    {HttpMethod::kGet, "/ready", false, false, true, &Service::ServeReady},
};

Service::Service(const ServiceConfig& config, ServiceParts parts)
    : model_(config.model),
      parts_(std::move(parts)),
      chat_(CompleteOptions(config, parts_),
            {parts_.generator, parts_.tokenizer, parts_.chat_format, parts_.clock,
             parts_.metrics.api, parts_.logger, parts_.grammars}) {}

std::vector<std::string> Service::RoutePatterns() {
  std::vector<std::string> patterns;
  for (const Route& route : kRoutes) patterns.emplace_back(route.path);
  return patterns;
}

Service::~Service() { Stop(); }

void Service::OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) {
  Call call{.request_id = ChooseRequestId(request)};
  call.request = std::move(request);
  call.exchange = std::move(exchange);
  const Route* other_method = nullptr;
  for (const Route& route : kRoutes) {
    if (!route.Matches(call.request.path)) continue;
    call.route = route.path;
    if (route.Takes(call.request.method)) return Dispatch(route, std::move(call));
    other_method = &route;
  }
  if (other_method == nullptr) {
    ApiError error = ErrorFromHttp(404, "there is nothing at this path");
    error.code = "unknown_url";
    return Answer(call, ErrorResponse(error));
  }
  const std::string allowed = other_method->Allowed();
  HttpResponse response =
      ErrorResponse(ErrorFromHttp(405, fmt::format("this path takes {} only", allowed)));
  response.headers.Add("Allow", allowed);
  Answer(call, std::move(response));
}

void Service::Dispatch(const Route& route, Call call) {
  if (route.key_needed) {
    const auto key = parts_.keys.Check(call.request.headers.Get("Authorization"));
    if (!key.ok()) return Answer(call, ErrorResponse(ErrorFromStatus(key.status())));
    if (key->has_value()) call.isolation = IsolationOf(call.request);
  }
  if (draining_.load() && !route.while_draining)
    return Answer(call, ErrorResponse(ErrorFromStatus(Draining())));
  (this->*route.serve)(std::move(call));
}

// JSON only: a web page may send other types across origins without asking, JSON it may not.
void Service::ServeChat(Call call) {
  if (!IsJson(call.request)) {
    return Answer(call, ErrorResponse(ErrorFromHttp(
                            415, "send the body with Content-Type: application/json")));
  }
  chat_.Handle(std::move(call.request), std::move(call.request_id), call.isolation,
               std::move(call.exchange));
}

void Service::ServeModelList(Call call) { Answer(call, JsonResponse(ModelListJson(model_))); }

void Service::ServeModel(Call call) {
  const std::string_view name = std::string_view(call.request.path).substr(call.route.size());
  if (auto json = ModelJson(model_, name)) return Answer(call, JsonResponse(*std::move(json)));
  const Status missing = base::NotFound("no model of this name is served here")
                             .WithField("model")
                             .WithReason("model_not_found");
  Answer(call, ErrorResponse(ErrorFromStatus(missing)));
}

void Service::ServeHealth(Call call) { Answer(call, HealthResponse()); }

void Service::ServeReady(Call call) { Answer(call, ReadyResponse(Ready())); }

Status Service::Ready() const { return draining_.load() ? Draining() : parts_.ready(); }

void Service::ServeMetrics(Call call) {
  if (parts_.refresh_metrics) parts_.refresh_metrics();
  HttpResponse response{.status = 200, .headers = {}, .body = parts_.metrics.Expose()};
  response.headers.Add("Content-Type", std::string(telemetry::kExpositionContentType));
  Answer(call, std::move(response));
}

void Service::Answer(Call& call, HttpResponse response) {
  parts_.metrics.api.CountRequest(call.route, response.status);
  response.headers.Add("X-Request-Id", call.request_id);
  call.exchange->Respond(std::move(response));
}

HttpResponse Service::FormatRefusal(const net::HttpRefusal& refusal) const {
  if (refusal.status == 503 && draining_.load()) return ErrorResponse(ErrorFromStatus(Draining()));
  return ErrorResponse(ErrorFromHttp(refusal.status, std::string(refusal.message)));
}

}  // namespace plumb::api
