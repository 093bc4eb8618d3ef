// api/responses_request.cc
// The table of fields, top to bottom: what is honoured, what is ignored and why, what is refused.
#include "api/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/common_fields.h"
#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/reasoning_fields.h"
#include "api/response_format.h"
#include "api/responses_messages.h"
#include "api/retention_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kIdBytesMax = 256;
constexpr size_t kWordBytesMax = 64;
constexpr size_t kIncludeMax = 32;

// What the fields add up to while the object is read.
struct Draft {
  const RequestLimits& limits;
  const ResponsesContext& context;
  ResponsesRequest request = {};
  CommonFields common = {};
  ItemList input = {};
  bool input_given = false;
  bool text_input = false;
  bool stream_options_given = false;
  std::string instructions = {};
  std::string previous = {};
  const JsonValue* tool_choice = nullptr;
  // For the echo; JSON, or nothing where the default holds.
  std::string format = {};
  std::string metadata = {};
  std::string effort = {};
  std::string cache_key = {};
  std::string safety_identifier = {};
  std::string user = {};
  std::string truncation = {};
};

using FieldReader = Status (*)(const JsonValue& value, const std::string& path, Draft& draft);
struct Field {
  std::string_view name;
  FieldReader read;
};

Status Refuse(const std::string& path, std::string_view what) {
  return InvalidArgument(path, fmt::format("{} is not supported: {}", path, what));
}

Status Unknown(const std::string& path) {
  return InvalidArgument(path, fmt::format("{} is not known here", path));
}

Status ReadInto(const JsonValue& value, const std::string& path, size_t bytes_max,
                std::string& out) {
  ASSIGN_OR_RETURN(auto text, ReadString(value, path, bytes_max));
  out = std::move(text).value_or("");
  return base::OkStatus();
}

Status ReadInputItems(const JsonValue& value, const std::string& path, Draft& draft) {
  if (value.is_null()) return base::OkStatus();
  const InputLimits limits{.items_max = draft.limits.messages_max,
                           .parts_max = draft.limits.content_parts_max,
                           .abilities = draft.limits.abilities};
  ASSIGN_OR_RETURN(draft.input,
                   ReadInput(value, path, limits, draft.context.number, draft.context.item));
  draft.input_given = true;
  draft.text_input = value.kind == JsonKind::kString;
  return base::OkStatus();
}

Status ReadLength(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {1, INT32_MAX}));
  if (count) draft.request.tokens_max = static_cast<uint32_t>(*count);
  return base::OkStatus();
}

// include_obfuscation pads against observers of the line: never sent.
Status ReadStreamOptions(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckObject(value, path, 8));
  draft.stream_options_given = !value.is_null();
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name != "include_obfuscation") return Unknown(member_path);
    RETURN_IF_ERROR(ReadBool(member.value, member_path));
  }
  return base::OkStatus();
}

Status ReadStore(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto store, ReadBool(value, path));
  draft.request.store = store.value_or(true);
  return base::OkStatus();
}

Status ReadBackground(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto background, ReadBool(value, path));
  draft.request.background = background.value_or(false);
  return base::OkStatus();
}

Status ReadTopLogprobs(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto count, ReadInteger(value, path, {0, engine::kTopLogprobsMax}));
  draft.request.sampling.top_logprobs = static_cast<uint32_t>(count.value_or(0));
  if (count.value_or(0) > 0) draft.request.sampling.logprobs = true;
  return base::OkStatus();
}

// More of the answer. Of what no answer here holds there is nothing to add.
Status ReadInclude(const JsonValue& value, const std::string& path, Draft& draft) {
  constexpr std::string_view kNeverThere[] = {
      "file_search_call.results",       "web_search_call.results",
      "web_search_call.action.sources", "message.input_image.image_url",
      "code_interpreter_call.outputs",  "computer_call_output.output.image_url",
  };
  RETURN_IF_ERROR(CheckArray(value, path, kIncludeMax));
  for (size_t i = 0; i < value.items.size(); ++i) {
    const std::string item_path = IndexPath(path, i);
    ASSIGN_OR_RETURN(const auto word, ReadString(value.items[i], item_path, kWordBytesMax));
    if (word == "reasoning.encrypted_content") {
      draft.request.encrypted_reasoning = true;
    } else if (word == "message.output_text.logprobs") {
      draft.request.sampling.logprobs = true;
    } else if (!word || std::ranges::find(kNeverThere, *word) == std::end(kNeverThere)) {
      return Unknown(item_path);
    }
  }
  return base::OkStatus();
}

