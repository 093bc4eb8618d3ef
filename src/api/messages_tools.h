// api/messages_tools.h
// Tools of Anthropic's Messages: declarations, the choice among them, and changes within the
// conversation, into text::ToolSpec. A tool of the client is {name, description, input_schema}; of
// those that Anthropic defines and a client runs (bash, text editor, memory) the schema is written
// here; those that Anthropic's servers run are refused by name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/json.h"
#include "base/clock.h"
#include "base/result.h"
#include "text/chat_input.h"

namespace plumb::api {

struct DeclaredTool {
  text::ToolSpec spec;
  bool deferred = false;                    // not offered until the conversation loads it
  std::optional<base::Duration> mark = {};  // of its cache_control
};

// What the conversation says of a tool, by its name: blocks tool_reference, tool_addition,
// tool_removal.
struct ToolChange {
  enum class Kind : uint8_t { kLoad, kRemove };
  Kind kind = Kind::kLoad;
  std::string name;
  std::optional<text::ToolSpec> definition;  // of one that is not declared
  std::string path;                          // where it stands, for errors
};

// All: kInvalidArgument with the path of the member at fault.

// The member `name`: 1 to 64 letters, digits, '_' and '-'.
base::Result<std::string> ReadToolName(const JsonValue& value, const std::string& path);

// `tools`; at most kToolsMax of api/tool_fields.h, names unique.
base::Result<std::vector<DeclaredTool>> ReadMessagesTools(const JsonValue& value,
                                                          const std::string& path);
// One entry of it.
base::Result<DeclaredTool> ReadMessagesTool(const JsonValue& value, const std::string& path);

// The tools at the end of the conversation: those that are declared and not deferred, then those
// that were loaded, in that order, so that the prompt's beginning changes as late as it can.
base::Result<std::vector<text::ToolSpec>> OfferedTools(const std::vector<DeclaredTool>& declared,
                                                       std::span<const ToolChange> changes);

// {"type": "auto" | "any" | "none" | "tool", "name", "disable_parallel_tool_use"}.
base::Status ReadMessagesToolChoice(const JsonValue& value, const std::string& path,
                                    text::ChatInput& input);

}  // namespace plumb::api
