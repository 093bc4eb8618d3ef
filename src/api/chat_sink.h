// api/chat_sink.h
// One accepted chat request on its way back: token events in, one HTTP answer out, whole or
// streamed. The one idea: whatever happens, the exchange is answered once and ended once, and the
// owner is told once, when the generator has no more to say (which may be later than the answer,
// after an error). Read next: api/live_requests.h (the owner), api/chat_response.h (the JSON).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/chat_response.h"
#include "api/errors.h"
#include "api/fingerprints.h"
#include "engine/generator.h"
#include "net/http_server.h"
#include "text/answer_parser.h"
#include "text/tokenizer.h"

namespace plumb::api {

// What the answer is to look like; known once the request has been read.
struct ChatAnswer {
  ChatHead head;  // system_fingerprint: filled in when the answer begins
  uint32_t samples = 1;
  bool stream = false;
  const Fingerprints* fingerprints = nullptr;  // borrowed; not null
  // What takes the text of each sample apart.
  std::vector<std::unique_ptr<text::AnswerParser>> parsers;
  std::vector<std::string> prompt_stops;  // stop strings that end an answer as its model would
};

// A resource type. Thread: one at a time; first the thread that reads the request, then (after
// Begin and Submit) the generator's.
class ChatSink final : public engine::EventSink {
 public:
  // How an answer ended and what it took; for metrics and logs.
  struct Summary {
    std::string request_id;
    int http_status = 200;  // of the answer or of the error that ended the stream; 499: client left
    base::Status failure;   // with its inner words, for the log
    ChatUsage usage;
    base::Duration to_first_token;  // zero when none came
    base::Duration total;
  };
  // Called once, as the sink's last act: it may destroy the sink.
  using Done = std::function<void(const Summary& summary)>;

  // `request_id` goes out as X-Request-Id. Borrows generator, tokenizer and clock.
  ChatSink(engine::RequestId id, std::string request_id,
           std::unique_ptr<net::HttpExchange> exchange, engine::Generator& generator,
           const text::Tokenizer& tokenizer, const base::Clock& clock, Done done);

  // Before Submit: answers with the error instead, and is done.
  void Fail(const base::Status& status);
  // Before Submit: what the events will become.
  void Begin(ChatAnswer answer);
  // For the owner, before Submit: runs on an I/O thread when the client leaves early.
  void OnClientLeft(std::function<void()> callback);

  void OnEvent(engine::TokenEvent event) override;

 private:
  struct Sample {
    ChatChoice choice;  // whole answers: what has come so far
    std::unique_ptr<text::AnswerParser> parser;
    uint32_t calls = 0;  // begun
    bool finished = false;
  };

  void OnText(const engine::TokenEvent& event);
  // Parsed text, of whole and streamed answers alike; with the log-probabilities that came with it.
  void Publish(uint32_t sample_index, std::span<const text::AnswerDelta> deltas,
               std::span<const engine::TokenLogprob> logprobs);
  // What the text adds up to is known at the end only.
  std::string_view EndSample(uint32_t sample_index, const engine::Finish& finish);
  void OnFinish(uint32_t sample_index, const engine::Finish& finish);
  void StartStream();
  void Send(std::string_view json);
  // Answers with the error (or ends the stream by it) and cancels the other samples.
  void Abort(const base::Status& status);
  void Complete();
  void Answer(net::HttpResponse response);
  void TellDone();

  const engine::RequestId id_;
  const std::unique_ptr<net::HttpExchange> exchange_;
  engine::Generator& generator_;
  const text::Tokenizer& tokenizer_;
  const base::Clock& clock_;
  const Done done_;
  const base::Instant start_;

  ChatAnswer answer_;
  std::optional<ChatChunks> chunks_;  // streams only
  std::vector<Sample> samples_;
  uint32_t samples_finished_ = 0;
  uint32_t weights_version_ = 0;
  bool stream_started_ = false;
  bool ended_ = false;        // the exchange has its whole answer
  bool client_left_ = false;  // before it had it
  Summary summary_;
};

}  // namespace plumb::api
