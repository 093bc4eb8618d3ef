// cli/model_command.h
// `plumb model pull | list | inspect | verify | quantize | perplexity | prompt | logits`: the
// cache, what a model file holds, making and judging others, what a chat becomes, what comes out.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "base/status.h"
#include "cli/model_logits.h"
#include "cli/model_prompt.h"
#include "cli/model_store.h"
#include "cli/perplexity.h"
#include "cli/progress.h"
#include "cli/quantize.h"

namespace plumb::cli {

// What the command line said; see the help texts in model_command.cc.
struct ModelCommand {
  CLI::App* pull = nullptr;
  CLI::App* list = nullptr;
  CLI::App* inspect = nullptr;
  CLI::App* verify = nullptr;
  CLI::App* quantize = nullptr;
  CLI::App* perplexity = nullptr;
  std::string model;            // alias or path; may be empty for verify
  uint64_t context_tokens = 0;  // 0 = the model's own
  bool whole_template = false;
  bool json = false;
  QuantizeSettings quantize_settings;
  PerplexitySettings perplexity_settings;
  PromptSettings prompt_settings;
  LogitsSettings logits_settings;
};

// Declares `plumb model ...`. `command` is borrowed until the command line is parsed.
void DeclareModel(CLI::App& app, ModelCommand& command);

// Runs the subcommand that was parsed; exit codes by the status.
base::Status RunModel(const ModelCommand& command, const VariableReader& variables);

// The file of `model` as an argument of serve, chat or generate: resolved, and pulled first when it
// is an alias that is not in the cache and `pull` is set. kNotFound otherwise, saying how to pull.
base::Result<ModelReference> LocateModel(std::string_view model, bool pull,
                                         const VariableReader& variables);

}  // namespace plumb::cli
