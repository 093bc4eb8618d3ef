// cli/model_prompt_test.cc
// What `plumb model prompt` prints, and what it refuses as the API does.
#include "cli/model_prompt.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/testing/byte_vocabulary.h"

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

}  // namespace
}  // namespace plumb::cli
