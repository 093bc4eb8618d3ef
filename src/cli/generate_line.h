// cli/generate_line.h
// One line of `plumb generate`: the JSON that comes in, the request it becomes, the JSON that goes
// out. Sampling fields are those of the chat API, read by the same code. Formats: docs/cli.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/chat_request.h"
#include "base/result.h"
#include "engine/request.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace plumb::cli {

constexpr uint64_t kInputLineBytesMax = 16u << 20;

// What a line asks for; a value type.
struct LineRequest {
  std::string id_json;  // the caller's id as JSON (a string or a number), empty when there is none
  bool has_prompt = false;
  std::string prompt;     // with has_prompt: raw text, no template
  api::ChatRequest chat;  // messages (without has_prompt) and sampling
};

struct LineDefaults {
  uint64_t seed = 0;        // of the run
  uint32_t tokens_max = 0;  // for lines that give no max_tokens; 0 = to the context's end
  uint32_t vocabulary_size = UINT32_MAX;
};

// kInvalidArgument with the field's path: not an object, both or neither of messages and prompt, or
// what the chat API refuses. `index`: of the line in the file, from 0; a line without a seed gets
// one from (run seed, index), so that equal runs give equal answers.
// `id_json`, if given, gets the line's id as soon as it is known, also when the rest is refused.
base::Result<LineRequest> ParseLine(std::string_view text, uint64_t index,
                                    const LineDefaults& defaults, std::string* id_json = nullptr);

// The engine's request, without id. kInvalidArgument: what template and tokenizer refuse, or a
// prompt that leaves no room in the context.
struct LineModel {
  const text::ChatTemplate& chat_template;
  const text::Tokenizer& tokenizer;
  uint32_t context_max;
};
base::Result<engine::Request> BuildRequest(const LineRequest& line, const LineDefaults& defaults,
                                           const LineModel& model);

// What goes out for a line. `key` ties it to its input line, model and settings
// (generate_output.h).
struct LineHead {
  uint64_t index = 0;
  std::string key;
  std::string id_json;
};
struct LineAnswer {
  std::string text;
  std::vector<engine::TokenLogprob> logprobs;
  engine::Finish finish;
  uint64_t seed = 0;
  bool with_logprobs = false;
};
// Both end with the line's LF.
std::string AnswerLine(const LineHead& head, const LineAnswer& answer,
                       const text::Tokenizer& tokenizer);
std::string ErrorLine(const LineHead& head, const base::Status& status);

}  // namespace plumb::cli
