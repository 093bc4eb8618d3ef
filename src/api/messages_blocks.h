// api/messages_blocks.h
// Single blocks of Anthropic's content, and `system`, which is made of them: objects with a `type`
// and members that are known by name; others are refused. Read next: api/messages_content.h.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "api/generation_request.h"
#include "api/json.h"
#include "base/result.h"

namespace plumb::api {

// Blocks of text that follow each other are kept apart by an empty line; empty ones are none.
void AppendBlock(std::string& out, std::string_view text);

// All: kInvalidArgument with the path of what is at fault.

// The text of a member that has to be there.
base::Result<std::string> ReadMemberText(const JsonValue& block, const std::string& path,
                                         std::string_view name, size_t bytes_max);
// The type of what has to be an object.
base::Result<std::string> ReadType(const JsonValue& block, const std::string& path);
// Ok when an object has members of these names only, beside `type` and `cache_control`.
base::Status CheckMembers(const JsonValue& block, const std::string& path,
                          std::initializer_list<std::string_view> names);

base::Result<std::string> ReadTextBlock(const JsonValue& block, const std::string& path);
// A document of plain text, with what is said of it in front.
base::Result<std::string> ReadDocument(const JsonValue& block, const std::string& path);
// Never ok while no model has vision (api/image_fields.h).
base::Status CheckImageBlock(const JsonValue& block, const std::string& path);
// The text of `system`, a string or blocks. Without what a client writes there for its vendor's
// books alone (a line "x-anthropic-billing-header: ...", which differs between requests and would
// keep prompts from being reused). `marks`: gets those of its blocks, as places of the text, which
// is message 0.
base::Result<std::string> ReadMessagesSystem(const JsonValue& value, const std::string& path,
                                             const RequestLimits& limits,
                                             std::vector<CacheMark>& marks);

}  // namespace plumb::api
