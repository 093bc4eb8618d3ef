// api/answer_sink.h
// One accepted request on its way back: token events in, one HTTP answer out, whole or streamed, in
// whatever dialect. The one idea: whatever happens, the exchange is answered once and ended once,
// and the owner is told once, when the generator has no more to say (which may be later than the
// answer, after an error). Read next: api/live_requests.h (the owner), api/answer_writer.h (the
// shape).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/answer.h"
#include "api/answer_writer.h"
#include "api/dialect.h"
#include "api/fingerprints.h"
#include "api/idempotency.h"
#include "base/try_mutex.h"
#include "engine/generator.h"
#include "net/http_server.h"
#include "tenancy/limiter.h"
#include "text/answer_parser.h"
#include "text/reasoning_meter.h"
#include "text/tokenizer.h"

namespace plumb::api {

// How long an answer may be silent before AnswerSink::KeepAlive writes; zero: for ever.
struct SilenceLimits {
  base::Duration stream;
  base::Duration whole;
};

// What the answer is to look like; known once the request has been read.
struct AnswerPlan {
  std::unique_ptr<AnswerWriter> writer;
  uint32_t prompts = 1;
  uint32_t samples = 1;  // of each prompt
  bool stream = false;
  bool detached = false;  // ReadBody
  // Whole: its client may get the status, and empty lines, before the answer is known. Without it
  // each end has its own status, whenever it comes.
  bool may_begin_early = true;
  bool logprobs = false;
  const Fingerprints* fingerprints = nullptr;  // borrowed; not null
  // What takes the text of each sample apart; prompts * samples.
  std::vector<std::unique_ptr<text::AnswerParser>> parsers;
  // Likewise what counts its tokens of reasoning; with the tokenizer, borrowed, whose tokens come,
  // and what ends reasoning, which they look for.
  std::vector<text::ReasoningMeter> meters = {};
  const text::Tokenizer* tokenizer = nullptr;
  std::vector<std::string> reasoning_ends = {};
  std::vector<std::string> prompt_stops;  // stop strings that end an answer as its model would
  // Called after each sample's end as long as others are left, with no lock held; may be empty.
  std::function<void()> prompt_ended = {};
};

// A resource type. Thread: any; calls are put in order here, and no lock is held while calling
// `done`.
class AnswerSink final {
 public:
  // How an answer ended and what it took; for metrics and logs.
  struct Summary {
    std::string request_id;
    std::string_view route;  // Dialect::route
    int http_status = 200;  // of the answer or of the error that ended the stream; 499: client left
    base::Status failure;   // with its inner words, for the log
    AnswerUsage usage;
    base::Duration to_first_token;  // zero when none came
    base::Duration total;
  };
  // Called once, as the sink's last act: it may destroy the sink.
  using Done = std::function<void(const Summary& summary)>;

  // The requests that a sink gets events of: the generator knows the prompt with number k by
  // `id` + k, of at most kPromptsMax. `request_id` goes out as X-Request-Id. Borrows dialect,
  // generator and clock.
  AnswerSink(engine::RequestId id, std::string request_id, const Dialect& dialect,
             std::unique_ptr<net::HttpExchange> exchange, engine::Generator& generator,
             const base::Clock& clock, Done done);
  ~AnswerSink();

  // Before anything else: one request of its caller's limits. Then, before Begin: so many of its
  // tokens. What is not used is given back before the end of the answer is told. Every answer from
  // then on says what is left. Errors: tenancy::Limiter's. Borrows the limiter.
  base::Status Enter(tenancy::Limiter& limiter, tenancy::Reservation held);
  base::Status Reserve(uint64_t tokens);
  // Before Begin: the answer is also copied, and kept if it comes to its end.
  void CopyTo(std::unique_ptr<AnswerCopy> copy);
  // Before Submit: answers with the error instead, and is done.
  void Fail(const base::Status& status);
  // Instead of Begin and Submit: answers with that, and is done.
  void AnswerNow(net::HttpResponse response);
  // Before Submit: what the events will become. A detached request's client is answered here.
  void Begin(AnswerPlan plan);
  // For the owner, before Submit: runs on an I/O thread when the client leaves early.
  void OnClientLeft(std::function<void()> callback);

  // Where the events of a prompt go; after Begin, for the sink's life.
  engine::EventSink& prompt(uint32_t number);
  // The generator did not take the prompts from `first` on, so no events of theirs will come. With
  // first = 0 this is Fail.
  void NotSubmitted(uint32_t first, const base::Status& status);
  // Who asked wants the answer no more, and the generator is about to be told: what cuts it off is
  // not ours. Thread: any; never waits.
  void Withdraw() { withdrawn_.store(true); }
  // Whether the answer has ended already: what is still to come is for nobody.
  bool given_up();

