// cli/model_text.cc
// Tokenizer first, since the template wants the names of its tokens; behind cli/model_text.h.
#include "cli/model_text.h"

#include <string>
#include <string_view>
#include <utility>

#include "engine/vocabulary.h"
#include "text/deepseek_v41_format.h"
#include "text/jinja_chat_format.h"

namespace plumb::cli {
namespace {

// For models that only complete text. Its message reaches whoever asks them to chat.
constexpr std::string_view kNoTemplate =
    "{{ raise_exception('this model has no chat template: it completes text and does not chat') }}";

base::Status In(std::string_view what, const base::Status& status) {
  return base::Status(status.code(), std::string(what) + ": " + status.message());
}

base::Status LoadFormat(const model::Checkpoint& file, const text::ToolFormat& tool_format,
                        ModelText& loaded) {
  constexpr std::string_view kArchitecture = "general.architecture";
  const text::Tokenizer& tokenizer = *loaded.tokenizer;
  if (file.Has(kArchitecture)) {
    ASSIGN_OR_RETURN(const std::string_view architecture, file.Text(kArchitecture));
    if (architecture == text::kDeepseekV41) {
      if (!tool_format.automatic) {
        return base::InvalidArgument(
            std::string(kToolFormatField),
            "--tool-format: DeepSeek-V4.1 writes calls in a format of its own; leave it out");
      }
      ASSIGN_OR_RETURN(loaded.chat_format, text::DeepseekV41Format::Create(tokenizer));
      loaded.can_chat = true;
      return base::OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const engine::ChatTemplates sources, engine::ReadChatTemplates(file));
  loaded.can_chat = !sources.chat.empty();
  text::TemplateVariables names;
  if (const auto bos = tokenizer.bos()) names.bos_token = tokenizer.TokenName(*bos);
  if (const auto eos = tokenizer.eos()) names.eos_token = tokenizer.TokenName(*eos);
  ASSIGN_OR_RETURN(
      auto chat, text::ChatTemplate::Compile(loaded.can_chat ? sources.chat : kNoTemplate, names));
  std::unique_ptr<text::ChatTemplate> tool_use;
  if (loaded.can_chat && !sources.tool_use.empty()) {
    ASSIGN_OR_RETURN(tool_use, text::ChatTemplate::Compile(sources.tool_use, names));
  }
  auto format =
      text::JinjaChatFormat::Create(std::move(chat), tokenizer, tool_format, std::move(tool_use));
  if (!format.ok()) return std::move(format).status();
  loaded.chat_format = *std::move(format);
  return base::OkStatus();
}

}  // namespace

base::Result<ModelText> LoadModelText(const model::Checkpoint& file,
                                      const std::string& tool_format) {
  ModelText loaded;
  ASSIGN_OR_RETURN(const text::ToolFormat chosen, text::ToolFormatFromName(tool_format));
  auto tokenizer = engine::MakeTokenizer(file);
  if (!tokenizer.ok()) return In("tokenizer", tokenizer.status());
  loaded.tokenizer = std::move(tokenizer).value();
  base::Status status = LoadFormat(file, chosen, loaded);
  if (status.field() == kToolFormatField) return status;
  if (!status.ok()) return In("chat template", status);
  return loaded;
}

}  // namespace plumb::cli
