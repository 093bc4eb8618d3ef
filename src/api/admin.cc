// api/admin.cc
// Key, route, body, one job; behind api/admin.h.
#include "api/admin.h"

#include <utility>

#include "api/errors.h"
#include "api/header_exchange.h"
#include "api/json.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/request_id.h"
#include "api/routes.h"
#include "base/check.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using net::HttpResponse;

namespace {

constexpr size_t kModelBytesMax = 4096;
constexpr uint64_t kBodyBytesMax = 16u << 10;

struct WeightsRequest {
  std::string model;
  uint32_t deadline_ms = Admin::kDeadlineMsDefault;
};

Result<WeightsRequest> ParseBody(std::string_view body) {
  JsonLimits limits;
  limits.bytes_max = kBodyBytesMax;
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits));
  if (root.kind != JsonKind::kObject) return InvalidArgument("", "the body is one JSON object");
  WeightsRequest request;
  for (const JsonMember& member : root.members) {
    const std::string path = MemberPath("", member.name);
    if (member.name == "model") {
      ASSIGN_OR_RETURN(auto model, ReadString(member.value, path, kModelBytesMax));
      request.model = model.value_or("");
    } else if (member.name == "deadline_ms") {
      ASSIGN_OR_RETURN(const auto deadline,
                       ReadInteger(member.value, path, {1, Admin::kDeadlineMsMax}));
      if (deadline) request.deadline_ms = static_cast<uint32_t>(*deadline);
    } else {
      return InvalidArgument(path, path + " is not a field of this request");
    }
  }
  if (request.model.empty()) return InvalidArgument("model", "model is missing");
  return request;
}

std::string WeightsJson(const ServedWeights& weights, bool replacing) {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("object").String("weights").Key("model").String(weights.model);
  json.Key("system_fingerprint").String(weights.fingerprint);
  json.Key("weights_version").Uint(weights.version);
  json.Key("replacing").Bool(replacing).EndObject();
  return out;
}

// An operator may read what is wrong with a file, and has given it: it is 400, not a fault of ours.
HttpResponse ReplaceError(const Status& status) {
  ApiError error = ErrorFromStatus(status);
  if (status.code() == base::Code::kCorrupt || status.code() == base::Code::kUnsupported) {
    error = ErrorFromHttp(400, status.message());
    error.param = "model";
    error.code = status.code() == base::Code::kCorrupt ? "model_damaged" : "model_unsupported";
  }
  if (status.reason() == "swap_in_progress") {
    error = ErrorFromHttp(409, status.message());
    error.code = status.reason();
  }
  return ErrorResponse(error);
}

// What is not read is ignored, up to a bound.
uint64_t BodyBytesMax(const net::HttpRequest& request) {
  return request.method == net::HttpMethod::kPost ? kBodyBytesMax : kIgnoredBodyBytesMax;
}

Status Busy() {
  return Status(base::Code::kUnavailable,
                "other weights are being loaded; ask again when they "
                "answer (GET shows it)")
      .WithReason("swap_in_progress");
}

}  // namespace

Admin::Admin(const Parts& parts) : parts_(parts), queue_(1) {
  CHECK(parts_.keys.required()) << "an operator's listener without a key";
  worker_ = base::Thread("weights", [this] { RunWorker(); });
}

Admin::~Admin() { Stop(); }

void Admin::Stop() {
  queue_.Close();
  if (worker_.joinable()) worker_.Join();
}

void Admin::OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> plain) {
  net::HttpHeaders named;
  AddRequestId(named, ChooseRequestId(request.headers));
  auto exchange = std::make_unique<HeaderExchange>(std::move(plain), std::move(named));
  if (auto refusal = WhyNot(request)) return exchange->Respond(*std::move(refusal));
  if (request.body.size() > BodyBytesMax(request))
    return exchange->Respond(ErrorResponse(ErrorFromHttp(413, "the body is too large")));
  if (request.method == net::HttpMethod::kPost)
    return Post(std::move(request), std::move(exchange));
  exchange->Respond(JsonResponse(WeightsJson(parts_.weights.Current(), busy_.load())));
}

net::HttpAdmission Admin::Admit(const net::HttpRequest& head) {
  net::HttpAdmission admission{.answer = WhyNot(head), .body_bytes_max = BodyBytesMax(head)};
  if (admission.answer) AddRequestId(admission.answer->headers, ChooseRequestId(head.headers));
  return admission;
}

// The key first: without one nothing is told.
std::optional<HttpResponse> Admin::WhyNot(const net::HttpRequest& request) const {
  const auto key = parts_.keys.Check(request.headers.Get("Authorization"));
  if (!key.ok()) return ErrorResponse(ErrorFromStatus(key.status()));
  if (request.path != kWeightsRoute) {
    ApiError error = ErrorFromHttp(404, "there is nothing at this path");
    error.code = "unknown_url";
    return ErrorResponse(error);
  }
  const bool posts = request.method == net::HttpMethod::kPost;
  if (!posts && request.method != net::HttpMethod::kGet &&
      request.method != net::HttpMethod::kHead) {
    HttpResponse response =
        ErrorResponse(ErrorFromHttp(405, "this path takes GET, HEAD, POST only"));
    response.headers.Add("Allow", "GET, HEAD, POST");
    return response;
  }
  if (posts && !IsJson(request))
    return ErrorResponse(ErrorFromHttp(415, "send the body with Content-Type: application/json"));
  return std::nullopt;
}

void Admin::Post(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) {
  Result<WeightsRequest> parsed = ParseBody(request.body);
  if (!parsed.ok()) return exchange->Respond(ErrorResponse(ErrorFromStatus(parsed.status())));
  if (busy_.exchange(true)) return exchange->Respond(ReplaceError(Busy()));
  Job job{.model = std::move(parsed->model),
          .patience = base::Milliseconds(parsed->deadline_ms),
          .exchange = std::move(exchange)};
  if (queue_.Push(std::move(job))) return;  // else it is still ours
  busy_.store(false);
  job.exchange->Respond(ReplaceError(
      Status(base::Code::kUnavailable, "the server is stopping").WithReason("server_stopping")));
}

void Admin::RunWorker() {
  while (std::optional<Job> job = queue_.Pop()) Do(*std::move(job));
}

// A client that left makes no difference: the weights are replaced all the same.
void Admin::Do(Job job) {
  const base::Instant start = parts_.clock.Now();
  const Result<ServedWeights> replaced = parts_.weights.Replace(job.model, job.patience);
  const double seconds = (parts_.clock.Now() - start).seconds();
  const std::string error = replaced.ok() ? "" : replaced.status().ToString();
  parts_.logger.Log(replaced.ok() ? telemetry::LogLevel::kInfo : telemetry::LogLevel::kWarn,
                    "weights",
                    {{"model", std::string_view(job.model)},
                     {"version", int64_t{replaced.ok() ? replaced->version : 0}},
                     {"seconds", seconds},
                     {"error", std::string_view(error)}});
  busy_.store(false);  // before the answer: whoever has it may ask again
  job.exchange->Respond(replaced.ok() ? JsonResponse(WeightsJson(*replaced, false))
                                      : ReplaceError(replaced.status()));
}

HttpResponse Admin::FormatRefusal(const net::HttpRefusal& refusal) const {
  HttpResponse response =
      ErrorResponse(ErrorFromHttp(refusal.status, std::string(refusal.message)));
  AddRequestId(response.headers, DrawRequestId());
  return response;
}

}  // namespace plumb::api
