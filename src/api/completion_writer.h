// api/completion_writer.h
// OpenAI's Completions as an answer's shape, whole and in chunks: texts without roles, the prompt
// before them where it is asked for, log-probabilities in columns. Read next:
// api/legacy_logprobs.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/answer_writer.h"
#include "api/legacy_logprobs.h"
#include "text/tokenizer.h"

namespace plumb::api {

struct CompletionShape {
  uint32_t choices = 1;  // of each prompt; the best of `samples`, which are more in whole answers
  uint32_t samples = 1;  // of each prompt
  bool logprobs = false;
  bool usage_in_chunks = false;
  bool echo = false;
  bool empty = false;  // what is generated is dropped
};

// A prompt as the answer repeats it.
struct EchoedPrompt {
  std::string text;
  std::vector<base::TokenId> tokens;
};

class CompletionWriter final : public AnswerWriter {
 public:
  // Borrows the tokenizer.
  CompletionWriter(AnswerHead head, CompletionShape shape, std::vector<EchoedPrompt> prompts,
                   const text::Tokenizer& tokenizer);

  void Begin(std::string_view system_fingerprint) override;
  void PromptLogprobs(uint32_t prompt, std::span<const engine::TokenLogprob> logprobs) override;
  void StartStream(std::string& out) override;
  void Part(uint32_t sample, const text::AnswerDelta& part,
            std::span<const engine::TokenLogprob> logprobs, std::string& out) override;
  void EndSample(uint32_t sample, const SampleEnd& end, std::string& out) override;
  void EndStream(const AnswerUsage& usage, std::string& out) override;
  void Fail(const ApiError& error, std::string& out) override;
  std::string Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) override;

 private:
  // Of a stream. Its text waits until the prompt's log-probabilities are there, which stand before.
  struct Streamed {
    AnswerOffsets offsets;
    bool begun = false;  // its first chunk is written
    std::string text;    // that waits
    std::vector<engine::TokenLogprob> logprobs;
    std::optional<SampleEnd> end;
  };

  // Of the samples of a prompt, those that the answer has, best first.
  std::vector<uint32_t> Choose(std::span<const SampleAnswer> samples) const;
  bool ShowsPrompt() const { return shape_.echo && shape_.logprobs; }
  AnswerOffsets OffsetsOf(uint32_t prompt) const;
  void AddPromptLogprobs(uint32_t prompt, LegacyLogprobs& columns) const;
  std::string LogprobsJson(std::span<const engine::TokenLogprob> logprobs,
                           AnswerOffsets& offsets) const;
  std::string_view ReasonOf(const SampleEnd& end) const;
  AnswerUsage Shown(AnswerUsage usage) const;
  void WriteHead(JsonWriter& json) const;
  // Writes what need not wait.
  void Release(uint32_t sample, std::string& out);
  // `logprobs` and `finish_reason` are JSON.
  void Chunk(uint32_t sample, std::string_view text, std::string_view logprobs,
             std::string_view finish_reason, std::string& out);

  const AnswerHead head_;
  const CompletionShape shape_;
  const std::vector<EchoedPrompt> prompts_;
  const text::Tokenizer& tokenizer_;
  std::string id_;  // "cmpl-..."
  std::string fingerprint_;
  std::vector<std::vector<engine::TokenLogprob>> prompt_logprobs_;  // of each prompt
  std::vector<Streamed> streamed_;                                  // of each sample
};

}  // namespace plumb::api
