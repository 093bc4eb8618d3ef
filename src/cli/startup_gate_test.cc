// cli/startup_gate_test.cc
// What a client is told while the model loads, and that it reaches the service afterwards.
#include "cli/startup_gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "api/testing/fake_exchange.h"

namespace plumb::cli {
namespace {

using net::HttpMethod;

net::HttpResponse Ask(net::HttpHandler& handler, HttpMethod method, std::string path) {
  api::testing::FakeClient client;
  net::HttpRequest request{.method = method,
                           .path = std::move(path),
                           .query = "",
                           .headers = {},
                           .body = "",
                           .peer = "127.0.0.1"};
  handler.OnRequest(std::move(request), client.MakeExchange());
  return client.Wait();
}

std::string HeaderOf(const net::HttpResponse& response, std::string_view name) {
  return std::string(response.headers.Get(name).value_or("<absent>"));
}

TEST(StartupGate, TellsClientsToComeBack) {
  StartupGate gate;
  const net::HttpResponse chat = Ask(gate, HttpMethod::kPost, "/v1/chat/completions");
  EXPECT_EQ(chat.status, 503);
  EXPECT_EQ(HeaderOf(chat, "Content-Type"), "application/json");
  EXPECT_EQ(HeaderOf(chat, "Retry-After"), "2");
  EXPECT_EQ(Ask(gate, HttpMethod::kGet, "/health").status, 200);
  EXPECT_EQ(Ask(gate, HttpMethod::kGet, "/ready").status, 503);
}

TEST(StartupGate, ReceivesNoBodyWhileLoading) {
  StartupGate gate;
  const auto admission = gate.Admit({.method = HttpMethod::kPost, .path = "/v1/files"});
  ASSERT_TRUE(admission.answer.has_value());
  EXPECT_EQ(admission.answer->status, 503);
  EXPECT_EQ(HeaderOf(*admission.answer, "Retry-After"), "2");
}

TEST(StartupGate, ShowsPeopleAPageThatLoadsItselfAgain) {
  StartupGate gate;
  for (const HttpMethod method : {HttpMethod::kGet, HttpMethod::kHead}) {
    const net::HttpResponse page = Ask(gate, method, "/");
    EXPECT_EQ(page.status, 503);
    EXPECT_EQ(HeaderOf(page, "Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(HeaderOf(page, "Retry-After"), "2");
    EXPECT_EQ(HeaderOf(page, "Cache-Control"), "no-store");
    EXPECT_NE(page.body.find("http-equiv=\"refresh\""), page.body.npos);
  }
  EXPECT_EQ(HeaderOf(Ask(gate, HttpMethod::kPost, "/"), "Content-Type"), "application/json");
}

class Teapot final : public net::HttpHandler {
 public:
  void OnRequest(net::HttpRequest, std::unique_ptr<net::HttpExchange> exchange) override {
    exchange->Respond({.status = 418, .headers = {}, .body = ""});
  }
  net::HttpAdmission Admit(const net::HttpRequest&) override { return {.account = 7}; }
  net::HttpResponse FormatRefusal(const net::HttpRefusal&) const override {
    return {.status = 418, .headers = {}, .body = ""};
  }
};

TEST(StartupGate, PassesEverythingOnOnceOpen) {
  StartupGate gate;
  EXPECT_EQ(gate.FormatRefusal({.status = 413, .message = "too large"}).status, 413);
  Teapot service;
  gate.Open(service);
  for (const char* path : {"/", "/health", "/v1/models"})
    EXPECT_EQ(Ask(gate, HttpMethod::kGet, path).status, 418) << path;
  EXPECT_EQ(gate.Admit({.path = "/v1/files"}).account, 7u);
  EXPECT_EQ(gate.FormatRefusal({.status = 413, .message = "too large"}).status, 418);
}

}  // namespace
}  // namespace plumb::cli
