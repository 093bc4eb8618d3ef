// cli/model_text.cc
// Tokenizer first, since the template wants the names of its tokens; behind cli/model_text.h.
#include "cli/model_text.h"

#include <string>
#include <utility>

#include "engine/vocabulary.h"

namespace plumb::cli {
namespace {

// For models that only complete text. Its message reaches whoever asks them to chat.
constexpr std::string_view kNoTemplate =
    "{{ raise_exception('this model has no chat template: it completes text and does not chat') }}";

base::Status In(std::string_view what, const base::Status& status) {
  return base::Status(status.code(), std::string(what) + ": " + status.message());
}

}  // namespace

base::Result<ModelText> LoadModelText(const model::Checkpoint& file) {
  ModelText loaded;
  auto tokenizer = engine::MakeTokenizer(file);
  if (!tokenizer.ok()) return In("tokenizer", tokenizer.status());
  loaded.tokenizer = std::move(tokenizer).value();
  const auto source = engine::ReadChatTemplate(file);
  if (!source.ok()) return In("chat template", source.status());
  loaded.can_chat = !source->empty();
  text::TemplateVariables names;
  if (const auto bos = loaded.tokenizer->bos()) names.bos_token = loaded.tokenizer->TokenName(*bos);
  if (const auto eos = loaded.tokenizer->eos()) names.eos_token = loaded.tokenizer->TokenName(*eos);
  auto compiled =
      text::ChatTemplate::Compile(loaded.can_chat ? *source : kNoTemplate, std::move(names));
  if (!compiled.ok()) return In("chat template", compiled.status());
  loaded.chat_template = std::move(compiled).value();
  return loaded;
}

}  // namespace plumb::cli
