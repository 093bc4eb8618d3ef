// api/testing/service_fixture.h
// Tests only. A whole Service over the fake generator and the byte vocabulary, without sockets: a
// request goes in as a value, its answer comes out as one.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api/service.h"
#include "api/testing/byte_vocabulary.h"
#include "api/testing/deepseek_vocabulary.h"
#include "api/testing/fake_exchange.h"
#include "api/testing/fake_generator.h"
#include "net/sse.h"

namespace plumb::api::testing {

using nlohmann::json;

constexpr uint32_t kContextMax = 4096;

enum class FixtureModel { kTemplate, kDeepseek };

// What stands between callers and the service; borrowed for the fixture's life where it points.
struct FixtureEdge {
  tenancy::Limiter* limiter = nullptr;
  const base::Clock* clock = nullptr;  // null: the system's
  HostPolicy hosts = {};
};

struct ServiceFixture {
  explicit ServiceFixture(FakeScript script, std::vector<std::string> api_keys = {},
                          GenerationOptions generations = {},
                          FixtureModel model = FixtureModel::kTemplate, CorsPolicy cors = {},
                          FixtureEdge edge = {})
      : tokenizer(model == FixtureModel::kDeepseek ? MakeDeepseekTokenizer() : MakeByteTokenizer()),
        chat_format(model == FixtureModel::kDeepseek ? MakeDeepseekFormat(*tokenizer)
                                                     : MakeChatFormat(*tokenizer)),
        keys(tenancy::ApiKeys::FromKeys(api_keys).value()),
        generator(*tokenizer, std::move(script)),
        service(Config(std::move(generations), std::move(cors), std::move(edge.hosts)),
                {.generator = generator,
                 .tokenizer = *tokenizer,
                 .chat_format = *chat_format,
                 .keys = keys,
                 .metrics = metrics,
                 .logger = logger,
                 .clock = edge.clock != nullptr ? *edge.clock : clock,
                 .ready = [this] { return ready; },
                 .refresh_metrics = {},
                 .limiter = edge.limiter}) {
    generator.Start();
  }

  static ServiceConfig Config(GenerationOptions generations, CorsPolicy cors, HostPolicy hosts) {
    generations.system_fingerprint = "plumb-test";
    generations.context_max = kContextMax;
    return {.model = {.names = {"fake", "alias/of-fake"}, .created = 7, .context_max = kContextMax},
            .generations = std::move(generations),
            .embeddings = {.dimensions = kFakeDimensions},
            .cors = std::move(cors),
            .hosts = std::move(hosts)};
  }

  // Sends; the answer comes to `client`.
  void Send(FakeClient& client, net::HttpMethod method, std::string path, std::string body = "",
            net::HttpHeaders headers = {{"Content-Type", "application/json"}}) {
    net::HttpRequest request{.method = method,
                             .path = std::move(path),
                             .query = "",
                             .headers = std::move(headers),
                             .body = std::move(body),
                             .peer = "127.0.0.1"};
    service.OnRequest(std::move(request), client.MakeExchange());
  }
  void SendChat(FakeClient& client, const json& body) {
    Send(client, net::HttpMethod::kPost, "/v1/chat/completions", body.dump());
  }
  // Sends and waits for the whole answer, until the service has let go of it.
  net::HttpResponse Ask(const json& body) {
    FakeClient client;
    SendChat(client, body);
    net::HttpResponse response = client.Wait();
    client.WaitGone();
    return response;
  }
  // Until nothing is live: a sink goes a moment after its exchange.
  void WaitIdle() {
    while (service.live_requests() > 0) std::this_thread::yield();
  }
  net::HttpResponse Get(std::string path, net::HttpHeaders headers = {}) {
    FakeClient client;
    Send(client, net::HttpMethod::kGet, std::move(path), "", std::move(headers));
    return client.Wait();
  }

  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::ChatFormat> chat_format;
  tenancy::ApiKeys keys;
  telemetry::Metrics metrics{Service::RoutePatterns(), "0", "fake"};
  telemetry::Logger logger{{.level = telemetry::LogLevel::kOff}};
  base::SystemClock clock;
  base::Status ready;
  FakeGenerator generator;
  Service service;
};

// A chat request for the fake model, with more members.
inline json ChatBody(json members = json::object()) {
  json body = {{"model", "fake"}, {"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(members);
  return body;
}

// The data of each event of a stream.
inline std::vector<std::string> StreamData(std::string_view body) {
  net::SseParser parser(1 << 20);
  std::vector<net::SseEvent> events;
  CHECK(parser.Feed(body, events).ok());
  std::vector<std::string> data;
  for (net::SseEvent& event : events) data.push_back(std::move(event.data));
  return data;
}

// A stream put together again, one entry for each sample.
struct StreamedChoice {
  std::string role;
  std::string content;
  std::string reasoning;
  json tool_calls = json::array();  // as in a whole answer
  json logprobs = json::array();
  std::string finish_reason;
};
struct Streamed {
  std::vector<StreamedChoice> choices;
  json usage;
  json seed;
  bool done = false;
};
inline Streamed PutTogether(std::string_view body, size_t samples) {
  Streamed out;
  out.choices.resize(samples);
  for (const std::string& data : StreamData(body)) {
    CHECK(!out.done) << "an event after [DONE]: " << data;
    if (data == "[DONE]") {
      out.done = true;
      continue;
    }
    const json chunk = json::parse(data);
    if (chunk.contains("plumb")) out.seed = chunk["plumb"]["seed"];
    if (chunk.contains("usage") && !chunk["usage"].is_null()) out.usage = chunk["usage"];
    for (const json& choice : chunk["choices"]) {
      StreamedChoice& to = out.choices.at(choice["index"]);
      CHECK(to.finish_reason.empty()) << "an event after the sample's end: " << data;
      to.role += choice["delta"].value("role", "");
      CHECK(to.role == "assistant") << "the role comes first: " << data;
      to.content += choice["delta"].value("content", "");
      to.reasoning += choice["delta"].value("reasoning_content", "");
      for (const json& call : choice["delta"].value("tool_calls", json::array())) {
        const size_t index = call["index"];
        if (index == to.tool_calls.size()) {
          to.tool_calls.push_back(call);
          to.tool_calls.back().erase("index");
          continue;
        }
        CHECK(index + 1 == to.tool_calls.size() && !call.contains("id")) << data;
        const json::json_pointer text(call.contains("custom") ? "/custom/input"
                                                              : "/function/arguments");
        to.tool_calls[index][text].get_ref<std::string&>() += call[text].get<std::string>();
      }
      if (!choice["logprobs"].is_null())
        for (const json& entry : choice["logprobs"]["content"]) to.logprobs.push_back(entry);
      if (!choice["finish_reason"].is_null()) to.finish_reason = choice["finish_reason"];
    }
  }
  return out;
}

}  // namespace plumb::api::testing
