// api/tokenize_dialect.cc
// The fields of both, then their answers.
#include "api/tokenize_dialect.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/common_fields.h"
#include "api/completion_request.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/legacy_logprobs.h"
#include "api/message_fields.h"
#include "api/reasoning_fields.h"
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

// What the fields add up to while a body is read.
struct Draft {
  const RequestLimits& limits;
  GenerationRequest request;
  std::optional<std::string> prompt;
  std::optional<std::vector<base::TokenId>> tokens;  // of /v1/detokenize
  std::optional<bool> add_special_tokens;
  bool strings = false;
};

using FieldReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);
struct Field {
  std::string_view name;
  FieldReader read;
};

Status ReadModelName(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadModel(value, path, draft.request.model);
}

Status ReadPromptText(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.prompt, ReadString(value, path, draft.limits.json.bytes_max));
  return base::OkStatus();
}

Status ReadMessageList(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  const MessageLimits limits{draft.limits.messages_max, draft.limits.content_parts_max,
                             draft.limits.abilities};
  ASSIGN_OR_RETURN(draft.request.input.messages, ReadMessages(value, path, limits));
  return base::OkStatus();
}

Status ReadToolList(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.tools) return Unknown(path);
  ASSIGN_OR_RETURN(ChatTools tools, ReadTools(value, path));
  draft.request.input.tools = std::move(tools.specs);
  return base::OkStatus();
}

Status ReadReasoningEffort(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.reasoning) return Unknown(path);
  ASSIGN_OR_RETURN(draft.request.input.effort, ReadEffort(value, path));
  return base::OkStatus();
}

Status ReadThinkingMode(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.reasoning) return Unknown(path);
  return ReadThinking(value, path, draft.request.input);
}

Status ReadSpecialTokens(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.add_special_tokens, ReadBool(value, path));
  return base::OkStatus();
}

Status ReadStrings(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto strings, ReadBool(value, path));
  draft.strings = strings.value_or(false);
  return base::OkStatus();
}

Status ReadGenerationPrompt(const JsonValue& value, const std::string& path, Draft&) {
  ASSIGN_OR_RETURN(const auto open, ReadBool(value, path));
  if (open.value_or(true)) return base::OkStatus();
  return InvalidArgument(path,
                         "a conversation is tokenised as it is asked, with where the answer "
                         "begins; leave it out or true");
}

Status ReadTokens(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.kind == JsonKind::kArray && value.items.empty()) {
    draft.tokens.emplace();
    return base::OkStatus();
  }
  ASSIGN_OR_RETURN(draft.tokens, ReadTokenIds(value, path, draft.limits.vocabulary_size));
  return base::OkStatus();
}

constexpr Field kTokenizeFields[] = {
    {"model", ReadModelName},
    {"prompt", ReadPromptText},
    {"messages", ReadMessageList},
    {"add_special_tokens", ReadSpecialTokens},
    {"return_token_strs", ReadStrings},
    {"add_generation_prompt", ReadGenerationPrompt},
    // Where the model's chat format takes them.
    {"tools", ReadToolList},
    {"reasoning_effort", ReadReasoningEffort},
    {"thinking", ReadThinkingMode},
};
constexpr Field kDetokenizeFields[] = {{"model", ReadModelName}, {"tokens", ReadTokens}};

Result<Draft> ReadFields(std::string_view body, const RequestLimits& limits,
                         std::span<const Field> fields) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits.json));
  Draft draft{.limits = limits};
  for (const JsonMember& member : root.members) {
    const std::string path = MemberPath("", member.name);
    const auto field = std::ranges::find(fields, member.name, &Field::name);
    if (field == fields.end()) return Unknown(path);
    RETURN_IF_ERROR(field->read(member.value, path, draft));
  }
  return draft;
}

}  // namespace

std::vector<std::string_view> TokenizeFieldNames() {
  std::vector<std::string_view> names;
  AppendFieldNames(kTokenizeFields, names);
  return names;
}

std::vector<std::string_view> DetokenizeFieldNames() {
  std::vector<std::string_view> names;
  AppendFieldNames(kDetokenizeFields, names);
  return names;
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
  ASSIGN_OR_RETURN(Draft draft, ReadFields(body, limits_, kTokenizeFields));
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
  ASSIGN_OR_RETURN(Draft draft, ReadFields(body, limits_, kDetokenizeFields));
  if (!draft.tokens) return InvalidArgument("tokens", "tokens is missing");
  ReadBody read;
  read.request = std::move(draft.request);
  std::string out;
  JsonWriter json(out);
  json.BeginObject().Key("prompt").String(SpellTokens(*draft.tokens, tokenizer_)).EndObject();
  read.answer = std::move(out);
  return read;
}

}  // namespace plumb::api
