// api/chat_prompt_test.cc
// What a chat's tools ask of the engine: calls that a grammar holds, and refusals by field.
#include "api/chat_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "api/testing/deepseek_vocabulary.h"

namespace plumb::api::testing {
namespace {

using text::ToolChoice;

class ChatPromptTest : public ::testing::Test {
 protected:
  ChatPromptTest() {
    request_.input.messages = {{.role = "user", .content = "hi"}};
    request_.input.tools = {
        {.name = "f",
         .parameters = R"({"type":"object","properties":{"city":{"enum":["Rome","Oslo"]}}})",
         .strict = true},
        {.name = "g"}};
  }
  base::Status Apply() {
    auto prompt = format_->Encode(request_.input, 4096);
    if (!prompt.ok()) return prompt.status();
    out_ = {};
    return ApplyPrompt(request_, *std::move(prompt), &grammars_, out_);
  }
  // How many bytes of the answer the engine's grammar takes.
  size_t Taken(const std::string& answer) {
    const base::Status applied = Apply();
    EXPECT_TRUE(applied.ok()) << applied.ToString();
    EXPECT_NE(out_.grammar, nullptr);
    return out_.grammar->NewState()->CountAllowed(ByteTokens(answer, /*end=*/false));
  }

  static std::string CallOf(const std::string& city) {
    return "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"city\" string=\"true\">" +
           city + "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n";
  }

  const std::unique_ptr<text::Tokenizer> tokenizer_ = MakeDeepseekTokenizer();
  const std::unique_ptr<text::ChatFormat> format_ = MakeDeepseekFormat(*tokenizer_);
  text::GrammarCompiler grammars_{*tokenizer_};
  GenerationRequest request_;
  engine::Request out_{};
};

const std::string kBegin = "hm</think>\n\nLook.\n\n<｜DSML｜ calls>\n";
const std::string kEnd = "</｜DSML｜ calls>";

TEST_F(ChatPromptTest, AStrictToolIsHeldWhereACallBegins) {
  const std::string good = kBegin + CallOf("Rome") + CallOf("Oslo") + kEnd;
  EXPECT_EQ(Taken(good), good.size());
  const std::string bad = kBegin + CallOf("Paris") + kEnd;
  EXPECT_LT(Taken(bad), bad.size());
  const std::string free = "hm</think>\n\nI need no tool for {this}.";
  EXPECT_EQ(Taken(free), free.size());
  request_.input.tools[0].strict = false;
  ASSERT_TRUE(Apply().ok());
  EXPECT_EQ(out_.grammar, nullptr);
}

TEST_F(ChatPromptTest, ACallThatMustComeIsHeldFromTheFirstByte) {
  request_.input.tool_choice = ToolChoice::kRequired;
  const std::string good =
      CallOf("Oslo") + "<｜DSML｜ invoke name=\"g\">\n</｜DSML｜ invoke>\n" + kEnd;
  EXPECT_EQ(Taken(good), good.size());
  EXPECT_EQ(Taken("Look."), 0u);
  request_.input.tool_choice = ToolChoice::kNamed;
  request_.input.tool_name = "g";
  EXPECT_LT(Taken(good), good.size());
  const std::string other = "<｜DSML｜ invoke name=\"g\">\n";
  EXPECT_EQ(Taken(other), other.size());
}

TEST_F(ChatPromptTest, WithoutParallelCallsThereIsOne) {
  request_.input.parallel_tool_calls = false;
  const std::string one = kBegin + CallOf("Rome") + kEnd;
  EXPECT_EQ(Taken(one), one.size());
  EXPECT_TRUE(out_.sampling.stop.empty());
  const std::string two = kBegin + CallOf("Rome") + CallOf("Rome") + kEnd;
  EXPECT_LT(Taken(two), two.size());
  // Without a grammar, the call's end stops the answer.
  request_.input.tools[0].strict = false;
  ASSERT_TRUE(Apply().ok());
  EXPECT_EQ(out_.sampling.stop, std::vector<std::string>{"</｜DSML｜ invoke>"});
}

TEST_F(ChatPromptTest, RefusalsNameTheField) {
  request_.input.tools[0].parameters =
      R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})";
  base::Status status = Apply();
  EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
  EXPECT_EQ(status.field(), "tools");
  EXPECT_EQ(status.reason(), "grammar_unsupported");
  EXPECT_THAT(status.message(), ::testing::HasSubstr("the tool f: \"uniqueItems\""));
  request_.input.tools[0].parameters = "{}";
  request_.sampling.ignore_end = true;
  EXPECT_EQ(Apply().field(), "ignore_eos");
  request_.sampling.ignore_end = false;
  request_.grammar = text::GrammarSpec{.kind = text::GrammarKind::kJsonObject};
  EXPECT_EQ(Apply().field(), "response_format");
}

}  // namespace
}  // namespace plumb::api::testing
