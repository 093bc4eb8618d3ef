// api/responses_input.h
// The `input` of the Responses API, a text or items, from JSON. What cannot be told to the model is
// refused by its path, never dropped. Read next: api/responses_messages.h (what the model is told),
// api/responses_request.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/json.h"
#include "api/responses_item.h"
#include "base/result.h"
#include "text/chat_format.h"

namespace plumb::api {

struct InputLimits {
  uint32_t items_max;
  uint32_t parts_max;  // of one message or output
  text::ChatAbilities abilities = {};
};

// The kept item of that id, for "item_reference"; null when there is none. May be empty: there are
// none at all.
using FindItem = std::function<std::shared_ptr<const ResponsesItem>(const std::string& id)>;

// The items, those without an id named after `number`. kInvalidArgument with the path of what is at
// fault; reason "item_not_found": a reference to what is not kept; "invalid_encrypted_content":
// that of another server.
base::Result<ItemList> ReadInput(const JsonValue& value, const std::string& path,
                                 const InputLimits& limits, uint64_t number, const FindItem& find);

}  // namespace plumb::api
