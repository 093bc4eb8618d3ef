// api/batch_calls.h
// /v1/batches, OpenAI's: create, list, look, cancel. Functions of the stores and a call; run by the
// thread of api/batches.h. Read next: api/batch_runner.h (what becomes of a batch).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/batch_runner.h"
#include "api/batch_store.h"
#include "api/file_store.h"
#include "api/routes.h"
#include "base/result.h"

namespace plumb::api {

constexpr std::string_view kBatchesRoute = "/v1/batches";
constexpr std::string_view kBatchRoute = "/v1/batches/{}";
constexpr std::string_view kBatchCancelRoute = "/v1/batches/{}/cancel";

// Every member of a body that Create takes.
std::vector<std::string_view> BatchFieldNames();

// What such a body asks for, without the caller. kInvalidArgument with the field's path: not JSON,
// no field of it, a value out of range, another endpoint than one of these.
base::Result<Batch> ReadBatchRequest(std::string_view body,
                                     const std::vector<std::string>& endpoints);

// Borrows all; for one call.
struct BatchCalls {
  const FileStore& files;
  const BatchStore& batches;
  BatchRunner& runner;
  const std::vector<std::string>& endpoints;
  telemetry::Logger& logger;

  // input_file_id, endpoint, completion_window ("24h"), metadata, output_expires_after.
  net::HttpResponse Create(const Call& call);
  // limit (1 to 100), after; the newest first.
  net::HttpResponse List(const Call& call);
  net::HttpResponse Get(const Call& call);
  net::HttpResponse Cancel(const Call& call);
};

}  // namespace plumb::api
