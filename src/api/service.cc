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

HttpResponse ModelError(const Status& status, const std::string& request_id, ModelForm form) {
  ApiError error = ErrorFromStatus(status);
  error.request_id = request_id;
  return form == ModelForm::kAnthropic ? MessagesErrorResponse(error) : ErrorResponse(error);
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
  const auto list_models = [this](Call call) {
    const ModelForm form = FormFor(call.request.headers);
    auto json = ModelListJson(model_, form, call.request.query);
    if (json.ok()) return Answer(call, JsonResponse(*std::move(json)));
    Answer(call, ModelError(json.status(), call.request_id, form));
  };
  routes.push_back({HttpMethod::kGet, "/v1/models", list_models});
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
         .acts = method != HttpMethod::kGet,
         .error = ErrorResponse});
  };
  const auto cancel = [this](engine::RequestId id) { generations_.Cancel(id); };
  add(HttpMethod::kGet, "/v1/responses/{}", [this](const Call& call) {
    return GetResponse(responses_store_, call.isolation, call.names.front(), call.request.query);
  });
  const auto end = [this](const KeptResponse& removed) {
    if (removed.running) generations_.Cancel(removed.request);
    if (removed.idempotent_copy) generations_.ForgetAnswer(*removed.idempotent_copy);
  };
  add(HttpMethod::kDelete, "/v1/responses/{}", [this, end](const Call& call) {
    return DeleteResponse(responses_store_, call.isolation, call.names.front(), end);
  });
  add(HttpMethod::kPost, "/v1/responses/{}/cancel", [this, cancel](const Call& call) {
    return CancelResponse(responses_store_, call.isolation, call.names.front(), cancel);
  });
  add(HttpMethod::kGet, "/v1/responses/{}/input_items", [this](const Call& call) {
    return ListInputItems(responses_store_, call.isolation, call.names.front(), call.request.query);
  });
}

