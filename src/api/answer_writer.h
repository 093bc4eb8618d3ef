// api/answer_writer.h
// The shape that a dialect gives to one answer: the same parts, ends and usage, written whole or as
// server-sent events. The one idea: a writer is told every part once and in order, so what it
// writes is a function of them and not of the pieces they came in. Order and completeness are
// api/answer_sink.h; one implementation a dialect: api/chat_writer.h and its neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/answer.h"
#include "api/errors.h"

namespace plumb::api {

// One per answer. Thread: one at a time; called on the generator's thread, so nothing here blocks.
// `sample` counts over all prompts: prompt * n + sample of the prompt. Whatever takes `out` appends
// whole server-sent events to it (net/sse.h), none where there is nothing to say.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // Of a detached request (ReadBody::detached): what its client is told, before anything else.
  virtual std::string Accepted() { return {}; }
  // First of all: which weights answer.
  virtual void Begin(std::string_view system_fingerprint) = 0;
  // Of the prompt's tokens 1, 2, ... of the prompt with that number, before anything of its
  // samples, when the request asked for them.
  virtual void PromptLogprobs(uint32_t /*prompt*/, std::span<const engine::TokenLogprob>) {}
  // Of the prompt with that number, once, before its sample's end; when the request asked for it.
  virtual void Embedding(uint32_t /*prompt*/, std::span<const float>) {}

  // A stream: StartStream; then for each sample Part... EndSample, samples interleaved as they
  // come; then EndStream, or at any time after StartStream, Fail, which is the last.
  virtual void StartStream(std::string& out) = 0;
  // More of a sample, and the log-probabilities of the tokens that came with it, which may be none.
  virtual void Part(uint32_t sample, const text::AnswerDelta& part,
                    std::span<const engine::TokenLogprob> logprobs, std::string& out) = 0;
  virtual void EndSample(uint32_t sample, const SampleEnd& end, std::string& out) = 0;
  virtual void EndStream(const AnswerUsage& usage, std::string& out) = 0;
  virtual void Fail(const ApiError& error, std::string& out) = 0;

  // Instead of a stream: the body. Of a detached request nobody gets it, and Fail may come instead,
  // without a stream and without Begin.
  virtual std::string Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) = 0;
};

}  // namespace plumb::api
