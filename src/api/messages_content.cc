// api/messages_content.cc
// See messages_content.h. One pass: each message's blocks are read into a Turn, and each Turn is
// put behind those before it.
#include "api/messages_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/json_fields.h"
#include "api/json_writer.h"
#include "api/messages_blocks.h"
#include "api/reasoning_fields.h"
#include "api/retention_fields.h"
#include "api/thinking_signature.h"
#include "api/tool_fields.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;
using text::ChatMessage;

namespace {

constexpr size_t kWordBytesMax = 64;
constexpr size_t kIdBytesMax = 256;

struct ToolResult {
  std::string id;
  std::string content;
  std::string path;
  std::vector<base::Duration> marks = {};  // of it and of the blocks in it
};

// A block's cache_control.
struct TurnMark {
  size_t bytes;   // of the turn's text up to there
  bool of_calls;  // the block is a call, which stands behind all text
  base::Duration time;
};

// One message of the body. Which of these there can be depends on its role.
struct Turn {
  std::string text;
  std::string thinking;
  std::vector<text::ToolCall> calls;
  std::vector<ToolResult> results;
  std::vector<TurnMark> marks;  // but those of results
};

// One pass over `messages`. Thread: the caller's.
class Reader {
 public:
  explicit Reader(const RequestLimits& limits) : limits_(limits) {}

  Result<MessagesContent> Read(const JsonValue& value, const std::string& path) {
    for (size_t i = 0; i < value.items.size(); ++i)
      RETURN_IF_ERROR(ReadMessage(value.items, i, IndexPath(path, i)));
    RETURN_IF_ERROR(CheckNoneWaiting(path));
    if (out_.messages.empty()) return InvalidArgument(path, "no message says anything");
    out_.ends_with_assistant = out_.messages.back().role == "assistant";
    return std::move(out_);
  }

 private:
  Status ReadMessage(const std::vector<JsonValue>& list, size_t index, const std::string& path) {
    const JsonValue& value = list[index];
    if (value.kind != JsonKind::kObject) return WrongKind(value, path, "an object");
    ASSIGN_OR_RETURN(const std::string role, ReadMemberText(value, path, "role", kWordBytesMax));
    if (role == "system") return ReadSystemMessage(list, index, path);
    if (role != "user" && role != "assistant")
      return InvalidArgument(MemberPath(path, "role"),
                             "a role is \"user\", \"assistant\" or \"system\"");
    RETURN_IF_ERROR(CheckMembers(value, path, {"role", "content"}));
    Turn turn;
    RETURN_IF_ERROR(ReadContent(value, path, role, turn));
    return role == "user" ? AddUser(std::move(turn), path) : AddAssistant(std::move(turn), path);
  }

  Status ReadContent(const JsonValue& message, const std::string& path, const std::string& role,
                     Turn& turn) {
    const std::string content_path = MemberPath(path, "content");
    const JsonValue* content = message.Find("content");
    if (content == nullptr) return InvalidArgument(content_path, "this field is missing");
    if (content->kind == JsonKind::kString) {
      turn.text = content->text;
      return base::OkStatus();
    }
    if (content->kind != JsonKind::kArray)
      return WrongKind(*content, content_path, "a string or an array of blocks");
    RETURN_IF_ERROR(CheckArray(*content, content_path, limits_.content_parts_max));
    for (size_t i = 0; i < content->items.size(); ++i) {
      const std::string block_path = IndexPath(content_path, i);
      const size_t results = turn.results.size(), calls = turn.calls.size();
      RETURN_IF_ERROR(ReadBlock(content->items[i], block_path, role, turn));
      ASSIGN_OR_RETURN(const auto mark, ReadCacheMark(content->items[i], block_path));
      if (!mark) continue;
      if (turn.results.size() > results) {
        turn.results.back().marks.push_back(*mark);
      } else {
        turn.marks.push_back({turn.text.size(), turn.calls.size() > calls, *mark});
      }
    }
    return base::OkStatus();
  }

  Status ReadBlock(const JsonValue& block, const std::string& path, const std::string& role,
                   Turn& turn) {
    ASSIGN_OR_RETURN(const std::string type, ReadType(block, path));
    const bool user = role == "user";
    if (type == "text") {
      ASSIGN_OR_RETURN(const std::string text, ReadTextBlock(block, path));
      AppendBlock(turn.text, text);
      return base::OkStatus();
    }
    if (type == "document" && user) {
      ASSIGN_OR_RETURN(const std::string text, ReadDocument(block, path));
      AppendBlock(turn.text, text);
      return base::OkStatus();
    }
    if (type == "image" && user) return CheckImageBlock(block, path);
    if (type == "tool_result" && user) return ReadResult(block, path, turn);
    if (type == "tool_use" && !user) return ReadCall(block, path, turn);
    if (type == "thinking" && !user) return ReadThinkingBlock(block, path, turn);
    if (type == "redacted_thinking" && !user)  // nobody but who made it can read it
      return ToStatus(ReadMemberText(block, path, "data", SIZE_MAX));
    return InvalidArgument(
        MemberPath(path, "type"),
        fmt::format("a block of this type is not taken in a message of role \"{}\"", role));
  }

