// cli/model_prompt.cc: the API's own reader and the model's own format, behind
// cli/model_prompt.h.
#include "cli/model_prompt.h"

#include <limits>

#include "api/chat_prompt.h"
#include "api/chat_request.h"
#include "api/json_writer.h"
#include "base/disk.h"
#include "cli/report.h"
#include "model/load.h"
#include "text/grammar_compiler.h"

namespace plumb::cli {

CLI::App* DeclarePrompt(CLI::App& model_app, PromptSettings& settings) {
  settings.app = model_app.add_subcommand(
      "prompt",
      "Print the prompt that a chat request becomes: JSON with its text and token ids. Needs the\n"
      "model's tokenizer and chat format, and none of its weights.");
  settings.app->footer(
      "Examples:\n  plumb model prompt --model smollm2-135m --request chat.json\n\n"
      "The file holds the body of a POST to /v1/chat/completions. In the printed text, special "
      "tokens\nstand as they are spelled.");
  settings.app
      ->add_option("--model", settings.model,
                   "An alias of 'plumb model list', or the path of a model.")
      ->required()
      ->type_name("MODEL");
  settings.app->add_option("--request", settings.request, "A chat request, as JSON.")
      ->required()
      ->type_name("FILE");
  return settings.app;
}

base::Result<std::string> PromptJson(std::string_view body, const ModelText& model) {
  api::RequestLimits limits;
  limits.vocabulary_size = model.tokenizer->size();
  limits.abilities = model.chat_format->abilities();
  ASSIGN_OR_RETURN(const api::ChatRequest request, api::ParseChatRequest(body, limits));
  ASSIGN_OR_RETURN(const text::ChatPrompt prompt,
                   model.chat_format->Encode(request.input, std::numeric_limits<uint32_t>::max()));
  // What the API refuses once it has the prompt is refused here too.
  text::GrammarCompiler grammars(*model.tokenizer);
  engine::Request checked{};
  RETURN_IF_ERROR(api::ApplyPrompt(request, prompt, &grammars, checked));
  std::string out;
  api::JsonWriter json(out);
  json.BeginObject().Key("prompt").String(prompt.text).Key("ids").BeginArray();
  for (const base::TokenId id : prompt.tokens) json.Uint(base::Index(id));
  json.EndArray().Key("tokens").Uint(prompt.tokens.size()).EndObject();
  return out + '\n';
}

base::Status RunPrompt(const PromptSettings& settings, const ModelReference& model) {
  const auto body = base::ReadFile(settings.request, api::RequestLimits().json.bytes_max);
  if (!body.ok()) return NamingFlag(body.status(), "--request");
  const auto checkpoint = model::OpenModelFile(model.path);
  if (!checkpoint.ok()) return InModel(model, checkpoint.status());
  const base::Result<ModelText> text = LoadModelText(**checkpoint);
  if (!text.ok()) return InModel(model, text.status());
  const base::Result<std::string> json = PromptJson(*body, *text);
  if (!json.ok()) {
    const base::Status& status = json.status();
    return NamingFlag(NamingFlag(status, status.field()), "--request");
  }
  Print(*json);
  return base::OkStatus();
}

}  // namespace plumb::cli
