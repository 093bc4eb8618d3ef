// cli/answer_line.h
// One line of `plumb generate` or `plumb rollout`, on its way out: what the engine gave, as JSON.
// Nothing in it depends on when or beside what it was computed, so that a run which went on
// elsewhere gives the same file. Formats: docs/cli.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/answer_printer.h"
#include "cli/generate_line.h"
#include "engine/request.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace plumb::cli {

// `key` ties a line to its input line, model and settings (generate_output.h).
struct LineHead {
  uint64_t index = 0;
  std::string key;
  std::string id_json;
};

struct SampleAnswer {
  std::string text;     // as the model wrote it
  AnswerText parts;     // of an answer to messages, once ReadParts has been called
  bool called = false;  // likewise: the model ended it after a call of a tool
  std::vector<base::TokenId> tokens;
  std::vector<engine::TokenLogprob> logprobs;
  engine::Finish finish;
};

struct LineAnswer {
  std::vector<base::TokenId> prompt;
  std::vector<engine::TokenLogprob> prompt_logprobs;  // of its tokens from the second on
  std::vector<SampleAnswer> samples;                  // to give, all finished
  std::vector<uint64_t> seeds;                        // of each engine::kSamplesMax samples
  uint64_t completion_tokens = 0;                     // of all that was computed
};

// What the answers were computed with.
struct WeightsName {
  std::string content_sha256;
  std::string numerics_id;
  std::string fingerprint;
};

// Takes the whole text of an answer to messages apart, as the chat API does. `shape`: of its prompt
// (BuildRequests).
void ReadParts(const text::ChatFormat& format, const text::ChatPrompt& shape, SampleAnswer& sample);

// All end with the line's LF. `line` is what was asked for. A rollout has the text as it came.
std::string AnswerLine(const LineHead& head, const LineRequest& line, const LineAnswer& answer,
                       const text::Tokenizer& tokenizer);
std::string RolloutLine(const LineHead& head, const LineAnswer& answer, const WeightsName& weights,
                        const text::Tokenizer& tokenizer);
std::string ErrorLine(const LineHead& head, const base::Status& status);

}  // namespace plumb::cli
