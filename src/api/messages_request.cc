// api/messages_request.cc
// The table of fields, top to bottom: what is honoured, what is ignored and why, what is refused.
#include "api/messages_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/common_fields.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/messages_blocks.h"
#include "api/messages_content.h"
#include "api/messages_tools.h"
#include "api/reasoning_fields.h"
#include "api/retention_fields.h"
#include "api/sampling_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kModelBytesMax = 256;
constexpr size_t kWordBytesMax = 64;
constexpr size_t kEditsMax = 16;
constexpr int64_t kBudgetMin = 1024;
constexpr int64_t kInt32Max = INT32_MAX;

// What the fields add up to while the object is read.
struct Draft {
  const RequestLimits& limits;
  MessagesRequest request;
  CommonFields common;
  std::string system;
  std::vector<CacheMark> system_marks;
  std::optional<base::Duration> prompt_mark;  // cache_control beside the messages
  bool messages_given = false;
  MessagesContent content;
  std::vector<DeclaredTool> tools;
  std::optional<uint32_t> budget;  // thinking.budget_tokens
};

using FieldReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);
struct Field {
  std::string_view name;
  FieldReader read;
};

Status Unknown(const std::string& path) {
  return InvalidArgument(path, "this field is not known here");
}

Status ReadModel(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(auto model, ReadString(value, path, kModelBytesMax));
  draft.request.model = model.value_or("");
  return base::OkStatus();
}

Status ReadMessageList(const JsonValue& value, const std::string& path, Draft& draft) {
  draft.messages_given = true;
  ASSIGN_OR_RETURN(draft.content, ReadMessagesContent(value, path, draft.limits));
  return base::OkStatus();
}

Status ReadSystem(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.system, ReadMessagesSystem(value, path, draft.limits, draft.system_marks));
  return base::OkStatus();
}

// 0 asks for the prompt to be computed and kept, and for no answer; the engine generates one token
// at least, which is then thrown away.
Status ReadMaxTokens(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {0, kInt32Max}));
  if (!count) return base::OkStatus();
  draft.request.warm_only = *count == 0;
  draft.request.tokens_max = static_cast<uint32_t>(std::max<int64_t>(1, *count));
  return base::OkStatus();
}

Status ReadStream(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto stream, ReadBool(value, path));
  draft.request.stream = stream.value_or(false);
  return base::OkStatus();
}

// As `stop` of other dialects, but an array always.
Status ReadStops(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckArray(value, path, engine::kStopStringsMax));
  const JsonMember stop{.name = "stop", .value = value};
  return ToStatus(
      ReadSamplingField(stop, path, {draft.limits.vocabulary_size}, draft.request.sampling));
}

// temperature, top_p, top_k.
Status ReadSampling(std::string_view name, const JsonValue& value, const std::string& path,
                    Draft& draft) {
  if (name == "temperature") RETURN_IF_ERROR(ToStatus(ReadNumber(value, path, {0, 1})));
  const JsonMember member{.name = std::string(name), .value = value};
  return ToStatus(
      ReadSamplingField(member, path, {draft.limits.vocabulary_size}, draft.request.sampling));
}

Status ReadToolList(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.tools, ReadMessagesTools(value, path));
  if (draft.tools.empty() || draft.limits.abilities.tools) return base::OkStatus();
  return InvalidArgument(path, "this model calls no tools; leave them out");
}

Status ReadToolChoice(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadMessagesToolChoice(value, path, draft.request.input);
}

// Who may see it, and how much there may be of it. A model without reasoning answers as it does
// without: it has no thoughts to show and uses up no budget.
Status ReadThinking(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  std::string type;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "type") {
      ASSIGN_OR_RETURN(type, RequireString(member.value, member_path, kWordBytesMax));
    } else if (member.name == "budget_tokens") {
      ASSIGN_OR_RETURN(const auto budget,
                       ReadInteger(member.value, member_path, {kBudgetMin, kInt32Max}));
      if (budget) draft.budget = static_cast<uint32_t>(*budget);
    } else if (member.name == "display") {
      ASSIGN_OR_RETURN(const std::string_view word,
                       ReadWord(member.value, member_path, {"summarized", "omitted"}));
      draft.request.show_thinking = word != "omitted";
    } else {
      return Unknown(member_path);
    }
  }
  const std::string type_path = MemberPath(path, "type");
  const std::string budget_path = MemberPath(path, "budget_tokens");
  if (type != "enabled" && type != "disabled" && type != "adaptive") {
    return InvalidArgument(type_path, "type is \"enabled\", \"disabled\" or \"adaptive\"");
  }
  if (type == "enabled" && !draft.budget)
    return InvalidArgument(budget_path, "a budget is needed with \"enabled\"");
  if (type != "enabled" && draft.budget)
    return InvalidArgument(budget_path, "a budget is for \"enabled\" alone");
  draft.request.input.thinking = std::nullopt;  // adaptive: as the model usually does
  if (type != "adaptive") draft.request.input.thinking = type == "enabled";
  return base::OkStatus();
}