void Service::AddDataRoutes(std::vector<Route>& routes) {
  const auto add = [&](HttpMethod method, std::string_view pattern,
                       BodyType body = BodyType::kNone) {
    routes.push_back({.method = method,
                      .pattern = pattern,
                      .serve = [this](Call call) { batches_->Handle(std::move(call)); },
                      .body = body,
                      .acts = method != HttpMethod::kGet,
                      .absent = batches_ == nullptr ? NoDataFolder : nullptr});
  };
  add(HttpMethod::kPost, kFilesRoute, BodyType::kForm);
  add(HttpMethod::kGet, kFilesRoute);
  add(HttpMethod::kGet, kFileRoute);
  add(HttpMethod::kDelete, kFileRoute);
  add(HttpMethod::kGet, kFileContentRoute);
  add(HttpMethod::kPost, kBatchesRoute, BodyType::kJson);
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

Route Service::AnswerRoute(const Dialect& dialect, Computes computes) {
  const auto serve = [this, &dialect, computes](Call call) {
    if (const Status status = dialect.CheckHeaders(call.request.headers); !status.ok())
      return Refuse(call, dialect.error_shape(), ErrorFromStatus(status));
    base::Result<std::optional<std::string>> key = std::optional<std::string>();
    if (computes == Computes::kAnswers) key = IdempotencyKeyOf(call.request.headers);
    if (!key.ok()) return Refuse(call, dialect.error_shape(), ErrorFromStatus(key.status()));
    const std::string_view beta = call.request.headers.Get("anthropic-beta").value_or("");
    generations_.Handle(dialect, {.origin = {.isolation = call.isolation,
                                             .request_id = std::move(call.request_id),
                                             .idempotency_key = key->value_or(""),
                                             .anthropic_beta = std::string(beta)},
                                  .body = std::move(call.request.body),
                                  .caller = call.caller,
                                  .exchange = std::move(call.exchange)});
  };
  return {.method = HttpMethod::kPost,
          .pattern = dialect.route(),
          .serve = serve,
          .body = BodyType::kJson,
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
  Decision decision = Decide(request, call);
  if (decision.route == nullptr) return Answer(call, std::move(decision.refusal));
  if (decision.route->body == BodyType::kNone && request.body.size() > kIgnoredBodyBytesMax)
    return Refuse(call, decision.route->error, ErrorFromHttp(413, "this route takes no body"));
  call.request = std::move(request);
  decision.route->serve(std::move(call));
}

net::HttpAdmission Service::Admit(const net::HttpRequest& head) {
  Call call{.request_id = ChooseRequestId(head.headers)};
  Decision decision = Decide(head, call);
  if (decision.route == nullptr) {
    CountAndName(call, decision.refusal);
    cors_.AddHeaders(head, decision.refusal.headers);
    return {.answer = std::move(decision.refusal)};
  }
  net::HttpAdmission admission;
  if (decision.route->body == BodyType::kNone) admission.body_bytes_max = kIgnoredBodyBytesMax;
  // Nobody is waited for who need not say who he is.
  if (!decision.route->key_needed) admission.body_bytes_max = 0;
  if (decision.route->key_needed && parts_.keys.required()) admission.account = call.caller + 1;
  return admission;
}

Service::Decision Service::Decide(const net::HttpRequest& request, Call& call) const {
  FoundRoute found = FindRoute(routes_, request.method, request.path);
  const auto refuse = [&](ErrorShape shape, ApiError error) {
    error.request_id = call.request_id;
    return Decision{.route = nullptr, .refusal = shape(error)};
  };
  if (const Status known = hosts_.Check(request.headers); !known.ok()) {
    const ErrorShape shape = found.route != nullptr ? found.route->error : ErrorResponse;
    return refuse(shape, ErrorFromStatus(known));
  }
  if (found.route == nullptr) return DecideWithoutRoute(request, std::move(found), call);
  call.route = found.route->pattern;
  call.names = std::move(found.names);
  if (auto error = WhyNot(*found.route, request, call))
    return refuse(found.route->error, *std::move(error));
  return {.route = found.route, .refusal = {}};
}

Service::Decision Service::DecideWithoutRoute(const net::HttpRequest& request, FoundRoute found,
                                              Call& call) const {
  if (found.nearest == nullptr) {
    ApiError error = ErrorFromHttp(404, NothingAt(request.path));
    error.code = "unknown_url";
    return {.route = nullptr, .refusal = ErrorResponse(error)};
  }
  call.route = found.nearest->pattern;
  if (cors_.IsPreflight(request))
    return {.route = nullptr, .refusal = CorsPolicy::PreflightResponse(found.allowed)};
  ApiError error = ErrorFromHttp(405, fmt::format("this path takes {} only", found.allowed));
  error.request_id = call.request_id;
  Decision decision{.route = nullptr, .refusal = found.nearest->error(error)};
  decision.refusal.headers.Add("Allow", found.allowed);
  return decision;
}

// In the order of who may know what: without a key nothing is told of the server's state.
std::optional<ApiError> Service::WhyNot(const Route& route, const net::HttpRequest& request,
                                        Call& call) const {
  if (route.key_needed) {
    const auto caller = FindCaller(parts_.keys, request.headers);
    if (!caller.ok()) return ErrorFromStatus(caller.status());
    call.caller = *caller;
    call.isolation = parts_.keys.Isolation(*caller);
  }
  if (draining_.load() && !route.while_draining) return ErrorFromStatus(Draining());
  if (route.absent != nullptr) return route.absent();
  if (route.acts && !cors_.MayAct(request))
    return ErrorFromHttp(403, "web pages of this origin may not call");
  const auto encoding = request.headers.Get("Content-Encoding");
  if (route.body != BodyType::kNone && encoding && !net::EqualsIgnoreCase(*encoding, "identity"))
    return ErrorFromHttp(415, "bodies are not decompressed; send it without Content-Encoding");
  if (route.body == BodyType::kJson && !IsJson(request))
    return ErrorFromHttp(415, "send the body with Content-Type: application/json");
  if (route.body == BodyType::kForm && !IsForm(request.headers.Get("Content-Type").value_or("")))
    return ErrorFromHttp(415, "send the file as multipart/form-data");
  return std::nullopt;
}

void Service::ServeModel(Call call) {
  const ModelForm form = FormFor(call.request.headers);
  if (auto json = ModelJson(model_, call.names.front(), form))
    return Answer(call, JsonResponse(*std::move(json)));
  const Status missing = base::NotFound("no model of this name is served here")
                             .WithField("model")
                             .WithReason("model_not_found");
  Answer(call, ModelError(missing, call.request_id, form));
}

Status Service::Ready() const { return draining_.load() ? Draining() : parts_.ready(); }

void Service::ServeMetrics(Call call) {
  if (parts_.refresh_metrics) parts_.refresh_metrics();
  generations_.CopyMetrics();
  HttpResponse response{.status = 200, .headers = {}, .body = parts_.metrics.Expose()};
  response.headers.Add("Content-Type", std::string(telemetry::kExpositionContentType));
  Answer(call, std::move(response));
}

void Service::CountAndName(const Call& call, HttpResponse& response) {
  parts_.metrics.api.CountRequest(call.route, response.status);
  AddRequestId(response.headers, call.request_id);
}

void Service::Answer(Call& call, HttpResponse response,
                     std::shared_ptr<const base::MappedFile> file) {
  CountAndName(call, response);
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
