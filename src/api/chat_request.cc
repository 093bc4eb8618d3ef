// api/chat_request.cc
// The table of fields, top to bottom: what is honoured, what is ignored and why, what is refused.
#include "api/chat_request.h"

#include <fmt/format.h>

#include "api/common_fields.h"
#include "api/json_fields.h"
#include "api/message_fields.h"
#include "api/reasoning_fields.h"
#include "api/response_format.h"
#include "api/retention_fields.h"
#include "api/tool_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kInt32Max = INT32_MAX;

// What the fields add up to while the object is read.
struct Draft {
  const RequestLimits& limits;
  ChatRequest request;
  std::optional<uint32_t> max_tokens;
  std::optional<uint32_t> max_completion_tokens;
  std::optional<uint32_t> thinking_budget = {};
  StreamOptions stream_options = {};
  bool top_logprobs_given = false;
  ChatTools tools = {};
  const JsonValue* tool_choice = nullptr;
  CommonFields common = {};
};

using FieldReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);
struct Field {
  std::string_view name;
  FieldReader read;
};

Status ReadMessageList(const JsonValue& value, const std::string& path, Draft& draft) {
  const MessageLimits limits{draft.limits.messages_max, draft.limits.content_parts_max,
                             draft.limits.abilities};
  ASSIGN_OR_RETURN(draft.request.input.messages, ReadMessages(value, path, limits));
  return base::OkStatus();
}

Status ReadCount(const JsonValue& value, const std::string& path, std::optional<uint32_t>& out) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {1, kInt32Max}));
  if (count) out = static_cast<uint32_t>(*count);
  return base::OkStatus();
}

Status ReadSamples(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto samples, ReadInteger(value, path, {1, engine::kSamplesMax}));
  if (samples) draft.request.samples = static_cast<uint32_t>(*samples);
  return base::OkStatus();
}

Status ReadLogprobs(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto logprobs, ReadBool(value, path));
  draft.request.sampling.logprobs = logprobs.value_or(false);
  return base::OkStatus();
}

Status ReadTopLogprobs(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {0, engine::kTopLogprobsMax}));
  draft.top_logprobs_given = count.has_value();
  draft.request.sampling.top_logprobs = static_cast<uint32_t>(count.value_or(0));
  return base::OkStatus();
}

// Labels for the caller's own books: checked, then dropped.
Status IgnoreLabel(const JsonValue& value, const std::string& path, Draft&) {
  return CheckLabel(value, path);
}

// How long it is worth keeping what is computed of the prompt.
Status ReadRetention(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto mark, ReadPromptRetention(value, path));
  if (mark) draft.request.cache_marks = {*mark};
  return base::OkStatus();
}

Status IgnoreMetadata(const JsonValue& value, const std::string& path, Draft&) {
  return CheckMetadata(value, path);
}

// Without tools there is nothing to do in parallel.
Status ReadParallel(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto parallel, ReadBool(value, path));
  draft.request.input.parallel_tool_calls = parallel.value_or(true);
  return base::OkStatus();
}

// A hint for speed (predicted outputs): it never changes the answer.
Status IgnoreObject(const JsonValue& value, const std::string& path, Draft&) {
  return CheckObject(value, path, SIZE_MAX);
}

Status Refuse(const std::string& path, std::string_view what) {
  return InvalidArgument(path, fmt::format("{} is not supported: {}", path, what));
}

Status RefuseUnlessEmpty(const JsonValue& value, const std::string& path, Draft&) {
  const bool empty = value.is_null() || (value.kind == JsonKind::kArray && value.items.empty());
  if (empty) return base::OkStatus();
  return Refuse(path, "this model calls no tools that way; leave it out");
}

Status RefuseToolChoice(const JsonValue& value, const std::string& path, Draft&) {
  const bool harmless = value.is_null() || (value.kind == JsonKind::kString &&
                                            (value.text == "none" || value.text == "auto"));
  if (harmless) return base::OkStatus();
  return Refuse(path, "this model calls no tools that way; only \"none\" and \"auto\" are taken");
}

