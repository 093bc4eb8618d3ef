// model/hf_text.cc
// One function per file, then the ids that end an answer, out of two files.
#include "model/hf_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/hf_json.h"

namespace plumb::model {
namespace {

using base::Result;
using base::Status;
using nlohmann::json;

constexpr size_t kEndIdsMax = 256;

// eos_token_id is an id, or a list of ids.
Status AddEndIds(const HfObject& object, std::vector<uint32_t>& ids) {
  constexpr const char* kKey = "eos_token_id";
  const json* found = object.Find(kKey);
  if (found == nullptr) return base::OkStatus();
  const json list = found->is_array() ? *found : json::array({*found});
  if (list.size() > kEndIdsMax) return object.Wrong(kKey, "a list of at most 256 ids");
  for (const json& id : list) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      return object.Wrong(kKey, "a token id or a list of them");
    }
    ids.push_back(id.get<uint32_t>());
  }
  return base::OkStatus();
}

// A token is written as text, or as an object with its "content".
Status SetToken(const HfObject& object, const char* key, std::string_view metadata_key,
                Metadata& metadata) {
  const json* found = object.Find(key);
  if (found == nullptr) return base::OkStatus();
  if (found->is_object() && found->contains("content")) found = &(*found)["content"];
  if (!found->is_string()) return object.Wrong(key, "a token");
  metadata.SetText(std::string(metadata_key), found->get_ref<const std::string&>());
  return base::OkStatus();
}

// The template is text, or a list of {"name", "template"} of which "default" is for chats, and
// "tool_use" for those with tools. What files of their own say goes before.
Status ReadTemplates(const HfObject& object, const HfTextFiles& files, Metadata& metadata) {
  constexpr const char* kKey = "chat_template";
  const json* found = object.Find(kKey);
  if (found == nullptr) return base::OkStatus();
  if (found->is_string()) {
    metadata.SetText(std::string(kChatTemplateKey), found->get<std::string>());
    return base::OkStatus();
  }
  if (!found->is_array()) return object.Wrong(kKey, "text or a list of templates");
  std::set<std::string> names;
  for (const json& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("template") || !entry["template"].is_string()) {
      return object.Wrong(kKey, "a list of named templates");
    }
    const std::string source = entry["template"].get<std::string>();
    const std::string name = entry["name"].get<std::string>();
    if (!names.insert(name).second) return object.Wrong(kKey, "a list without a name twice");
    if (name == "default") metadata.SetText(std::string(kChatTemplateKey), source);
    if (name == "tool_use" && !files.tool_template)
      metadata.SetText(std::string(kToolTemplateKey), source);
  }
  return base::OkStatus();
}

Status ReadTokenizerConfig(const HfTextFiles& files, Metadata& metadata) {
  constexpr std::string_view kFile = "tokenizer_config.json";
  ASSIGN_OR_RETURN(const json parsed, ParseHfJson(*files.tokenizer_config, kFile));
  const HfObject object(parsed, kFile);
  RETURN_IF_ERROR(SetToken(object, "bos_token", kHfBosKey, metadata));
  RETURN_IF_ERROR(SetToken(object, "eos_token", kHfEosKey, metadata));
  ASSIGN_OR_RETURN(const auto add_bos, object.Bool("add_bos_token"));
  if (add_bos) metadata.SetBool(std::string(kHfAddBosKey), *add_bos);
  ASSIGN_OR_RETURN(const auto add_eos, object.Bool("add_eos_token"));
  if (add_eos) metadata.SetBool(std::string(kHfAddEosKey), *add_eos);
  return files.chat_template ? base::OkStatus() : ReadTemplates(object, files, metadata);
}

}  // namespace

Status ReadHfText(const HfTextFiles& files, Metadata& metadata) {
  if (files.tokenizer) metadata.SetText(std::string(kHfTokenizerKey), *files.tokenizer);
  if (files.chat_template) metadata.SetText(std::string(kChatTemplateKey), *files.chat_template);
  if (files.tokenizer_config) RETURN_IF_ERROR(ReadTokenizerConfig(files, metadata));
  if (files.tool_template) metadata.SetText(std::string(kToolTemplateKey), *files.tool_template);
  std::vector<uint32_t> ids;
  ASSIGN_OR_RETURN(const json config, ParseHfJson(files.config, "config.json"));
  RETURN_IF_ERROR(AddEndIds(HfObject(config, "config.json"), ids));
  if (files.generation_config) {
    constexpr std::string_view kFile = "generation_config.json";
    ASSIGN_OR_RETURN(const json generation, ParseHfJson(*files.generation_config, kFile));
    RETURN_IF_ERROR(AddEndIds(HfObject(generation, kFile), ids));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!ids.empty()) metadata.SetIds(std::string(kHfEndIdsKey), ids);
  return base::OkStatus();
}

}  // namespace plumb::model