  // What was thought; where the block does not show it, from its signature.
  Status ReadThinkingBlock(const JsonValue& block, const std::string& path, Turn& turn) {
    RETURN_IF_ERROR(CheckMembers(block, path, {"thinking", "signature"}));
    ASSIGN_OR_RETURN(std::string thinking, ReadMemberText(block, path, "thinking", SIZE_MAX));
    const JsonValue* signature = block.Find("signature");
    if (signature != nullptr) {
      ASSIGN_OR_RETURN(const auto text,
                       ReadString(*signature, MemberPath(path, "signature"), SIZE_MAX));
      if (thinking.empty() && text) thinking = ThinkingOf(*text).value_or("");
    }
    AppendBlock(turn.thinking, thinking);
    return base::OkStatus();
  }

  Status ReadCall(const JsonValue& block, const std::string& path, Turn& turn) {
    RETURN_IF_ERROR(CheckToolsTaken(path));
    RETURN_IF_ERROR(CheckMembers(block, path, {"id", "name", "input", "caller", "toolset_name"}));
    text::ToolCall call;
    ASSIGN_OR_RETURN(call.id, ReadMemberText(block, path, "id", kIdBytesMax));
    ASSIGN_OR_RETURN(call.name, ReadToolName(block, path));
    const std::string input_path = MemberPath(path, "input");
    const JsonValue* input = block.Find("input");
    if (input == nullptr) return InvalidArgument(input_path, "this field is missing");
    if (input->kind != JsonKind::kObject) return WrongKind(*input, input_path, "an object");
    AppendJson(call.arguments, *input);
    turn.calls.push_back(std::move(call));
    return base::OkStatus();
  }

  Status ReadResult(const JsonValue& block, const std::string& path, Turn& turn) {
    RETURN_IF_ERROR(CheckToolsTaken(path));
    RETURN_IF_ERROR(
        CheckMembers(block, path, {"tool_use_id", "content", "is_error", "toolset_name"}));
    ToolResult result;
    result.path = path;
    ASSIGN_OR_RETURN(result.id, ReadMemberText(block, path, "tool_use_id", kIdBytesMax));
    const JsonValue* content = block.Find("content");
    if (content != nullptr && !content->is_null()) {
      ASSIGN_OR_RETURN(result.content,
                       ReadResultContent(*content, MemberPath(path, "content"), result.marks));
    }
    const JsonValue* is_error = block.Find("is_error");
    if (is_error != nullptr) {
      ASSIGN_OR_RETURN(const auto error, ReadBool(*is_error, MemberPath(path, "is_error")));
      if (error.value_or(false)) result.content = "Error: " + result.content;
    }
    turn.results.push_back(std::move(result));
    return base::OkStatus();
  }

  Result<std::string> ReadResultContent(const JsonValue& content, const std::string& path,
                                        std::vector<base::Duration>& marks) {
    if (content.kind == JsonKind::kString) return content.text;
    if (content.kind != JsonKind::kArray)
      return WrongKind(content, path, "a string or an array of blocks");
    RETURN_IF_ERROR(CheckArray(content, path, limits_.content_parts_max));
    std::string out;
    for (size_t i = 0; i < content.items.size(); ++i) {
      const JsonValue& block = content.items[i];
      const std::string block_path = IndexPath(path, i);
      ASSIGN_OR_RETURN(const std::string type, ReadType(block, block_path));
      std::string text;
      if (type == "text") {
        ASSIGN_OR_RETURN(text, ReadTextBlock(block, block_path));
      } else if (type == "document") {
        ASSIGN_OR_RETURN(text, ReadDocument(block, block_path));
      } else if (type == "image") {
        RETURN_IF_ERROR(CheckImageBlock(block, block_path));
      } else if (type == "tool_reference") {
        ASSIGN_OR_RETURN(const std::string name,
                         ReadMemberText(block, block_path, "tool_name", kToolNameBytesMax));
        text = fmt::format("The tool {} can be called now.", name);
        ToolChange& change = out_.tool_changes.emplace_back();
        change.name = name;
        change.path = block_path;
      } else {
        return InvalidArgument(MemberPath(block_path, "type"),
                               "a block of this type is not taken in a tool_result");
      }
      AppendBlock(out, text);
      ASSIGN_OR_RETURN(const auto mark, ReadCacheMark(block, block_path));
      if (mark) marks.push_back(*mark);
    }
    return out;
  }

