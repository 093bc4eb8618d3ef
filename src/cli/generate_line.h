// cli/generate_line.h
// One line of `plumb generate` or `plumb rollout`, on its way in: the JSON and the requests it
// becomes. Sampling fields are those of the chat API, read by the same code. Formats: docs/cli.md.
// Read next: cli/answer_line.h (the way out).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/chat_request.h"
#include "base/result.h"
#include "engine/request.h"
#include "text/chat_format.h"
#include "text/grammar_compiler.h"
#include "text/tokenizer.h"

namespace plumb::cli {

constexpr uint64_t kInputLineBytesMax = 16u << 20;
// Answers to one prompt: more than a request may have, since a line becomes as many as it takes.
constexpr uint32_t kRolloutSamplesMax = 1024;
// Tokens and log-probabilities that the answers to one line may hold together.
constexpr uint64_t kLineEntriesMax = 1u << 21;

enum class LineKind : uint8_t {
  kGenerate,  // answers for people and programs
  kRollout,   // answers for training: ids, log-probabilities and seeds of every one
};

// What a line asks for; a value type.
struct LineRequest {
  std::string id_json;  // the caller's id as JSON (a string or a number), empty when there is none
  // Instead of messages: raw text, without template, or token ids.
  std::variant<std::monostate, std::string, std::vector<base::TokenId>> prompt;
  api::ChatRequest chat;  // messages (without a prompt) and sampling; its `samples` is not used
  uint32_t samples = 1;   // answers to give
  uint32_t best_of = 1;   // answers to compute, >= samples; the likeliest are given
  bool echo = false;      // the prompt's text before the answer's
  bool prompt_logprobs = false;

  bool has_prompt() const { return !std::holds_alternative<std::monostate>(prompt); }
};

struct LineDefaults {
  uint64_t seed = 0;        // of the run
  uint32_t tokens_max = 0;  // for lines that give no max_tokens; 0 = to the context's end
  uint32_t vocabulary_size = UINT32_MAX;
  text::ChatAbilities abilities = {};  // what messages and their like may ask for
  LineKind kind = LineKind::kGenerate;
  uint32_t samples = 1;  // for lines that give no n
};

// kInvalidArgument with the field's path: not an object, both or neither of messages and prompt, or
// what the chat API refuses. `index`: of the line in the file, from 0; a line without a seed gets
// one from (run seed, index), so that equal runs give equal answers.
// `id_json`, if given, gets the line's id as soon as it is known, also when the rest is refused.
base::Result<LineRequest> ParseLine(std::string_view text, uint64_t index,
                                    const LineDefaults& defaults, std::string* id_json = nullptr);

struct LineModel {
  const text::ChatFormat& chat_format;
  const text::Tokenizer& tokenizer;
  uint32_t context_max;
  text::GrammarCompiler* grammars = nullptr;  // null: lines that need one are refused
};

// The engine's requests, without ids: together they have the line's samples, in order, each but the
// last engine::kSamplesMax. (More for best_of: engine/best_of.h.) The first has the line's seed,
// each other one of its own, made of it. kInvalidArgument: what template, tokenizer and grammar
// refuse, a prompt that leaves no room in the context, or answers that could be larger than
// kLineEntriesMax; kOverloaded, kUnavailable: the grammar's compiler.
// `shape`, if given, gets of a line with messages what its answers' parser needs: the prompt
// without its text and tokens.
base::Result<std::vector<engine::Request>> BuildRequests(const LineRequest& line,
                                                         const LineDefaults& defaults,
                                                         const LineModel& model,
                                                         text::ChatPrompt* shape = nullptr);

}  // namespace plumb::cli
