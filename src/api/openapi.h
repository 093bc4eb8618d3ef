// api/openapi.h
// GET /openapi.json: every endpoint as an OpenAPI 3.1 document, for people's tools: generators of
// clients, explorers, schemathesis (tests/schemathesis). It is put together from openapi/*.json, a
// file for each API, and openapi_test.cc holds it to the routing table and to the tables of fields.
#pragma once

#include <string>
#include <string_view>

namespace plumb::api {

constexpr std::string_view kOpenApiRoute = "/openapi.json";

// What of it depends on the server.
struct OpenApiFacts {
  std::string version;      // of plumb
  bool key_needed = false;  // else no endpoint is said to need one
};

// The document, as JSON. Takes a few milliseconds; the same facts give the same text.
std::string OpenApiDocument(const OpenApiFacts& facts);

}  // namespace plumb::api
