// api/data_calls.cc
// See data_calls.h.
#include "api/data_calls.h"

#include <fmt/format.h>

#include <utility>

#include "api/errors.h"

namespace plumb::api {

namespace {

constexpr size_t kIdShownMax = 64;

}  // namespace

net::HttpResponse CallError(const base::Status& status, telemetry::Logger& logger,
                            const Call& call) {
  const ApiError error = ErrorFromStatus(status);
  if (error.http_status >= 500) {
    logger.Log(telemetry::LogLevel::kWarn, "a call of files or batches failed",
               {{"route", call.route},
                {"request_id", std::string_view(call.request_id)},
                {"error", std::string_view(status.message())}});
  }
  return ErrorResponse(error);
}

base::Status NoSuch(std::string_view what, std::string_view id, std::string field) {
  return base::NotFound(fmt::format("there is no {} with id '{}'", what, id.substr(0, kIdShownMax)))
      .WithField(std::move(field));
}

}  // namespace plumb::api
