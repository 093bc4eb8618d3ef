// cli/serve.cc
// The composition of the server, in RunServe: engine, service, HTTP server, in this order, and
// stopped in the opposite one. Read next: api/service.h (what answers), engine/engine.h.
#include "cli/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "api/admin.h"
#include "api/service.h"
#include "base/disk.h"
#include "cli/report.h"
#include "cli/serve_data.h"
#include "cli/serve_keys.h"
#include "cli/serve_limits.h"
#include "cli/serve_metrics.h"
#include "cli/signals.h"
#include "cli/startup_gate.h"
#include "cli/ticker.h"
#include "cli/trace_file.h"
#include "cli/version_command.h"
#include "cli/weights_owner.h"
#include "net/address.h"
#include "net/http_server.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "tenancy/api_key.h"
#include "tenancy/local_limiter.h"

namespace plumb::cli {
namespace {

constexpr base::Duration kDrainPoll = base::Milliseconds(50);
// How long the last errors may take to reach clients that read slowly.
constexpr base::Duration kFarewellMax = base::Seconds(2);

// A connection is an open file, and the usual limit is 1024 of them: raised as far as the system
// allows, else fewer connections are taken, so that the ones too many get a 503 and not silence.
uint32_t GrantedConnections(uint32_t wanted) {
  constexpr rlim_t kOtherFiles = 128;  // refused connections, model, logs, pipes
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t needed = wanted + kOtherFiles;
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(limit.rlim_max, needed);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
  }
  if (limit.rlim_cur >= needed) return wanted;
  const rlim_t granted = limit.rlim_cur - std::min(limit.rlim_cur / 2, kOtherFiles);
  return std::max(1u, static_cast<uint32_t>(granted));
}

net::HttpServerOptions ServerOptions(const ServeSettings& settings) {
  net::HttpServerOptions options;
  options.host = settings.host;
  options.port = settings.port;
  options.limits.connections_max = GrantedConnections(settings.connections);
  AllowUploads(settings, options.limits);
  options.drain_paths = api::Service::DrainPaths();
  return options;
}

// One key may have half of what there is room for.
api::ResponsesStoreLimits KeptResponses(const ServeSettings& settings) {
  const uint64_t bytes = uint64_t{settings.responses_kept_mib} << 20;
  return {.answers_max = settings.responses_kept,
          .bytes_max = bytes,
          .caller_answers_max = (settings.responses_kept + 1) / 2,
          .caller_bytes_max = (bytes + 1) / 2};
}

// Who may call, from where, how much.
struct Callers {
  std::vector<CallerKey> keys;
  std::vector<tenancy::KeyLimits> limits;
  api::CorsPolicy cors;
  api::HostPolicy hosts;
};

base::Result<Callers> ReadCallers(const ServeSettings& settings) {
  Callers callers;
  ASSIGN_OR_RETURN(callers.keys, CollectKeys(settings));
  ASSIGN_OR_RETURN(callers.limits, ReadLimits(settings.limits, callers.keys));
  ASSIGN_OR_RETURN(callers.cors, api::CorsPolicy::FromOrigins(settings.cors_origins));
  ASSIGN_OR_RETURN(api::HostPolicy local, api::HostPolicy::Local(settings.allowed_hosts));
  if (callers.keys.empty()) callers.hosts = std::move(local);
  return callers;
}

api::ServiceConfig ServiceConfigFor(const ServeSettings& settings, LocalEngine& local,
                                    const base::Clock& clock, const Callers& callers) {
  api::ServiceConfig config;
  config.version = kVersion;
  config.cors = callers.cors;
  config.hosts = callers.hosts;
  config.generations.keep_alive = {.stream = base::Seconds(settings.keep_alive_seconds),
                                   .whole = base::Seconds(settings.keep_alive_whole_seconds)};
  config.generations.idempotency.bytes_max = settings.idempotency_memory;
  config.generations.idempotency.caller_bytes_max = (settings.idempotency_memory + 1) / 2;
  config.responses = KeptResponses(settings);
  config.model.names.push_back(local.id());
  for (const std::string& name : settings.names) config.model.names.push_back(name);
  config.model.created = clock.UnixSeconds();
  config.model.context_max = local.engine().context_max();
  config.embeddings = {
      .pooling = settings.pooling == "last" ? engine::Pooling::kLast : engine::Pooling::kMean,
      .dimensions = local.engine().info().hidden_width};
  config.generations.context_max = local.engine().context_max();
  // Whoever lets more clients in has them answered, as far as the engine takes their requests.
  config.generations.live_max = std::max(config.generations.live_max, settings.connections);
  config.generations.system_fingerprint = local.fingerprint();
  return config;
}

// A context that does not hold an empty message would refuse every request.
base::Status CheckContext(const LocalEngine& local, uint32_t context_max) {
  if (!local.can_chat()) return base::OkStatus();
  const text::ChatInput empty{.messages = {{.role = "user", .content = ""}}};
  const auto prompt = local.chat_format().Encode(empty, std::numeric_limits<uint32_t>::max());
  // A template may refuse an empty message: that is for its callers to hear.
  if (!prompt.ok() || prompt->tokens.size() < context_max) return base::OkStatus();
  return base::InvalidArgument(
      "--context", fmt::format("--context: {} tokens do not hold an empty conversation, which has "
                               "{} with this model; allow more",
                               context_max, prompt->tokens.size()));
}

// An error of net, with the flag at fault in front.
base::Result<std::unique_ptr<net::HttpServer>> Listen(const ServeSettings& settings,
                                                      net::HttpHandler& handler) {
  auto server = net::HttpServer::Start(ServerOptions(settings), handler);
  if (!server.ok()) return NamingFlag(server.status(), server.status().field());
  return server;
}

// Null without --admin-port. What operators send is small and rare.
base::Result<std::unique_ptr<net::HttpServer>> ListenToOperators(const ServeSettings& settings,
                                                                 net::HttpHandler& handler) {
  if (!settings.admin_port) return std::unique_ptr<net::HttpServer>();
  net::HttpServerOptions options;
  options.host = settings.admin_host;
  options.port = *settings.admin_port;
  options.limits.connections_max = 16;
  options.limits.body_bytes_max = 64u << 10;
  auto server = net::HttpServer::Start(options, handler);
  if (server.ok()) return server;
  const bool of_host = server.status().field() == "--host";
  const std::string flag = of_host ? "--admin-host" : "--admin-port";
  return base::Status(server.status().code(), flag + ": " + server.status().message())
      .WithField(flag);
}

// The engine's trace, when a file for it was asked for.
class Recorder {
 public:
  static base::Result<Recorder> Open(const std::string& path) {
    Recorder recorder;
    if (path.empty()) return recorder;
    recorder.path_ = path;
    // Before the work, not after it.
    const base::Status writable = base::WriteFileAtomic(path, ChromeTrace({}));
    if (!writable.ok()) return base::InvalidArgument("--trace", "--trace: " + writable.message());
    recorder.trace_ = std::make_unique<engine::EngineTrace>(kTraceSpansMax);
    return recorder;
  }
  engine::EngineTrace* trace() const { return trace_.get(); }
  base::Status Write() const {
    if (trace_ == nullptr) return base::OkStatus();
    const std::vector<engine::TraceSpan> spans = trace_->Spans();
    RETURN_IF_ERROR(base::WriteFileAtomic(path_, ChromeTrace(spans)));
    Print(TraceSummary(path_, spans) + "\n");
    return base::OkStatus();
  }

