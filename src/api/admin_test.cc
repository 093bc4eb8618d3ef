// api/admin_test.cc
// Keys first, one replacement at a time, and what an operator is told of each end it may have.
#include "api/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "api/testing/fake_exchange.h"
#include "base/mutex.h"

namespace plumb::api::testing {
namespace {

using net::HttpMethod;
using nlohmann::json;

constexpr const char* kKey = "an-operators-key";

// Answers when it is told to.
class FakeWeights final : public WeightsOwner {
 public:
  ServedWeights Current() const override {
    base::MutexLock lock(mutex_);
    return current_;
  }
  base::Result<ServedWeights> Replace(const std::string& model, base::Duration patience) override {
    base::MutexLock lock(mutex_);
    asked_patience = patience;
    entered_ = true;
    changed_.NotifyAll();
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return !held_; });
    entered_ = false;
    if (!fails_with.ok()) return fails_with;
    current_ = {model, "fp_" + model, current_.version + 1};
    return current_;
  }
  void Hold() {
    base::MutexLock lock(mutex_);
    held_ = true;
  }
  void Release() {
    base::MutexLock lock(mutex_);
    held_ = false;
    changed_.NotifyAll();
  }
  void WaitEntered() {
    base::MutexLock lock(mutex_);
    changed_.Wait(lock, [&]() HOLDS(mutex_) { return entered_; });
  }

  base::Status fails_with;
  base::Duration asked_patience{0};

 private:
  mutable base::Mutex mutex_;
  base::Condition changed_;
  ServedWeights current_ GUARDED_BY(mutex_){"first", "fp_first", 1};
  bool held_ GUARDED_BY(mutex_) = false;
  bool entered_ GUARDED_BY(mutex_) = false;
};

class AdminTest : public ::testing::Test {
 protected:
  void Send(FakeClient& client, HttpMethod method, const std::string& path, std::string body,
            net::HttpHeaders headers) {
    net::HttpRequest request{.method = method,
                             .path = path,
                             .query = "",
                             .headers = std::move(headers),
                             .body = std::move(body),
                             .peer = "127.0.0.1"};
    admin_.OnRequest(std::move(request), client.MakeExchange());
  }
  static net::HttpHeaders Headers(const std::string& key = kKey) {
    return {{"Authorization", "Bearer " + key}, {"Content-Type", "application/json"}};
  }
  net::HttpResponse Ask(HttpMethod method, const std::string& body = "",
                        const std::string& path = "/admin/weights") {
    FakeClient client;
    Send(client, method, path, body, Headers());
    return client.Wait();
  }
  static json Error(const net::HttpResponse& response) {
    return json::parse(response.body).at("error");
  }

  FakeWeights weights_;
  tenancy::ApiKeys keys_ = tenancy::ApiKeys::FromKeys({kKey}).value();
  telemetry::Logger logger_{{.level = telemetry::LogLevel::kOff}};
  base::SystemClock clock_;
  Admin admin_{{weights_, keys_, logger_, clock_}};
};

TEST_F(AdminTest, LetsNobodyInWithoutItsKey) {
  for (const HttpMethod method : {HttpMethod::kGet, HttpMethod::kPost, HttpMethod::kDelete}) {
    for (const char* path : {"/admin/weights", "/", "/metrics"}) {
      FakeClient none, wrong;
      Send(none, method, path, "{}", {});
      EXPECT_EQ(none.Wait().status, 401) << path;
      Send(wrong, method, path, "{}", Headers("another-key-of-some-length"));
      EXPECT_EQ(wrong.Wait().status, 401) << path;
    }
  }
  EXPECT_EQ(weights_.Current().version, 1u);
}

TEST_F(AdminTest, ReplacesWeightsAndSaysWhatIsServed) {
  const json before = json::parse(Ask(HttpMethod::kGet).body);
  EXPECT_EQ(before, (json{{"object", "weights"},
                          {"model", "first"},
                          {"system_fingerprint", "fp_first"},
                          {"weights_version", 1},
                          {"replacing", false}}));
  const net::HttpResponse done =
      Ask(HttpMethod::kPost, R"({"model": "/models/next.gguf", "deadline_ms": 1500})");
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(json::parse(done.body)["weights_version"], 2);
  EXPECT_EQ(json::parse(done.body)["system_fingerprint"], "fp_/models/next.gguf");
  EXPECT_EQ(json::parse(Ask(HttpMethod::kGet).body), json::parse(done.body));
  EXPECT_EQ(weights_.asked_patience.ms(), 1500);
}

TEST_F(AdminTest, TakesOneReplacementAtATime) {
  weights_.Hold();
  FakeClient first;
  Send(first, HttpMethod::kPost, "/admin/weights", R"({"model": "a"})", Headers());
  weights_.WaitEntered();
  const net::HttpResponse second = Ask(HttpMethod::kPost, R"({"model": "b"})");
  EXPECT_EQ(second.status, 409);
  EXPECT_EQ(Error(second)["code"], "swap_in_progress");
  const json during = json::parse(Ask(HttpMethod::kGet).body);
  EXPECT_EQ(during["replacing"], true);
  EXPECT_EQ(during["model"], "first") << "until the new ones answer";
  weights_.Release();
  EXPECT_EQ(first.Wait().status, 200);
  EXPECT_EQ(Ask(HttpMethod::kPost, R"({"model": "b"})").status, 200);
  EXPECT_EQ(weights_.Current().model, "b");
}

