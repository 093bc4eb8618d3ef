// api/logprob_json.h
// Log-probabilities of tokens as JSON, in the forms that answers need them: OpenAI's in chat
// answers, and with token ids in the lines of `plumb generate` and `plumb rollout`.
#pragma once

#include <span>
#include <string_view>

#include "api/json_writer.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace plumb::api {

struct LogprobForm {
  bool token_ids = false;     // "token_id"
  bool bytes = false;         // "bytes": of the token, null for a control token
  std::string_view top_name;  // of the list of alternatives, "top_logprobs"
};
constexpr LogprobForm kChatLogprobs{.token_ids = false, .bytes = true, .top_name = "top_logprobs"};
constexpr LogprobForm kLineLogprobs{.token_ids = true, .bytes = false, .top_name = "top"};

// An array with an object for each token. JSON has no infinity: what is below -9999 becomes -9999.
void WriteLogprobList(JsonWriter& json, std::span<const engine::TokenLogprob> logprobs,
                      const text::Tokenizer& tokenizer, const LogprobForm& form);
// As the numbers there are.
float JsonLogprob(float logprob);

}  // namespace plumb::api
