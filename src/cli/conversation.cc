// cli/conversation.cc
// The request body, behind cli/conversation.h.
#include "cli/conversation.h"

#include "api/json_writer.h"

namespace plumb::cli {
namespace {

void WriteMessage(api::JsonWriter& json, std::string_view role, std::string_view content) {
  json.BeginObject().Key("role").String(role).Key("content").String(content).EndObject();
}

}  // namespace

std::string Conversation::BodyFor(const std::string& model, std::string_view user) const {
  std::string body;
  api::JsonWriter json(body);
  json.BeginObject().Key("model").String(model).Key("stream").Bool(true);
  json.Key("stream_options").BeginObject().Key("include_usage").Bool(true).EndObject();
  json.Key("messages").BeginArray();
  if (!system_.empty()) WriteMessage(json, "system", system_);
  for (const text::ChatMessage& message : history_) {
    WriteMessage(json, message.role, message.content);
  }
  WriteMessage(json, "user", user);
  json.EndArray();
  const ChatSampling& s = sampling_;
  if (s.temperature) json.Key("temperature").Float(*s.temperature);
  if (s.top_p) json.Key("top_p").Float(*s.top_p);
  if (s.top_k) json.Key("top_k").Uint(*s.top_k);
  if (s.min_p) json.Key("min_p").Float(*s.min_p);
  if (s.repetition_penalty) json.Key("repetition_penalty").Float(*s.repetition_penalty);
  if (s.seed) json.Key("seed").Uint(*s.seed);
  if (s.max_tokens > 0) json.Key("max_tokens").Uint(s.max_tokens);
  if (!s.stop.empty()) {
    json.Key("stop").BeginArray();
    for (const std::string& stop : s.stop) json.String(stop);
    json.EndArray();
  }
  json.EndObject();
  return body;
}

void Conversation::Add(std::string user, std::string answer) {
  history_.push_back({.role = "user", .content = std::move(user), .name = ""});
  history_.push_back({.role = "assistant", .content = std::move(answer), .name = ""});
}

}  // namespace plumb::cli
