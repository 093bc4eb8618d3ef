// api/embedding_dialect_test.cc
// Embeddings from body to answer over the scripted generator, where transcripts do not reach: many
// inputs, of which the generator has a few at once, and what happens when it is full, one fails,
// the client leaves or the server stops.
#include "api/embedding_dialect.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "api/prompt_feeds.h"
#include "api/testing/service_fixture.h"

namespace plumb::api::testing {
namespace {

const base::TokenId kBad{'z'};

// Embeds all but what begins with kBad, which fails.
FakeAnswer Embed(const engine::Request& request, uint32_t) {
  if (request.prompt.front() == kBad)
    return {.tokens = {}, .chunk_tokens = 1, .failure = base::Internal("bad")};
  return {.tokens = ByteTokens("."), .chunk_tokens = 1, .failure = {}};
}
// Takes them and says nothing until it is cancelled.
FakeAnswer Hang(const engine::Request&, uint32_t) { return {}; }

json Body(const std::vector<std::vector<uint32_t>>& inputs) {
  return {{"model", "fake"}, {"input", inputs}};
}
// Input i is i % 7 + 1 tokens.
std::vector<std::vector<uint32_t>> Inputs(uint32_t count) {
  std::vector<std::vector<uint32_t>> inputs;
  for (uint32_t i = 0; i < count; ++i) inputs.emplace_back(i % 7 + 1, i % 100);
  return inputs;
}

class EmbeddingsTest : public ::testing::Test {
 protected:
  static void Post(ServiceFixture& fixture, FakeClient& client, const json& body) {
    fixture.Send(client, net::HttpMethod::kPost, "/v1/embeddings", body.dump());
  }
  static net::HttpResponse Ask(ServiceFixture& fixture, const json& body) {
    FakeClient client;
    Post(fixture, client, body);
    net::HttpResponse response = client.Wait();
    client.WaitGone();
    fixture.WaitIdle();
    return response;
  }
};

TEST_F(EmbeddingsTest, ManyInputsAreAnsweredInOrderAFewAtOnce) {
  for (const uint32_t count : {1u, kPromptsAtOnce, kPromptsAtOnce + 1, kEmbeddingInputsMax}) {
    ServiceFixture fixture(Embed);
    const auto inputs = Inputs(count);
    const net::HttpResponse response = Ask(fixture, Body(inputs));
    ASSERT_EQ(response.status, 200) << response.body;
    const json answer = json::parse(response.body);
    ASSERT_EQ(answer["data"].size(), count);
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < count; ++i) {
      engine::Request asked{};
      for (const uint32_t id : inputs[i]) asked.prompt.push_back(base::TokenId{id});
      asked.pooling = engine::Pooling::kMean;
      ASSERT_EQ(answer["data"][i]["index"], i);
      const std::vector<float> embedding = answer["data"][i]["embedding"];
      ASSERT_EQ(embedding, FakeEmbedding(asked));
      tokens += inputs[i].size();
    }
    EXPECT_EQ(answer["usage"]["prompt_tokens"], tokens);
    EXPECT_EQ(fixture.generator.submitted(), count);
    EXPECT_LE(fixture.generator.live_most(), kPromptsAtOnce);
  }
}

TEST_F(EmbeddingsTest, InputsAndNumbersOfOneAnswerAreBounded) {
  ServiceFixture fixture(Embed);
  const net::HttpResponse response = Ask(fixture, Body(Inputs(kEmbeddingInputsMax + 1)));
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(json::parse(response.body)["error"]["param"], "input");
  const json many = Body(Inputs(kEmbeddingInputsMax));
  const RequestLimits limits{.vocabulary_size = 1000};
  EXPECT_TRUE(ParseEmbeddingRequest(many.dump(), limits, {.dimensions = 2048}).ok());
  const auto wide = ParseEmbeddingRequest(many.dump(), limits, {.dimensions = 4096});
  EXPECT_EQ(wide.status().field(), "input");
  EXPECT_NE(wide.status().message().find("at most 1024 inputs"), std::string::npos);
}

TEST_F(EmbeddingsTest, InputsWaitForEachOtherWhereTheGeneratorIsFull) {
  ServiceFixture fixture(Embed);
  fixture.generator.RefuseBeyond(3);
  const net::HttpResponse response = Ask(fixture, Body(Inputs(100)));
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(fixture.generator.submitted(), 100u);
  EXPECT_LE(fixture.generator.live_most(), 3u);
  fixture.generator.RefuseBeyond(0);
  EXPECT_EQ(Ask(fixture, Body(Inputs(100))).status, 503);
  EXPECT_EQ(Ask(fixture, Body(Inputs(2))).status, 503);
}

TEST_F(EmbeddingsTest, OneThatFailsFailsTheRequestAndEndsTheRest) {
  ServiceFixture fixture(Embed);
  auto inputs = Inputs(2000);
  inputs[50] = {base::Index(kBad)};
  EXPECT_EQ(Ask(fixture, Body(inputs)).status, 500);
  EXPECT_LT(fixture.generator.submitted(), 2000u);
  EXPECT_EQ(fixture.generator.live(), 0u);
  EXPECT_EQ(Ask(fixture, Body(Inputs(100))).status, 200);
}

TEST_F(EmbeddingsTest, AClientThatLeavesEndsThemAll) {
  ServiceFixture fixture(Hang);
  FakeClient client;
  Post(fixture, client, Body(Inputs(500)));
  fixture.generator.WaitLive(kPromptsAtOnce);
  client.Leave();
  client.WaitGone();
  fixture.WaitIdle();
  EXPECT_EQ(fixture.generator.submitted(), kPromptsAtOnce);
  EXPECT_EQ(fixture.generator.live(), 0u);
}

TEST_F(EmbeddingsTest, AServerThatStopsEndsThemAll) {
  ServiceFixture fixture(Hang);
  FakeClient client;
  Post(fixture, client, Body(Inputs(500)));
  fixture.generator.WaitLive(kPromptsAtOnce);
  fixture.service.Stop();
  EXPECT_EQ(client.Wait().status, 503);
  EXPECT_EQ(fixture.generator.submitted(), kPromptsAtOnce);
}

TEST_F(EmbeddingsTest, PriorityDeadlineAndTheServersPoolingReachTheGenerator) {
  ServiceFixture fixture(Embed);
  json body = {{"model", "fake"}, {"input", "x"}, {"priority", "batch"}};
  ASSERT_EQ(Ask(fixture, body).status, 200);
  const engine::Request request = fixture.generator.last_request();
  EXPECT_EQ(request.priority, engine::Priority::kBatch);
  EXPECT_EQ(request.pooling, engine::Pooling::kMean);
  EXPECT_EQ(request.sampling.tokens_max, 0u);
  EXPECT_NE(request.deadline.ns, base::kNever.ns);
  const auto parsed = ParseEmbeddingRequest(body.dump(), {.vocabulary_size = 1000},
                                            {.pooling = engine::Pooling::kLast, .dimensions = 4});
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->pooling, engine::Pooling::kLast);
}

}  // namespace
}  // namespace plumb::api::testing
