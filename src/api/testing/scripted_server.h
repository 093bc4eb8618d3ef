// api/testing/scripted_server.h
// Tests only. The parts that `plumb serve` has, in the same order, on a loopback port, with a
// scripted generator in place of a model: what transcripts, browsers and load generators talk to.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/batches.h"
#include "api/service.h"
#include "api/testing/byte_vocabulary.h"
#include "api/testing/deepseek_vocabulary.h"
#include "api/testing/fake_generator.h"
#include "api/testing/tool_templates.h"
#include "net/http_server.h"
#include "tenancy/local_limiter.h"

namespace plumb::api::testing {

// A tokenizer, and how its model wants to be talked to. A resource type that moves.
struct ScriptedModel {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::unique_ptr<text::ChatFormat> chat_format;
};
// One token per byte, and a template.
inline ScriptedModel ByteModel() {
  ScriptedModel model{MakeByteTokenizer(), nullptr};
  model.chat_format = MakeChatFormat(*model.tokenizer);
  return model;
}
// With tokens for filling in the middle.
inline ScriptedModel FimModel() {
  ScriptedModel model{MakeFimTokenizer(), nullptr};
  model.chat_format = MakeChatFormat(*model.tokenizer);
  return model;
}
// With DeepSeek-V4.1's chat format.
inline ScriptedModel DeepseekModel() {
  ScriptedModel model{MakeDeepseekTokenizer(), nullptr};
  model.chat_format = MakeDeepseekFormat(*model.tokenizer);
  return model;
}

// With one of the templates of tool_templates.h.
inline ScriptedModel ToolModel(std::string_view name) {
  ScriptedModel model{MakeByteTokenizer(), nullptr};
  model.chat_format = MakeToolFormat(name, *model.tokenizer);
  return model;
}

struct ScriptedServerOptions {
  std::vector<std::string> api_keys;
  std::vector<std::string> model_names;
  uint32_t context_max = 0;  // tokens
  std::string data_folder;   // of files and batches; empty: none are kept
  DataLimits data_limits;
  ServiceConfig service;  // its model and its generations' context are filled in
  net::HttpServerOptions http;
  std::vector<tenancy::KeyLimits> limits = {};  // of each key; empty: nobody has any
  const base::Clock* clock = nullptr;           // borrowed; null: the system's
};

// A resource type. Thread: any.
class ScriptedServer {
 public:
  // Listens from here on, on options.http.port: where that is 0, on a port that is free.
  ScriptedServer(ScriptedModel model, FakeScript script, ScriptedServerOptions options)
      : model_(std::move(model)),
        keys_(tenancy::ApiKeys::FromKeys(options.api_keys).value()),
        metrics_(Service::RoutePatterns(), "0", options.model_names.front()),
        generator_(*model_.tokenizer, std::move(script)),
        clock_(options.clock != nullptr ? *options.clock : system_clock_),
        limiter_(MakeLimiter(options.limits, clock_)),
        service_(Completed(options),
                 {.generator = generator_,
                  .tokenizer = *model_.tokenizer,
                  .chat_format = *model_.chat_format,
                  .keys = keys_,
                  .metrics = metrics_,
                  .logger = logger_,
                  .clock = clock_,
                  .ready = [] { return base::OkStatus(); },
                  .refresh_metrics = {},
                  .grammars = &grammars_,
                  .limiter = limiter_.get()},
                 OpenData(options)) {
    generator_.Start();
    options.http.drain_paths = Service::DrainPaths();
    http_ = net::HttpServer::Start(std::move(options.http), service_).value();
  }
  ~ScriptedServer() { http_->Shutdown(); }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  uint16_t port() const { return http_->port(); }
  Service& service() { return service_; }
  FakeGenerator& generator() { return generator_; }
  const base::Clock& clock() const { return system_clock_; }

 private:
  std::unique_ptr<DataFolder> OpenData(const ScriptedServerOptions& options) {
    if (options.data_folder.empty()) return nullptr;
    return DataFolder::Open(options.data_folder, options.data_limits, clock_, logger_).value();
  }
  static ServiceConfig Completed(const ScriptedServerOptions& options) {
    ServiceConfig config = options.service;
    config.model = {
        .names = options.model_names, .created = 1700000000, .context_max = options.context_max};
    config.embeddings.dimensions = kFakeDimensions;
    config.generations.system_fingerprint = "plumb-test";
    config.generations.context_max = options.context_max;
    return config;
  }

  static std::unique_ptr<tenancy::LocalLimiter> MakeLimiter(
      const std::vector<tenancy::KeyLimits>& limits, const base::Clock& clock) {
    if (limits.empty()) return nullptr;
    return std::make_unique<tenancy::LocalLimiter>(limits, clock);
  }

  const ScriptedModel model_;
  text::GrammarCompiler grammars_{*model_.tokenizer};
  const tenancy::ApiKeys keys_;
  telemetry::Metrics metrics_;
  telemetry::Logger logger_{{.level = telemetry::LogLevel::kOff}};
  const base::SystemClock system_clock_;
  FakeGenerator generator_;
  const base::Clock& clock_;
  const std::unique_ptr<tenancy::LocalLimiter> limiter_;
  Service service_;
  std::unique_ptr<net::HttpServer> http_;
};

}  // namespace plumb::api::testing
