// api/completion_request.cc
// The table of fields, top to bottom: what is honoured, what is ignored, what is refused.
#include "api/completion_request.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/common_fields.h"
#include "api/json_fields.h"
#include "api/response_format.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kInt32Max = INT32_MAX;

// What the fields add up to while the object is read.
struct Draft {
  const RequestLimits& limits;
  CompletionRequest request;
  CommonFields common;
  StreamOptions stream_options = {};
  std::optional<uint32_t> max_tokens;
  std::optional<uint32_t> best_of;
};

using FieldReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);
struct Field {
  std::string_view name;
  FieldReader read;
};

Status AddPrompt(const JsonValue& value, const std::string& path, JsonKind kind, Draft& draft) {
  if (value.kind != kind) {
    return InvalidArgument(path,
                           "prompt is one text, an array of texts, an array of token ids, or "
                           "an array of such arrays, all of one kind");
  }
  RawPrompt prompt;
  if (kind == JsonKind::kString) {
    prompt.text = value.text;
  } else {
    ASSIGN_OR_RETURN(prompt.tokens, ReadTokenIds(value, path, draft.limits.vocabulary_size));
  }
  draft.request.prompts.push_back(std::move(prompt));
  return base::OkStatus();
}

Status ReadPrompts(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind == JsonKind::kString) return AddPrompt(value, path, JsonKind::kString, draft);
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "a string or an array");
  if (value.items.empty()) return InvalidArgument(path, "prompt is an empty array");
  const JsonKind kind = value.items.front().kind;
  if (kind == JsonKind::kNumber) return AddPrompt(value, path, JsonKind::kArray, draft);
  RETURN_IF_ERROR(CheckArray(value, path, kCompletionPromptsMax));
  const JsonKind wanted = kind == JsonKind::kArray ? JsonKind::kArray : JsonKind::kString;
  for (size_t i = 0; i < value.items.size(); ++i)
    RETURN_IF_ERROR(AddPrompt(value.items[i], IndexPath(path, i), wanted, draft));
  return base::OkStatus();
}

Status ReadSuffix(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(auto suffix, ReadString(value, path, draft.limits.json.bytes_max));
  draft.request.suffix = std::move(suffix).value_or("");
  return base::OkStatus();
}

Status ReadMaxTokens(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {0, kInt32Max}));
  if (count) draft.max_tokens = static_cast<uint32_t>(*count);
  return base::OkStatus();
}

Status ReadChoices(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {1, engine::kSamplesMax}));
  if (count) draft.request.choices = static_cast<uint32_t>(*count);
  return base::OkStatus();
}

Status ReadBestOf(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {1, engine::kSamplesMax}));
  if (count) draft.best_of = static_cast<uint32_t>(*count);
  return base::OkStatus();
}

Status ReadLogprobs(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {0, kCompletionLogprobsMax}));
  draft.request.logprobs = count.has_value();
  draft.request.sampling.top_logprobs = static_cast<uint32_t>(count.value_or(0));
  return base::OkStatus();
}

Status ReadEcho(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto echo, ReadBool(value, path));
  draft.request.echo = echo.value_or(false);
  return base::OkStatus();
}

Status ReadFormat(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.request.grammar, ReadResponseFormat(value, path));
  return base::OkStatus();
}

constexpr Field kFields[] = {
    // Honoured.
    {"prompt", ReadPrompts},
    {"suffix", ReadSuffix},
    {"max_tokens", ReadMaxTokens},
    {"n", ReadChoices},
    {"best_of", ReadBestOf},
    {"logprobs", ReadLogprobs},
    {"echo", ReadEcho},
    {"stream_options", [](const JsonValue& v, const std::string& p,
                          Draft& d) { return ReadStreamOptions(v, p, d.stream_options); }},
    {"response_format", ReadFormat},
    // Checked and ignored: they do not change the answer.
    {"user", [](const JsonValue& v, const std::string& p, Draft&) { return CheckLabel(v, p); }},
    {"metadata",
     [](const JsonValue& v, const std::string& p, Draft&) { return CheckMetadata(v, p); }},
};

Status ReadMember(const JsonMember& member, Draft& draft) {
  const std::string path = MemberPath("", member.name);
  for (const Field& field : kFields)
    if (field.name == member.name) return field.read(member.value, path, draft);
  return ReadSharedField(member, path, draft.limits, draft.request, draft.common);
}

Status CheckSuffix(const CompletionRequest& request) {
  if (request.suffix.empty()) return base::OkStatus();
  if (request.echo) return InvalidArgument("echo", "echo is not taken together with suffix");
  const auto is_ids = [](const RawPrompt& prompt) { return !prompt.tokens.empty(); };
  if (std::ranges::any_of(request.prompts, is_ids))
    return InvalidArgument("prompt", "with suffix, prompt is a text or an array of texts");
  return base::OkStatus();
}

// What only several fields together can tell.
Status CheckTogether(Draft& draft) {
  CompletionRequest& request = draft.request;
  if (request.model.empty()) return InvalidArgument("model", "model is missing");
  if (request.prompts.empty()) return InvalidArgument("prompt", "prompt is missing");
  if (draft.stream_options.given && !request.stream)
    return InvalidArgument("stream_options", "stream_options is only taken with stream: true");
  RETURN_IF_ERROR(CheckSuffix(request));
  request.samples = draft.best_of.value_or(request.choices);
  if (request.samples < request.choices)
    return InvalidArgument("best_of", "best_of is at least n: the likeliest n of them are given");
  const bool chooses = request.samples > request.choices;
  if (chooses && request.stream)
    return InvalidArgument("best_of",
                           "best_of above n is not taken with stream: true: which "
                           "answers are the best is known at the end");
  request.sampling.logprobs = request.logprobs || chooses;
  request.prompt_logprobs = request.logprobs && request.echo;
  request.empty = draft.max_tokens == 0u;
  request.tokens_max = std::max(1u, draft.max_tokens.value_or(kCompletionTokensDefault));
  draft.request.include_usage = draft.stream_options.include_usage;
  draft.common.Apply(request);
  return base::OkStatus();
}

}  // namespace

Result<std::vector<base::TokenId>> ReadTokenIds(const JsonValue& value, const std::string& path,
                                                uint32_t vocabulary_size) {
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "an array of token ids");
  if (value.items.empty()) return InvalidArgument(path, fmt::format("{} has no tokens", path));
  const IntegerRange range{0, static_cast<int64_t>(vocabulary_size) - 1};
  std::vector<base::TokenId> tokens;
  tokens.reserve(value.items.size());
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string item_path = IndexPath(path, i);
    ASSIGN_OR_RETURN(const auto id, ReadInteger(value.items[i], item_path, range));
    if (!id) return WrongKind(value.items[i], item_path, "an integer");
    tokens.push_back(base::TokenId{static_cast<uint32_t>(*id)});
  }
  return tokens;
}

Result<CompletionRequest> ParseCompletionRequest(std::string_view body,
                                                 const RequestLimits& limits) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits.json));
  Draft draft{.limits = limits, .request = {}, .common = {}, .max_tokens = {}, .best_of = {}};
  for (const JsonMember& member : root.members) RETURN_IF_ERROR(ReadMember(member, draft));
  RETURN_IF_ERROR(CheckTogether(draft));
  return std::move(draft.request);
}

std::vector<std::string_view> CompletionFieldNames() {
  std::vector<std::string_view> names;
  AppendFieldNames(kFields, names);
  AppendSharedFieldNames(names);
  return names;
}

}  // namespace plumb::api
