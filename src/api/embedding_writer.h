// api/embedding_writer.h
// OpenAI's list of embeddings as an answer's shape: never a stream. Each vector becomes text when
// it comes, so that the last one's event does not wait for all of them to be written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/answer_writer.h"
#include "api/embedding_request.h"

namespace plumb::api {

class EmbeddingWriter final : public AnswerWriter {
 public:
  EmbeddingWriter(AnswerHead head, EmbeddingEncoding encoding, uint32_t inputs);

  void Begin(std::string_view system_fingerprint) override;
  void Embedding(uint32_t prompt, std::span<const float> embedding) override;
  // In the order of the inputs. Each has had its embedding (CHECK).
  std::string Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) override;

  // Never called: there are no streams of them, which their dialect refuses to read.
  void StartStream(std::string& out) override;
  void Part(uint32_t sample, const text::AnswerDelta& part,
            std::span<const engine::TokenLogprob> logprobs, std::string& out) override;
  void EndSample(uint32_t sample, const SampleEnd& end, std::string& out) override;
  void EndStream(const AnswerUsage& usage, std::string& out) override;
  void Fail(const ApiError& error, std::string& out) override;

 private:
  const AnswerHead head_;
  const EmbeddingEncoding encoding_;
  std::vector<std::string> embeddings_;  // of each input, JSON; empty: not here yet
};

}  // namespace plumb::api