Status ReadFormat(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.request.grammar, ReadResponseFormat(value, path));
  return base::OkStatus();
}

Status RefuseModalities(const JsonValue& value, const std::string& path, Draft&) {
  const bool text = value.is_null() ||
                    (value.kind == JsonKind::kArray && value.items.size() == 1 &&
                     value.items[0].kind == JsonKind::kString && value.items[0].text == "text");
  if (text) return base::OkStatus();
  return Refuse(path, "only [\"text\"] is taken");
}

Status RefuseTrue(const JsonValue& value, const std::string& path, Draft&) {
  ASSIGN_OR_RETURN(const auto flag, ReadBool(value, path));
  return flag.value_or(false) ? Refuse(path, "leave it out or false") : base::OkStatus();
}

Status RefuseUnlessNull(const JsonValue& value, const std::string& path, Draft&) {
  return value.is_null() ? base::OkStatus() : Refuse(path, "leave it out");
}

// OpenAI's default, which every answer here has.
Status RefuseVerbosity(const JsonValue& value, const std::string& path, Draft&) {
  const bool medium = value.kind == JsonKind::kString && value.text == "medium";
  if (value.is_null() || medium) return base::OkStatus();
  return Refuse(path, "no model here knows another than \"medium\"");
}

// Where the chat format does not reason: asking for no reasoning asks for nothing.
Status RefuseReasoning(const JsonValue& value, const std::string& path, std::string_view none) {
  const bool harmless = value.is_null() || (value.kind == JsonKind::kString && value.text == none);
  if (harmless) return base::OkStatus();
  return Refuse(path, "this model does not reason that way; leave it out");
}

Status ReadToolList(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.tools) return RefuseUnlessEmpty(value, path, draft);
  ASSIGN_OR_RETURN(draft.tools, ReadTools(value, path));
  return base::OkStatus();
}

// Read when the tools are known.
Status KeepToolChoice(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.tools) return RefuseToolChoice(value, path, draft);
  draft.tool_choice = &value;
  return base::OkStatus();
}

Status ReadReasoningEffort(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.reasoning) return RefuseReasoning(value, path, "none");
  ASSIGN_OR_RETURN(draft.request.input.effort, ReadEffort(value, path));
  return base::OkStatus();
}

Status ReadThinkingMode(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.reasoning) {
    const JsonValue* type = value.Find("type");
    if (type == nullptr || value.members.size() > 1) return RefuseUnlessNull(value, path, draft);
    return RefuseReasoning(*type, path, "disabled");
  }
  return ReadThinking(value, path, draft.request.input);
}

// As others call it what thinking.budget_tokens says.
Status ReadThinkingBudget(const JsonValue& value, const std::string& path, Draft& draft) {
  if (!draft.limits.abilities.reasoning) return RefuseUnlessNull(value, path, draft);
  ASSIGN_OR_RETURN(const auto budget, ReadInteger(value, path, {1, kInt32Max}));
  if (!budget) return base::OkStatus();
  const auto tokens = static_cast<uint32_t>(*budget);
  if (draft.thinking_budget.value_or(tokens) != tokens)
    return InvalidArgument(path,
                           "thinking_budget and max_thinking_tokens differ; give one of them");
  draft.thinking_budget = tokens;
  return base::OkStatus();
}

