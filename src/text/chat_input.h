// text/chat_input.h
// What a model is asked in a chat, free of any API dialect: messages, tools, and how it should
// answer. Value types; whoever reads a request fills them in, a text::ChatFormat turns them into a
// prompt. Read next: text/chat_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plumb::text {

struct ContentPart {
  enum class Kind : uint8_t { kText, kImage };
  Kind kind = Kind::kText;
  std::string text = {};  // of an image: empty
};

// A call of a tool that an assistant's message made.
struct ToolCall {
  std::string id = {};
  std::string name = {};
  std::string arguments =
      {};  // as the caller wrote them: a JSON object, or what a model made of it
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool", "latest_reminder"
  std::string content;
  std::string name = {};  // empty = none
  // Where the content was given in parts; `content` is then all their text, nothing between.
  std::vector<ContentPart> parts = {};
  std::string reasoning = {};             // of an assistant
  std::vector<ToolCall> tool_calls = {};  // of an assistant
  std::string tool_call_id = {};          // of a tool: whose result the content is
  std::string task = {};                  // of a user; a small job that some models know by a token
  bool prefix = false;                    // of the last, an assistant: the answer goes on from here
};

struct ToolSpec {
  std::string name = {};
  std::string description = {};
  std::string parameters = "{}";  // a JSON object, a schema
  bool strict = false;            // the schema holds with nothing optional and nothing more
};

enum class ToolChoice : uint8_t {
  kAuto,      // a call or an answer, as the model likes
  kNone,      // as if there were no tools
  kRequired,  // at least one call
  kNamed,     // a call of ChatInput::tool_name
};
// Whether the answer holds a call, whatever the model likes.
constexpr bool MustCall(ToolChoice choice) {
  return choice == ToolChoice::kRequired || choice == ToolChoice::kNamed;
}

struct ChatInput {
  std::vector<ChatMessage> messages;
  std::vector<ToolSpec> tools = {};
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_name = {};
  bool parallel_tool_calls = true;    // false: one call at most
  std::optional<bool> thinking = {};  // nothing: as the model usually does
  std::string effort = {};            // "low", "high", ..., or "1" to "100"; empty: not given
  // Reasoning that has this many tokens is closed; nothing: it has no bound of its own.
  std::optional<uint32_t> reasoning_tokens_max = {};
  std::string response_schema = {};  // JSON that the model is told to answer by; empty: none
};

}  // namespace plumb::text
