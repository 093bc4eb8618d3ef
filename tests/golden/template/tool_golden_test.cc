// tests/golden/template/tool_golden_test.cc
// Templates that show tools render calls, results and reasoning as Jinja2 does (tool_expected.json,
// made by make_tool_goldens.py); and the syntax of calls is found of each, and of no other template
// of the sdist. Numbered ids are those of the goldens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "text/chat_template.h"
#include "text/template_tools.h"

namespace plumb::golden {

extern std::string templates_folder;
extern std::string source_folder;

namespace {

using nlohmann::ordered_json;

constexpr uint64_t kFileBytesMax = 4u << 20;

std::string Read(const std::string& path) {
  auto content = base::ReadFile(path, kFileBytesMax);
  EXPECT_TRUE(content.ok()) << content.status().ToString();
  return content.ok() ? *content : "";
}

std::vector<text::ChatMessage> Messages(const ordered_json& conversation) {
  std::vector<text::ChatMessage> messages;
  for (const ordered_json& from : conversation) {
    text::ChatMessage message{.role = from["role"], .content = from["content"]};
    message.reasoning = from.value("reasoning_content", "");
    message.tool_call_id = from.value("tool_call_id", "");
    for (const ordered_json& call : from.value("tool_calls", ordered_json::array())) {
      message.tool_calls.push_back({.id = call["id"],
                                    .name = call["function"]["name"],
                                    .arguments = call["function"]["arguments"].dump()});
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

std::vector<text::ToolSpec> Tools(const ordered_json& tools) {
  std::vector<text::ToolSpec> specs;
  for (const ordered_json& tool : tools) {
    const ordered_json& function = tool["function"];
    specs.push_back({.name = function["name"],
                     .description = function["description"],
                     .parameters = function["parameters"].dump()});
  }
  return specs;
}

class ToolGolden : public testing::Test {
 protected:
  std::unique_ptr<text::ChatTemplate> Compile(const std::string& name) {
    const ordered_json& variables = expected_["variables"];
    auto compiled = text::ChatTemplate::Compile(
        Read(templates_folder + "/" + name),
        {variables["bos_token"], variables["eos_token"], variables["date"]});
    EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
    return compiled.ok() ? *std::move(compiled) : nullptr;
  }

  const ordered_json expected_ = ordered_json::parse(Read(source_folder + "/tool_expected.json"));
};

TEST_F(ToolGolden, ConversationsRenderAsJinja2DoesThem) {
  const std::vector<text::ToolSpec> tools = Tools(expected_["tools"]);
  ASSERT_EQ(expected_["templates"].size(), 17u);
  for (const auto& [name, item] : expected_["templates"].items()) {
    const auto compiled = Compile(name);
    for (const auto& [title, render] : item["renders"].items()) {
      SCOPED_TRACE(name + ", " + title);
      const auto messages = Messages(expected_["conversations"][title]);
      const auto rendered =
          compiled->Render({.messages = messages, .tools = tools, .number_calls = true});
      if (render.contains("text")) {
        ASSERT_TRUE(rendered.ok()) << rendered.status().ToString();
        EXPECT_EQ(*rendered, render["text"].get<std::string>());
      } else {
        ASSERT_FALSE(rendered.ok());
        EXPECT_EQ(rendered.status().message(), render["raised"].get<std::string>());
      }
    }
  }
}

TEST_F(ToolGolden, TheSyntaxOfCallsIsFound) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(templates_folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".jinja")) continue;
    const text::TemplateTraits traits = text::FindTraits(*Compile(name));
    if (traits.calls) found[name] = text::CallSyntaxName(*traits.calls);
    const bool llama = traits.calls == text::CallSyntax::kLlama;
    EXPECT_TRUE(!traits.calls || traits.several_calls != llama) << name;
  }
  std::map<std::string, std::string> known;
  for (const auto& [name, item] : expected_["templates"].items()) known[name] = item["syntax"];
  EXPECT_EQ(found, known);
}

}  // namespace
}  // namespace plumb::golden
