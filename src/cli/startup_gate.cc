// cli/startup_gate.cc
// Four answers and a hand-over, behind cli/startup_gate.h.
#include "cli/startup_gate.h"

#include <string>
#include <string_view>
#include <utility>

#include "api/console.h"
#include "api/errors.h"
#include "api/health.h"
#include "api/request_id.h"

namespace plumb::cli {
namespace {

constexpr uint32_t kRetryAfterMs = 2000;

base::Status Loading() {
  return base::Status(base::Code::kUnavailable, "the model is still loading; try again soon")
      .WithRetryAfterMs(kRetryAfterMs);
}

// For whoever opens the console too early: it asks again until the console is there.
constexpr std::string_view kPage =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"refresh\" content=\"2\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<title>plumb</title>\n</head>\n<body>\n"
    "<p>The model is still loading; this page opens when it is there.</p>\n"
    "<p lang=\"ko\">모델을 불러오고 있습니다. 준비되면 이 페이지가 열립니다.</p>\n"
    "</body>\n</html>\n";

net::HttpResponse LoadingPage() {
  net::HttpResponse response = api::ErrorResponse(api::ErrorFromStatus(Loading()));
  response.headers = {{"Content-Type", "text/html; charset=utf-8"},
                      {"Retry-After", std::string(*response.headers.Get("Retry-After"))},
                      {"Cache-Control", "no-store"},
                      {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"}};
  response.body = kPage;
  return response;
}

bool Reads(net::HttpMethod method) {
  return method == net::HttpMethod::kGet || method == net::HttpMethod::kHead;
}

net::HttpResponse AnswerWhileLoading(const net::HttpRequest& request) {
  if (request.path == "/health") return api::HealthResponse();
  if (request.path == "/ready") return api::ReadyResponse(Loading());
  if (request.path == api::kConsoleRoute && Reads(request.method)) return LoadingPage();
  return api::ErrorResponse(api::ErrorFromStatus(Loading()));
}

net::HttpResponse NamedAnswer(const net::HttpRequest& request) {
  net::HttpResponse response = AnswerWhileLoading(request);
  api::AddRequestId(response.headers, api::ChooseRequestId(request.headers));
  return response;
}

}  // namespace

void StartupGate::OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) {
  if (net::HttpHandler* handler = handler_.load())
    return handler->OnRequest(std::move(request), std::move(exchange));
  exchange->Respond(NamedAnswer(request));
}

// No body changes these answers, so none is received.
net::HttpAdmission StartupGate::Admit(const net::HttpRequest& head) {
  if (net::HttpHandler* handler = handler_.load()) return handler->Admit(head);
  return {.answer = NamedAnswer(head)};
}

net::HttpResponse StartupGate::FormatRefusal(const net::HttpRefusal& refusal) const {
  if (const net::HttpHandler* handler = handler_.load()) return handler->FormatRefusal(refusal);
  net::HttpResponse response =
      api::ErrorResponse(api::ErrorFromHttp(refusal.status, std::string(refusal.message)));
  api::AddRequestId(response.headers, api::DrawRequestId());
  return response;
}

}  // namespace plumb::cli