 private:
  std::string path_;
  std::unique_ptr<engine::EngineTrace> trace_;
};

base::Status EngineReady(const engine::Engine& engine) {
  if (engine.Healthy()) return base::OkStatus();
  return base::Status(base::Code::kUnavailable,
                      "the engine takes no requests or makes no progress");
}

void PrintGreeting(const ServeSettings& settings, const LocalEngine& local, uint16_t port,
                   bool key_needed) {
  const bool everywhere = settings.host == "0.0.0.0" || settings.host == "::";
  const std::string url =
      "http://" + net::FormatHostPort({everywhere ? "127.0.0.1" : settings.host, port});
  const std::string_view key = key_needed ? " -H \"Authorization: Bearer $PLUMB_API_KEY\"" : "";
  Print(fmt::format(
      "plumb {} serves {} on {}\n  {}\n"
      "try: curl -N {}/v1/chat/completions -H 'Content-Type: application/json'{} -d "
      "'{{\"model\": \"{}\", \"stream\": true, \"messages\": [{{\"role\": \"user\", \"content\": "
      "\"Why is the sky blue?\"}}]}}'\n",
      kVersion, local.id(), url, local.Summary(), url, key, local.id()));
}

void PrintAdminGreeting(const ServeSettings& settings, uint16_t port) {
  Print(fmt::format("operators: http://{}{}\n", net::FormatHostPort({settings.admin_host, port}),
                    api::Admin::kWeightsRoute));
}

// Refuses new requests and waits for the running ones: until all have ended, the deadline, or a
// second signal.
void Drain(uint32_t drain_seconds, Signals& signals, const base::Clock& clock,
           net::HttpServer& server, api::Service& service) {
  service.BeginDrain();
  server.BeginDrain();
  const size_t live = service.live_requests();
  if (live > 0) {
    Print(fmt::format("stopping: {} running, at most {} s (again to stop at once)\n", live,
                      drain_seconds));
  }
  const base::Instant deadline = clock.Now() + base::Seconds(drain_seconds);
  const uint32_t signals_before = signals.count();
  while (clock.Now() < deadline && signals.count() == signals_before) {
    if (server.WaitIdle(kDrainPoll)) break;
  }
}

}  // namespace

