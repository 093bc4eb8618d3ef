// api/generations.h
// Requests for answers, in every dialect, from body to engine. The I/O thread only checks that
// there is room; reading, templating and tokenising happen on a few workers behind a bounded queue,
// since a long prompt takes milliseconds that other connections must not wait for. From Submit on,
// the generator's thread drives the sink. Read next: api/dialect.h, api/answer_sink.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/dialect.h"
#include "api/fingerprints.h"
#include "api/generation_request.h"
#include "api/idempotency.h"
#include "api/live_requests.h"
#include "api/prompt_feeds.h"
#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/thread.h"
#include "engine/generator.h"
#include "net/http_server.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "tenancy/limiter.h"
#include "text/chat_format.h"
#include "text/grammar_compiler.h"
#include "text/token_cache.h"
#include "text/tokenizer.h"

namespace plumb::api {

struct GenerationOptions {
  std::vector<std::string> model_names;  // all that requests may ask for
  std::string system_fingerprint;        // of the weights that the server starts with
  uint32_t context_max = 0;              // tokens, prompt and answer together
  RequestLimits limits;
  uint32_t live_max = 1024;              // requests accepted and not yet ended
  uint32_t workers = 2;                  // threads that read and tokenise
  uint32_t queue_max = 256;              // requests (and log lines) that wait for one of them
  uint64_t queue_bytes_max = 64u << 20;  // of their bodies
  uint32_t retry_after_ms = 2000;        // told to whoever is refused for lack of room
  // Ids of texts that callers have sent before (text/token_cache.h); 0: none are kept.
  uint64_t token_cache_bytes_max = 64u << 20;
  // Log-probabilities that one whole (not streamed) answer may hold: samples x tokens x (1 + top).
  uint64_t whole_logprobs_max = 1u << 19;
  IdempotencyLimits idempotency;
  SilenceLimits keep_alive{.stream = base::Seconds(15), .whole = base::Seconds(25)};
};

// One request on its way in.
struct Arrival {
  BodyOrigin origin;  // complete but for the id
  std::string body;
  uint32_t caller = 0;  // whose limits hold: index of the key, 0 where there are no keys
  std::unique_ptr<net::HttpExchange> exchange;
  // A line of a batch: at batch priority, whatever it says, and as long as it takes; also
  // tenancy::Reservation.
  bool batch = false;
};

// A resource type. Thread: any, for every method.
class Generations {
 public:
  // All borrowed for this object's life.
  struct Parts {
    engine::Generator& generator;
    const text::Tokenizer& tokenizer;
    const text::ChatFormat& chat_format;
    const base::Clock& clock;
    telemetry::ApiMetrics& metrics;
    telemetry::Logger& logger;
    text::GrammarCompiler* grammars = nullptr;  // null: requests that need one are refused
    tenancy::Limiter* limiter = nullptr;        // null: nobody has a limit
  };

  Generations(GenerationOptions options, Parts parts);
  ~Generations();  // Stop()
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;

  // Never blocks; the answer comes through the exchange, here (503: no room; 429: a limit) or
  // later. The dialect lives as long as this object.
  void Handle(const Dialect& dialect, Arrival arrival);

  // AnswerSink::KeepAlive of each, by options.keep_alive; to be called now and then.
  void KeepAlive();

  // What the token cache counts, into the metrics; to be called before they are shown.
  void CopyMetrics();

  // Ends a request that is running, as when its client leaves; an unknown id is no error.
  void Cancel(engine::RequestId id) { live_.ClientLeft(id); }
  // The copy of an answer that its caller has deleted; an unknown id (IdempotencyId) is no error.
  void ForgetAnswer(const IdempotentCopy& copy) { idempotency_.Forget(copy); }

  // Refuses what waits, cancels what runs, and returns when the generator has confirmed all of it.
  // The generator must still be alive; call after the HTTP server's Shutdown. Idempotent.
  void Stop();

  size_t live() const { return live_.size(); }

  // The generator is about to answer with weights of this version (api/fingerprints.h).
  void AddWeights(uint32_t version, std::string fingerprint) {
    fingerprints_.Add(version, std::move(fingerprint));
  }

 private:
  struct ReadJob {
    engine::RequestId id;
    const Dialect* dialect;
    BodyOrigin origin;
    std::string body;
    uint32_t caller = 0;  // Arrival
    bool batch = false;   // Arrival
  };
  // A line for the log, which the generator's thread must not write itself.
  struct LogJob {
    AnswerSink::Summary summary;
  };
  using Job = std::variant<ReadJob, LogJob>;

  void RunWorker();
  bool Enqueue(ReadJob job);
  void Read(const ReadJob& job);
  void Serve(const ReadJob& job, AnswerSink& sink);
  // What becomes of a body that has been read; ok: the sink has been told all.
  base::Status Answer(const ReadJob& job, ReadBody read, AnswerSink& sink);
  // The answer that a request with this key had: then the sink is done, and false is returned.
  base::Result<bool> IsNew(const ReadJob& job, AnswerSink& sink);
  // Takes what the request may need of its caller's tokens; where that is more than there ever
  // are, the answer gets what the prompt leaves of them.
  base::Status Reserve(const ReadJob& job, GenerationRequest& request,
                       const std::vector<text::ChatPrompt>& prompts, AnswerSink& sink) const;
  void Ended(engine::RequestId id, const AnswerSink::Summary& summary);
  void Log(const AnswerSink::Summary& summary);
  base::Status CheckModel(const std::string& name) const;
  // The prompts as the engine takes them: of the conversation, or each raw one.
  base::Result<std::vector<text::ChatPrompt>> Encode(const GenerationRequest& request,
                                                     const ReadJob& job);
  // Whether each prompt leaves room for an answer; sets request.tokens_max to what the longest
  // leaves where that is less than was asked for.
  base::Status CheckSize(GenerationRequest& request, const std::vector<text::ChatPrompt>& prompts,
                         const Dialect& dialect) const;
  // What the marks of a conversation ask for, of its one prompt.
  std::vector<engine::RetentionHint> HintsFor(const GenerationRequest& request,
                                              const std::vector<text::ChatPrompt>& prompts,
                                              const ReadJob& job);
  base::Result<engine::Request> Build(const ReadJob& job, const GenerationRequest& request,
                                      text::ChatPrompt prompt, uint32_t number) const;
  AnswerPlan PlanFor(engine::RequestId id, const ReadBody& read,
                     const std::vector<text::ChatPrompt>& prompts);
  void Submit(engine::RequestId id, AnswerSink& sink, std::vector<engine::Request> prompts);

  const GenerationOptions options_;
  const Parts parts_;
  Fingerprints fingerprints_;
  text::TokenCache token_cache_;
  IdempotencyStore idempotency_;
  LiveRequests live_;
  PromptFeeds feeds_;
  base::BoundedQueue<Job> queue_;
  std::atomic<uint64_t> queue_bytes_{0};
  std::vector<base::Thread> workers_;
};

}  // namespace plumb::api