// OpenAI's json_schema has its members beside its type; inside, they are those of response_format.
Status ReadFormat(const JsonValue& value, const std::string& path, Draft& draft) {
  const JsonValue* type = value.Find("type");
  const bool flat =
      type != nullptr && type->text == "json_schema" && value.Find("json_schema") == nullptr;
  if (!flat) {
    ASSIGN_OR_RETURN(draft.request.grammar, ReadResponseFormat(value, path));
  } else {
    JsonValue inner;
    JsonValue outer;
    inner.kind = outer.kind = JsonKind::kObject;
    for (const JsonMember& member : value.members) {
      const bool ours = member.name == "type" || member.name == "begin" || member.name == "end";
      (ours ? outer : inner).members.push_back(member);
    }
    outer.members.push_back({"json_schema", std::move(inner)});
    auto format = ReadResponseFormat(outer, path);
    if (!format.ok()) {
      std::string field = format.status().field();
      const size_t at = field.find(".json_schema");
      if (at != std::string::npos) field.erase(at, std::string_view(".json_schema").size());
      return InvalidArgument(std::move(field), format.status().message());
    }
    draft.request.grammar = *std::move(format);
  }
  if (!value.is_null()) AppendJson(draft.format, value);
  return base::OkStatus();
}

// The models here know no verbosity: the answer says "medium", whatever was asked.
Status ReadText(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckObject(value, path, 8));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "format") {
      RETURN_IF_ERROR(ReadFormat(member.value, member_path, draft));
    } else if (member.name == "verbosity") {
      RETURN_IF_ERROR(ReadWord(member.value, member_path, {"low", "medium", "high"}));
    } else {
      return Unknown(member_path);
    }
  }
  return base::OkStatus();
}

// A summary is OpenAI's stand-in for reasoning that it does not show; here it is shown.
Status ReadReasoning(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckObject(value, path, 8));
  for (const JsonMember& member : value.members) {
    const std::string member_path = MemberPath(path, member.name);
    if (member.name == "effort") {
      ASSIGN_OR_RETURN(draft.effort, ReadEffort(member.value, member_path));
      const bool asks = !draft.effort.empty() && draft.effort != "none";
      if (asks && !draft.limits.abilities.reasoning)
        return Refuse(member_path, "this model does not reason that way; leave it out");
      if (draft.limits.abilities.reasoning) draft.request.input.effort = draft.effort;
    } else if (member.name == "summary" || member.name == "generate_summary") {
      RETURN_IF_ERROR(ReadWord(member.value, member_path, {"auto", "concise", "detailed", "none"}));
    } else if (!member.value.is_null()) {
      return Unknown(member_path);
    }
  }
  return base::OkStatus();
}

Status ReadToolList(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.request.tools, ReadResponsesTools(value, path, draft.limits.abilities));
  return base::OkStatus();
}

// Read when the tools are known.
Status KeepToolChoice(const JsonValue& value, const std::string&, Draft& draft) {
  draft.tool_choice = &value;
  return base::OkStatus();
}

Status ReadParallel(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto parallel, ReadBool(value, path));
  draft.request.input.parallel_tool_calls = parallel.value_or(true);
  return base::OkStatus();
}

// Only tools that run in a server are counted, and there are none.
Status IgnoreCount(const JsonValue& value, const std::string& path, Draft&) {
  return ToStatus(ReadInteger(value, path, {0, INT32_MAX}));
}

// How long it is worth keeping what is computed of the prompt.
Status ReadRetention(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(const auto mark, ReadPromptRetention(value, path));
  if (mark) draft.request.cache_marks = {*mark};
  return base::OkStatus();
}

Status ReadMetadata(const JsonValue& value, const std::string& path, Draft& draft) {
  RETURN_IF_ERROR(CheckMetadata(value, path));
  if (!value.is_null()) AppendJson(draft.metadata, value);
  return base::OkStatus();
}

// Nothing is ever cut out of a conversation: one that is too long is refused, with "auto" as well.
Status ReadTruncation(const JsonValue& value, const std::string& path, Draft& draft) {
  ASSIGN_OR_RETURN(draft.truncation, ReadWord(value, path, {"auto", "disabled"}));
  return base::OkStatus();
}

