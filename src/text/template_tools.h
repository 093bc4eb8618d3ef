// text/template_tools.h
// What a chat template can do beyond messages, found by asking it: how it writes a call of a tool
// tells how its model writes calls, and what it says of <think> whether its model reasons. Rules:
// docs/tools.md. Read next: text/jinja_chat_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tool_syntax.h"

namespace plumb::text {

// A value type.
struct TemplateTraits {
  bool shows_tools = false;  // it tells its model of the tools that there are
  // How it writes calls; nothing: it shows no tools, or writes calls in no way that is known here.
  std::optional<CallSyntax> calls;
  bool several_calls = false;  // it takes a message with two calls
  bool reasons = false;        // it speaks of </think>
};

// Renders a few short conversations. Never fails: what a template refuses, it cannot do.
TemplateTraits FindTraits(const ChatTemplate& chat_template);

// What --tool-format says: "auto", "none" or the name of a syntax of templates.
struct ToolFormat {
  bool automatic = true;
  std::optional<CallSyntax> syntax;  // not with `automatic`; nothing: no tools
};
// kInvalidArgument: another word; the message lists those that there are.
base::Result<ToolFormat> ToolFormatFromName(std::string_view name);

}  // namespace plumb::text
