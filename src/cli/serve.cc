// cli/serve.cc
// The composition of the server, in RunServe: engine, service, HTTP server, in this order, and
// stopped in the opposite one. Read next: api/service.h (what answers), engine/engine.h.
#include "cli/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "api/chat_prompt.h"
#include "api/service.h"
#include "base/disk.h"
#include "cli/report.h"
#include "cli/serve_metrics.h"
#include "cli/signals.h"
#include "cli/startup_gate.h"
#include "cli/version_command.h"
#include "net/address.h"
#include "net/http_server.h"
#include "telemetry/log.h"
#include "telemetry/metrics.h"
#include "tenancy/api_key.h"

namespace plumb::cli {
namespace {

constexpr uint64_t kKeyFileBytesMax = 1u << 20;
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
  options.drain_paths = api::Service::DrainPaths();
  return options;
}

api::ServiceConfig ServiceConfigFor(const ServeSettings& settings, LocalEngine& local,
                                    const base::Clock& clock) {
  api::ServiceConfig config;
  config.model.names.push_back(local.id());
  for (const std::string& name : settings.names) config.model.names.push_back(name);
  config.model.created = clock.UnixSeconds();
  config.model.context_max = local.engine().context_max();
  config.chat.context_max = local.engine().context_max();
  config.chat.system_fingerprint = local.fingerprint();
  return config;
}

// A context that does not hold an empty message would refuse every request.
base::Status CheckContext(const LocalEngine& local, uint32_t context_max) {
  if (!local.can_chat()) return base::OkStatus();
  const text::ChatMessage empty{.role = "user", .content = "", .name = ""};
  const auto prompt = api::EncodeChat({&empty, 1}, local.chat_template(), local.tokenizer(),
                                      std::numeric_limits<uint32_t>::max());
  // A template may refuse an empty message: that is for its callers to hear.
  if (!prompt.ok() || prompt->size() < context_max) return base::OkStatus();
  return base::InvalidArgument(
      "--context", fmt::format("--context: {} tokens do not hold an empty conversation, which has "
                               "{} with this model; allow more",
                               context_max, prompt->size()));
}

base::Status EngineReady(const engine::Engine& engine) {
  if (engine.Healthy()) return base::OkStatus();
  return base::Status(base::Code::kUnavailable,
                      "the engine takes no requests or makes no progress");
}

// A server error as `plumb serve` words it: with the flag at fault in front.
base::Status NamingFlag(const base::Status& status) {
  const std::string& flag = status.field();
  if (status.ok() || flag.empty() || status.message().find(flag) != std::string::npos)
    return status;
  return base::InvalidArgument(flag, flag + ": " + status.message());
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

base::Result<std::vector<std::string>> CollectKeys(const ServeSettings& settings) {
  std::vector<std::string> keys = settings.api_keys;
  if (!settings.api_key_file.empty()) {
    base::Result<std::string> content = base::ReadFile(settings.api_key_file, kKeyFileBytesMax);
    if (!content.ok()) {
      return base::InvalidArgument("--api-key-file",
                                   "--api-key-file: " + content.status().message());
    }
    std::string_view rest = *content;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty() && !line.starts_with('#')) keys.emplace_back(line);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (keys.empty()) {
      return base::InvalidArgument("--api-key-file", "--api-key-file: the file holds no key");
    }
  }
  if (keys.empty() && !net::IsLoopback(settings.host)) {
    return base::InvalidArgument(
        "--host", "--host: '" + settings.host +
                      "' can be reached by others, so callers must have a key: give --api-key (or "
                      "PLUMB_API_KEY), or serve on 127.0.0.1");
  }
  return keys;
}

base::Status RunServe(const ServeSettings& settings, const VariableReader& variables) {
  IgnoreBrokenPipes();
  const base::SystemClock clock;
  ASSIGN_OR_RETURN(const std::vector<std::string> key_texts, CollectKeys(settings));
  const base::Result<tenancy::ApiKeys> keys = tenancy::ApiKeys::FromKeys(key_texts);
  if (!keys.ok()) return NamingFlag(keys.status());
  ASSIGN_OR_RETURN(const telemetry::LogLevel level, telemetry::ParseLogLevel(settings.log_level));
  telemetry::Logger logger({.level = level, .json = settings.log_format == "json"});

  // The port first: whether it is free shows before the model is loaded.
  StartupGate gate;
  base::Result<std::unique_ptr<net::HttpServer>> server =
      net::HttpServer::Start(ServerOptions(settings), gate);
  if (!server.ok()) return NamingFlag(server.status());

  ASSIGN_OR_RETURN(const ModelReference reference, LocateEngineModel(settings.engine, variables));
  telemetry::Metrics metrics(api::Service::RoutePatterns(), std::string(kVersion), reference.id);
  ASSIGN_OR_RETURN(
      const std::unique_ptr<LocalEngine> local,
      LocalEngine::Load(reference, settings.engine, {clock, &metrics.engine}, ErrorTerminal()));
  RETURN_IF_ERROR(CheckContext(*local, local->engine().context_max()));
  engine::Engine& engine = local->engine();
  api::Service service(
      ServiceConfigFor(settings, *local, clock),
      {.generator = engine,
       .tokenizer = local->tokenizer(),
       .chat_template = local->chat_template(),
       .keys = *keys,
       .metrics = metrics,
       .logger = logger,
       .clock = clock,
       .ready = [&] { return EngineReady(engine); },
       .refresh_metrics = [&] { CopyMetrics(engine.stats(), (*server)->stats(), metrics); }});
  Signals signals({SIGINT, SIGTERM});
  gate.Open(service);
  PrintGreeting(settings, *local, (*server)->port(), keys->required());

  signals.Wait();
  Drain(settings.drain_seconds, signals, clock, **server, service);
  // What still runs ends with an error that its client can read, then the connections go.
  engine.Stop();
  service.Stop();
  (*server)->WaitIdle(kFarewellMax);
  (*server)->Shutdown();
  Print("stopped\n");
  return base::OkStatus();
}

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
  table->Add(Text("api-key-file", settings.api_key_file, "FILE",
                  "Keys, one a line; lines that start with # are skipped."));
  table->Add(Integer("drain-seconds", settings.drain_seconds, {0, 86400}, "SECONDS",
                     "How long running answers may go on after SIGTERM or Ctrl-C."));
  table->Add(Integer("connections", settings.connections, {1, 65536}, "COUNT",
                     "Open connections; more are refused."));
  table->Add(Choice("log-level", settings.log_level, {"debug", "info", "warn", "error", "off"},
                    "Least important lines to log, to standard error."));
  table->Add(Choice("log-format", settings.log_format, {"text", "json"}, "How log lines look."));
  return table;
}

}  // namespace plumb::cli