TEST_F(AdminTest, AClientThatLeavesDoesNotStopIt) {
  weights_.Hold();
  FakeClient client;
  Send(client, HttpMethod::kPost, "/admin/weights", R"({"model": "a"})", Headers());
  weights_.WaitEntered();
  client.Leave();
  weights_.Release();
  client.WaitGone();
  EXPECT_EQ(weights_.Current().model, "a");
}

TEST_F(AdminTest, EachEndHasItsStatus) {
  using base::Code;
  using base::Status;
  const struct {
    Status status;
    int http;
    const char* code;
  } kCases[] = {
      {base::InvalidArgument("model", "another shape"), 400, ""},
      {base::Corrupt("'/x': damaged"), 400, "model_damaged"},
      {base::Unsupported("'/x': unknown family"), 400, "model_unsupported"},
      {base::NotFound("there is no model 'x'"), 404, "not_found"},
      {Status(Code::kDeadline, "what had begun did not end"), 504, "deadline_exceeded"},
      {Status(Code::kOverloaded, "no memory"), 503, "overloaded"},
      {Status(Code::kUnavailable, "stopping"), 503, "unavailable"},
      {Status(Code::kUnavailable, "another").WithReason("swap_in_progress"), 409,
       "swap_in_progress"},
      {base::Internal("the inner words"), 500, "internal_error"},
  };
  for (const auto& test : kCases) {
    weights_.fails_with = test.status;
    const net::HttpResponse response = Ask(HttpMethod::kPost, R"({"model": "x"})");
    EXPECT_EQ(response.status, test.http) << test.status.ToString();
    const json error = Error(response);
    EXPECT_EQ(error["code"].is_null() ? "" : error["code"].get<std::string>(), test.code);
    const bool told = test.status.code() != Code::kInternal;
    EXPECT_EQ(error["message"] == test.status.message(), told) << test.status.ToString();
  }
  EXPECT_EQ(weights_.Current().model, "first");
}

TEST_F(AdminTest, RefusesWhatItDoesNotKnow) {
  for (const char* body : {"", "[]", "{", "{}", R"({"model": ""})", R"({"model": 7})",
                           R"({"model": "a", "deadline_ms": 0})", R"({"model": "a", "x": 1})"}) {
    EXPECT_EQ(Ask(HttpMethod::kPost, body).status, 400) << body;
  }
  const std::string long_name(5000, 'a');
  EXPECT_EQ(Ask(HttpMethod::kPost, R"({"model": ")" + long_name + "\"}").status, 400);
  EXPECT_EQ(Ask(HttpMethod::kGet, "", "/admin/other").status, 404);
  EXPECT_EQ(Ask(HttpMethod::kDelete).headers.Get("Allow"), "GET, HEAD, POST");
  FakeClient text;
  Send(text, HttpMethod::kPost, "/admin/weights", R"({"model": "a"})",
       {{"Authorization", std::string("Bearer ") + kKey}, {"Content-Type", "text/plain"}});
  EXPECT_EQ(text.Wait().status, 415);
  EXPECT_EQ(weights_.Current().version, 1u);
}

// Before a body is received; what comes with its header is refused likewise.
TEST_F(AdminTest, TheHeaderDecidesWhoMaySendABody) {
  const auto admit = [&](HttpMethod method, const char* path, net::HttpHeaders headers) {
    return admin_.Admit({.method = method, .path = path, .headers = std::move(headers)});
  };
  const struct {
    HttpMethod method;
    const char* path;
    net::HttpHeaders headers;
    int status;
  } kCases[] = {
      {HttpMethod::kPost, "/admin/weights", {}, 401},
      {HttpMethod::kPost, "/admin/weights", Headers("another-key-of-some-length"), 401},
      {HttpMethod::kPost, "/", Headers(), 404},
      {HttpMethod::kPut, "/admin/weights", Headers(), 405},
      {HttpMethod::kPost,
       "/admin/weights",
       {{"Authorization", std::string("Bearer ") + kKey}, {"Content-Type", "text/plain"}},
       415},
  };
  for (const auto& test : kCases) {
    const net::HttpAdmission admission = admit(test.method, test.path, test.headers);
    ASSERT_TRUE(admission.answer.has_value()) << test.status;
    EXPECT_EQ(admission.answer->status, test.status);
    EXPECT_TRUE(admission.answer->headers.Get("X-Request-Id").has_value()) << test.status;
    FakeClient client;
    Send(client, test.method, test.path, R"({"model": "a"})", test.headers);
    EXPECT_EQ(client.Wait().status, test.status);
  }
  const net::HttpAdmission post = admit(HttpMethod::kPost, "/admin/weights", Headers());
  EXPECT_FALSE(post.answer.has_value());
  EXPECT_EQ(post.body_bytes_max, 16u << 10);
  EXPECT_EQ(Ask(HttpMethod::kPost, std::string((16 << 10) + 1, ' ')).status, 413);
  EXPECT_EQ(admit(HttpMethod::kGet, "/admin/weights", Headers()).body_bytes_max, 4096u);
  EXPECT_EQ(Ask(HttpMethod::kGet, std::string(4096, ' ')).status, 200);
  EXPECT_EQ(Ask(HttpMethod::kGet, std::string(4097, ' ')).status, 413);
  EXPECT_EQ(weights_.Current().version, 1u);
}

TEST_F(AdminTest, StopEndsWhatIsUnderWayAndRefusesTheRest) {
  admin_.Stop();
  const net::HttpResponse refused = Ask(HttpMethod::kPost, R"({"model": "a"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(Error(refused)["code"], "server_stopping");
}

}  // namespace
}  // namespace plumb::api::testing
