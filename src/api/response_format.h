// api/response_format.h
// The field `response_format`: OpenAI's "text", "json_object" and "json_schema", and ours: "regex",
// "choice" and "grammar", each of which may hold in a part of the answer only ("begin", "end").
// What it says is compiled by text/grammar_compiler.h; here it is only read. The fields are in
// docs/structured_output.md.
#pragma once

#include <optional>
#include <string>

#include "api/json.h"
#include "base/result.h"
#include "text/grammar.h"

namespace plumb::api {

// Nothing for null and {"type": "text"}. kInvalidArgument with the path of the member at fault:
// unknown type, missing, unknown or mistyped member.
base::Result<std::optional<text::GrammarSpec>> ReadResponseFormat(const JsonValue& value,
                                                                  const std::string& path);

// What a model that is told of it answers by: a JSON format of the whole answer, as a schema; else
// nothing.
std::string SchemaToTell(const std::optional<text::GrammarSpec>& grammar);

}  // namespace plumb::api