  // Writes to a client that has heard nothing for so long: a comment into a stream, an empty line
  // before a whole answer, which JSON's readers skip. Where nothing was sent yet it begins the
  // answer, so that an error is told in its body. Never waits, and calls neither the generator nor
  // `done`.
  void KeepAlive(const SilenceLimits& silence);

 private:
  struct Prompt;
  struct Sample {
    SampleAnswer answer;  // whole answers: what has come so far
    std::unique_ptr<text::AnswerParser> parser;
    bool finished = false;
  };

  // Does `work` with mutex_ held; then what it has left to do without: calling done_ when every
  // sample has ended, else cancelling.
  template <typename Work>
  void Locked(Work work);
  void Take(uint32_t prompt, const engine::TokenEvent& event);  // OnEvent, Locked

  void OnEvent(uint32_t prompt, const engine::TokenEvent& event) HOLDS(mutex_);
  void CountReasoning(uint32_t sample_index, const engine::TokenEvent& event) HOLDS(mutex_);
  void OnFinish(uint32_t prompt, uint32_t sample_index, const engine::Finish& finish) HOLDS(mutex_);
  // Parsed text, of whole and streamed answers alike; with the log-probabilities that came with it.
  void Publish(uint32_t sample_index, std::span<const text::AnswerDelta> parts,
               std::span<const engine::TokenLogprob> logprobs) HOLDS(mutex_);
  // What the text adds up to is known at the end only.
  void EndSample(uint32_t sample_index, const engine::Finish& finish) HOLDS(mutex_);
  void BeginWriting() HOLDS(mutex_);
  void OpenStream() HOLDS(mutex_);   // headers, before the answer is known
  void StartStream() HOLDS(mutex_);  // what the writer says first
  void Write(std::string_view bytes) HOLDS(mutex_);
  void Send() HOLDS(mutex_);  // what stands in frames_
  // What is held of the limits; once, when nothing more will be computed.
  void Settle() HOLDS(mutex_);
  // Both before the end of the answer is told, since whoever knows of it may ask again.
  net::HttpResponse Kept(std::string body) HOLDS(mutex_);
  void Keep(std::string_view content_type) HOLDS(mutex_);  // what has been copied
  void Abort(const base::Status& status) HOLDS(mutex_);
  void Complete() HOLDS(mutex_);
  void Answer(net::HttpResponse response) HOLDS(mutex_);
  void Respond(net::HttpResponse response) HOLDS(mutex_);
  Summary Conclude() HOLDS(mutex_);  // the last, when every sample has ended

  const engine::RequestId id_;
  const Dialect& dialect_;
  const std::unique_ptr<net::HttpExchange> exchange_;
  engine::Generator& generator_;
  const base::Clock& clock_;
  const Done done_;
  const base::Instant start_;

  base::TryMutex mutex_;
  AnswerPlan plan_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Prompt>> prompts_ GUARDED_BY(mutex_);
  // Prompt * plan_.samples + sample of the prompt.
  std::vector<Sample> samples_ GUARDED_BY(mutex_);
  size_t samples_finished_ GUARDED_BY(mutex_) = 0;
  uint32_t cancels_ GUARDED_BY(mutex_) = 0;  // prompts that the generator is to give up
  uint32_t weights_version_ GUARDED_BY(mutex_) = 0;
  // The owner of plan_.prompt_ended is to hear of it.
  bool sample_ended_ GUARDED_BY(mutex_) = false;
  bool writing_ GUARDED_BY(mutex_) = false;         // the writer has begun
  bool stream_open_ GUARDED_BY(mutex_) = false;     // OpenStream; of a whole answer, too
  bool stream_started_ GUARDED_BY(mutex_) = false;  // its writer has begun it
  bool ended_ GUARDED_BY(mutex_) = false;           // answered to the end, or given up
  bool client_left_ GUARDED_BY(mutex_) = false;
  std::string frames_ GUARDED_BY(mutex_);
  net::HttpHeaders limit_headers_ GUARDED_BY(mutex_);
  tenancy::Limiter* limiter_ GUARDED_BY(mutex_) = nullptr;
  std::optional<tenancy::Reservation> held_ GUARDED_BY(mutex_);
  std::unique_ptr<AnswerCopy> copy_ GUARDED_BY(mutex_);  // null: none is wanted, or no more
  Summary summary_ GUARDED_BY(mutex_);
  std::atomic<bool> withdrawn_{false};
  std::atomic<int64_t> last_sent_ns_;  // KeepAlive looks before it locks
};

}  // namespace plumb::api