base::Status RunServe(const ServeSettings& settings, const VariableReader& variables) {
  IgnoreBrokenPipes();
  const base::SystemClock clock;
  ASSIGN_OR_RETURN(const Callers callers, ReadCallers(settings));
  ASSIGN_OR_RETURN(const std::vector<std::string> admin_texts,
                   CollectAdminKeys(settings, callers.keys));
  ASSIGN_OR_RETURN(const tenancy::ApiKeys keys, tenancy::ApiKeys::FromKeys(KeyTexts(callers.keys)));
  std::optional<tenancy::LocalLimiter> limiter;
  if (!callers.limits.empty()) limiter.emplace(callers.limits, clock);
  ASSIGN_OR_RETURN(const tenancy::ApiKeys admin_keys, tenancy::ApiKeys::FromKeys(admin_texts));
  ASSIGN_OR_RETURN(const telemetry::LogLevel level, telemetry::ParseLogLevel(settings.log_level));
  telemetry::Logger logger({.level = level, .json = settings.log_format == "json"});
  ASSIGN_OR_RETURN(Recorder recorder, Recorder::Open(settings.trace));

  // The ports first: whether they are free shows before the model is loaded.
  StartupGate gate, admin_gate;
  ASSIGN_OR_RETURN(const auto server, Listen(settings, gate));
  ASSIGN_OR_RETURN(const auto admin_server, ListenToOperators(settings, admin_gate));

  FileLock data_lock;
  ASSIGN_OR_RETURN(auto data, OpenData(settings, callers.keys.size(), clock, logger, data_lock));
  ASSIGN_OR_RETURN(EngineModels models, LocateEngineModels(settings.engine, variables));
  telemetry::Metrics metrics(api::Service::RoutePatterns(), std::string(kVersion),
                             models.target.id);
  ASSIGN_OR_RETURN(const std::unique_ptr<LocalEngine> local,
                   LocalEngine::Load(std::move(models), settings.engine,
                                     {clock, &metrics.engine, recorder.trace()}, ErrorTerminal()));
  RETURN_IF_ERROR(CheckContext(*local, local->engine().context_max()));
  engine::Engine& engine = local->engine();
  api::Service service(
      ServiceConfigFor(settings, *local, clock, callers),
      {.generator = engine,
       .tokenizer = local->tokenizer(),
       .chat_format = local->chat_format(),
       .keys = keys,
       .metrics = metrics,
       .logger = logger,
       .clock = clock,
       .ready = [&] { return EngineReady(engine); },
       .refresh_metrics = [&] { CopyMetrics(engine.stats(), server->stats(), metrics); },
       .grammars = &local->grammars(),
       .limiter = limiter ? &*limiter : nullptr},
      std::move(data));
  WeightsOwner weights(*local, clock, variables, [&](uint32_t version, const std::string& name) {
    service.AddWeights(version, name);
  });
  std::optional<api::Admin> admin;
  if (admin_server) admin.emplace(api::Admin::Parts{weights, admin_keys, logger, clock});
  Signals signals({SIGINT, SIGTERM});
  std::optional<Ticker> ticker(std::in_place, [&] { service.KeepAlive(); });
  gate.Open(service);
  if (admin) admin_gate.Open(*admin);
  PrintGreeting(settings, *local, server->port(), keys.required());
  if (admin_server) PrintAdminGreeting(settings, admin_server->port());

  signals.Wait();
  Drain(settings.drain_seconds, signals, clock, *server, service);
  // What still runs ends with an error that its client can read, then the connections go.
  engine.Stop();
  service.Stop();
  ticker.reset();
  if (admin) admin->Stop();
  for (net::HttpServer* one : {server.get(), admin_server.get()}) {
    if (one == nullptr) continue;
    one->WaitIdle(kFarewellMax);
    one->Shutdown();
  }
  Print("stopped\n");
  return recorder.Write();
}

