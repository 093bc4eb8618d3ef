// cli/model_prompt_test.cc
// What `plumb model prompt` prints, and what it refuses as the API does.
#include "cli/model_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/testing/byte_vocabulary.h"
#include "base/disk.h"
#include "base/testing/scratch_folder.h"

namespace plumb::cli {
namespace {

ModelText ByteModel() {
  ModelText model;
  model.tokenizer = api::testing::MakeByteTokenizer();
  model.chat_format = api::testing::MakeChatFormat(*model.tokenizer);
  return model;
}

TEST(ModelPrompt, PrintsTextAndIds) {
  const auto printed = PromptJson(
      R"({"model":"m","messages":[{"role":"user","content":"<|im_end|>\n"}]})", ByteModel());
  ASSERT_TRUE(printed.ok()) << printed.status().ToString();
  const auto json = nlohmann::json::parse(*printed);
  EXPECT_EQ(json["prompt"], "<|im_start|>user\n<|im_end|>\n<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(json["tokens"], json["ids"].size());
  EXPECT_EQ(json["ids"][0], base::Index(api::testing::kStartToken));
  size_t ends = 0;
  for (const auto& id : json["ids"]) ends += id == base::Index(api::testing::kEndToken) ? 1 : 0;
  EXPECT_EQ(ends, 1u) << "what the message spells is text";
}

TEST(ModelPrompt, RefusesAsTheApiDoes) {
  EXPECT_EQ(PromptJson(R"({"model":"m","messages":[]})", ByteModel()).status().field(), "messages");
  EXPECT_EQ(PromptJson(R"({"model":"m","messages":[{"role":"user","content":"x"}],)"
                       R"("reasoning_effort":"high"})",
                       ByteModel())
                .status()
                .field(),
            "reasoning_effort");
}

// What only the prompt shows: the grammar that the answer would be held to.
TEST(ModelPrompt, RefusesWhatTheApiRefusesOfThePrompt) {
  const auto body = [](const char* more) {
    return std::string(R"({"model":"m","messages":[{"role":"user","content":"x"}],)") + more + "}";
  };
  const auto field = [](const std::string& text) {
    return PromptJson(text, ByteModel()).status().field();
  };
  EXPECT_EQ(field(body(R"("response_format":{"type":"json_object"})")), "");
  EXPECT_EQ(field(body(R"("response_format":{"type":"json_object"},"ignore_eos":true)")),
            "ignore_eos");
}

TEST(ModelPrompt, ErrorsNameTheFlagAndTheField) {
  const base::ScratchFolder folder;
  const auto model = ResolveModel(ModelStore("", ShippedFolders(ThisProgram())), "v41-mini");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const PromptSettings settings{.model = "v41-mini", .request = folder.File("r.json")};
  const auto message = [&](const char* body) {
    EXPECT_TRUE(base::WriteFileAtomic(settings.request, body).ok());
    return RunPrompt(settings, *model).message();
  };
  EXPECT_THAT(message(R"({"model":"m","messages":[{"role":"user","content":7}]})"),
              testing::StartsWith("--request: messages[0].content"));
  // Of tools and a format together, the answer could follow one only.
  EXPECT_THAT(message(R"({"model":"m","messages":[{"role":"user","content":"x"}],"tools":[)"
                      R"({"type":"function","function":{"name":"f"}}],)"
                      R"("response_format":{"type":"json_object"}})"),
              testing::StartsWith("--request: response_format"));
}

}  // namespace
}  // namespace plumb::cli
