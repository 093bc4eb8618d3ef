// text/deepseek_v41_prompt.cc: the conversation from top to bottom, behind
// text/deepseek_v41_prompt.h.
#include "text/deepseek_v41_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <utility>

#include "text/deepseek_v41_tools.h"

namespace plumb::text {
namespace {

using base::InvalidArgument;
using base::Status;

constexpr std::string_view kTasks[] = {"action", "query", "authority",
                                       "domain", "title", "read_url"};
constexpr std::string_view kBetweenParts = "\n\n";

std::string MessagePath(size_t index, std::string_view member) {
  return fmt::format("messages[{}].{}", index, member);
}

// How this answer is to be: decided once, before anything is written.
struct Mode {
  bool thinking = true;
  bool forced = false;  // a call must come
  uint32_t effort = kDeepseekEffortDefault;
  std::span<const ToolSpec> tools;  // those that are declared
};

base::Result<Mode> DecideMode(const ChatInput& input) {
  Mode mode;
  mode.forced = MustCall(input.tool_choice);
  const bool off = input.effort == "none";
  // Nobody has asked for reasoning: then a call that must come comes at once.
  const bool asked = !input.effort.empty() || input.reasoning_tokens_max.has_value();
  const bool usual = !off && !(mode.forced && !asked);
  mode.thinking = input.thinking.value_or(usual);
  if (!input.effort.empty() && !off) {
    const auto effort = DeepseekEffort(input.effort);
    if (!effort) {
      return InvalidArgument("reasoning_effort",
                             "reasoning_effort is \"none\", \"minimal\", \"low\", \"medium\", "
                             "\"high\", \"xhigh\", \"max\" or a number from 1 to 100");
    }
    mode.effort = *effort;
  }
  if (input.tool_choice != ToolChoice::kNone) mode.tools = input.tools;
  if (!mode.forced) return mode;
  if (mode.tools.empty())
    return InvalidArgument("tool_choice",
                           "tool_choice asks for a call, and "
                           "there are no tools");
  const bool named = input.tool_choice == ToolChoice::kNamed;
  if (named && std::ranges::find(mode.tools, input.tool_name, &ToolSpec::name) == mode.tools.end())
    return InvalidArgument("tool_choice.function.name", "tool_choice names no tool of tools");
  return mode;
}

// One pass over the messages. Thread: the caller's.
class Renderer {
 public:
  Renderer(const ChatInput& input, const Mode& mode) : input_(input), mode_(mode) {}

  base::Result<DeepseekV41Prompt> Render() {
    RETURN_IF_ERROR(WriteFront());
    for (size_t i = has_front_ ? 1 : 0; i < messages().size();) {
      const std::string& role = messages()[i].role;
      if (role != "assistant") after_task_ = false;
      if (role == "user" || role == "tool") {
        RETURN_IF_ERROR(WriteUserTurn(i));
      } else if (role == "assistant") {
        RETURN_IF_ERROR(WriteAssistant(i++));
      } else if (role == "system") {
        writer_.Template("<｜System｜>");
        WriteContent(messages()[i++]);
      } else if (role == "latest_reminder") {
        WriteReminder(i++);
      } else {
        return InvalidArgument(MessagePath(i, "role"), "this model knows no such role");
      }
    }
    WriteEnd();
    out_.segments = writer_.Take();
    out_.calls = !mode_.tools.empty();
    return std::move(out_);
  }

 private:
  const std::vector<ChatMessage>& messages() const { return input_.messages; }

  void WriteContent(const ChatMessage& message) {
    if (message.parts.empty()) writer_.Text(message.content);
    for (size_t i = 0; i < message.parts.size(); ++i) {
      if (i > 0) writer_.Template(kBetweenParts);
      const ContentPart& part = message.parts[i];
      if (part.kind == ContentPart::Kind::kImage) {
        writer_.Template("<｜deepseek_image｜>");
      } else {
        writer_.Text(part.text);
      }
    }
  }