namespace {

void AddAdminOptions(OptionTable& table, ServeSettings& settings) {
  table.Add(
      Integer("admin-port", settings.admin_port, {0, 65535}, "PORT",
              "Port for operators (POST /admin/weights); 0 lets the system choose. Without it "
              "there is no such listener. Needs --admin-key."));
  table.Add(Text("admin-host", settings.admin_host, "ADDRESS", "Address for operators."));
  table.Add(Texts("admin-key", settings.admin_keys, "KEY",
                  "Key that operators must send; no key of callers. Prefer the variable or the "
                  "file."));
  table.Add(Text("admin-key-file", settings.admin_key_file, "FILE", "Likewise, one a line."));
}

}  // namespace

std::unique_ptr<OptionTable> DeclareServe(CLI::App& app, ServeSettings& settings) {
  auto table = std::make_unique<OptionTable>(app, "serve");
  AddEngineOptions(*table, settings.engine);
  table->Add(Text("host", settings.host, "ADDRESS",
                  "Address to listen on; others than loopback need --api-key."));
  table->Add(Integer("port", settings.port, {0, 65535}, "PORT",
                     "Port to listen on; 0 lets the system choose."));
  table->Add(Texts("name", settings.names, "NAME",
                   "Another name by which clients may ask for the model."));
  table->Add(Texts("api-key", settings.api_keys, "KEY",
                   "Key that callers must send as 'Authorization: Bearer KEY'. Other users of this "
                   "machine can see flags: prefer the variable or the file."));
  table->Add(
      Text("api-key-file", settings.api_key_file, "FILE",
           "Keys, one a line, each perhaps behind a name and a space; lines that start with # "
           "are skipped."));
  table->Add(Choice("pooling", settings.pooling, {"mean", "last"},
                    "How /v1/embeddings makes one vector of a text's tokens when a request does "
                    "not say."));
  table->Add(Texts("cors-origin", settings.cors_origins, "ORIGIN",
                   "Web pages of this origin (https://host[:port]) may call; without it none but "
                   "the console's."));
  table->Add(Texts("allowed-host", settings.allowed_hosts, "NAME",
                   "Without keys: another name than localhost under which this server may be "
                   "called, as behind a proxy."));
  table->Add(Text("limits", settings.limits, "FILE",
                  "TOML file of what each key may ask for: requests-per-minute, tokens-per-minute, "
                  "concurrent-requests."));
  table->Add(Integer("keep-alive", settings.keep_alive_seconds, {0, 3600}, "SECONDS",
                     "Silence after which a waiting stream gets a comment, so that nobody closes "
                     "its connection; 0: never."));
  table->Add(Integer("keep-alive-whole", settings.keep_alive_whole_seconds, {0, 3600}, "SECONDS",
                     "Likewise of an answer that is not streamed: it begins with status 200 and "
                     "gets empty lines, and an error that comes later is in its body. 0: never; "
                     "every error has its status."));
  table->Add(Bytes("idempotency-memory", settings.idempotency_memory, {0, uint64_t{1} << 40}, "",
                   "Memory for answers that are given again to the same Idempotency-Key."));
  AddAdminOptions(*table, settings);
  AddDataOptions(*table, settings);
  table->Add(Integer("drain-seconds", settings.drain_seconds, {0, 86400}, "SECONDS",
                     "How long running answers may go on after SIGTERM or Ctrl-C."));
  table->Add(Integer("responses-kept", settings.responses_kept, {0, 1 << 20}, "COUNT",
                     "Answers of /v1/responses that are kept for previous_response_id; the oldest "
                     "go first. 0 keeps none."));
  table->Add(Integer("responses-kept-mib", settings.responses_kept_mib, {0, 1 << 20}, "MIB",
                     "Memory that they may take."));
  table->Add(Integer("connections", settings.connections, {1, 65536}, "COUNT",
                     "Open connections; above it one that has sent no whole header makes room "
                     "for a new one, else that is refused."));
  table->Add(Choice("log-level", settings.log_level, {"debug", "info", "warn", "error", "off"},
                    "Least important lines to log, to standard error."));
  table->Add(Choice("log-format", settings.log_format, {"text", "json"}, "How log lines look."));
  table->Add(Text("trace", settings.trace, "FILE",
                  "Record when the phases of steps began and ended, and write the latest of them "
                  "here when the server stops (Chrome's trace format)."));
  return table;
}

}  // namespace plumb::cli
