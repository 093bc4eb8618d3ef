// api/chat_prompt.h
// A chat request, and the prompt that its model's format made of it, as a request to the engine;
// in one place for every dialect and for the command line.
#pragma once

#include "api/generation_request.h"
#include "base/result.h"
#include "engine/request.h"
#include "text/chat_format.h"
#include "text/grammar_compiler.h"

namespace plumb::api {

// Fills in `out` what both say: prompt, sampling (but for tokens_max), grammar. A response_format
// of a model that thinks first holds from where its content begins; a budget, while it thinks.
// kInvalidArgument, field "stop": one string too many with those that the prompt needs; field
// "response_format": together with tools, where it could not be enforced; that or "tools": what the
// compiler refuses; field "ignore_eos": beside any grammar or budget; kUnsupported: a grammar
// without a compiler (`grammars` null); kOverloaded: the compiler's.
base::Status ApplyPrompt(const GenerationRequest& request, text::ChatPrompt prompt,
                         text::GrammarCompiler* grammars, engine::Request& out);

// Whether an answer that ended so was ended by the model, and not cut off by its length or by a
// stop string of the caller.
bool EndedByModel(const engine::Finish& finish, const std::vector<std::string>& prompt_stops);

}  // namespace plumb::api
