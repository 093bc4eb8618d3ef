// api/openapi_statuses_test.cc
// Holds the statuses that /openapi.json names to those that are given: what a call meets before its
// handler, and all that an answer can become. The other handlers are held to it by tests/wire,
// whose runner takes no status that the document lacks.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "api/messages_errors.h"
#include "api/openapi.h"
#include "api/testing/service_fixture.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using testing::FakeClient;
using testing::ServiceFixture;

constexpr base::Code kCodes[] = {
    base::Code::kInvalidArgument, base::Code::kUnauthenticated, base::Code::kForbidden,
    base::Code::kNotFound,        base::Code::kQuotaExceeded,   base::Code::kOverloaded,
    base::Code::kDeadline,        base::Code::kUnavailable,     base::Code::kCorrupt,
    base::Code::kUnsupported,     base::Code::kInternal,
};  // without kCancelled: nobody is left to be told

testing::FakeAnswer Silence(const engine::Request&, uint32_t) {
  return {testing::ByteTokens(""), 1, {}};
}

struct Operation {
  std::string path;  // as the document has it
  net::HttpMethod method;
  json described;

  std::string name() const { return std::string(net::MethodName(method)) + " " + path; }
  std::set<std::string> statuses() const {
    std::set<std::string> all;
    for (const auto& [status, response] : described["responses"].items()) all.insert(status);
    return all;
  }
  bool TakesIdempotencyKey() const {
    return described.value("parameters", json::array()).dump().find("IdempotencyKey") !=
           std::string::npos;
  }
  // Whether a dialect reads its body.
  bool IsForAnswers() const {
    const bool takes_json = described.contains("requestBody") &&
                            described["requestBody"]["content"].contains("application/json");
    return takes_json && path != "/v1/batches";
  }
};

std::vector<Operation> Operations() {
  std::vector<Operation> all;
  const json document = json::parse(OpenApiDocument({.version = "1", .key_needed = true}));
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [name, described] : item.items()) {
      if (name == "parameters") continue;
      const auto method = name == "get"    ? net::HttpMethod::kGet
                          : name == "post" ? net::HttpMethod::kPost
                                           : net::HttpMethod::kDelete;
      all.push_back({path, method, described});
    }
  }
  return all;
}

net::HttpResponse Ask(ServiceFixture& fixture, const Operation& operation,
                      const net::HttpHeaders& headers, std::string body = "{}") {
  std::string path = operation.path;
  if (const size_t open = path.find('{'); open != path.npos)
    path.replace(open, path.find('}') + 1 - open, "x");
  FakeClient client;
  fixture.Send(client, operation.method, path, std::move(body), headers);
  return client.Wait();
}

int StatusOf(const Operation& operation, const base::Status& status) {
  const bool anthropic = operation.path.starts_with("/v1/messages");
  const ApiError error = ErrorFromStatus(status);
  return (anthropic ? MessagesErrorResponse(error) : ErrorResponse(error)).status;
}

TEST(OpenApiStatuses, EveryOperationMayBeRefusedForItsHost) {
  ServiceFixture fixture(Silence, {}, {}, testing::FixtureModel::kTemplate, {},
                         {.hosts = HostPolicy::Local({}).value()});
  for (const Operation& operation : Operations()) {
    const net::HttpResponse response = Ask(fixture, operation, {{"Host", "elsewhere.example"}});
    EXPECT_EQ(response.status, 403) << operation.name();
    EXPECT_TRUE(operation.statuses().contains("403")) << operation.name();
  }
}

TEST(OpenApiStatuses, OneThatIsServedWhileTheServerStopsSaysNo503) {
  ServiceFixture fixture(Silence);
  fixture.service.BeginDrain();
  for (const Operation& operation : Operations()) {
    const bool refused = Ask(fixture, operation, {}).status == 503;
    EXPECT_EQ(operation.statuses().contains("503"), refused) << operation.name();
  }
}

TEST(OpenApiStatuses, EveryOperationMayHaveBeenBrokenHttp) {
  for (const Operation& operation : Operations())
    EXPECT_TRUE(operation.statuses().contains("400")) << operation.name();
}

// By the table of codes, and no more than it has.
TEST(OpenApiStatuses, AnAnswerMayBecomeEveryCodeAndNothingElse) {
  size_t checked = 0;
  for (const Operation& operation : Operations()) {
    if (!operation.IsForAnswers()) continue;
    std::set<std::string> given = {"200", "415"};
    for (const base::Code code : kCodes)
      given.insert(std::to_string(StatusOf(operation, base::Status(code, "x"))));
    std::vector<std::string> reasons = {"request_too_large"};
    if (operation.TakesIdempotencyKey()) {
      reasons.push_back("idempotency_key_in_use");
      reasons.push_back("idempotency_key_reused");
    }
    for (const std::string& reason : reasons) {
      base::Status status = base::InvalidArgument("", "x").WithReason(reason);
      given.insert(std::to_string(StatusOf(operation, status)));
    }
    EXPECT_EQ(operation.statuses(), given) << operation.name();
    ++checked;
  }
  EXPECT_EQ(checked, 9u);
}

TEST(OpenApiStatuses, WhatTheGeneratorRefusesIsToldAsTheDocumentSays) {
  const std::map<std::string, std::string> bodies = {
      {"/v1/chat/completions", R"({"model":"fake","messages":[{"role":"user","content":"hi"}]})"},
      {"/v1/completions", R"({"model":"fake","prompt":"hi"})"},
      {"/v1/embeddings", R"({"model":"fake","input":"hi"})"},
      {"/v1/responses", R"({"model":"fake","input":"hi"})"},
      {"/v1/messages",
       R"({"model":"fake","max_tokens":9,"messages":[{"role":"user","content":"hi"}]})"},
  };
  ServiceFixture fixture(Silence);
  size_t asked = 0;
  for (const Operation& operation : Operations()) {
    const auto body = bodies.find(operation.path);
    if (body == bodies.end()) continue;
    for (const base::Code code : kCodes) {
      const base::Status refusal(code, "x");
      fixture.generator.Refuse(refusal);
      const net::HttpResponse response =
          Ask(fixture, operation, {{"Content-Type", "application/json"}}, body->second);
      EXPECT_EQ(response.status, StatusOf(operation, refusal)) << operation.name() << response.body;
      EXPECT_TRUE(operation.statuses().contains(std::to_string(response.status)));
      ++asked;
    }
  }
  EXPECT_EQ(asked, bodies.size() * std::size(kCodes));
}

TEST(OpenApiStatuses, SaysWhichTakeAnIdempotencyKey) {
  ServiceFixture fixture(Silence);
  for (const Operation& operation : Operations()) {
    const net::HttpResponse response =
        Ask(fixture, operation,
            {{"Content-Type", "application/json"}, {"Idempotency-Key", "not a key"}});
    const bool read = response.body.find("Idempotency-Key") != std::string::npos &&
                      operation.path != kOpenApiRoute;
    EXPECT_EQ(operation.TakesIdempotencyKey(), read) << operation.name() << response.body;
  }
}

}  // namespace
}  // namespace plumb::api
