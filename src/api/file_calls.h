// api/file_calls.h
// /v1/files, OpenAI's: upload, list, look, read, delete. Functions of the store and a call; run by
// the thread of api/batches.h. A file is of use here as a batch's input alone, so no other purpose
// is taken. Read next: api/multipart.h, api/file_store.h.
#pragma once

#include <string_view>

#include "api/batch_runner.h"
#include "api/data_calls.h"
#include "api/file_store.h"
#include "api/routes.h"

namespace plumb::api {

constexpr std::string_view kFilesRoute = "/v1/files";
constexpr std::string_view kFileRoute = "/v1/files/{}";
constexpr std::string_view kFileContentRoute = "/v1/files/{}/content";

// Borrows all; for one call.
struct FileCalls {
  FileStore& files;
  const BatchRunner& runner;
  const base::Clock& clock;
  telemetry::Logger& logger;

  // multipart/form-data: file, purpose ("batch"), expires_after[anchor], expires_after[seconds].
  net::HttpResponse Upload(const Call& call);
  // limit (1 to 10,000), order, after, purpose.
  net::HttpResponse List(const Call& call);
  net::HttpResponse Get(const Call& call);
  DataAnswer Content(const Call& call);
  // Not of a file that a batch is reading.
  net::HttpResponse Delete(const Call& call);
};

}  // namespace plumb::api