// {"type": "json_schema", "schema": {...}}; `name` and its kin of earlier versions are for people.
Status ReadFormat(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
  text::GrammarSpec spec{.kind = text::GrammarKind::kJsonSchema};
  std::string type;
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "type") {
      ASSIGN_OR_RETURN(type, RequireString(member.value, member_path, kWordBytesMax));
    } else if (member.name == "name") {
      RETURN_IF_ERROR(ToStatus(ReadString(member.value, member_path, kModelBytesMax)));
    } else if (member.name == "schema") {
      if (member.value.kind != JsonKind::kObject)
        return WrongKind(member.value, member_path, "a JSON Schema, an object");
      AppendJson(spec.source, member.value);
    } else {
      return Unknown(member_path);
    }
  }
  if (type != "json_schema")
    return InvalidArgument(MemberPath(path, "type"), "type is \"json_schema\"");
  if (spec.source.empty()) return InvalidArgument(MemberPath(path, "schema"), "schema is missing");
  draft.request.grammar = std::move(spec);
  return base::OkStatus();
}

Status ReadOutputConfig(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckObject(value, path, 8));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "effort") {
      ASSIGN_OR_RETURN(draft.request.input.effort, ReadEffort(member.value, member_path));
    } else if (member.name == "format") {
      RETURN_IF_ERROR(ReadFormat(member.value, member_path, draft));
    } else {
      return Unknown(member_path);
    }
  }
  return base::OkStatus();
}

// Anthropic's, beside the names of `service_tier` that other dialects have: what may be used
// beyond the usual is not asked for twice, so all of them mean the same here.
Status IgnoreTier(const JsonValue& value, const std::string& path, Draft&) {
  return ToStatus(ReadWord(value, path, {"auto", "standard_only"}));
}

Status IgnoreSpeed(const JsonValue& value, const std::string& path, Draft&) {
  return ToStatus(ReadWord(value, path, {"standard", "fast"}));
}

Status IgnoreMetadata(const JsonValue& value, const std::string& path, Draft&) {
  return CheckMetadata(value, path);
}

Status IgnoreLabel(const JsonValue& value, const std::string& path, Draft&) {
  return CheckLabel(value, path);
}

// As if it stood at the last block.
Status ReadPromptMark(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.prompt_mark, ReadCacheControl(value, path));
  return base::OkStatus();
}

// For the vendor's accounts, or for what is done when its model declines: neither is so here.
Status IgnoreAnything(const JsonValue&, const std::string&, Draft&) { return base::OkStatus(); }

// Which old results and thoughts a server may drop from long conversations to save room. This one
// never drops any, and says so in its answer.
Status ReadContextManagement(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  RETURN_IF_ERROR(CheckObject(value, path, 8));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name != "edits") return Unknown(member_path);
    RETURN_IF_ERROR(CheckArray(member.value, member_path, kEditsMax));
    for (size_t i = 0; i < member.value.items.size(); ++i) {
      const std::string edit_path = IndexPath(member_path, i);
      const JsonValue& edit = member.value.items[i];
      if (edit.kind != JsonKind::kObject) return WrongKind(edit, edit_path, "an object");
      const JsonValue* type = edit.Find("type");
      const std::string name =
          type != nullptr && type->kind == JsonKind::kString ? type->text : std::string();
      if (!name.starts_with("clear_thinking_") && !name.starts_with("clear_tool_uses_")) {
        return InvalidArgument(MemberPath(edit_path, "type"),
                               "edits of types clear_thinking and clear_tool_uses are taken (and "
                               "not needed); no others are supported");
      }
    }
  }
  draft.request.reports_edits = true;
  return base::OkStatus();
}

Status RefuseUnlessEmpty(const JsonValue& value, const std::string& path, Draft&) {
  const bool empty = value.is_null() || (value.kind == JsonKind::kArray && value.items.empty());
  if (empty) return base::OkStatus();
  return InvalidArgument(path, "not supported; leave it out");
}

