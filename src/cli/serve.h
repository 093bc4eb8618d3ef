// cli/serve.h
// `plumb serve`: one model behind an OpenAI-style HTTP endpoint, until it is told to stop.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
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

// All keys of flags and file; and whether the address may be served with them: an address that
// others can reach needs a key. kInvalidArgument names the flag.
base::Result<std::vector<std::string>> CollectKeys(const ServeSettings& settings);

}  // namespace plumb::cli
