// api/health.h
// GET /health (the process lives: restart me if this fails) and GET /ready (send me requests: 200
// only when one can be served). Kept apart, since a draining or stuck server lives and is not
// ready.
#pragma once

#include "base/status.h"
#include "net/http.h"

namespace plumb::api {

// 200 {"status":"ok"}.
net::HttpResponse HealthResponse();

// 200 {"status":"ready"}, or 503 with Retry-After and {"status":"not ready","reason":...}.
net::HttpResponse ReadyResponse(const base::Status& ready);

}  // namespace plumb::api
