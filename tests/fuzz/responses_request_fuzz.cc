// tests/fuzz/responses_request_fuzz.cc
// Arbitrary bytes as the body of POST /v1/responses. Besides not crashing: what is taken is within
// the engine's ranges, what the answer repeats is JSON, and its items, written as they are listed
// and read again, make the same messages.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/json_writer.h"
#include "api/responses_messages.h"
#include "api/responses_request.h"
#include "base/check.h"
#include "refusal.h"

namespace {

using plumb::api::ItemList;
using plumb::api::JsonWriter;
using plumb::api::RequestLimits;
using plumb::api::ResponsesRequest;
using plumb::text::ChatMessage;

constexpr RequestLimits kLimits{.vocabulary_size = 1000,
                                .abilities = {.tools = true, .reasoning = true, .guides = true}};
constexpr RequestLimits kPlainLimits{.vocabulary_size = 1000};

void CheckSame(const ChatMessage& a, const ChatMessage& b) {
  CHECK(a.role == b.role && a.content == b.content && a.reasoning == b.reasoning);
  CHECK(a.parts.size() == b.parts.size() && a.tool_call_id == b.tool_call_id);
  CHECK(a.tool_calls.size() == b.tool_calls.size());
  for (size_t i = 0; i < a.tool_calls.size(); ++i) {
    CHECK(a.tool_calls[i].id == b.tool_calls[i].id && a.tool_calls[i].name == b.tool_calls[i].name);
    CHECK(a.tool_calls[i].arguments == b.tool_calls[i].arguments);
  }
}

void CheckItemsComeBack(const ItemList& items) {
  std::string body;
  JsonWriter json(body);
  json.BeginObject().Key("model").String("m").Key("input").BeginArray();
  for (const auto& item : items) WriteItem(json, *item, {.encrypted_content = true});
  json.EndArray().EndObject();
  const auto again = plumb::api::ParseResponsesRequest(body, kLimits, {});
  CHECK(again.ok()) << again.status().ToString() << "\n" << body;
  std::vector<ChatMessage> expected;
  AppendMessages(items, expected);
  CHECK(expected.size() == again->input.messages.size()) << body;
  for (size_t i = 0; i < expected.size(); ++i) CheckSame(expected[i], again->input.messages[i]);
}

void CheckTaken(const ResponsesRequest& request) {
  CHECK(!request.model.empty() && !request.items.empty() && !request.input.messages.empty());
  CHECK(!request.tokens_max || (*request.tokens_max >= 1 && *request.tokens_max <= INT32_MAX));
  CHECK(request.sampling.top_logprobs <= plumb::engine::kTopLogprobsMax);
  CHECK(request.samples == 1 && request.tools.known.size() == request.tools.specs.size());
  CHECK(request.input.tools.size() <= request.tools.specs.size());
  CHECK(nlohmann::json::accept("{" + request.echo + "}")) << request.echo;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const RequestLimits& limits : {kLimits, kPlainLimits}) {
    const auto request = plumb::api::ParseResponsesRequest(body, limits, {});
    if (request.ok()) {
      CheckTaken(*request);
      CheckItemsComeBack(request->items);
    } else {
      plumb::fuzz::CheckRefusal(request.status());
    }
  }
  return 0;
}