  // Text for the turn that it stands in, and changes of what holds from there on.
  Status ReadSystemMessage(const std::vector<JsonValue>& list, size_t index,
                           const std::string& path) {
    const JsonValue& message = list[index];
    RETURN_IF_ERROR(CheckMembers(message, path, {"role", "content", "clear_at", "output_config"}));
    std::string text;
    std::vector<base::Duration> marks;
    const std::string content_path = MemberPath(path, "content");
    const JsonValue* content = message.Find("content");
    if (content != nullptr && content->kind == JsonKind::kArray) {
      RETURN_IF_ERROR(CheckArray(*content, content_path, limits_.content_parts_max));
      for (size_t i = 0; i < content->items.size(); ++i) {
        const std::string block_path = IndexPath(content_path, i);
        ASSIGN_OR_RETURN(const std::string part, ReadSystemBlock(content->items[i], block_path));
        AppendBlock(text, part);
        ASSIGN_OR_RETURN(const auto mark, ReadCacheMark(content->items[i], block_path));
        if (mark) marks.push_back(*mark);
      }
    } else if (content != nullptr && content->kind == JsonKind::kString) {
      text = content->text;
    } else if (content != nullptr && !content->is_null()) {
      return WrongKind(*content, content_path, "a string or an array of blocks");
    }
    const JsonValue* config = message.Find("output_config");
    if (config != nullptr && config->kind == JsonKind::kObject) {
      const std::string config_path = MemberPath(path, "output_config");
      RETURN_IF_ERROR(CheckMembers(*config, config_path, {"effort"}));
      const JsonValue* effort = config->Find("effort");
      if (effort != nullptr) {
        ASSIGN_OR_RETURN(out_.effort, ReadEffort(*effort, MemberPath(config_path, "effort")));
      }
    }
    ASSIGN_OR_RETURN(const bool over, IsOver(list, index, path));
    if (!over) RETURN_IF_ERROR(AddSystem(text, path));
    for (const base::Duration time : marks) MarkHere(time);
    return base::OkStatus();
  }

  Result<std::string> ReadSystemBlock(const JsonValue& block, const std::string& path) {
    ASSIGN_OR_RETURN(const std::string type, ReadType(block, path));
    if (type == "text") return ReadTextBlock(block, path);
    if (type != "tool_addition" && type != "tool_removal") {
      return InvalidArgument(MemberPath(path, "type"),
                             "a block of this type is not taken in a message of role \"system\"");
    }
    RETURN_IF_ERROR(CheckMembers(block, path, {"tool"}));
    const std::string tool_path = MemberPath(path, "tool");
    const JsonValue* tool = block.Find("tool");
    if (tool == nullptr) return InvalidArgument(tool_path, "this field is missing");
    ASSIGN_OR_RETURN(const std::string kind, ReadType(*tool, tool_path));
    ToolChange change;
    change.path = tool_path;
    if (type == "tool_removal") change.kind = ToolChange::Kind::kRemove;
    const JsonValue* definition = tool->Find("definition");
    if (kind == "tool_reference") {
      ASSIGN_OR_RETURN(change.name, ReadMemberText(*tool, tool_path, "name", kToolNameBytesMax));
    } else if (kind == "tool_definition" && type == "tool_addition" && definition != nullptr) {
      ASSIGN_OR_RETURN(DeclaredTool declared,
                       ReadMessagesTool(*definition, MemberPath(tool_path, "definition")));
      change.name = declared.spec.name;
      change.definition = std::move(declared.spec);
    } else {
      return InvalidArgument(MemberPath(tool_path, "type"),
                             "a tool is a tool_reference or, to add it, a tool_definition");
    }
    out_.tool_changes.push_back(std::move(change));
    return std::string();
  }

  // Whether a system message was for a turn that is past.
  static Result<bool> IsOver(const std::vector<JsonValue>& list, size_t index,
                             const std::string& path) {
    const JsonValue* clear = list[index].Find("clear_at");
    if (clear == nullptr) return false;
    ASSIGN_OR_RETURN(const std::string_view word, ReadWord(*clear, MemberPath(path, "clear_at"),
                                                           {"next_user_message", "never"}));
    if (word != "next_user_message") return false;
    return std::ranges::any_of(list.begin() + static_cast<ptrdiff_t>(index) + 1, list.end(),
                               [](const JsonValue& message) {
                                 const JsonValue* role = message.Find("role");
                                 return role != nullptr && role->text == "user";
                               });
  }

