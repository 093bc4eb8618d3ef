// text/tool_grammar.h
// What an answer may be where calls of tools are held to their schemas: while it is written, by a
// grammar (text/grammar.h), so that nothing has to be repaired afterwards. The grammar itself is
// made in rust/src/call_grammar.rs; a chat format says which of its syntaxes the model writes.
// Rules: docs/structured_output.md.
#pragma once

#include <optional>

#include "base/result.h"
#include "text/chat_format.h"
#include "text/chat_input.h"
#include "text/grammar.h"
#include "text/tool_syntax.h"

namespace plumb::text {

// Nothing: every answer will do. Else, by tool_choice:
//   required, named: the answer is calls and nothing else, of any tool or of the one that is named;
//     where it begins with reasoning (`start` kReasoning), that is free, and calls follow it;
//   auto, when a tool is strict: text is free until a call begins, then calls to the end;
//   auto, with parallel_tool_calls false and another syntax than kDsml: the same.
// The arguments of strict tools are by their schema, where nothing is optional and no other names
// are taken; those of others are some JSON object. With parallel_tool_calls false, one call.
// `start`: kCalls where the prompt has opened the block of calls. Names of tools have been checked.
// kInvalidArgument, field "tools[i].function.parameters": no JSON object. What a schema asks for
// that cannot be enforced, GrammarCompiler::Compile refuses, by the name of the tool.
base::Result<std::optional<GrammarSpec>> ToolGrammar(CallSyntax syntax, const ChatInput& input,
                                                     AnswerStart start);

}  // namespace plumb::text