Status RefuseUnlessEmpty(const JsonValue& value, const std::string& path, Draft&) {
  const bool empty = value.is_null() || (value.kind == JsonKind::kArray && value.items.empty());
  return empty ? base::OkStatus() : Refuse(path, "leave it out");
}

Status RefuseMessages(const JsonValue&, const std::string& path, Draft&) {
  return InvalidArgument("input", fmt::format("{} is a field of chat; give input", path));
}

Status RefuseConversation(const JsonValue& value, const std::string& path, Draft&) {
  if (value.is_null()) return base::OkStatus();
  return Refuse(path,
                "this server keeps no conversations; give previous_response_id, or all items");
}

Status IgnoreObject(const JsonValue& value, const std::string& path, Draft&) {
  return CheckObject(value, path, SIZE_MAX);
}

template <std::string Draft::* kMember, size_t kBytesMax = 512>
Status ReadTo(const JsonValue& value, const std::string& path, Draft& draft) {
  return ReadInto(value, path, kBytesMax, draft.*kMember);
}

constexpr Field kFields[] = {
    // Honoured.
    {"input", ReadInputItems},
    {"instructions", ReadTo<&Draft::instructions, SIZE_MAX>},
    {"previous_response_id", ReadTo<&Draft::previous, kIdBytesMax>},
    {"store", ReadStore},
    {"background", ReadBackground},
    {"max_output_tokens", ReadLength},
    {"stream_options", ReadStreamOptions},
    {"top_logprobs", ReadTopLogprobs},
    {"include", ReadInclude},
    {"text", ReadText},
    {"parallel_tool_calls", ReadParallel},
    {"prompt_cache_retention", ReadRetention},
    // Honoured where the model's chat format takes them, else refused unless they ask for nothing.
    {"tools", ReadToolList},
    {"tool_choice", KeepToolChoice},
    {"reasoning", ReadReasoning},
    // Checked and shown again in the answer; they do not change it.
    {"metadata", ReadMetadata},
    {"user", ReadTo<&Draft::user>},
    {"safety_identifier", ReadTo<&Draft::safety_identifier>},
    {"prompt_cache_key", ReadTo<&Draft::cache_key>},
    {"truncation", ReadTruncation},
    // Checked and ignored.
    {"prompt_cache_options", IgnoreObject},
    {"client_metadata", IgnoreObject},
    {"max_tool_calls", IgnoreCount},
    // Refused unless they ask for nothing.
    {"messages", RefuseMessages},
    {"conversation", RefuseConversation},
    {"prompt", RefuseUnlessEmpty},
    {"context_management", RefuseUnlessEmpty},
    {"moderation", RefuseUnlessEmpty},
};

Status ReadMember(const JsonMember& member, Draft& draft) {
  const std::string path = MemberPath("", member.name);
  for (const Field& field : kFields)
    if (field.name == member.name) return field.read(member.value, path, draft);
  return ReadSharedField(member, path, draft.limits, draft.request, draft.common);
}

// The whole conversation: instructions are of this answer alone, items go on.
Status PutTogether(Draft& draft) {
  ResponsesRequest& request = draft.request;
  if (!draft.previous.empty()) {
    const auto& find = draft.context.response;
    std::optional<ItemList> before = find ? find(draft.previous) : std::nullopt;
    if (!before) {
      return InvalidArgument("previous_response_id",
                             "no answer of this id is kept here; send the conversation's items")
          .WithReason("previous_response_not_found");
    }
    request.items = *std::move(before);
  } else if (!draft.input_given) {
    return InvalidArgument("input", "input is missing");
  }
  request.items.insert(request.items.end(), draft.input.begin(), draft.input.end());
  if (request.items.empty()) return InvalidArgument("input", "input is empty");
  if (request.items.size() > draft.limits.messages_max) {
    return InvalidArgument("input", fmt::format("the conversation has {} items; at most {} are "
                                                "taken",
                                                request.items.size(), draft.limits.messages_max));
  }
  auto& messages = request.input.messages;
  auto& places = request.places.messages;
  if (!draft.instructions.empty()) {
    messages.push_back({.role = "system", .content = draft.instructions});
    places.push_back({.path = "instructions", .calls = {}});
  }
  const auto sources = AppendMessages(request.items, messages);
  AppendPlaces(sources, request.items.size() - draft.input.size(), draft.text_input, places);
  if (messages.empty()) return InvalidArgument("input", "input holds nothing to answer");
  return base::OkStatus();
}