  // Templates know a system text at the beginning only; elsewhere it becomes part of what users
  // say, marked as what it is.
  Status AddSystem(const std::string& text, const std::string& path) {
    if (text.empty()) return base::OkStatus();
    RETURN_IF_ERROR(CheckNoneWaiting(path));
    if (limits_.abilities.guides || out_.messages.empty()) {
      AddText("system", text);
    } else {
      AddText("user", fmt::format("<system>\n{}\n</system>", text));
    }
    return base::OkStatus();
  }

  Status AddUser(Turn turn, const std::string& path) {
    for (ToolResult& result : turn.results) {
      const auto call = std::ranges::find(waiting_, result.id);
      if (call == waiting_.end()) {
        return InvalidArgument(
            MemberPath(result.path, "tool_use_id"),
            "a tool_result names a tool_use of the assistant's message before, each once");
      }
      waiting_.erase(call);
      ChatMessage& message = AddMessage("tool");
      message.content = std::move(result.content);
      message.tool_call_id = std::move(result.id);
      for (const base::Duration time : result.marks) MarkHere(time);
    }
    if (turn.text.empty()) {
      for (const TurnMark& mark : turn.marks) MarkHere(mark.time);
      if (!turn.results.empty()) return base::OkStatus();
      return InvalidArgument(MemberPath(path, "content"), "a message of a user says something");
    }
    RETURN_IF_ERROR(CheckNoneWaiting(path));
    AddText("user", turn.text);
    PlaceMarks(turn);
    return base::OkStatus();
  }

  Status AddAssistant(Turn turn, const std::string& path) {
    const bool goes_on = !out_.messages.empty() && out_.messages.back().role == "assistant";
    if (!goes_on) {
      RETURN_IF_ERROR(CheckNoneWaiting(path));
      AddMessage("assistant");
    }
    ChatMessage& message = out_.messages.back();
    AppendBlock(message.content, turn.text);
    if (limits_.abilities.reasoning) AppendBlock(message.reasoning, turn.thinking);
    for (text::ToolCall& call : turn.calls) {
      if (call.id.empty() || std::ranges::find(waiting_, call.id) != waiting_.end())
        return InvalidArgument(MemberPath(path, "content"), "each tool_use has an id of its own");
      waiting_.push_back(call.id);
      message.tool_calls.push_back(std::move(call));
      out_.has_calls = true;
    }
    PlaceMarks(turn);
    return base::OkStatus();
  }

  // Those of a turn whose text is the end of the last message's.
  void PlaceMarks(const Turn& turn) {
    const size_t index = out_.messages.size() - 1;
    const size_t before = out_.messages.back().content.size() - turn.text.size();
    for (const TurnMark& mark : turn.marks) {
      // Calls stand behind the text: they end where the next message begins.
      const text::ConversationPlace behind{.message = index + 1, .bytes = 0};
      const text::ConversationPlace within{.message = index, .bytes = before + mark.bytes};
      out_.cache_marks.push_back({mark.of_calls ? behind : within, mark.time});
    }
  }

  // Behind all that there is so far.
  void MarkHere(base::Duration time) {
    const size_t count = out_.messages.size();
    const size_t bytes = count == 0 ? 0 : out_.messages.back().content.size();
    const text::ConversationPlace place{.message = count - std::min<size_t>(count, 1),
                                        .bytes = bytes};
    out_.cache_marks.push_back({place, time});
  }

  void AddText(std::string_view role, const std::string& text) {
    if (out_.messages.empty() || out_.messages.back().role != role) AddMessage(role);
    AppendBlock(out_.messages.back().content, text);
  }

  ChatMessage& AddMessage(std::string_view role) {
    out_.messages.emplace_back();
    out_.messages.back().role = role;
    return out_.messages.back();
  }

  Status CheckToolsTaken(const std::string& path) const {
    if (limits_.abilities.tools) return base::OkStatus();
    return InvalidArgument(MemberPath(path, "type"), "this model calls no tools");
  }

  Status CheckNoneWaiting(const std::string& path) const {
    if (waiting_.empty()) return base::OkStatus();
    return InvalidArgument(path, fmt::format("each tool_use needs a tool_result right after it; "
                                             "there is none for {}",
                                             waiting_.front()));
  }

  const RequestLimits& limits_;
  MessagesContent out_;
  std::vector<std::string> waiting_;  // ids of calls that have no result yet
};

}  // namespace

Result<MessagesContent> ReadMessagesContent(const JsonValue& value, const std::string& path,
                                            const RequestLimits& limits) {
  if (value.kind != JsonKind::kArray) return WrongKind(value, path, "an array");
  RETURN_IF_ERROR(CheckArray(value, path, limits.messages_max));
  if (value.items.empty()) return InvalidArgument(path, "at least one message is needed");
  return Reader(limits).Read(value, path);
}

}  // namespace plumb::api
