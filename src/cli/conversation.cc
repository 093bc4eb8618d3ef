// cli/conversation.cc
// The request body, behind cli/conversation.h.
#include "cli/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "api/json.h"
#include "api/json_writer.h"
#include "api/tool_fields.h"
#include "base/check.h"
#include "cli/format.h"
#include "cli/report.h"
#include "text/deepseek_v41_prompt.h"

namespace plumb::cli {
namespace {

void WriteCalls(api::JsonWriter& json, const std::vector<text::ToolCall>& calls) {
  json.Key("tool_calls").BeginArray();
  for (const text::ToolCall& call : calls) {
    json.BeginObject().Key("id").String(call.id).Key("type").String("function");
    json.Key("function").BeginObject().Key("name").String(call.name);
    json.Key("arguments").String(call.arguments).EndObject().EndObject();
  }
  json.EndArray();
}

void WriteMessage(api::JsonWriter& json, const text::ChatMessage& message) {
  json.BeginObject().Key("role").String(message.role).Key("content").String(message.content);
  if (!message.reasoning.empty()) json.Key("reasoning_content").String(message.reasoning);
  if (!message.tool_calls.empty()) WriteCalls(json, message.tool_calls);
  if (!message.tool_call_id.empty()) json.Key("tool_call_id").String(message.tool_call_id);
  json.EndObject();
}

}  // namespace

text::ChatMessage Conversation::NextMessage(std::string_view text) const {
  text::ChatMessage message{.role = "user", .content = std::string(text)};
  if (waiting_.empty()) return message;
  message.role = "tool";
  message.tool_call_id = waiting_.front().id;
  return message;
}

std::string Conversation::BodyFor(const std::string& model, std::string_view text) const {
  std::string body;
  api::JsonWriter json(body);
  json.BeginObject().Key("model").String(model).Key("stream").Bool(true);
  json.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject();
  json.Key("messages").BeginArray();
  if (!system_.empty()) WriteMessage(json, {.role = "system", .content = system_});
  for (const text::ChatMessage& message : history_) WriteMessage(json, message);
  WriteMessage(json, NextMessage(text));
  json.EndArray();
  const ChatSampling& s = sampling_;
  if (s.temperature) json.Key("temperature").Float(*s.temperature);
  if (s.top_p) json.Key("top_p").Float(*s.top_p);
  if (s.top_k) json.Key("top_k").Uint(*s.top_k);
  if (s.min_p) json.Key("min_p").Float(*s.min_p);
  if (s.repetition_penalty) json.Key("repetition_penalty").Float(*s.repetition_penalty);
  if (s.seed) json.Key("seed").Uint(*s.seed);
  if (s.thinking != "auto") {
    json.Key("thinking").BeginObject().Key("type");
    json.String(s.thinking == "on" ? "enabled" : "disabled").EndObject();
  }
  const bool number = s.effort.find_first_not_of("0123456789") == s.effort.npos;
  if (!s.effort.empty() && number) json.Key("reasoning_effort").Raw(s.effort);
  if (!s.effort.empty() && !number) json.Key("reasoning_effort").String(s.effort);
  if (!s.tools_json.empty()) json.Key("tools").Raw(s.tools_json);
  if (s.max_tokens > 0) json.Key("max_tokens").Uint(s.max_tokens);
  if (!s.stop.empty()) {
    json.Key("stop").BeginArray();
    for (const std::string& stop : s.stop) json.String(stop);
    json.EndArray();
  }
  json.EndObject();
  return body;
}

void Conversation::Add(std::string text, AnswerText answer) {
  history_.push_back(NextMessage(text));
  text::ChatMessage message{.role = "assistant", .content = std::move(answer.content)};
  message.reasoning = std::move(answer.reasoning);
  message.tool_calls = std::move(answer.calls);
  for (size_t i = 0; i < message.tool_calls.size(); ++i)
    message.tool_calls[i].id = fmt::format("call_{}_{}", history_.size(), i);
  waiting_ = message.tool_calls;
  history_.push_back(std::move(message));
}

void Conversation::AddResult(std::string text) {
  CHECK(!waiting_.empty()) << "no call waits for a result";
  history_.push_back(NextMessage(text));
  waiting_.erase(waiting_.begin());
}

base::Status CheckTools(std::string_view json) {
  constexpr const char* kField = "tools";
  // As it will stand in a body; nothing but this member may come of it.
  const auto body = api::ParseJson(fmt::format("{{\"{}\":{}}}", kField, json));
  if (!body.ok() || body->members.size() != 1) {
    return base::InvalidArgument(
        kField, "not valid JSON; a list as in the field tools of a chat request is taken");
  }
  const auto tools = api::ReadTools(body->members.front().value, kField);
  if (!tools.ok()) return NamingFlag(tools.status(), tools.status().field());
  if (tools->custom.empty()) return base::OkStatus();
  return base::InvalidArgument(
      kField,
      fmt::format("'{}' is a custom tool; here tools are functions, whose arguments are JSON",
                  Printable(tools->custom.front(), 60)));
}

base::Status CheckEffort(const std::string& effort) {
  if (effort.empty() || effort == "none" || text::DeepseekEffort(effort)) return base::OkStatus();
  return base::InvalidArgument(
      "--effort",
      fmt::format("--effort: '{}' is none of none, minimal, low, medium, high, xhigh, max, and no "
                  "number from 1 to 100",
                  Printable(effort, 60)));
}

}  // namespace plumb::cli