// What only several fields together can tell.
Status CheckTogether(Draft& draft) {
  ResponsesRequest& request = draft.request;
  if (request.model.empty()) return InvalidArgument("model", "model is missing");
  if (draft.stream_options_given && !request.stream)
    return InvalidArgument("stream_options", "stream_options is only taken with stream: true");
  if (request.background && (!request.store || request.stream)) {
    return InvalidArgument("background",
                           "background is only taken with store: true and without stream");
  }
  request.input.tools = request.tools.specs;
  if (draft.tool_choice != nullptr) {
    RETURN_IF_ERROR(ReadResponsesToolChoice(*draft.tool_choice, "tool_choice", request.tools,
                                            draft.limits.abilities, request.input));
  }
  for (const text::ToolSpec& spec : request.input.tools)
    request.places.tools.push_back(request.tools.Find(spec.name)->path);
  const bool calls =
      !request.input.tools.empty() && request.input.tool_choice != text::ToolChoice::kNone;
  if (request.sampling.logprobs && calls) {
    return InvalidArgument("top_logprobs",
                           "log-probabilities are given with a message's text, so they are not "
                           "taken together with tools; set tool_choice to \"none\"");
  }
  draft.common.Apply(request);
  request.input.response_schema = SchemaToTell(request.grammar);
  return PutTogether(draft);
}

// As `service_tier` has it: what was asked for is what was done.
std::string_view TierName(const std::optional<engine::Priority>& priority) {
  if (priority == engine::Priority::kBatch) return "flex";
  return priority == engine::Priority::kInteractive ? "priority" : "default";
}

void WriteRawOr(JsonWriter& json, std::string_view name, const std::string& raw,
                std::string_view otherwise) {
  json.Key(name).Raw(raw.empty() ? otherwise : std::string_view(raw));
}

std::string EchoOf(const Draft& draft) {
  const ResponsesRequest& request = draft.request;
  std::string out;
  JsonWriter json(out);
  json.Key("background").Bool(request.background);
  json.Key("instructions").StringOrNull(draft.instructions).Key("max_output_tokens");
  request.tokens_max ? json.Uint(*request.tokens_max) : json.Null();
  json.Key("max_tool_calls").Null();
  WriteRawOr(json, "metadata", draft.metadata, "{}");
  json.Key("parallel_tool_calls").Bool(request.input.parallel_tool_calls);
  json.Key("previous_response_id").StringOrNull(draft.previous);
  json.Key("prompt_cache_key").StringOrNull(draft.cache_key);
  json.Key("reasoning").BeginObject().Key("effort").StringOrNull(draft.effort);
  json.Key("summary").Null().EndObject();
  json.Key("safety_identifier").StringOrNull(draft.safety_identifier);
  json.Key("service_tier").String(TierName(request.priority));
  json.Key("store").Bool(request.store).Key("temperature").Float(request.sampling.temperature);
  json.Key("text").BeginObject();
  WriteRawOr(json, "format", draft.format, R"({"type":"text"})");
  json.Key("verbosity").String("medium").EndObject().Key("tool_choice");
  if (draft.tool_choice != nullptr && !draft.tool_choice->is_null()) {
    std::string choice;
    AppendJson(choice, *draft.tool_choice);
    json.Raw(choice);
  } else {
    json.String("auto");
  }
  json.Key("tools").Raw(request.tools.json);
  json.Key("top_logprobs").Uint(request.sampling.top_logprobs);
  json.Key("top_p").Float(request.sampling.top_p);
  json.Key("truncation").String(draft.truncation.empty() ? "disabled" : draft.truncation);
  json.Key("user").StringOrNull(draft.user);
  return out;
}

}  // namespace

Result<ResponsesRequest> ParseResponsesRequest(std::string_view body, const RequestLimits& limits,
                                               const ResponsesContext& context) {
  ASSIGN_OR_RETURN(const JsonValue root, ParseJson(body, limits.json));
  Draft draft{.limits = limits, .context = context};
  for (const JsonMember& member : root.members) RETURN_IF_ERROR(ReadMember(member, draft));
  RETURN_IF_ERROR(CheckTogether(draft));
  draft.request.echo = EchoOf(draft);
  return std::move(draft.request);
}

std::vector<std::string_view> ResponsesFieldNames() {
  std::vector<std::string_view> names;
  AppendFieldNames(kFields, names);
  AppendSharedFieldNames(names);
  return names;
}

}  // namespace plumb::api
