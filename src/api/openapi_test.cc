// api/openapi_test.cc
// Holds /openapi.json to the server: the routing table and the document name the same paths,
// methods and needs of a key, the tables of fields and its schemas the same fields; every reference
// of the document leads somewhere, and nothing in it is unused.
#include "api/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/batch_calls.h"
#include "api/chat_request.h"
#include "api/completion_request.h"
#include "api/embedding_request.h"
#include "api/messages_request.h"
#include "api/responses_request.h"
#include "api/testing/service_fixture.h"
#include "api/tokenize_dialect.h"

namespace plumb::api {
namespace {

using nlohmann::json;
using testing::FakeClient;
using testing::ServiceFixture;

constexpr std::string_view kKey = "correct-horse-battery";

testing::FakeAnswer Silence(const engine::Request&, uint32_t) {
  return {testing::ByteTokens(""), 1, {}};
}

json Document() { return json::parse(OpenApiDocument({.version = "1.2.3", .key_needed = true})); }

// A path with every {name} in it as `with`.
std::string Filled(std::string_view pattern, std::string_view with) {
  std::string out;
  while (!pattern.empty()) {
    const size_t open = pattern.find('{');
    out += pattern.substr(0, open);
    if (open == pattern.npos) break;
    out += with;
    pattern.remove_prefix(pattern.find('}', open) + 1);
  }
  return out;
}

// What the server takes at a path, as a refused method is told, without HEAD.
std::set<std::string> MethodsTaken(ServiceFixture& fixture, const std::string& path) {
  FakeClient client;
  fixture.Send(client, net::HttpMethod::kPut, path);
  const net::HttpResponse response = client.Wait();
  EXPECT_EQ(response.status, 405) << path;
  const std::string allowed(response.headers.Get("Allow").value_or(""));
  std::set<std::string> methods;
  for (size_t at = 0; at < allowed.size();) {
    const size_t comma = std::min(allowed.find(", ", at), allowed.size());
    methods.insert(allowed.substr(at, comma - at));
    at = comma + 2;
  }
  methods.erase("HEAD");
  return methods;
}

// The document's paths, as patterns of the routing table, with their methods.
std::map<std::string, std::set<std::string>> DescribedRoutes() {
  std::map<std::string, std::set<std::string>> described;
  const json document = Document();
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [name, operation] : item.items()) {
      std::string method = name;
      std::ranges::transform(method, method.begin(),
                             [](char c) { return static_cast<char>(c & ~0x20); });
      if (name != "parameters") described[Filled(path, "{}")].insert(method);
    }
  }
  return described;
}

TEST(OpenApi, HasEveryRouteWithItsMethodsAndNoOther) {
  ServiceFixture fixture(Silence);
  std::map<std::string, std::set<std::string>> served;
  for (const std::string& pattern : Service::RoutePatterns())
    served[Filled(pattern, "{}")] = MethodsTaken(fixture, Filled(pattern, "x"));
  EXPECT_EQ(served, DescribedRoutes());
}

struct Body {
  std::string_view schema;
  std::vector<std::string_view> (*fields)();
};
constexpr Body kBodies[] = {
    {"ChatRequest", ChatFieldNames},           {"CompletionRequest", CompletionFieldNames},
    {"ResponsesRequest", ResponsesFieldNames}, {"MessagesRequest", MessagesFieldNames},
    {"TokenizeRequest", TokenizeFieldNames},   {"DetokenizeRequest", DetokenizeFieldNames},
    {"EmbeddingRequest", EmbeddingFieldNames}, {"BatchRequest", BatchFieldNames},
};

TEST(OpenApi, HasEveryFieldOfEveryBodyAndNoOther) {
  const json document = Document();
  const json& schemas = document["components"]["schemas"];
  for (const Body& body : kBodies) {
    const json& schema = schemas[std::string(body.schema)];
    std::set<std::string> described;
    for (const auto& [name, property] : schema["properties"].items()) described.insert(name);
    const auto names = body.fields();
    EXPECT_EQ(described, std::set<std::string>(names.begin(), names.end())) << body.schema;
    EXPECT_EQ(schema["additionalProperties"], false) << body.schema;
  }
}

