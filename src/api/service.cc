// api/service.cc
// See service.h. The life of a call: request id, route, key, drain, endpoint.
#include "api/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/batch_calls.h"
#include "api/console.h"
#include "api/errors.h"
#include "api/file_calls.h"
#include "api/health.h"
#include "api/multipart.h"
#include "api/openapi.h"
#include "api/request_id.h"
#include "api/responses_calls.h"
#include "base/check.h"

namespace plumb::api {

using base::Status;
using net::HttpMethod;
using net::HttpResponse;

namespace {

constexpr uint32_t kDrainRetryAfterMs = 5000;
// The values of the label `route` in metrics; known before there is a service.
constexpr std::string_view kRoutePatterns[] = {
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/tokenize",
    "/v1/detokenize",
    "/v1/responses",
    "/v1/responses/input_tokens",
    "/v1/responses/{}",
    "/v1/responses/{}/cancel",
    "/v1/responses/{}/input_items",
    "/v1/messages",
    "/v1/messages/count_tokens",
    kFilesRoute,
    kFileRoute,
    kFileContentRoute,
    kBatchesRoute,
    kBatchRoute,
    kBatchCancelRoute,
    "/v1/models",
    "/v1/models/{*}",
    "/metrics",
    "/health",
    "/ready",
    kConsoleRoute,
    kConsoleFilesRoute,
    kOpenApiRoute,
};

// The index of a request's key, 0 where none is needed. It stands in Authorization, or alone in
// x-api-key, as Anthropic's clients send it; where both are given, one that is good is enough.
base::Result<uint32_t> FindCaller(const tenancy::ApiKeys& keys, const net::HttpHeaders& headers) {
  const auto authorization = headers.Get("Authorization");
  const auto alone = headers.Get("x-api-key");
  auto found = keys.Check(authorization);
  if (!found.ok() && alone) {
    auto second = keys.Check(fmt::format("Bearer {}", *alone));
    if (second.ok() || !authorization) found = std::move(second);
  }
  if (!found.ok()) return std::move(found).status();
  return found->value_or(0);
}

// What the endpoint must know of the model, from where it is already said.
GenerationOptions CompleteOptions(const ServiceConfig& config, const ServiceParts& parts) {
  GenerationOptions options = config.generations;
  options.model_names = config.model.names;
  options.limits.vocabulary_size = parts.tokenizer.size();
  options.limits.abilities = parts.chat_format.abilities();
  return options;
}

ModelCard CompleteCard(const ServiceConfig& config, const ServiceParts& parts) {
  ModelCard card = config.model;
  card.abilities = parts.chat_format.abilities();
  card.grammars = parts.grammars != nullptr;
  return card;
}

// What people look for here and do not find, by the path's beginning.
struct NotHere {
  std::string_view path;
  std::string_view what;
};
constexpr NotHere kNotHere[] = {
    {"/v1/audio", "this server neither hears nor speaks"},
    {"/v1/realtime", "this server neither hears nor speaks"},
    {"/v1/images", "this server makes no images"},
    {"/v1/videos", "this server makes no videos"},
    {"/v1/moderations", "this server moderates nothing"},
    {"/v1/fine_tuning", "this server trains nothing"},
    {"/v1/assistants", "assistants are not served; /v1/responses keeps conversations"},
    {"/v1/threads", "assistants are not served; /v1/responses keeps conversations"},
};

// Says what there is instead, in the words of the routing table.
std::string NothingAt(std::string_view path) {
  std::string message = "there is nothing at this path";
  for (const NotHere& absent : kNotHere)
    if (path.starts_with(absent.path)) message = absent.what;
  message += "; there are";
  std::string_view separator = " ";
  for (const std::string_view pattern : kRoutePatterns) {
    if (!pattern.starts_with("/v1/") || pattern.find('{') != pattern.npos) continue;
    message += fmt::format("{}{}", std::exchange(separator, ", "), pattern);
  }
  return message;
}

ApiError NoDataFolder() {
  ApiError error = ErrorFromHttp(404,
                                 "this server keeps no files and runs no batches; its operator has "
                                 "to start it with --data-dir FOLDER");
  error.code = "no_data_folder";
  return error;
}

ApiError KeyIsGone() {
  ApiError error =
      ErrorFromHttp(401, "the key with which this batch was made is not valid any more");
  error.code = "invalid_api_key";
  return error;
}

Status Draining() {
  return Status(base::Code::kUnavailable, "the server is stopping; send the request elsewhere")
      .WithReason("server_stopping")
      .WithRetryAfterMs(kDrainRetryAfterMs);
}

}  // namespace

Service::Service(const ServiceConfig& config, ServiceParts parts, std::unique_ptr<DataFolder> data)
    : model_(CompleteCard(config, parts)),
      cors_(config.cors),
      openapi_(OpenApiDocument({config.version, parts.keys.required()})),
      hosts_(config.hosts),
      parts_(std::move(parts)),
      generation_options_(CompleteOptions(config, parts_)),
      chat_(generation_options_.limits, parts_.tokenizer),
      completions_(generation_options_.limits, parts_.tokenizer),
      embeddings_(generation_options_.limits, config.embeddings),
      tokenize_(generation_options_.limits, config.generations.context_max, parts_.tokenizer),
      detokenize_(generation_options_.limits, parts_.tokenizer),
      messages_(generation_options_.limits, MessagesUse::kAnswer),
      message_counts_(generation_options_.limits, MessagesUse::kCount),
      responses_store_(config.responses),
      responses_(generation_options_.limits, parts_.tokenizer, responses_store_),
      responses_count_(generation_options_.limits, responses_store_),
      generations_(generation_options_,
                   {parts_.generator, parts_.tokenizer, parts_.chat_format, parts_.clock,
                    parts_.metrics.api, parts_.logger, parts_.grammars, parts_.limiter}),
      batches_(MakeBatches(std::move(data))),
      routes_(MakeRoutes()) {
  for (const Route& route : routes_)
    CHECK(std::ranges::find(kRoutePatterns, route.pattern) != std::end(kRoutePatterns))
        << "a route that metrics have no label for: " << route.pattern;
}

// Served top to bottom; every pattern stands in kRoutePatterns as well.
std::vector<Route> Service::MakeRoutes() {
  std::vector<Route> routes;
  routes.push_back(AnswerRoute(chat_));
  routes.push_back(AnswerRoute(completions_));
  routes.push_back(AnswerRoute(embeddings_));
  routes.push_back(AnswerRoute(tokenize_, Computes::kCounts));
  routes.push_back(AnswerRoute(detokenize_, Computes::kCounts));
  AddResponsesRoutes(routes);
  routes.push_back(AnswerRoute(messages_));
  routes.push_back(AnswerRoute(message_counts_, Computes::kCounts));
  AddDataRoutes(routes);
  routes.push_back({HttpMethod::kGet, "/v1/models",
                    [this](Call call) { Answer(call, JsonResponse(ModelListJson(model_))); }});
  routes.push_back(
      {HttpMethod::kGet, "/v1/models/{*}", [this](Call call) { ServeModel(std::move(call)); }});
  AddConsole(routes);
  routes.push_back({.method = HttpMethod::kGet,
                    .pattern = kOpenApiRoute,
                    .serve = [this](Call call) { Answer(call, JsonResponse(openapi_)); },
                    .key_needed = false});
  routes.push_back({.method = HttpMethod::kGet,
                    .pattern = "/metrics",
                    .serve = [this](Call call) { ServeMetrics(std::move(call)); },
                    .while_draining = true});
  routes.push_back({.method = HttpMethod::kGet,
                    .pattern = "/health",
                    .serve = [this](Call call) { Answer(call, HealthResponse()); },
                    .key_needed = false,
                    .while_draining = true});
  routes.push_back({.method = HttpMethod::kGet,
                    .pattern = "/ready",
                    .serve = [this](Call call) { Answer(call, ReadyResponse(Ready())); },
                    .key_needed = false,
                    .while_draining = true});
  return routes;
}

// A page and its files tell nothing of the model, so they need no key.
void Service::AddConsole(std::vector<Route>& routes) {
  routes.push_back({.method = HttpMethod::kGet,
                    .pattern = kConsoleRoute,
                    .serve = [this](Call call) { Answer(call, ConsolePage(call.request)); },
                    .key_needed = false});
  routes.push_back(
      {.method = HttpMethod::kGet,
       .pattern = kConsoleFilesRoute,
       .serve = [this](Call call) { Answer(call, ConsoleFile(call.request, call.names.front())); },
       .key_needed = false});
}

void Service::AddResponsesRoutes(std::vector<Route>& routes) {
  routes.push_back(AnswerRoute(responses_));
  routes.push_back(AnswerRoute(responses_count_, Computes::kCounts));
  const auto add = [&](HttpMethod method, std::string_view pattern,
                       std::function<HttpResponse(const Call& call)> make) {
    routes.push_back(
        {.method = method,
         .pattern = pattern,
         .serve = [this, make = std::move(make)](Call call) { Answer(call, make(call)); },
         .error = ResponsesErrorResponse});
  };
  const auto cancel = [this](engine::RequestId id) { generations_.Cancel(id); };
  add(HttpMethod::kGet, "/v1/responses/{}", [this](const Call& call) {
    return GetResponse(responses_store_, call.isolation, call.names.front(), call.request.query);
  });
  add(HttpMethod::kDelete, "/v1/responses/{}", [this, cancel](const Call& call) {
    return DeleteResponse(responses_store_, call.isolation, call.names.front(), cancel);
  });
  add(HttpMethod::kPost, "/v1/responses/{}/cancel", [this, cancel](const Call& call) {
    return CancelResponse(responses_store_, call.isolation, call.names.front(), cancel);
  });
  add(HttpMethod::kGet, "/v1/responses/{}/input_items", [this](const Call& call) {
    return ListInputItems(responses_store_, call.isolation, call.names.front(), call.request.query);
  });
}

// What is sent must be of the type that its route takes, and nothing may be done for a page that
// may not call: browsers send forms, and what has no body, for any page.
void Service::AddDataRoutes(std::vector<Route>& routes) {
  const auto add = [&](HttpMethod method, std::string_view pattern) {
    const auto serve = [this, method](Call call) {
      if (batches_ == nullptr) return Refuse(call, ErrorResponse, NoDataFolder());
      const std::string_view type = call.request.headers.Get("Content-Type").value_or("");
      if (method != HttpMethod::kGet && !cors_.MayAct(call.request))
        return Refuse(call, ErrorResponse,
                      ErrorFromHttp(403, "web pages of this origin may not call"));
      const bool posts = method == HttpMethod::kPost;
      if (posts && call.route == kFilesRoute && !IsForm(type))
        return Refuse(call, ErrorResponse,
                      ErrorFromHttp(415, "send the file as multipart/form-data"));
      if (posts && call.route == kBatchesRoute && !IsJson(call.request))
        return Refuse(call, ErrorResponse,
                      ErrorFromHttp(415, "send the body with Content-Type: application/json"));
      batches_->Handle(std::move(call));
    };
    routes.push_back({.method = method, .pattern = pattern, .serve = serve});
  };
  add(HttpMethod::kPost, kFilesRoute);
  add(HttpMethod::kGet, kFilesRoute);
  add(HttpMethod::kGet, kFileRoute);
  add(HttpMethod::kDelete, kFileRoute);
  add(HttpMethod::kGet, kFileContentRoute);
  add(HttpMethod::kPost, kBatchesRoute);
  add(HttpMethod::kGet, kBatchesRoute);
  add(HttpMethod::kGet, kBatchRoute);
  add(HttpMethod::kPost, kBatchCancelRoute);
}

std::unique_ptr<Batches> Service::MakeBatches(std::unique_ptr<DataFolder> data) {
  if (data == nullptr) return nullptr;
  Batches::Parts parts{.clock = parts_.clock, .logger = parts_.logger};
  for (const Dialect* dialect : BatchDialects()) parts.endpoints.emplace_back(dialect->route());
  parts.send = [this](LineRequest line) { SendLine(std::move(line)); };
  parts.live = [this] { return generations_.live(); };
  parts.answer = [this](Call& call, DataAnswer answer) {
    Answer(call, std::move(answer.response), std::move(answer.file));
  };
  return std::make_unique<Batches>(std::move(data), std::move(parts));
}

// As a request of its caller's, as long as the key with which the batch was made is one.
void Service::SendLine(LineRequest line) {
  const std::optional<uint32_t> caller = parts_.keys.Find(line.caller);
  if (!caller) return line.exchange->Respond(ErrorResponse(KeyIsGone()));
  for (const Dialect* dialect : BatchDialects()) {
    if (dialect->route() != line.endpoint) continue;
    return generations_.Handle(
        *dialect, {.origin = {.isolation = line.caller, .request_id = std::move(line.request_id)},
                   .body = std::move(line.body),
                   .caller = *caller,
                   .exchange = std::move(line.exchange),
                   .batch = true});
  }
  line.exchange->Respond(ErrorResponse(ErrorFromHttp(404, "this endpoint is not served any more")));
}

// JSON only: a web page may send other types across origins without asking, JSON it may not.
Route Service::AnswerRoute(const Dialect& dialect, Computes computes) {
  const auto serve = [this, &dialect, computes](Call call) {
    if (!IsJson(call.request)) {
      return Refuse(call, dialect.error_shape(),
                    ErrorFromHttp(415, "send the body with Content-Type: application/json"));
    }
    if (const Status status = dialect.CheckHeaders(call.request.headers); !status.ok())
      return Refuse(call, dialect.error_shape(), ErrorFromStatus(status));
    base::Result<std::optional<std::string>> key = std::optional<std::string>();
    if (computes == Computes::kAnswers) key = IdempotencyKeyOf(call.request.headers);
    if (!key.ok()) return Refuse(call, dialect.error_shape(), ErrorFromStatus(key.status()));
    generations_.Handle(dialect, {.origin = {.isolation = call.isolation,
                                             .request_id = std::move(call.request_id),
                                             .idempotency_key = key->value_or("")},
                                  .body = std::move(call.request.body),
                                  .caller = call.caller,
                                  .exchange = std::move(call.exchange)});
  };
  return {.method = HttpMethod::kPost,
          .pattern = dialect.route(),
          .serve = serve,
          .error = dialect.error_shape()};
}

std::vector<std::string> Service::RoutePatterns() {
  return {std::begin(kRoutePatterns), std::end(kRoutePatterns)};
}

Service::~Service() { Stop(); }

void Service::BeginDrain() {
  draining_.store(true);
  if (batches_ != nullptr) batches_->Pause();
}

void Service::Stop() {
  if (batches_ != nullptr) batches_->Stop();
  generations_.Stop();
}

void Service::OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) {
  Call call{.request_id = ChooseRequestId(request.headers)};
  call.exchange = cors_.Wrap(request, std::move(exchange));
  call.request = std::move(request);
  FoundRoute found = FindRoute(routes_, call.request.method, call.request.path);
  if (const Status known = hosts_.Check(call.request.headers); !known.ok()) {
    const ErrorShape shape = found.route != nullptr ? found.route->error : ErrorResponse;
    return Refuse(call, shape, ErrorFromStatus(known));
  }
  if (found.route != nullptr) {
    call.route = found.route->pattern;
    call.names = std::move(found.names);
    return Dispatch(*found.route, std::move(call));
  }
  if (found.nearest == nullptr) {
    ApiError error = ErrorFromHttp(404, NothingAt(call.request.path));
    error.code = "unknown_url";
    return Answer(call, ErrorResponse(error));
  }
  call.route = found.nearest->pattern;
  if (cors_.IsPreflight(call.request))
    return Answer(call, CorsPolicy::PreflightResponse(found.allowed));
  ApiError error = ErrorFromHttp(405, fmt::format("this path takes {} only", found.allowed));
  error.request_id = call.request_id;
  HttpResponse response = found.nearest->error(error);
  response.headers.Add("Allow", found.allowed);
  Answer(call, std::move(response));
}

