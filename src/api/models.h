// api/models.h
// GET /v1/models and GET /v1/models/{id}: the model that this process serves, under each of its
// names, with the members that OpenAI's clients look for and those of Anthropic's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

std::string ModelListJson(const ModelCard& model);
// Nothing when the model has no such name.
std::optional<std::string> ModelJson(const ModelCard& model, std::string_view name);

}  // namespace plumb::api
