// cli/startup_gate.cc
// Three answers and a hand-over, behind cli/startup_gate.h.
#include "cli/startup_gate.h"

#include "api/errors.h"
#include "api/health.h"

namespace plumb::cli {
namespace {

constexpr uint32_t kRetryAfterMs = 2000;

base::Status Loading() {
  return base::Status(base::Code::kUnavailable, "the model is still loading; try again soon")
      .WithRetryAfterMs(kRetryAfterMs);
}

}  // namespace

void StartupGate::OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) {
  if (net::HttpHandler* handler = handler_.load()) {
    handler->OnRequest(std::move(request), std::move(exchange));
  } else if (request.path == "/health") {
    exchange->Respond(api::HealthResponse());
  } else if (request.path == "/ready") {
    exchange->Respond(api::ReadyResponse(Loading()));
  } else {
    exchange->Respond(api::ErrorResponse(api::ErrorFromStatus(Loading())));
  }
}

net::HttpResponse StartupGate::FormatRefusal(const net::HttpRefusal& refusal) const {
  if (const net::HttpHandler* handler = handler_.load()) return handler->FormatRefusal(refusal);
  return api::ErrorResponse(api::ErrorFromHttp(refusal.status, std::string(refusal.message)));
}

}  // namespace plumb::cli