  // All that comes before the first turn.
  Status WriteFront() {
    has_front_ = !messages().empty() && messages()[0].role == "system";
    const bool tells = !mode_.tools.empty() || !input_.response_schema.empty();
    writer_.Template("<｜begin▁of▁sentence｜>");
    if (mode_.thinking || has_front_ || tells) writer_.Template("<｜System｜>");
    if (mode_.thinking) {
      writer_.Template(
          fmt::format("Reasoning Effort: {} (range 1-100, the higher the value, the "
                      "more thorough the reasoning)\n\n",
                      mode_.effort));
    }
    if (has_front_) WriteContent(messages()[0]);
    if (!mode_.tools.empty()) {
      writer_.Template("\n\n");
      RETURN_IF_ERROR(WriteDeepseekTools(writer_, mode_.tools));
    }
    if (input_.response_schema.empty()) return base::OkStatus();
    ASSIGN_OR_RETURN(const std::string schema,
                     AsPythonJson(input_.response_schema, "response_format"));
    writer_.Template(
        "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema "
        "to reply:\n");
    writer_.Text(schema);
    return base::OkStatus();
  }

  // Users and results of tools that follow each other are one turn. `i` goes behind it.
  Status WriteUserTurn(size_t& i) {
    writer_.Template("<｜User｜>");
    for (bool first = true; i < messages().size(); first = false) {
      const ChatMessage& message = messages()[i];
      if (message.role != "user" && message.role != "tool") break;
      if (!first) writer_.Template(kBetweenParts);
      if (message.role == "tool") {
        RETURN_IF_ERROR(WriteResults(i));
        continue;
      }
      WriteContent(message);
      ++i;
      if (!message.task.empty()) return WriteTask(message.task, MessagePath(i - 1, "task"));
    }
    return base::OkStatus();
  }

  // The results of the calls just before, in the order of those. `i` goes behind them.
  Status WriteResults(size_t& i) {
    const size_t first = i;
    const bool after_calls = first > 0 && !messages()[first - 1].tool_calls.empty();
    if (!after_calls) {
      return InvalidArgument(MessagePath(first, "role"),
                             "a message of role \"tool\" follows the tool_calls that it answers");
    }
    const std::vector<ToolCall>& calls = messages()[first - 1].tool_calls;
    if (calls.size() > messages().size() - first) return MissingResult(first - 1);
    std::vector<const ChatMessage*> results(calls.size(), nullptr);
    for (; i < messages().size() && messages()[i].role == "tool"; ++i) {
      const auto call = std::ranges::find(calls, messages()[i].tool_call_id, &ToolCall::id);
      const size_t place = static_cast<size_t>(call - calls.begin());
      if (call == calls.end() || results[place] != nullptr) {
        return InvalidArgument(MessagePath(i, "tool_call_id"),
                               "tool_call_id names a call of the message before, each once");
      }
      results[place] = &messages()[i];
    }
    if (std::ranges::count(results, nullptr) > 0) return MissingResult(first - 1);
    for (size_t place = 0; place < results.size(); ++place) {
      if (place > 0) writer_.Template(kBetweenParts);
      writer_.Template("<tool_result>");
      WriteContent(*results[place]);
      writer_.Template("</tool_result>");
    }
    return base::OkStatus();
  }

  static Status MissingResult(size_t index) {
    return InvalidArgument(MessagePath(index, "tool_calls"),
                           "each of tool_calls is answered by a message of role \"tool\" right "
                           "after it");
  }

  // Instead of the header of an answer; the answer's message, if it is there, gets none.
  Status WriteTask(const std::string& task, const std::string& path) {
    if (std::ranges::find(kTasks, task) == std::end(kTasks))
      return InvalidArgument(path, "there is no such task");
    if (task == "action") WriteHeader(mode_.thinking ? "<think>" : kDeepseekThinkEnd);
    writer_.Template("<｜" + task + "｜>");
    after_task_ = true;
    return base::OkStatus();
  }

  void WriteHeader(std::string_view think) { writer_.Template("<｜Assistant｜>").Template(think); }

  // Other programs begin an answer before a reminder; this one is only done where a user goes on
  // after it, which no other rule covers.
  void WriteReminder(size_t i) {
    const bool after_turn = i > (has_front_ ? 1u : 0u) && messages()[i - 1].role != "assistant" &&
                            messages()[i - 1].role != "latest_reminder";
    const bool before_user = i + 1 < messages().size() && messages()[i + 1].role == "user";
    if (after_turn && before_user) WriteHeader(kDeepseekThinkEnd);
    writer_.Template("<｜latest_reminder｜>");
    WriteContent(messages()[i]);
  }

