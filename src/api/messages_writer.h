// api/messages_writer.h
// Anthropic's Messages as an answer's shape: content is a list of blocks (thinking, text, tool_use)
// in the order in which the model wrote them; a stream is the same blocks, started, grown and
// stopped one after the other. One object "plumb" is ours: seed and fingerprint of the answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/answer_writer.h"
#include "api/json_writer.h"

namespace plumb::api {

// What of the request its answer depends on.
struct MessagesShape {
  uint64_t prompt_tokens = 0;
  bool show_thinking = true;  // false: a block of thinking is empty, its signature carries it
  bool warm_only = false;     // what is generated is thrown away
  bool reports_edits = false;
  bool hour_first = false;  // AnswerUsage::stored_tokens: the first ones are kept for an hour, not
                            // 5 minutes; the second ones never are
};

class MessagesWriter final : public AnswerWriter {
 public:
  MessagesWriter(AnswerHead head, MessagesShape shape);

  void Begin(std::string_view system_fingerprint) override { fingerprint_ = system_fingerprint; }
  void StartStream(std::string& out) override;
  void Part(uint32_t sample, const text::AnswerDelta& part,
            std::span<const engine::TokenLogprob> logprobs, std::string& out) override;
  void EndSample(uint32_t sample, const SampleEnd& end, std::string& out) override;
  void EndStream(const AnswerUsage& usage, std::string& out) override;
  void Fail(const ApiError& error, std::string& out) override;
  std::string Whole(std::span<const SampleAnswer> samples, const AnswerUsage& usage) override;

 private:
  AnswerUsage Shown(AnswerUsage usage) const;
  void OpenBlock(const text::AnswerDelta& part, std::string& out);
  void CloseBlock(std::string& out);
  void Delta(std::string_view type, std::string_view member, std::string_view text,
             std::string& out) const;
  std::string StopReason(const SampleEnd& end, uint32_t calls) const;
  // The members of a message, in an object that is open.
  void WriteMessage(JsonWriter& json, std::string_view blocks, std::string_view stop_reason,
                    std::string_view stop) const;

  const AnswerHead head_;
  const MessagesShape shape_;
  std::string fingerprint_;
  // Of a stream:
  std::optional<text::AnswerDelta::Kind> open_;  // what the open block holds; a call: kArguments
  uint32_t blocks_ = 0;                          // closed ones
  uint32_t calls_ = 0;                           // begun
  std::string thinking_;                         // of the open block
  SampleEnd end_;
};

}  // namespace plumb::api
