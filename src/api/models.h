// api/models.h
// GET /v1/models and GET /v1/models/{id}: the model that this process serves, under each of its
// names. Anthropic's clients get its members and no others, since both APIs have a member
// "capabilities"; all others get OpenAI's, what the model can do, and some of Anthropic's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"
#include "text/chat_format.h"

namespace plumb::api {

// A value type.
struct ModelCard {
  std::vector<std::string> names;  // the model's own first, then aliases; never empty
  int64_t created = 0;             // Unix seconds
  uint32_t context_max = 0;        // tokens
  text::ChatAbilities abilities = {};
  bool grammars = true;  // structured outputs are enforced
};

enum class ModelForm : uint8_t { kOpenAi, kAnthropic };
// By the header anthropic-version, which all of Anthropic's clients send.
ModelForm FormFor(const net::HttpHeaders& headers);

// All of them; in Anthropic's form the page that the query asks for by `limit` and `after_id` or
// `before_id`. kInvalidArgument: limit, not from 1 to 1000; after_id, before_id: no name of the
// model, or both are given.
base::Result<std::string> ModelListJson(const ModelCard& model, ModelForm form,
                                        std::string_view query);
// Nothing when the model has no such name.
std::optional<std::string> ModelJson(const ModelCard& model, std::string_view name, ModelForm form);

}  // namespace plumb::api
