// api/dialect.h
// One HTTP API for asking a model: how a body becomes a GenerationRequest, how the answer and
// errors are shaped. Everything between is the same for all (api/generations.h). Implementations:
// api/chat_dialect.h and its neighbours.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_writer.h"
#include "api/errors.h"
#include "api/generation_request.h"
#include "api/limit_headers.h"
#include "base/hash.h"
#include "base/result.h"
#include "net/http.h"

namespace plumb::api {

// Where a body came from.
struct BodyOrigin {
  base::Hash256 isolation;  // engine::Request: equal for one caller's requests, and for no others
  std::string request_id;
  engine::RequestId id{};       // of the first prompt
  std::string idempotency_key;  // the header's (api/idempotency.h); empty: none
  std::string anthropic_beta;   // the header's; empty: none
};

// The prompts as the engine gets them, for whoever repeats or counts them.
struct ReadPrompt {
  std::vector<base::TokenId> tokens;
};

struct ReadBody {
  GenerationRequest request;
  // Makes the answer's writer, once, when the prompts are known; `head` is complete. Thread: a
  // worker's. What it captures must live as long as the server or be owned by it.
  std::function<std::unique_ptr<AnswerWriter>(AnswerHead head, std::vector<ReadPrompt> prompts)>
      writer;
  // Instead of the writer: the whole body of an answer that tells of the prompts and generates
  // nothing. Thread: a worker's.
  std::function<std::string(const std::vector<ReadPrompt>& prompts)> count;
  // Instead of both: the whole body of an answer that needs no prompt made. `request` then only
  // says the model, and the served one when it says none.
  std::optional<std::string> answer;
  // Of an error about the prompt: the same in the places and words of this dialect's body. Empty:
  // they are those of Chat Completions, or the dialect has no others.
  std::function<base::Status(const base::Status& status)> reword;
  // The client has AnswerWriter::Accepted at once and waits for no more; what is generated is the
  // writer's to keep. Not with `stream`.
  bool detached = false;
};

// Immutable; lives as long as the server. Thread: any.
class Dialect {
 public:
  virtual ~Dialect() = default;

  // The path of its endpoint, and what metrics and logs call it.
  virtual std::string_view route() const = 0;
  // Before the body: kInvalidArgument with a header's name as field. Thread: an I/O thread.
  virtual base::Status CheckHeaders(const net::HttpHeaders&) const { return base::OkStatus(); }
  // kInvalidArgument with the field's path; reason "request_too_large" for a body above the limit.
  // Takes time in proportion to the body.
  virtual base::Result<ReadBody> Read(std::string_view body, const BodyOrigin& origin) const = 0;
  // Makes the whole answer to a request that failed before its stream began.
  virtual net::HttpResponse (*error_shape() const)(const ApiError& error) { return ErrorResponse; }
  net::HttpResponse ErrorAnswer(const ApiError& error) const { return error_shape()(error); }
  // How what the caller has left is told in its headers.
  virtual net::HttpHeaders LimitHeaders(const tenancy::LimitReport& report,
                                        int64_t unix_seconds) const {
    return OpenAiLimitHeaders(report, unix_seconds);
  }
  // The name that CheckSize's errors give the prompt and the answer's length in this dialect.
  virtual std::string_view prompt_field() const = 0;
  virtual std::string_view length_field() const = 0;
  // What CheckSize says of a prompt that leaves no room for the answer; empty: in the usual words.
  virtual std::string TooLongMessage(uint64_t /*prompt_tokens*/, uint64_t /*context_max*/) const {
    return {};
  }
};

}  // namespace plumb::api
