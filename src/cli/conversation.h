// cli/conversation.h
// What has been said, the settings of the next answer, and the request body they make. No terminal
// and no model here. Read next: cli/chat.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/talker.h"
#include "text/chat_template.h"

namespace plumb::cli {

// Absent = the server's own default.
struct ChatSampling {
  std::optional<float> temperature = 0.7f;
  std::optional<float> top_p;
  std::optional<uint32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  uint32_t max_tokens = 1024;  // 0 = to the context's end
};

// A value type.
class Conversation {
 public:
  Conversation(ChatSampling sampling, std::string system)
      : sampling_(std::move(sampling)), system_(std::move(system)) {}

  // The body of a streamed chat completion that asks for the answer to `user` after all before it.
  std::string BodyFor(const std::string& model, std::string_view user) const;
  // Both have become history. An answer cut short is kept as far as it came.
  void Add(std::string user, std::string answer);

  void Reset() { history_.clear(); }
  void SetSystem(std::string system) { system_ = std::move(system); }
  const std::string& system() const { return system_; }
  size_t turns() const { return history_.size() / 2; }

 private:
  ChatSampling sampling_;
  std::string system_;
  std::vector<text::ChatMessage> history_;  // user and assistant in turn
};

}  // namespace plumb::cli
