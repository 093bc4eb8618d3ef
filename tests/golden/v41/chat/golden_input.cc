// tests/golden/v41/chat/golden_input.cc
// Two forms of entries: a request as it goes over the wire, and messages as the official encoder
// takes them, with tools and response_format on the system message.
#include "golden_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/disk.h"

namespace plumb::golden {
namespace {

using text::ChatInput;
using text::ChatMessage;
using text::ToolChoice;

constexpr uint64_t kFileBytesMax = 4u << 20;

// Not offered, or by another rule than the official encoder's (docs/deepseek_v41_chat.md).
constexpr std::string_view kLeftOut[] = {
    "direct: drop_thinking=False without tools",
    "direct: latest_reminder then assistant",
    "direct: latest_reminder last",
    "direct: context + continuation",
    "direct: tool content None",
    "direct: tool content unsupported part",
};

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void ReadContent(const Json& content, ChatMessage& message) {
  if (content.is_string()) message.content = content.get<std::string>();
  if (!content.is_array()) return;
  for (const Json& part : content) {
    const bool image = part.at("type") == "image_url";
    message.parts.push_back(
        {image ? text::ContentPart::Kind::kImage : text::ContentPart::Kind::kText,
         TextOf(part, "text")});
    message.content += message.parts.back().text;
  }
}

ChatMessage ReadMessage(const Json& json) {
  ChatMessage message{.role = json.at("role").get<std::string>(), .content = ""};
  if (json.contains("content")) ReadContent(json["content"], message);
  message.reasoning = TextOf(json, "reasoning_content");
  message.tool_call_id = TextOf(json, "tool_call_id");
  message.task = TextOf(json, "task");
  message.prefix = json.value("prefix", false) || json.value("wo_eos", false);
  if (json.contains("tool_calls")) {
    for (const Json& call : json["tool_calls"]) {
      message.tool_calls.push_back({TextOf(call, "id"),
                                    call.at("function").at("name").get<std::string>(),
                                    call.at("function").at("arguments").get<std::string>()});
    }
  }
  return message;
}

void ReadTools(const Json& tools, ChatInput& input) {
  for (const Json& tool : tools) {
    const Json& function = tool.at("function");
    text::ToolSpec spec;
    spec.name = TextOf(function, "name");
    spec.description = TextOf(function, "description");
    if (function.contains("parameters")) spec.parameters = function["parameters"].dump();
    spec.strict = function.value("strict", false);
    input.tools.push_back(std::move(spec));
  }
}

void ReadFormat(const Json& format, ChatInput& input) {
  if (format.at("type") == "json_object") input.response_schema = R"({"type": "json_object"})";
  if (format.at("type") == "json_schema")
    input.response_schema = format.at("json_schema").at("schema").dump();
}

void ReadChoice(const Json& choice, ChatInput& input) {
  if (choice == "required") input.tool_choice = ToolChoice::kRequired;
  if (choice == "none") input.tool_choice = ToolChoice::kNone;
  if (!choice.is_object()) return;
  input.tool_choice = ToolChoice::kNamed;
  input.tool_name = choice.at("function").at("name").get<std::string>();
}

void ReadEffort(const Json& effort, ChatInput& input) {
  if (effort.is_string()) input.effort = effort.get<std::string>();
  if (effort.is_number_integer()) input.effort = fmt::format("{}", effort.get<int>());
}

// `asked`: the request where there is one, else the entry itself.
ChatInput ReadInput(const Json& entry, const Json& asked) {
  ChatInput input;
  for (const Json& message : asked.at("messages")) {
    input.messages.push_back(ReadMessage(message));
    if (message.contains("tools")) ReadTools(message["tools"], input);
    if (message.contains("response_format")) ReadFormat(message["response_format"], input);
  }
  if (asked.contains("tools")) ReadTools(asked["tools"], input);
  if (asked.contains("response_format")) ReadFormat(asked["response_format"], input);
  if (asked.contains("tool_choice")) ReadChoice(asked["tool_choice"], input);
  if (asked.contains("reasoning_effort")) ReadEffort(asked["reasoning_effort"], input);
  const bool mode = asked.contains("thinking") && asked["thinking"].is_object();
  if (mode) input.thinking = asked["thinking"].at("type") == "enabled";
  if (entry.contains("thinking_mode") && &asked == &entry)
    input.thinking = entry["thinking_mode"] == "thinking";
  return input;
}

// deepseek-recipe's answer where it has one; a number for effort is taken here though it refuses.
std::optional<std::string> Expected(const Json& entry) {
  const auto recipe = entry.find("recipe_prompt");
  if (recipe != entry.end() && recipe->is_string()) return recipe->get<std::string>();
  const bool number = entry.contains("reasoning_effort") && entry["reasoning_effort"].is_number();
  if (entry.contains("recipe_error") && !number) return std::nullopt;
  if (!entry.contains("prompt") || entry["prompt"].is_null()) return std::nullopt;
  return entry["prompt"].get<std::string>();
}

Json ParseFile(const std::string& path) {
  const auto content = base::ReadFile(path, kFileBytesMax);
  CHECK(content.ok()) << content.status().ToString();
  return Json::parse(*content);
}

void ReadFile(const std::string& path, std::vector<ChatGolden>& goldens) {
  for (const Json& entry : ParseFile(path)) {
    ChatGolden golden;
    golden.name = entry.at("name").get<std::string>();
    if (std::ranges::find(kLeftOut, golden.name) != std::end(kLeftOut)) continue;
    golden.input = ReadInput(entry, entry.contains("request") ? entry["request"] : entry);
    golden.prompt = Expected(entry);
    if (entry.contains("recipe_special_ranges") && entry["recipe_special_ranges"].is_array()) {
      for (const Json& range : entry["recipe_special_ranges"])
        golden.specials.emplace_back(range.at(0).get<size_t>(), range.at(1).get<size_t>());
    }
    goldens.push_back(std::move(golden));
  }
}

}  // namespace

std::vector<ChatGolden> ReadChatGoldens(const std::string& folder) {
  std::vector<ChatGolden> goldens;
  ReadFile(folder + "/chat_goldens.json", goldens);
  ReadFile(folder + "/chat_goldens_more.json", goldens);
  return goldens;
}

std::vector<TrainedGolden> ReadTrainedGoldens(const std::string& path) {
  std::vector<TrainedGolden> goldens;
  const Json file = ParseFile(path);
  for (const Json& entry : file.at("goldens")) {
    TrainedGolden golden{.name = entry.at("name").get<std::string>(),
                         .input = ReadInput(entry, entry),
                         .prompt = entry.at("prompt").get<std::string>(),
                         .ids = entry.at("prompt_ids").get<std::vector<uint32_t>>()};
    golden.input.thinking = entry.at("thinking").get<bool>();
    goldens.push_back(std::move(golden));
  }
  return goldens;
}

}  // namespace plumb::golden