void Service::Dispatch(const Route& route, Call call) {
  if (route.key_needed) {
    const auto caller = FindCaller(parts_.keys, call.request.headers);
    if (!caller.ok()) return Refuse(call, route.error, ErrorFromStatus(caller.status()));
    call.caller = *caller;
    call.isolation = parts_.keys.Isolation(*caller);
  }
  if (draining_.load() && !route.while_draining)
    return Refuse(call, route.error, ErrorFromStatus(Draining()));
  route.serve(std::move(call));
}

void Service::ServeModel(Call call) {
  if (auto json = ModelJson(model_, call.names.front()))
    return Answer(call, JsonResponse(*std::move(json)));
  const Status missing = base::NotFound("no model of this name is served here")
                             .WithField("model")
                             .WithReason("model_not_found");
  Answer(call, ErrorResponse(ErrorFromStatus(missing)));
}

Status Service::Ready() const { return draining_.load() ? Draining() : parts_.ready(); }

void Service::ServeMetrics(Call call) {
  if (parts_.refresh_metrics) parts_.refresh_metrics();
  generations_.CopyMetrics();
  HttpResponse response{.status = 200, .headers = {}, .body = parts_.metrics.Expose()};
  response.headers.Add("Content-Type", std::string(telemetry::kExpositionContentType));
  Answer(call, std::move(response));
}

void Service::Answer(Call& call, HttpResponse response,
                     std::shared_ptr<const base::MappedFile> file) {
  parts_.metrics.api.CountRequest(call.route, response.status);
  AddRequestId(response.headers, call.request_id);
  if (file != nullptr) return call.exchange->RespondFile(std::move(response), std::move(file));
  call.exchange->Respond(std::move(response));
}

void Service::Refuse(Call& call, ErrorShape shape, ApiError error) {
  error.request_id = call.request_id;
  Answer(call, shape(error));
}

HttpResponse Service::FormatRefusal(const net::HttpRefusal& refusal) const {
  const bool drains = refusal.status == 503 && draining_.load();
  HttpResponse response =
      ErrorResponse(drains ? ErrorFromStatus(Draining())
                           : ErrorFromHttp(refusal.status, std::string(refusal.message)));
  AddRequestId(response.headers, DrawRequestId());
  return response;
}

}  // namespace plumb::api
