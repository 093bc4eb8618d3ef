// api/chat_response.h
// The JSON of chat answers, whole and in chunks, as OpenAI shapes them, with DeepSeek's
// "reasoning_content" beside the content; one object "plumb" is ours: {"seed"} (so that an answer
// without a given seed can be asked for again). Formatting only: order
// and completeness are api/chat_sink.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "text/answer_parser.h"
#include "text/tokenizer.h"

namespace plumb::api {

// What every chunk and the whole answer carry. A value type.
struct ChatHead {
  std::string id;     // "chatcmpl-..."
  std::string model;  // as the caller spelled it
  std::string system_fingerprint;
  int64_t created = 0;  // Unix seconds
  uint64_t seed = 0;    // below 2^63 reads as given; a negative one is shown as given, too
  bool logprobs = false;
  bool usage_in_chunks = false;  // stream_options.include_usage: each chunk says "usage": null
};

struct ChatUsage {
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;  // of all samples, end tokens included
  uint64_t cached_tokens = 0;      // of the prompt
};

// A call of a tool, as far as it has been written.
struct ChatCall {
  std::string name;
  std::string arguments;
};

struct ChatChoice {
  std::string reasoning;
  std::string content;
  std::vector<ChatCall> calls;
  std::vector<engine::TokenLogprob>
      logprobs;  // one for each generated token, the end token included
  std::string_view finish_reason;

  void Add(const text::AnswerDelta& delta);
};

// "stop" or "length", of an answer without calls; only for the reasons that end an answer.
std::string_view FinishReasonName(engine::FinishReason reason);

std::string ChatJson(const ChatHead& head, std::span<const ChatChoice> choices,
                     const ChatUsage& usage, const text::Tokenizer& tokenizer);

// One stream's chunks, each as JSON without framing. The constant parts are written once.
class ChatChunks {
 public:
  // Borrows the tokenizer.
  ChatChunks(const ChatHead& head, const text::Tokenizer& tokenizer);

  // The first chunk of a sample: role, and the seed.
  std::string Role(uint32_t sample_index) const;
  // More of a sample's answer, of which `calls` calls have begun; and the log-probabilities of the
  // tokens that came with it, which may be none.
  std::string Delta(uint32_t sample_index, const text::AnswerDelta& delta, uint32_t calls,
                    std::span<const engine::TokenLogprob> logprobs) const;
  // The same of content alone, which may be empty.
  std::string Content(uint32_t sample_index, std::string_view text,
                      std::span<const engine::TokenLogprob> logprobs) const;
  std::string Finish(uint32_t sample_index, std::string_view reason) const;
  // The last chunk, without choices.
  std::string Usage(const ChatUsage& usage) const;

 private:
  std::string WithLogprobs(uint32_t sample_index, std::string_view delta,
                           std::span<const engine::TokenLogprob> logprobs) const;
  std::string Choice(uint32_t sample_index, std::string_view delta, std::string_view logprobs,
                     std::string_view finish_reason) const;

  const text::Tokenizer& tokenizer_;
  const bool logprobs_;
  const std::string id_;  // ChatHead::id
  std::string prefix_;    // {"id":...,"choices":[{"index":
  std::string suffix_;    // }],"usage":null} or }]}
  std::string usage_prefix_;
  std::string seed_;  // "plumb":{"seed":n}
};

}  // namespace plumb::api
