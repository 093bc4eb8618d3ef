// api/service.h
// The HTTP face of plumb: one routing table by exact path and method, authorisation on the routed
// handler, and the endpoints behind it. Wired by cli: generator, then service, then server; stopped
// in the opposite order. Read next: api/generations.h, api/models.h, api/health.h.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/batches.h"
#include "api/chat_dialect.h"
#include "api/completion_dialect.h"
#include "api/cors.h"
#include "api/embedding_dialect.h"
#include "api/generations.h"
#include "api/host_policy.h"
#include "api/messages_dialect.h"
#include "api/models.h"
#include "api/responses_dialect.h"
#include "api/responses_store.h"
#include "api/routes.h"
#include "api/tokenize_dialect.h"
#include "base/clock.h"
#include "base/status.h"
#include "engine/generator.h"
#include "net/http_server.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "tenancy/api_key.h"
#include "tenancy/limiter.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace plumb::api {

struct ServiceConfig {
  ModelCard model;
  // model_names, limits.vocabulary_size and .abilities are filled in.
  GenerationOptions generations;
  EmbeddingOptions embeddings;
  ResponsesStoreLimits responses;
  CorsPolicy cors;            // web pages of other origins that may call
  std::string version = "0";  // of plumb, for api/openapi.h
  HostPolicy hosts;           // what requests may call this server
};

// Borrowed for the service's life.
struct ServiceParts {
  engine::Generator& generator;
  const text::Tokenizer& tokenizer;
  const text::ChatFormat& chat_format;
  const tenancy::ApiKeys& keys;
  telemetry::Metrics& metrics;  // built with Service::RoutePatterns()
  telemetry::Logger& logger;
  const base::Clock& clock;
  // Ok when the generator takes requests and makes progress; the message goes to whoever asks
  // /ready. Thread: any; must not block.
  std::function<base::Status()> ready;
  // Copies numbers kept elsewhere into `metrics` before they are shown; may be empty. Thread: any.
  std::function<void()> refresh_metrics;
  text::GrammarCompiler* grammars = nullptr;  // null: requests that need one are refused
  // Has the limits of every key, by its index; null: nobody has a limit.
  tenancy::Limiter* limiter = nullptr;
};

//   route                          key needed   answers
//   POST /v1/chat/completions      yes          api/chat_dialect.h
//   POST /v1/completions           yes          api/completion_dialect.h
//   POST /v1/embeddings            yes          api/embedding_dialect.h
//   POST /v1/tokenize, /v1/detokenize  yes      api/tokenize_dialect.h
//   POST /v1/messages, /v1/messages/count_tokens  yes  api/messages_dialect.h
//   /v1/responses and below it     yes          api/responses_dialect.h, api/responses_calls.h
//   /v1/files and below it         yes          api/file_calls.h; 404 without a data folder
//   /v1/batches and below it       yes          api/batch_calls.h; likewise
//   GET  /v1/models, /v1/models/M  yes          api/models.h
//   GET  /, /console/F             no           api/console.h
//   GET  /openapi.json             no           api/openapi.h
//   GET  /metrics                  yes          Prometheus text; open like all else without keys
//   GET  /health                   no           200 while the process lives
//   GET  /ready                    no           200 only when a request can be served, else 503
//
// A resource type. Thread: any, for every method.
class Service final : public net::HttpHandler {
 public:
  // `data`: where files and batches are kept; null: they are not served.
  Service(const ServiceConfig& config, ServiceParts parts,
          std::unique_ptr<DataFolder> data = nullptr);
  ~Service() override;  // Stop()

  // HttpServerOptions::drain_paths should hold these: they answer to the end.
  static std::vector<std::string> DrainPaths() { return {"/health", "/ready", "/metrics"}; }
  // The values of the label `route` in metrics.
  static std::vector<std::string> RoutePatterns();

  void OnRequest(net::HttpRequest request, std::unique_ptr<net::HttpExchange> exchange) override;
  // By what OnRequest would say of the header; a key's callers share what bodies may take.
  net::HttpAdmission Admit(const net::HttpRequest& head) override;
  net::HttpResponse FormatRefusal(const net::HttpRefusal& refusal) const override;

  // From now on /ready says 503 and new requests get 503 with Retry-After; running ones go on.
  // Batches ask no more lines, and go on when the server is started again.
  void BeginDrain();
  // Cancels what still runs and waits for the generator's confirmation: after the server's
  // Shutdown, before the generator is destroyed.
  void Stop();

  // To be called about once a second: keeps the connections of waiting streams open.
  void KeepAlive() { generations_.KeepAlive(); }

  // The generator is about to answer with weights of this version.
  void AddWeights(uint32_t version, std::string fingerprint) {
    generations_.AddWeights(version, std::move(fingerprint));
  }

  // Requests for answers, accepted and not yet ended.
  size_t live_requests() const { return generations_.live(); }

 private:
  std::vector<Route> MakeRoutes();
  void AddConsole(std::vector<Route>& routes);
  // An endpoint whose answers are a dialect's. What only counts or cuts a text takes no
  // Idempotency-Key: its answer is the same whenever it is asked for.
  enum class Computes { kAnswers, kCounts };
  Route AnswerRoute(const Dialect& dialect, Computes computes = Computes::kAnswers);

  void AddResponsesRoutes(std::vector<Route>& routes);
  void AddDataRoutes(std::vector<Route>& routes);

  // The dialects that a batch's lines may speak.
  std::vector<const Dialect*> BatchDialects() const {
    return {&chat_, &completions_, &responses_, &embeddings_};
  }
  std::unique_ptr<Batches> MakeBatches(std::unique_ptr<DataFolder> data);
  void SendLine(LineRequest line);

  // What the header alone decides. `call` gets its route, names and caller.
  struct Decision {
    const Route* route = nullptr;  // null: refused
    net::HttpResponse refusal;     // not yet named or counted
  };
  Decision Decide(const net::HttpRequest& request, Call& call) const;
  Decision DecideWithoutRoute(const net::HttpRequest& request, FoundRoute found, Call& call) const;
  std::optional<ApiError> WhyNot(const Route& route, const net::HttpRequest& request,
                                 Call& call) const;
  void ServeModel(Call call);
  void ServeMetrics(Call call);
  base::Status Ready() const;
  void CountAndName(const Call& call, net::HttpResponse& response);
  // The file, when there is one, follows the body.
  void Answer(Call& call, net::HttpResponse response,
              std::shared_ptr<const base::MappedFile> file = nullptr);
  void Refuse(Call& call, ErrorShape shape, ApiError error);

  const ModelCard model_;
  const CorsPolicy cors_;
  const std::string openapi_;  // the document
  const HostPolicy hosts_;
  const ServiceParts parts_;
  const GenerationOptions generation_options_;
  const ChatDialect chat_;
  const CompletionDialect completions_;
  const EmbeddingDialect embeddings_;
  const TokenizeDialect tokenize_;
  const DetokenizeDialect detokenize_;
  const MessagesDialect messages_;
  const MessagesDialect message_counts_;
  ResponsesStore responses_store_;
  const ResponsesDialect responses_;
  const ResponsesCountDialect responses_count_;
  Generations generations_;                 // destroyed before the dialects, which it borrows
  const std::unique_ptr<Batches> batches_;  // null: no files, no batches
  const std::vector<Route> routes_;
  std::atomic<bool> draining_{false};
};

}  // namespace plumb::api
