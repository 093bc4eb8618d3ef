// api/chat_writer.h
// OpenAI's Chat Completions as an answer's shape, whole and in chunks, with DeepSeek's
// "reasoning_content" beside the content; one object "plumb" is ours: {"seed"} (so that an answer
// without a given seed can be asked for again).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/answer_writer.h"
#include "api/custom_input.h"
#include "api/json_writer.h"
#include "text/tokenizer.h"

namespace plumb::api {

// "stop" or "length", of an answer without calls; OpenAI's words in all its dialects.
std::string_view FinishReasonName(engine::FinishReason reason);
// The objects "usage" and "plumb" of both of its completion APIs, the latter with its key.
void WriteTokenUsage(JsonWriter& json, const AnswerUsage& usage);
void WriteSeed(JsonWriter& json, const AnswerHead& head);

// What of a request shapes its answer. A value type.
struct ChatShape {
  uint32_t samples = 1;
  // stream_options.include_usage: each chunk says "usage": null, and one more comes last.
  bool usage_in_chunks = false;
  std::vector<std::string> custom_tools = {};  // their calls have an input and no arguments
};

class ChatWriter final : public AnswerWriter {
 public:
  // Borrows the tokenizer.
  ChatWriter(AnswerHead head, ChatShape shape, const text::Tokenizer& tokenizer);

  void Begin(std::string_view system_fingerprint) override;
  void StartStream(std::string& out) override;
  void Part(uint32_t sample, const text::AnswerDelta& part,
            std::span<const engine::TokenLogprob> logprobs, std::string& out) override;
  void EndSample(uint32_t sample, const SampleEnd& end, std::string& out) override;
  void EndStream(const AnswerUsage& usage, std::string& out) override;
  void Fail(const ApiError& error, std::string& out) override;
  std::string Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) override;

 private:
  // Appends the event of one chunk. `finish_reason` and `logprobs` are JSON, `more` members after
  // it.
  void Chunk(uint32_t sample, std::string_view delta, std::string_view logprobs,
             std::string_view finish_reason, std::string_view more, std::string& out) const;
  std::string LogprobsJson(std::span<const engine::TokenLogprob> logprobs) const;

  // The delta of a call, as JSON: its beginning, or more of its arguments or input.
  std::string BeginCall(uint32_t sample, const std::string& name);
  std::string MoreOfCall(uint32_t sample, std::string_view text) const;
  // What a custom tool's open call has held back of its input.
  void CloseCall(uint32_t sample, std::string& out);

  // The calls of one sample of a stream.
  struct Calls {
    uint32_t begun = 0;
    bool custom = false;  // the newest is open and of a custom tool
    CustomInput input;    // of that
  };

  const AnswerHead head_;
  const ChatShape shape_;
  const text::Tokenizer& tokenizer_;
  std::string id_;            // "chatcmpl-..."
  std::string fingerprint_;   // system_fingerprint
  std::vector<Calls> calls_;  // of each sample
  std::string prefix_;        // {"id":...,"choices":[{"index":
  std::string suffix_;        // }],"usage":null} or }]}
};

}  // namespace plumb::api
