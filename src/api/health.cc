// api/health.cc
// See health.h.
#include "api/health.h"

#include <algorithm>

#include "api/errors.h"
#include "api/json_writer.h"

namespace plumb::api {

net::HttpResponse HealthResponse() { return JsonResponse(R"({"status":"ok"})"); }

net::HttpResponse ReadyResponse(const base::Status& ready) {
  if (ready.ok()) return JsonResponse(R"({"status":"ready"})");
  ApiError error = ErrorFromStatus(ready);  // hides what is not for strangers
  error.http_status = 503;
  net::HttpResponse response = ErrorResponse(error);
  response.body.clear();
  JsonWriter json(response.body);
  json.BeginObject().Key("status").String("not ready");
  json.Key("reason").String(error.message).EndObject();
  return response;
}

}  // namespace plumb::api