constexpr Field kFields[] = {
    // Honoured. The extensions of api/common_fields.h are, too.
    {"model", ReadModel},
    {"messages", ReadMessageList},
    {"system", ReadSystem},
    {"max_tokens", ReadMaxTokens},
    {"stream", ReadStream},
    {"stop_sequences", ReadStops},
    {"thinking", ReadThinking},
    {"output_config", ReadOutputConfig},
    {"output_format", ReadFormat},  // its earlier name
    {"context_management", ReadContextManagement},
    {"cache_control", ReadPromptMark},
    // Honoured where the model's chat format takes them, else refused unless they ask for nothing.
    {"tools", ReadToolList},
    {"tool_choice", ReadToolChoice},
    // Checked and ignored: they do not change the answer.
    {"metadata", IgnoreMetadata},
    {"service_tier", IgnoreTier},
    {"speed", IgnoreSpeed},
    {"user_profile_id", IgnoreLabel},
    {"workspace_id", IgnoreLabel},
    {"diagnostics", IgnoreAnything},
    {"billing_policy", IgnoreAnything},
    {"fallbacks", IgnoreAnything},
    {"fallback_credit_token", IgnoreAnything},
    // What a server would keep or do beyond answering.
    {"container", RefuseUnlessEmpty},
    {"mcp_servers", RefuseUnlessEmpty},
    {"compaction", RefuseUnlessEmpty},
    {"thread", RefuseUnlessEmpty},
    {"inference_geo", RefuseUnlessEmpty},
};

constexpr std::string_view kSamplingFields[] = {"temperature", "top_p", "top_k"};

Status ReadMember(const JsonMember& member, Draft& draft) {
  const std::string path = MemberPath("", member.name);
  for (const Field& field : kFields) {
    if (field.name == member.name) return field.read(member.value, path, draft);
  }
  if (std::ranges::find(kSamplingFields, member.name) != std::end(kSamplingFields))
    return ReadSampling(member.name, member.value, path, draft);
  ASSIGN_OR_RETURN(const bool common,
                   ReadCommonField(member, path, draft.limits, draft.request, draft.common));
  return common ? base::OkStatus() : Unknown(path);
}

// Levels that models know by name, for who gives a budget, which holds besides.
std::string EffortOf(uint32_t budget) {
  if (budget < 8192) return "low";
  return budget < 32768 ? "high" : "max";
}

// Whether the words of a header, kept apart by commas, have that of thinking between calls, which
// ends in a date.
bool HasInterleavedThinking(std::string_view beta) {
  while (!beta.empty()) {
    const size_t end = std::min(beta.find(','), beta.size());
    std::string_view word = beta.substr(0, end);
    word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
    if (word.starts_with("interleaved-thinking-")) return true;
    beta.remove_prefix(std::min(end + 1, beta.size()));
  }
  return false;
}

// For every model, with or without reasoning. Where a model thinks between calls its budget is for
// all the answers up to the last of them, and may be more than one has.
Status CheckBudget(const Draft& draft, std::string_view beta) {
  const std::optional<uint32_t>& tokens_max = draft.request.tokens_max;
  if (!draft.budget || !tokens_max || *draft.budget < *tokens_max) return base::OkStatus();
  if (!draft.tools.empty() && HasInterleavedThinking(beta)) return base::OkStatus();
  return InvalidArgument("thinking.budget_tokens", "the budget must be less than max_tokens");
}

// Thinking and its effort, for a model that has them.
void DecideThinking(Draft& draft, bool given) {
  text::ChatInput& input = draft.request.input;
  if (!draft.content.effort.empty()) input.effort = draft.content.effort;
  if (!draft.limits.abilities.reasoning) {
    input.thinking = std::nullopt;
    input.effort.clear();
    return;
  }
  if (!given) input.thinking = false;  // who has not asked for thoughts does not expect any
  if (draft.budget && input.effort.empty()) input.effort = EffortOf(*draft.budget);
  input.reasoning_tokens_max = draft.budget;
}

Status CheckTools(Draft& draft) {
  text::ChatInput& input = draft.request.input;
  ASSIGN_OR_RETURN(input.tools, OfferedTools(draft.tools, draft.content.tool_changes));
  const bool forced = text::MustCall(input.tool_choice);
  if (forced && input.tools.empty())
    return InvalidArgument("tool_choice", "a call is asked for, and there are no tools");
  if (input.tool_choice == text::ToolChoice::kNamed &&
      std::ranges::find(input.tools, input.tool_name, &text::ToolSpec::name) == input.tools.end())
    return InvalidArgument("tool_choice.name", "no tool of tools has this name");
  if (forced && !input.thinking) input.thinking = false;  // adaptive: there is nothing to decide
  if (forced && input.thinking == true) {
    return InvalidArgument("tool_choice", "a call cannot be asked for while thinking is enabled");
  }
  const bool calls = !input.tools.empty() && input.tool_choice != text::ToolChoice::kNone;
  if (calls && !input.parallel_tool_calls &&
      draft.request.sampling.stop.size() >= engine::kStopStringsMax) {
    return InvalidArgument("stop_sequences",
                           "one fewer is taken together with disable_parallel_tool_use");
  }
  if (calls && draft.request.grammar) {
    return InvalidArgument("output_config.format",
                           "not taken together with tools: the answer could not call them; leave "
                           "one out, or set tool_choice to \"none\"");
  }
  return base::OkStatus();
}

