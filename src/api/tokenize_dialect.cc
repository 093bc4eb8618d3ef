// api/tokenize_dialect.cc
// The fields of both, then their answers.
#include "api/tokenize_dialect.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/completion_request.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/legacy_logprobs.h"
#include "api/message_fields.h"
#include "api/tool_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kModelBytesMax = 256;

Status Unknown(const std::string& path) {
  return InvalidArgument(path, fmt::format("{} is not a field that this server knows here; "
                                           "leave it out",
                                           path));
}

Status ReadModel(const JsonValue& value, const std::string& path, std::string& out) {
  ASSIGN_OR_RETURN(auto model, ReadString(value, path, kModelBytesMax));
  if (!model) return base::OkStatus();
  if (model->empty()) return InvalidArgument(path, "model is empty");
  out = *std::move(model);
  return base::OkStatus();
}

}  // namespace

struct TokenizeDialect::Draft {
  GenerationRequest request;
  std::optional<std::string> prompt;
  std::optional<bool> add_special_tokens;
  bool strings = false;
};

Status TokenizeDialect::ReadMember(const JsonMember& member, Draft& draft) const {
  const std::string path = MemberPath("", member.name);
  const JsonValue& value = member.value;
  text::ChatInput& input = draft.request.input;
  if (member.name == "model") return ReadModel(value, path, draft.request.model);
  if (member.name == "prompt") {
    ASSIGN_OR_RETURN(draft.prompt, ReadString(value, path, limits_.json.bytes_max));
  } else if (member.name == "messages") {
    if (value.is_null()) return base::OkStatus();
    const MessageLimits limits{limits_.messages_max, limits_.content_parts_max, limits_.abilities};
    ASSIGN_OR_RETURN(input.messages, ReadMessages(value, path, limits));
  } else if (member.name == "tools" && limits_.abilities.tools) {
    ASSIGN_OR_RETURN(input.tools, ReadTools(value, path));
  } else if (member.name == "reasoning_effort" && limits_.abilities.reasoning) {
    ASSIGN_OR_RETURN(input.effort, ReadEffort(value, path));
  } else if (member.name == "thinking" && limits_.abilities.reasoning) {
    ASSIGN_OR_RETURN(input.thinking, ReadThinking(value, path));
  } else if (member.name == "add_special_tokens") {
    ASSIGN_OR_RETURN(draft.add_special_tokens, ReadBool(value, path));
  } else if (member.name == "return_token_strs") {
    ASSIGN_OR_RETURN(const auto strings, ReadBool(value, path));
    draft.strings = strings.value_or(false);
  } else if (member.name == "add_generation_prompt") {
    ASSIGN_OR_RETURN(const auto open, ReadBool(value, path));
    if (!open.value_or(true))
      return InvalidArgument(path,
                             "a conversation is tokenised as it is asked, with where the "
                             "answer begins; leave it out or true");
  } else {
    return Unknown(path);
  }
  return base::OkStatus();
}

std::string TokenizeDialect::Answer(std::span<const base::TokenId> tokens, bool strings) const {
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("count").Uint(tokens.size());
  json.Key("max_model_len").Uint(context_max_).Key("tokens").BeginArray();
  for (const base::TokenId token : tokens) json.Uint(base::Index(token));
  json.EndArray().Key("token_strs");
  if (strings) {
    json.BeginArray();
    for (const base::TokenId token : tokens) json.String(tokenizer_.TokenName(token));
    json.EndArray();
  } else {
    json.Null();
  }
  json.EndObject();
  return out;
}

Result<ReadBody> TokenizeDialect::Read(std::string_view body, const BodyOrigin&) const {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits_.json));
  Draft draft{};
  for (const JsonMember& member : root.members) RETURN_IF_ERROR(ReadMember(member, draft));
  const bool chat = !draft.request.input.messages.empty();
  if (chat == draft.prompt.has_value())
    return InvalidArgument("prompt", "give either prompt, a text, or messages");
  if (chat && draft.add_special_tokens.value_or(false)) {
    return InvalidArgument("add_special_tokens",
                           "the chat format writes what stands around a conversation; leave it "
                           "out or false");
  }
  ReadBody read;
  if (chat) {
    read.count = [this, strings = draft.strings](const std::vector<ReadPrompt>& prompts) {
      return Answer(prompts.front().tokens, strings);
    };
  } else {
    auto tokens = tokenizer_.Encode(*draft.prompt, text::ControlTokens::kParse,
                                    draft.add_special_tokens.value_or(true));
    if (!tokens.ok()) return std::move(tokens).status().WithField("prompt");
    read.answer = Answer(*tokens, draft.strings);
  }
  read.request = std::move(draft.request);
  return read;
}

Result<ReadBody> DetokenizeDialect::Read(std::string_view body, const BodyOrigin&) const {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits_.json));
  ReadBody read;
  std::optional<std::vector<base::TokenId>> tokens;
  for (const JsonMember& member : root.members) {
    const std::string path = MemberPath("", member.name);
    if (member.name == "model") {
      RETURN_IF_ERROR(ReadModel(member.value, path, read.request.model));
    } else if (member.name != "tokens") {
      return Unknown(path);
    } else if (member.value.kind == JsonKind::kArray && member.value.items.empty()) {
      tokens.emplace();
    } else {
      ASSIGN_OR_RETURN(tokens, ReadTokenIds(member.value, path, limits_.vocabulary_size));
    }
  }
  if (!tokens) return InvalidArgument("tokens", "tokens is missing");
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("prompt").String(SpellTokens(*tokens, tokenizer_)).EndObject();
  read.answer = std::move(out);
  return read;
}

}  // namespace plumb::api
