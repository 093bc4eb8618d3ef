// tests/golden/template/template_golden_test.cc
// Every chat template of the sdist renders every conversation as Jinja2 does (expected.json, made
// by make_goldens.py). Where Jinja2 fails, ours must fail too, with the template's own words if it
// raised.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/disk.h"
#include "text/chat_template.h"

namespace plumb::golden {

std::string templates_folder;
std::string source_folder;

namespace {

using nlohmann::json;

constexpr uint64_t kFileBytesMax = 4u << 20;

// Templates that iterate over `tools` without looking whether there are any. Python fails on None;
// minijinja takes it as an empty list, which gives the prompt that a chat without tools needs.
bool IteratesOverNoTools(const std::string& name) {
  return name == "CohereForAI-c4ai-command-r-plus-tool_use.jinja" ||
         name == "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja" ||
         name == "NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja";
}

json LoadExpected() {
  auto content = base::ReadFile(source_folder + "/expected.json", kFileBytesMax);
  EXPECT_TRUE(content.ok()) << content.status().ToString();
  return content.ok() ? json::parse(*content) : json::object();
}

std::vector<text::ChatMessage> Messages(const json& conversation) {
  std::vector<text::ChatMessage> messages;
  for (const json& message : conversation["messages"]) {
    messages.push_back({message["role"], message["content"], ""});
  }
  return messages;
}

void ExpectSame(const base::Result<std::string>& rendered, const json& expected) {
  if (expected.contains("text")) {
    ASSERT_TRUE(rendered.ok()) << rendered.status().ToString();
    EXPECT_EQ(*rendered, expected["text"].get<std::string>());
    return;
  }
  ASSERT_FALSE(rendered.ok()) << *rendered;
  EXPECT_EQ(rendered.status().code(), base::Code::kInvalidArgument);
  EXPECT_EQ(rendered.status().field(), "messages");
  if (expected.contains("raised")) {
    EXPECT_EQ(rendered.status().message(), expected["raised"].get<std::string>());
  }
}

TEST(ChatTemplateGolden, EveryTemplateRendersAsJinja2Does) {
  const json expected = LoadExpected();
  const json& variables = expected["variables"];
  ASSERT_EQ(expected["templates"].size(), 70u);
  for (const auto& [name, item] : expected["templates"].items()) {
    SCOPED_TRACE(name);
    auto source = base::ReadFile(templates_folder + "/" + name, kFileBytesMax);
    ASSERT_TRUE(source.ok()) << source.status().ToString();
    auto compiled = text::ChatTemplate::Compile(
        *source, {variables["bos_token"], variables["eos_token"], variables["date"]});
    ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
    for (const auto& [title, render] : item["renders"].items()) {
      SCOPED_TRACE(title);
      const json& conversation = expected["conversations"][title];
      const auto messages = Messages(conversation);
      const auto rendered =
          (*compiled)->Render(messages, conversation["add_generation_prompt"].get<bool>());
      if (IteratesOverNoTools(name)) {
        EXPECT_EQ(render["failed"], "TypeError");
        ASSERT_TRUE(rendered.ok()) << rendered.status().ToString();
        EXPECT_THAT(*rendered, testing::HasSubstr(messages.back().content));
      } else {
        ExpectSame(rendered, render);
      }
    }
  }
}

}  // namespace
}  // namespace plumb::golden

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::cerr << "usage: template_golden TEMPLATES_FOLDER SOURCE_FOLDER (see run.sh)\n";
    return 2;
  }
  plumb::golden::templates_folder = argv[1];
  plumb::golden::source_folder = argv[2];
  return RUN_ALL_TESTS();
}