  Status WriteAssistant(size_t i) {
    const ChatMessage& message = messages()[i];
    const bool last = i + 1 == messages().size();
    if (message.prefix) return WritePrefix(i, last);
    // What was thought is kept where tools are declared, else dropped.
    const bool keep = mode_.thinking && !mode_.tools.empty();
    if (!std::exchange(after_task_, false)) {
      WriteHeader(keep ? "<think>" : kDeepseekThinkEnd);
      if (keep) writer_.Text(message.reasoning).Template(kDeepseekThinkEnd);
    }
    WriteContent(message);
    if (!message.tool_calls.empty()) {
      if (last || messages()[i + 1].role != "tool") return MissingResult(i);
      RETURN_IF_ERROR(CheckIds(message.tool_calls, i));
      writer_.Template("\n\n");
      RETURN_IF_ERROR(
          WriteDeepseekCalls(writer_, message.tool_calls, MessagePath(i, "tool_calls")));
    }
    writer_.Template("<｜end▁of▁sentence｜>");
    return base::OkStatus();
  }

  static Status CheckIds(const std::vector<ToolCall>& calls, size_t message) {
    std::vector<std::string_view> ids;
    for (const ToolCall& call : calls) ids.push_back(call.id);
    std::ranges::sort(ids);
    const bool twice = std::ranges::adjacent_find(ids) != ids.end();
    if (!twice && !ids.front().empty()) return base::OkStatus();
    return InvalidArgument(MessagePath(message, "tool_calls"),
                           "each of tool_calls has an id of its own");
  }

  // The answer goes on where the message ends.
  Status WritePrefix(size_t i, bool last) {
    const ChatMessage& message = messages()[i];
    const auto calls = [](const ChatMessage& m) { return !m.tool_calls.empty(); };
    if (!last) {
      return InvalidArgument(MessagePath(i, "prefix"), "prefix is for the last message");
    }
    if (!mode_.tools.empty() || std::ranges::any_of(messages(), calls)) {
      return InvalidArgument(MessagePath(i, "prefix"), "prefix is not taken together with tools");
    }
    const bool has_content = !message.content.empty() || !message.parts.empty();
    const bool open = mode_.thinking && !has_content && !message.reasoning.empty();
    if (!std::exchange(after_task_, false)) {
      WriteHeader(mode_.thinking ? "<think>" : kDeepseekThinkEnd);
      if (mode_.thinking) writer_.Text(message.reasoning);
      if (mode_.thinking && !open) writer_.Template(kDeepseekThinkEnd);
    }
    WriteContent(message);
    out_.start = open ? AnswerStart::kReasoning : AnswerStart::kContent;
    out_.continues = open || has_content;
    ended_ = true;
    return base::OkStatus();
  }

  // Where the answer begins.
  void WriteEnd() {
    if (ended_ || after_task_) return;
    WriteHeader(mode_.thinking ? "<think>" : kDeepseekThinkEnd);
    if (mode_.thinking) {
      out_.start = AnswerStart::kReasoning;  // a call that must come comes after it
    } else if (mode_.forced) {
      writer_.Template("\n\n").Template(kDeepseekCalls).Template("\n");
      out_.start = AnswerStart::kCalls;
    }
  }

  const ChatInput& input_;
  const Mode& mode_;
  PromptWriter writer_;
  DeepseekV41Prompt out_;
  bool has_front_ = false;
  bool after_task_ = false;  // a task's token has just been written
  bool ended_ = false;       // by a prefix
};

}  // namespace

std::optional<uint32_t> DeepseekEffort(std::string_view effort) {
  constexpr std::pair<std::string_view, uint32_t> kLevels[] = {
      {"minimal", 50}, {"low", 50}, {"medium", 75}, {"high", 75}, {"xhigh", 75}, {"max", 100}};
  for (const auto& [name, level] : kLevels) {
    if (name == effort) return level;
  }
  uint32_t level = 0;
  const auto [end, error] = std::from_chars(effort.data(), effort.data() + effort.size(), level);
  const bool whole = error == std::errc{} && end == effort.data() + effort.size();
  return whole && level >= 1 && level <= 100 ? std::optional(level) : std::nullopt;
}

base::Result<DeepseekV41Prompt> RenderDeepseekV41(const ChatInput& input) {
  if (input.messages.empty()) return InvalidArgument("messages", "messages is empty");
  ASSIGN_OR_RETURN(const Mode mode, DecideMode(input));
  return Renderer(input, mode).Render();
}

}  // namespace plumb::text
