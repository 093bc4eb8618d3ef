// api/messages_dialect_test.cc
// Anthropic's Messages through the whole service: keys, counts, room, and that streams are whole.
#include "api/messages_dialect.h"

#include <gtest/gtest.h>

#include "api/testing/messages_stream.h"
#include "api/testing/service_fixture.h"

namespace plumb::api {
namespace {

using testing::ByteTokens;
using testing::FakeAnswer;
using testing::FakeClient;
using testing::json;
using testing::ServiceFixture;

constexpr const char* kKey = "correct-horse-battery";
constexpr const char* kOtherKey = "wrong-horse-staple";

testing::FakeScript Say(std::string text, uint32_t chunk_tokens = 1) {
  return [text = std::move(text), chunk_tokens](const engine::Request&, uint32_t) {
    return FakeAnswer{ByteTokens(text), chunk_tokens, {}};
  };
}

json Body(json members = json::object()) {
  json body = {{"model", "fake"},
               {"max_tokens", 2000},
               {"messages", json::array({{{"role", "user"}, {"content", "hi"}}})}};
  body.update(members);
  return body;
}

net::HttpResponse Ask(ServiceFixture& fixture, const json& body, net::HttpHeaders headers = {},
                      std::string path = "/v1/messages") {
  FakeClient client;
  headers.Add("Content-Type", "application/json");
  fixture.Send(client, net::HttpMethod::kPost, std::move(path), body.dump(), std::move(headers));
  net::HttpResponse response = client.Wait();
  client.WaitGone();
  return response;
}

TEST(MessagesDialect, IsolatesByTheKeyWhereverItStands) {
  ServiceFixture fixture(Say("ok"), {kKey, kOtherKey});
  const auto isolation = [&](net::HttpHeaders headers) {
    EXPECT_EQ(Ask(fixture, Body(), std::move(headers)).status, 200);
    return fixture.generator.last_request().isolation;
  };
  const base::Hash256 alone = isolation({{"x-api-key", kKey}});
  EXPECT_EQ(alone, isolation({{"Authorization", std::string("Bearer ") + kKey}}));
  EXPECT_EQ(alone, isolation({{"Authorization", "Bearer nobody-knows"}, {"x-api-key", kKey}}));
  EXPECT_NE(alone, isolation({{"x-api-key", kOtherKey}}));
  EXPECT_NE(alone, base::Hash256{});
}

TEST(MessagesDialect, RefusesWithoutAGoodKey) {
  ServiceFixture fixture(Say("ok"), {kKey});
  for (const net::HttpHeaders& headers :
       {net::HttpHeaders{}, net::HttpHeaders{{"x-api-key", ""}},
        net::HttpHeaders{{"x-api-key", "Bearer correct-horse-battery"}},
        net::HttpHeaders{{"x-api-key", "nobody-knows"}, {"Authorization", kKey}}}) {
    const net::HttpResponse response = Ask(fixture, Body(), headers);
    EXPECT_EQ(response.status, 401);
    const json body = json::parse(response.body);
    EXPECT_EQ(body["error"]["type"], "authentication_error");
    EXPECT_EQ(body["request_id"], *response.headers.Get("request-id"));
  }
}

TEST(MessagesDialect, CountsWithoutTheGenerator) {
  ServiceFixture fixture(Say("ok"));
  json body = Body({{"system", "Be brief."}});
  body.erase("max_tokens");
  const auto counted = Ask(fixture, body, {}, "/v1/messages/count_tokens");
  EXPECT_EQ(counted.status, 200);
  EXPECT_TRUE(fixture.generator.last_request().prompt.empty());
  body["max_tokens"] = 5;
  const json answer = json::parse(Ask(fixture, body).body);
  EXPECT_EQ(json::parse(counted.body)["input_tokens"], answer["usage"]["input_tokens"]);
}

TEST(MessagesDialect, SaysThatThereIsNoRoom) {
  ServiceFixture fixture(Say("ok"));
  fixture.generator.Refuse(base::Status(base::Code::kOverloaded, "no room").WithRetryAfterMs(1500));
  const net::HttpResponse response = Ask(fixture, Body());
  EXPECT_EQ(response.status, 529);
  EXPECT_EQ(response.headers.Get("Retry-After"), "2");
  EXPECT_EQ(json::parse(response.body)["error"]["type"], "overloaded_error");
}

// An answer with thinking, text and calls under every size of chunk: one stream, one message.
TEST(MessagesDialect, StreamsWhatItAnswersWhole) {
  const std::string text =
      "I think 한 😀.</think>Two calls.\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n"
      "<｜DSML｜ parameter name=\"a\" string=\"true\">x \"y\" 한</｜DSML｜ parameter>\n"
      "<｜DSML｜ parameter name=\"b\" string=\"false\">[1, 2]</｜DSML｜ parameter>\n"
      "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  const json tools = json::array({{{"name", "f"}, {"input_schema", {{"type", "object"}}}}});
  json body = Body({{"tools", tools}, {"thinking", {{"type", "adaptive"}}}, {"seed", 3}});
  json expected;
  for (const uint32_t chunk : {0u, 1u, 2u, 3u, 5u, 7u, 11u, 64u}) {
    ServiceFixture fixture(Say(text, chunk), {}, {}, testing::FixtureModel::kDeepseek);
    const auto without_ids = [](json message) {
      message.erase("id");
      for (json& block : message["content"]) block.erase("id");
      return message;
    };
    body["stream"] = false;
    const json whole = without_ids(json::parse(Ask(fixture, body).body));
    body["stream"] = true;
    const json streamed = without_ids(testing::MessageOfStream(Ask(fixture, body).body));
    if (expected.is_null()) expected = whole;
    EXPECT_EQ(whole, expected) << chunk;
    EXPECT_EQ(streamed, expected) << chunk;
  }
  EXPECT_EQ(expected["stop_reason"], "tool_use");
  ASSERT_EQ(expected["content"].size(), 4u);
  EXPECT_EQ(expected["content"][2]["input"], (json{{"a", "x \"y\" 한"}, {"b", {1, 2}}}));
  EXPECT_EQ(expected["content"][3]["input"], json::object());
}

TEST(MessagesDialect, CutsMaxTokensToTheContext) {
  ServiceFixture fixture(Say("ok"));
  EXPECT_EQ(Ask(fixture, Body({{"max_tokens", 32000}})).status, 200);
  const engine::Request request = fixture.generator.last_request();
  EXPECT_EQ(request.prompt.size() + request.sampling.tokens_max, testing::kContextMax);
}

}  // namespace
}  // namespace plumb::api
