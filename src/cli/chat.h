// cli/chat.h
// `plumb chat`: a conversation in the terminal, with a model of this process or a running server.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/conversation.h"
#include "cli/local_engine.h"
#include "cli/option_table.h"

namespace plumb::cli {

struct ChatSettings {
  EngineSettings engine;
  std::string url;      // empty = in this process
  std::string api_key;  // for the server at url
  std::string system;
  std::optional<std::string> once;  // absent: a conversation
  std::string tools;                // path; empty = none
  ChatSampling sampling;
};

std::unique_ptr<OptionTable> DeclareChat(CLI::App& app, ChatSettings& settings);

// Ends when the input does, at /quit, or after the one answer of --once.
base::Status RunChat(const ChatSettings& settings, const VariableReader& variables);

}  // namespace plumb::cli
