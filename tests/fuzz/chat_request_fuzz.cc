// tests/fuzz/chat_request_fuzz.cc
// Arbitrary bytes as the body of a chat request. Besides not crashing: what our reader of JSON
// takes, another one takes too and reads the same; what it refuses for being no JSON, the other
// refuses; and a request that parses is within every range that the engine relies on.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "api/chat_request.h"
#include "api/custom_tools.h"
#include "api/json.h"
#include "api/tool_fields.h"
#include "base/check.h"
#include "refusal.h"

namespace {

using plumb::api::ChatRequest;
using plumb::api::JsonKind;
using plumb::api::JsonValue;
using plumb::api::kToolsMax;
using plumb::api::RequestLimits;
using plumb::text::ToolChoice;

constexpr uint32_t kVocabulary = 1000;
const RequestLimits kLimits{.vocabulary_size = kVocabulary,
                            .abilities = {.tools = true, .reasoning = true, .guides = true}};
const RequestLimits kPlainLimits{.vocabulary_size = kVocabulary};

void CheckSame(const JsonValue& ours, const nlohmann::json& other) {
  switch (ours.kind) {
    case JsonKind::kNull:
      CHECK(other.is_null());
      return;
    case JsonKind::kBool:
      CHECK(other.is_boolean() && other.get<bool>() == ours.boolean);
      return;
    case JsonKind::kNumber:
      CHECK(other.is_number());
      return;
    case JsonKind::kString:
      CHECK(other.is_string() && other.get_ref<const std::string&>() == ours.text);
      return;
    case JsonKind::kArray:
      CHECK(other.is_array() && other.size() == ours.items.size());
      for (size_t i = 0; i < ours.items.size(); ++i) CheckSame(ours.items[i], other[i]);
      return;
    case JsonKind::kObject:
      CHECK(other.is_object() && other.size() == ours.members.size());
      for (const auto& member : ours.members) {
        CHECK(other.contains(member.name));
        CheckSame(member.value, other[member.name]);
      }
      return;
  }
}

// The other reader refuses numbers beyond a double's range, which ours keeps as written.
bool HasHugeNumber(const JsonValue& value) {
  if (value.kind == JsonKind::kNumber)
    return !std::isfinite(std::strtod(value.text.c_str(), nullptr));
  for (const JsonValue& item : value.items)
    if (HasHugeNumber(item)) return true;
  for (const auto& member : value.members)
    if (HasHugeNumber(member.value)) return true;
  return false;
}

// Ours refuses more than the other: names twice, depth, nodes, lone surrogates written as escapes.
bool IsStricter(std::string_view message) {
  return message.find("twice") != message.npos || message.find("deeper") != message.npos ||
         message.find("more than") != message.npos || message.find("JSON object") != message.npos;
}

void CheckJson(std::string_view body) {
  const auto ours = plumb::api::ParseJson(body);
  if (ours.ok() && HasHugeNumber(*ours)) return;
  const auto other = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (ours.ok()) {
    CHECK(!other.is_discarded()) << body;
    CheckSame(*ours, other);
  } else if (!IsStricter(ours.status().message())) {
    // The other reader skips a byte order mark, and takes a NUL for the end.
    const bool lenient = body.starts_with("\xEF\xBB\xBF") || body.find('\0') != body.npos;
    CHECK(lenient || other.is_discarded()) << ours.status().ToString() << "\n" << body;
  }
}

void CheckRanges(const ChatRequest& request) {
  const plumb::engine::SamplingParams& sampling = request.sampling;
  CHECK(!request.model.empty() && !request.input.messages.empty());
  CHECK(request.samples >= 1 && request.samples <= plumb::engine::kSamplesMax);
  CHECK(!request.tokens_max || (*request.tokens_max >= 1 && *request.tokens_max <= INT32_MAX));
  CHECK(sampling.temperature >= 0 && sampling.temperature <= 2);
  CHECK(sampling.top_p > 0 && sampling.top_p <= 1);
  CHECK(sampling.min_p >= 0 && sampling.min_p <= 1);
  CHECK(std::abs(sampling.presence_penalty) <= 2 && std::abs(sampling.frequency_penalty) <= 2);
  CHECK(sampling.repetition_penalty > 0 && sampling.repetition_penalty <= 2);
  CHECK(sampling.top_logprobs <= plumb::engine::kTopLogprobsMax);
  CHECK(sampling.logit_bias.size() <= plumb::engine::kLogitBiasMax);
  CHECK(sampling.stop.size() <= plumb::engine::kStopStringsMax);
  CHECK(sampling.stop_tokens.size() <= plumb::engine::kStopTokensMax);
  for (const auto& bias : sampling.logit_bias)
    CHECK(plumb::base::Index(bias.token) < kVocabulary && std::abs(bias.bias) <= 100);
  for (const auto token : sampling.stop_tokens) CHECK(plumb::base::Index(token) < kVocabulary);
  for (const std::string& stop : sampling.stop) CHECK(!stop.empty());
}

// Each tool has a name of its own, and one that must be called is there.
void CheckTools(const ChatRequest& request) {
  const auto& tools = request.input.tools;
  std::set<std::string_view> names;
  for (const auto& tool : tools) CHECK(!tool.name.empty() && names.insert(tool.name).second);
  const std::set<std::string_view> custom(request.custom_tools.begin(), request.custom_tools.end());
  CHECK(custom.size() == request.custom_tools.size() && tools.size() <= kToolsMax);
  if (request.input.tool_choice == ToolChoice::kNamed)
    CHECK(names.contains(request.input.tool_name)) << request.input.tool_name;
  for (const auto& tool : tools) {
    CHECK(nlohmann::json::parse(tool.parameters, nullptr, false).is_object()) << tool.parameters;
    CHECK(!custom.contains(tool.name) || tool.parameters == plumb::api::kCustomParameters);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  CheckJson(body);
  for (const RequestLimits& limits : {kLimits, kPlainLimits}) {
    const auto request = plumb::api::ParseChatRequest(body, limits);
    if (request.ok()) {
      CheckRanges(*request);
      CheckTools(*request);
    } else {
      plumb::fuzz::CheckRefusal(request.status());
    }
  }
  return 0;
}
