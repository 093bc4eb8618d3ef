// cli/talker.h
// Who answers in `plumb chat`: a model in this process, or a server. Both take the body of a chat
// completion request and give the answer in pieces, so that the conversation cannot tell them
// apart. Read next: cli/local_talker.cc, cli/remote_talker.cc, cli/chat.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/answer_parser.h"
#include "text/chat_format.h"

namespace plumb::cli {

// How an answer ended. `status` not ok: it failed, and what came so far is not an answer.
struct AnswerEnd {
  base::Status status;
  std::string finish_reason;  // "stop", "length", "tool_calls", "cancelled"
  uint64_t prompt_tokens = 0;
  uint64_t completion_tokens = 0;
  std::optional<int64_t> seed;
};

struct AnswerPiece {
  std::vector<text::AnswerDelta> deltas;  // whole characters
  std::optional<AnswerEnd> end;           // set exactly once, on the last piece
};

class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // Thread: the talker's; must not block.
  virtual void OnPiece(AnswerPiece piece) = 0;
};

// Thread: main. One answer at a time.
class Talker {
 public:
  virtual ~Talker() = default;

  // "smollm2-135m", as `model` in a request.
  virtual const std::string& model() const = 0;
  // As far as is known; of a server, nothing is.
  virtual text::ChatAbilities abilities() const { return {}; }

  // Ok: the sink gets pieces until the one with `end`, and must live until then. Else the request
  // was refused, and the sink is not called.
  virtual base::Status Start(const std::string& body, AnswerSink& sink) = 0;
  // The answer that was started ends soon, as cancelled. No effect when there is none.
  virtual void Cancel() = 0;
};

}  // namespace plumb::cli