// So that a new body cannot be left out of the table above.
TEST(OpenApi, HasNoOtherBodies) {
  std::set<std::string> described;
  const json document = Document();
  for (const auto& [path, item] : document["paths"].items()) {
    if (!item.contains("post") || !item["post"].contains("requestBody")) continue;
    const json& content = item["post"]["requestBody"]["content"];
    if (!content.contains("application/json")) continue;  // a form: multipart_test and the talks
    json schema = content["application/json"]["schema"];
    if (schema.contains("allOf")) schema = schema["allOf"][0];
    const std::string reference = schema["$ref"];
    described.insert(reference.substr(reference.rfind('/') + 1));
  }
  std::set<std::string> held;
  for (const Body& body : kBodies) held.emplace(body.schema);
  EXPECT_EQ(described, held);
}

TEST(OpenApi, SaysWhichEndpointsNeedAKey) {
  ServiceFixture fixture(Silence, {std::string(kKey)});
  const json document = Document();
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [name, operation] : item.items()) {
      if (name == "parameters") continue;
      FakeClient client;
      const auto method = name == "get"    ? net::HttpMethod::kGet
                          : name == "post" ? net::HttpMethod::kPost
                                           : net::HttpMethod::kDelete;
      fixture.Send(client, method, Filled(path, "x"));
      const bool needed = operation.value("security", document["security"]) != json::array();
      const bool refused = client.Wait().status == 401;
      EXPECT_EQ(refused, needed) << name << " " << path;
      EXPECT_EQ(operation["responses"].contains("401"), needed) << name << " " << path;
    }
  }
}

TEST(OpenApi, IsServedWithoutAKeyAndSaysThatOthersNeedNone) {
  ServiceFixture fixture(Silence);
  const net::HttpResponse open = fixture.Get("/openapi.json");
  EXPECT_EQ(open.status, 200);
  EXPECT_EQ(open.headers.Get("Content-Type"), "application/json");
  const json document = json::parse(open.body);
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_FALSE(document.contains("security"));
  ServiceFixture locked(Silence, {std::string(kKey)});
  const net::HttpResponse keyed = locked.Get("/openapi.json");
  EXPECT_EQ(keyed.status, 200);
  EXPECT_EQ(json::parse(keyed.body)["security"].size(), 2u);
}

TEST(OpenApi, CarriesTheVersion) { EXPECT_EQ(Document()["info"]["version"], "1.2.3"); }

void CollectReferences(const json& value, std::set<std::string>& out) {
  if (value.is_object() && value.contains("$ref")) out.insert(value["$ref"].get<std::string>());
  if (value.is_structured())
    for (const json& inner : value) CollectReferences(inner, out);
}

TEST(OpenApi, EveryReferenceLeadsSomewhereAndNothingIsUnused) {
  const json document = Document();
  std::set<std::string> references;
  CollectReferences(document, references);
  std::set<std::string> components;
  for (const auto& [kind, members] : document["components"].items()) {
    if (kind == "securitySchemes") continue;
    for (const auto& [name, component] : members.items())
      components.insert("#/components/" + kind + "/" + name);
  }
  EXPECT_EQ(references, components);
}

TEST(OpenApi, NamesEachOperationOnce) {
  std::set<std::string> seen;
  const json document = Document();
  for (const auto& [path, item] : document["paths"].items()) {
    for (const auto& [name, operation] : item.items()) {
      if (name == "parameters") continue;
      EXPECT_TRUE(seen.insert(operation["operationId"]).second) << operation["operationId"];
      EXPECT_TRUE(operation.contains("summary") && operation.contains("tags")) << name << path;
    }
  }
}

}  // namespace
}  // namespace plumb::api
