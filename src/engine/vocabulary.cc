// engine/vocabulary.cc: the keys of a tokenizer, read one by one. The names are those of ggml's
// gguf.md, "seperator" included, or of model/hf_text.h.
#include "engine/vocabulary.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "model/hf_text.h"

namespace plumb::engine {
namespace {

using model::Checkpoint;

base::Status ReadId(const Checkpoint& file, std::string_view key, std::optional<uint32_t>& id) {
  if (!file.Has(key)) return base::OkStatus();
  ASSIGN_OR_RETURN(const uint64_t value, file.Unsigned(key));
  if (value > std::numeric_limits<uint32_t>::max()) {
    return base::Corrupt(fmt::format("{} is {}, which is no token id", key, value));
  }
  id = static_cast<uint32_t>(value);
  return base::OkStatus();
}

base::Status ReadFlag(const Checkpoint& file, std::string_view key, std::optional<bool>& flag) {
  if (!file.Has(key)) return base::OkStatus();
  ASSIGN_OR_RETURN(flag, file.Bool(key));
  return base::OkStatus();
}

base::Status ReadKinds(const Checkpoint& file, std::vector<text::TokenKind>& kinds) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  if (!file.Has(kKey)) return base::OkStatus();
  ASSIGN_OR_RETURN(const auto values, file.Integers(kKey));
  kinds.reserve(values.size());
  for (const int64_t value : values) {
    // 0 ("undefined") stands in some files for an ordinary entry.
    if (value < 0 || value > static_cast<int64_t>(text::TokenKind::kByte)) {
      return base::Corrupt(fmt::format("{} holds {}, which is no kind of token", kKey, value));
    }
    kinds.push_back(value == 0 ? text::TokenKind::kNormal : static_cast<text::TokenKind>(value));
  }
  return base::OkStatus();
}

base::Status ReadScores(const Checkpoint& file, std::vector<float>& scores) {
  constexpr std::string_view kKey = "tokenizer.ggml.scores";
  if (!file.Has(kKey)) return base::OkStatus();
  ASSIGN_OR_RETURN(const auto values, file.Numbers(kKey));
  scores.assign(values.begin(), values.end());
  return base::OkStatus();
}

base::Status ReadSpecials(const Checkpoint& file, text::VocabularySpec& spec) {
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.bos_token_id", spec.bos));
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eos_token_id", spec.eos));
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.eot_token_id", spec.eot));
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.unknown_token_id", spec.unk));
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.padding_token_id", spec.pad));
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.seperator_token_id", spec.sep));  // sic
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.cls_token_id", spec.cls));
  RETURN_IF_ERROR(ReadId(file, "tokenizer.ggml.mask_token_id", spec.mask));
  RETURN_IF_ERROR(ReadFlag(file, "tokenizer.ggml.add_bos_token", spec.add_bos));
  RETURN_IF_ERROR(ReadFlag(file, "tokenizer.ggml.add_eos_token", spec.add_eos));
  return ReadFlag(file, "tokenizer.ggml.add_space_prefix", spec.add_space_prefix);
}

}  // namespace

base::Result<text::VocabularySpec> ReadVocabulary(const Checkpoint& file) {
  text::VocabularySpec spec;
  ASSIGN_OR_RETURN(spec.model, file.Text("tokenizer.ggml.model"));
  if (file.Has("tokenizer.ggml.pre")) {
    ASSIGN_OR_RETURN(spec.pre, file.Text("tokenizer.ggml.pre"));
  }
  ASSIGN_OR_RETURN(const auto tokens, file.Texts("tokenizer.ggml.tokens"));
  spec.tokens.assign(tokens.begin(), tokens.end());
  if (file.Has("tokenizer.ggml.merges")) {
    ASSIGN_OR_RETURN(const auto merges, file.Texts("tokenizer.ggml.merges"));
    spec.merges.assign(merges.begin(), merges.end());
  }
  RETURN_IF_ERROR(ReadScores(file, spec.scores));
  RETURN_IF_ERROR(ReadKinds(file, spec.kinds));
  RETURN_IF_ERROR(ReadSpecials(file, spec));
  return spec;
}

namespace {

base::Result<std::unique_ptr<text::Tokenizer>> FromFolder(const Checkpoint& file) {
  ASSIGN_OR_RETURN(const std::string_view json, file.Text(model::kHfTokenizerKey));
  text::JsonSettings settings;
  for (const auto& [key, name] :
       {std::pair(model::kHfBosKey, &settings.bos), std::pair(model::kHfEosKey, &settings.eos)}) {
    if (!file.Has(key)) continue;
    ASSIGN_OR_RETURN(*name, file.Text(key));
  }
  RETURN_IF_ERROR(ReadFlag(file, model::kHfAddBosKey, settings.add_bos));
  RETURN_IF_ERROR(ReadFlag(file, model::kHfAddEosKey, settings.add_eos));
  if (file.Has(model::kHfEndIdsKey)) {
    ASSIGN_OR_RETURN(const auto ids, file.Integers(model::kHfEndIdsKey));
    for (const int64_t id : ids) {
      if (id < 0 || id > std::numeric_limits<uint32_t>::max()) {
        return base::Corrupt(
            fmt::format("{} holds {}, which is no token id", model::kHfEndIdsKey, id));
      }
      settings.end_ids.push_back(static_cast<uint32_t>(id));
    }
  }
  const model::GgufTensor* embedding = file.FindTensor("token_embd.weight");
  if (embedding != nullptr && embedding->dims[1] <= std::numeric_limits<uint32_t>::max()) {
    settings.ids_max = static_cast<uint32_t>(embedding->dims[1]);
  }
  return text::Tokenizer::FromJson(json, settings);
}

}  // namespace

base::Result<std::unique_ptr<text::Tokenizer>> MakeTokenizer(const Checkpoint& file) {
  if (file.Has("tokenizer.ggml.model")) {
    ASSIGN_OR_RETURN(const text::VocabularySpec vocabulary, ReadVocabulary(file));
    return text::Tokenizer::FromVocabulary(vocabulary);
  }
  if (file.Has(model::kHfTokenizerKey)) return FromFolder(file);
  return base::NotFound("the model has no tokenizer (tokenizer.json, or tokenizer.ggml.model)");
}

base::Result<ChatTemplates> ReadChatTemplates(const Checkpoint& file) {
  ChatTemplates templates;
  if (file.Has(model::kChatTemplateKey)) {
    ASSIGN_OR_RETURN(templates.chat, file.Text(model::kChatTemplateKey));
  }
  if (file.Has(model::kToolTemplateKey)) {
    ASSIGN_OR_RETURN(templates.tool_use, file.Text(model::kToolTemplateKey));
  }
  return templates;
}

}  // namespace plumb::engine