// A message of the assistant at the end is the beginning of the answer.
Status CheckPrefill(Draft& draft) {
  if (!draft.content.ends_with_assistant) return base::OkStatus();
  if (!draft.limits.abilities.guides) {
    return InvalidArgument("messages",
                           "this model does not support assistant message prefill; the "
                           "conversation must end with a user message");
  }
  if (!draft.request.input.tools.empty() || draft.content.has_calls) {
    return InvalidArgument("messages",
                           "assistant message prefill is not supported together with tools; the "
                           "conversation must end with a user message");
  }
  draft.request.input.messages.back().prefix = true;
  return base::OkStatus();
}

// All marks, in the order of their places in the conversation; before `system` becomes a part of
// it.
Status PlaceMarks(Draft& draft) {
  std::vector<CacheMark> marks;
  const size_t first = draft.system.empty() ? 0 : 1;
  // Where a chat format tells of tools is its own affair: before the first message, at any rate.
  for (const DeclaredTool& tool : draft.tools) {
    if (tool.mark)
      marks.push_back({text::ConversationPlace{.message = first, .bytes = 0}, *tool.mark});
  }
  std::ranges::copy(draft.system_marks, std::back_inserter(marks));
  for (CacheMark mark : draft.content.cache_marks) {
    mark.place->message += first;
    marks.push_back(mark);
  }
  if (draft.prompt_mark) marks.push_back({std::nullopt, *draft.prompt_mark});
  if (marks.size() > kCacheMarksMax) {
    return InvalidArgument("", fmt::format("a maximum of {} blocks with cache_control may be "
                                           "provided; found {}",
                                           kCacheMarksMax, marks.size()));
  }
  draft.request.cache_marks = LastingMarks(marks);
  return base::OkStatus();
}

// What only several fields together can tell.
Status CheckTogether(Draft& draft, MessagesUse use, std::string_view beta, bool thinking_given) {
  MessagesRequest& request = draft.request;
  if (request.model.empty()) return InvalidArgument("model", "model is missing");
  if (!draft.messages_given) return InvalidArgument("messages", "messages is missing");
  if (!request.tokens_max && use == MessagesUse::kAnswer)
    return InvalidArgument("max_tokens", "max_tokens is missing");
  RETURN_IF_ERROR(CheckBudget(draft, beta));
  draft.common.Apply(request);
  RETURN_IF_ERROR(PlaceMarks(draft));
  text::ChatInput& input = request.input;
  if (!draft.system.empty()) {
    text::ChatMessage system{.role = "system"};
    system.content = std::move(draft.system);
    input.messages.push_back(std::move(system));
  }
  std::ranges::move(draft.content.messages, std::back_inserter(input.messages));
  DecideThinking(draft, thinking_given);
  RETURN_IF_ERROR(CheckTools(draft));
  RETURN_IF_ERROR(CheckPrefill(draft));
  if (request.grammar) input.response_schema = request.grammar->source;
  return base::OkStatus();
}

}  // namespace

Result<MessagesRequest> ParseMessagesRequest(std::string_view body, const RequestLimits& limits,
                                             MessagesUse use, std::string_view beta) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits.json));
  if (root.kind != JsonKind::kObject) return InvalidArgument("", "the body must be a JSON object");
  Draft draft{.limits = limits};
  for (const JsonMember& member : root.members) RETURN_IF_ERROR(ReadMember(member, draft));
  const JsonValue* thinking = root.Find("thinking");
  const bool thinking_given = thinking != nullptr && !thinking->is_null();
  RETURN_IF_ERROR(CheckTogether(draft, use, beta, thinking_given));
  return std::move(draft.request);
}

std::vector<std::string_view> MessagesFieldNames() {
  std::vector<std::string_view> names;
  AppendFieldNames(kFields, names);
  names.insert(names.end(), std::begin(kSamplingFields), std::end(kSamplingFields));
  AppendCommonFieldNames(names);
  return names;
}

}  // namespace plumb::api
