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

std::string ModelListJson(const ModelCard& model, ModelForm form);
// Nothing when the model has no such name.
std::optional<std::string> ModelJson(const ModelCard& model, std::string_view name, ModelForm form);

}  // namespace plumb::api
