// cli/serve.h
// `plumb serve`: one model behind an OpenAI-style HTTP endpoint, until it is told to stop.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/local_engine.h"
#include "cli/option_table.h"

namespace plumb::cli {

struct ServeSettings {
  EngineSettings engine;
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  std::vector<std::string> names;  // besides the model's own
  std::vector<std::string> api_keys;
  std::string api_key_file;
  std::vector<std::string> cors_origins;   // web pages that may call
  std::vector<std::string> allowed_hosts;  // names that a server without keys answers to
  std::string limits;                      // file; empty: nobody has a limit
  uint32_t keep_alive_seconds = 15;        // of streams; 0: never
  uint32_t keep_alive_whole_seconds = 25;  // of whole answers; 0: never
  uint64_t idempotency_memory = 64u << 20;
  std::optional<uint16_t> admin_port;  // absent: no operators' listener
  std::string admin_host = "127.0.0.1";
  std::vector<std::string> admin_keys;
  std::string admin_key_file;
  std::string pooling = "mean";        // of embeddings whose request says none: mean or last
  uint32_t responses_kept = 8192;      // answers of the Responses API
  uint32_t responses_kept_mib = 256;   // what they may take, in MiB
  std::string trace;                   // file; empty: nothing is recorded
  std::string data_dir;                // of files and batches; empty: none are kept
  uint64_t data_bytes = 16ull << 30;   // of all files in it
  uint64_t file_bytes = 512ull << 20;  // of one
  uint32_t batch_lines = 32;           // asked at once
  uint32_t drain_seconds = 30;
  uint32_t connections = 1024;
  std::string log_level = "info";
  std::string log_format = "text";
};

// `settings` is borrowed by the table.
std::unique_ptr<OptionTable> DeclareServe(CLI::App& app, ServeSettings& settings);

// Returns ok after a graceful stop. kInvalidArgument: a setting (port in use, an address that needs
// a key, ...); else the errors of LocalEngine::Load.
base::Status RunServe(const ServeSettings& settings, const VariableReader& variables);

}  // namespace plumb::cli
