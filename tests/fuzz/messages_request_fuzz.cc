// tests/fuzz/messages_request_fuzz.cc
// Arbitrary bytes as the body of POST /v1/messages. Besides not crashing: what is taken is within
// the engine's ranges, and a chat format that is strict about calls and their results finds no
// fault with the messages, since every such fault has to be named by its place in the body.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/messages_errors.h"
#include "api/messages_request.h"
#include "base/check.h"
#include "text/deepseek_v41_prompt.h"

namespace {

using plumb::api::MessagesRequest;
using plumb::api::MessagesUse;
using plumb::api::RequestLimits;
using plumb::base::Status;

constexpr RequestLimits kLimits{.vocabulary_size = 1000,
                                .abilities = {.tools = true, .reasoning = true, .guides = true}};
constexpr RequestLimits kPlainLimits{.vocabulary_size = 1000};

void CheckTaken(const MessagesRequest& request, const RequestLimits& limits) {
  CHECK(!request.model.empty() && !request.input.messages.empty() && request.samples == 1);
  CHECK(!request.tokens_max || (*request.tokens_max >= 1 && *request.tokens_max <= INT32_MAX));
  CHECK(request.sampling.temperature >= 0 && request.sampling.temperature <= 1);
  CHECK(request.sampling.stop.size() <= plumb::engine::kStopStringsMax);
  for (const auto& tool : request.input.tools)
    CHECK(nlohmann::json::accept(tool.parameters)) << tool.parameters;
  if (!limits.abilities.reasoning) {
    CHECK(!request.input.thinking && request.input.effort.empty());
    for (const auto& message : request.input.messages)
      CHECK(message.reasoning.empty() && message.tool_calls.empty() && message.role != "tool");
    return;
  }
  const auto prompt = plumb::text::RenderDeepseekV41(request.input);
  if (prompt.ok()) return;
  const std::string& field = prompt.status().field();
  const bool too_large = field.ends_with(".arguments");
  CHECK(too_large || !field.starts_with("messages")) << prompt.status().ToString();
}

void CheckRefused(const Status& status) {
  CHECK(status.code() == plumb::base::Code::kInvalidArgument);
  const std::string body = plumb::api::MessagesErrorJson(plumb::api::ErrorFromStatus(status));
  CHECK(nlohmann::json::accept(body)) << body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const RequestLimits& limits : {kLimits, kPlainLimits}) {
    for (const MessagesUse use : {MessagesUse::kAnswer, MessagesUse::kCount}) {
      const auto request = plumb::api::ParseMessagesRequest(body, limits, use);
      if (request.ok()) {
        CheckTaken(*request, limits);
      } else {
        CheckRefused(request.status());
      }
    }
  }
  return 0;
}
