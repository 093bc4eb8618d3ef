// cli/model_prompt.h
// `plumb model prompt`: the body of a chat request as the prompt that this model would get, text
// and token ids, for comparison with other implementations. Reads tokenizer and chat format, no
// weights.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/model_store.h"
#include "cli/model_text.h"

namespace plumb::cli {

struct PromptSettings {
  std::string model;    // alias or path
  std::string request;  // path of a JSON file
  CLI::App* app = nullptr;
};

// Declares the subcommand below `plumb model`. `settings` is borrowed until it has run.
CLI::App* DeclarePrompt(CLI::App& model_app, PromptSettings& settings);

// Prints {"prompt": text, "ids": [...], "tokens": n}. kInvalidArgument: the request; the message
// names its field. Else the errors of reading the files.
base::Status RunPrompt(const PromptSettings& settings, const ModelReference& model);

// What it prints, of a request's body. kInvalidArgument, as the API has it.
base::Result<std::string> PromptJson(std::string_view body, const ModelText& model);

}  // namespace plumb::cli
