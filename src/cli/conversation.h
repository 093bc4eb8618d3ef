// cli/conversation.h
// What has been said, the settings of the next answer, and the request body they make. No terminal
// and no model here. A conversation in which the model has called tools goes on with their results.
// Read next: cli/chat.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cli/answer_printer.h"
#include "text/chat_input.h"

namespace plumb::cli {

// Absent = the server's own default.
struct ChatSampling {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<uint32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  uint32_t max_tokens = 1024;     // 0 = to the context's end
  std::string thinking = "auto";  // "on", "off"; auto = as the model does
  std::string effort;             // "low", "high", "42"; empty likewise
  std::string tools_json;         // an array, as `tools` in a request; empty = none
};
constexpr float kTemperatureUsual = 0.7f;

// A value type.
class Conversation {
 public:
  Conversation(ChatSampling sampling, std::string system)
      : sampling_(std::move(sampling)), system_(std::move(system)) {}

  // The body of a streamed chat completion that asks for the answer to `text` after all before it.
  // `text` is what the user says; or, while a call waits, its result.
  std::string BodyFor(const std::string& model, std::string_view text) const;
  // Both have become history. An answer cut short is kept as far as it came.
  void Add(std::string text, AnswerText answer);
  // A result, when more calls than one wait: the last of them goes with BodyFor.
  void AddResult(std::string text);
  // The calls whose results the model waits for, the next one first.
  std::span<const text::ToolCall> waiting() const { return waiting_; }

  void Reset() {
    history_.clear();
    waiting_.clear();
  }
  void SetSystem(std::string system) { system_ = std::move(system); }
  const std::string& system() const { return system_; }
  size_t turns() const { return history_.size() / 2; }  // without calls

 private:
  ChatSampling sampling_;
  std::string system_;
  text::ChatMessage NextMessage(std::string_view text) const;

  std::vector<text::ChatMessage> history_;  // user (or results) and assistant in turn
  std::vector<text::ToolCall> waiting_;     // of the newest answer
};

// Whether `json` is a list of tools as a chat request takes it. kInvalidArgument: the message names
// the member at fault ("tools[0].function.name").
base::Status CheckTools(std::string_view json);
// Whether there is such an effort; empty is none given. kInvalidArgument, field "--effort".
base::Status CheckEffort(const std::string& effort);

}  // namespace plumb::cli