constexpr Field kFields[] = {
    // Honoured. The extensions of api/common_fields.h are, too.
    {"messages", ReadMessageList},
    {"max_tokens", [](const JsonValue& v, const std::string& p,
                      Draft& d) { return ReadCount(v, p, d.max_tokens); }},
    {"max_completion_tokens", [](const JsonValue& v, const std::string& p,
                                 Draft& d) { return ReadCount(v, p, d.max_completion_tokens); }},
    {"n", ReadSamples},
    {"stream_options", [](const JsonValue& v, const std::string& p,
                          Draft& d) { return ReadStreamOptions(v, p, d.stream_options); }},
    {"logprobs", ReadLogprobs},
    {"top_logprobs", ReadTopLogprobs},
    {"response_format", ReadFormat},
    {"parallel_tool_calls", ReadParallel},
    {"prompt_cache_retention", ReadRetention},
    // Honoured where the model's chat format takes them, else refused unless they ask for nothing.
    {"tools", ReadToolList},
    {"tool_choice", KeepToolChoice},
    {"reasoning_effort", ReadReasoningEffort},
    {"thinking", ReadThinkingMode},
    {"thinking_budget", ReadThinkingBudget},
    {"max_thinking_tokens", ReadThinkingBudget},
    // Checked and ignored: they do not change the answer.
    {"user", IgnoreLabel},
    {"safety_identifier", IgnoreLabel},
    {"prompt_cache_key", IgnoreLabel},
    {"metadata", IgnoreMetadata},
    {"prediction", IgnoreObject},
    // Refused unless they ask for nothing.
    {"functions", RefuseUnlessEmpty},
    {"function_call", RefuseToolChoice},
    {"modalities", RefuseModalities},
    {"store", RefuseTrue},
    {"audio", RefuseUnlessNull},
    {"verbosity", RefuseVerbosity},
    {"web_search_options", RefuseUnlessNull},
};

Status ReadMember(const JsonMember& member, Draft& draft) {
  const std::string path = MemberPath("", member.name);
  for (const Field& field : kFields)
    if (field.name == member.name) return field.read(member.value, path, draft);
  return ReadSharedField(member, path, draft.limits, draft.request, draft.common);
}

// What only several fields together can tell.
Status CheckTogether(Draft& draft) {
  const ChatRequest& request = draft.request;
  if (request.model.empty()) return InvalidArgument("model", "model is missing");
  if (request.input.messages.empty()) return InvalidArgument("messages", "messages is missing");
  if (draft.stream_options.given && !request.stream)
    return InvalidArgument("stream_options", "stream_options is only taken with stream: true");
  if (draft.top_logprobs_given && request.sampling.top_logprobs > 0 && !request.sampling.logprobs)
    return InvalidArgument("top_logprobs", "top_logprobs is only taken with logprobs: true");
  const bool both = draft.max_tokens && draft.max_completion_tokens;
  if (both && *draft.max_tokens != *draft.max_completion_tokens) {
    return InvalidArgument("max_tokens",
                           "max_tokens and max_completion_tokens differ; give one of them");
  }
  text::ChatInput& input = draft.request.input;
  if (draft.thinking_budget &&
      input.reasoning_tokens_max.value_or(*draft.thinking_budget) != *draft.thinking_budget) {
    return InvalidArgument("thinking_budget",
                           "thinking_budget and thinking.budget_tokens differ; give one of them");
  }
  if (draft.thinking_budget) input.reasoning_tokens_max = draft.thinking_budget;
  input.tools = std::move(draft.tools.specs);
  draft.request.custom_tools = std::move(draft.tools.custom);
  if (draft.tool_choice != nullptr) {
    RETURN_IF_ERROR(
        ReadToolChoice(*draft.tool_choice, "tool_choice", draft.request.custom_tools, input));
  }
  draft.request.include_usage = draft.stream_options.include_usage;
  draft.common.Apply(draft.request);
  draft.request.tokens_max = draft.max_tokens ? draft.max_tokens : draft.max_completion_tokens;
  draft.request.input.response_schema = SchemaToTell(request.grammar);
  return base::OkStatus();
}

}  // namespace

Result<ChatRequest> ParseChatRequest(std::string_view body, const RequestLimits& limits) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits.json));
  Draft draft{.limits = limits, .request = {}};
  for (const JsonMember& member : root.members) RETURN_IF_ERROR(ReadMember(member, draft));
  RETURN_IF_ERROR(CheckTogether(draft));
  return std::move(draft.request);
}

std::vector<std::string_view> ChatFieldNames() {
  std::vector<std::string_view> names;
  AppendFieldNames(kFields, names);
  AppendSharedFieldNames(names);
  return names;
}

}  // namespace plumb::api
