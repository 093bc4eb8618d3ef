// api/responses_tools.h
// The tools of the Responses API into what a model is told, and back: which tool of the caller's a
// call in the answer means. Functions and custom tools are told; those of a "namespace" with its
// name in front; what a server of OpenAI's would run itself (web_search and so on) is left out,
// since no model here can call it, and the answer's `tools` shows what was left.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/json.h"
#include "base/result.h"
#include "text/chat_format.h"

namespace plumb::api {

// A tool of the caller's, and what the model knows it by.
struct ResponsesTool {
  std::string told = {};  // its name to the model
  std::string name = {};
  std::string tool_space = {};  // of a tool that stands in a namespace
  bool custom = false;    // its input is a text, which the model is asked for as {"input": ...}
  std::string path = {};  // where it stands in the request
};

// A value type.
struct ResponsesTools {
  std::vector<ResponsesTool> known;
  std::vector<text::ToolSpec> specs;  // as the model is told; in the order of `known`
  std::string json = "[]";            // as the answer shows them: those that are known

  // The tool of that name to the model, or nullptr.
  const ResponsesTool* Find(std::string_view told) const;
};

// kInvalidArgument with the path of the member at fault; of a model without tools, any tool that it
// would have to be told.
base::Result<ResponsesTools> ReadResponsesTools(const JsonValue& value, const std::string& path,
                                                const text::ChatAbilities& abilities);

// "none", "auto", "required", {"type": "function" | "custom", "name"}, or {"type":
// "allowed_tools", "mode", "tools"}, which takes the others out of `input.tools`. To be read when
// `input.tools` has been filled in. kInvalidArgument: as above, or a tool that is not there.
base::Status ReadResponsesToolChoice(const JsonValue& value, const std::string& path,
                                     const ResponsesTools& tools,
                                     const text::ChatAbilities& abilities, text::ChatInput& input);

}  // namespace plumb::api
