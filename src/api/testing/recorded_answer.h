// api/testing/recorded_answer.h
// Tests only. One answer of a model, token by token, and what is to be found in it however it
// comes. Read next: api/testing/recorded_answers.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plumb::api::testing {

struct RecordedAnswer {
  std::string_view name;
  std::vector<std::string_view> tokens;     // what each stands for; of characters also parts
  std::string_view holds;                   // is in the answer, as JSON, in every API with chats
  bool tools = false;                       // the request declares get_weather and note
  std::string_view lacks = "\xEF\xBF\xBD";  // is in it nowhere
  std::string_view stop = {};               // the request's stop string
  uint32_t bytes_max = 4096;                // of the answer: its max_tokens, a byte being a token
};

}  // namespace plumb::api::testing
