// text/prompt_place_test.cc
// A place of the conversation, found in the prompt's tokens, whatever the template does with texts.
#include "text/prompt_place.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "text/chat_template.h"
#include "text/grammar_testing.h"
#include "text/jinja_chat_format.h"

namespace plumb::text {
namespace {

constexpr std::string_view kTurns =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}"
    "<|im_start|>assistant\n";

class PromptPlaceTest : public ::testing::Test {
 protected:
  struct Found {
    std::string before;  // the text of the tokens before the place, control tokens left out
    bool all = false;
  };
  Found Find(ConversationPlace place, const ChatInput& input, std::string_view source = kTurns) {
    auto compiled = ChatTemplate::Compile(source, {});
    const auto format = JinjaChatFormat::Create(std::move(compiled).value(), *tokenizer_).value();
    const ChatPrompt prompt = format->Encode(input, 10'000).value();
    TokenCache cache(*tokenizer_, 1 << 20);
    const uint32_t tokens =
        TokensBefore(place, *format, input, prompt, {.cache = &cache, .isolation = {}});
    Found found{.before = {}, .all = tokens == prompt.tokens.size()};
    for (uint32_t i = 0; i < tokens; ++i) found.before += tokenizer_->TokenBytes(prompt.tokens[i]);
    return found;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  const ChatInput input_{
      .messages = {{"system", "Be brief."}, {"user", "one xylophone"}, {"user", "two"}}};
};

TEST_F(PromptPlaceTest, EveryPlaceIsWhereItsTextEnds) {
  std::string before;
  for (size_t message = 0; message < input_.messages.size(); ++message) {
    const ChatMessage& one = input_.messages[message];
    before += one.role + "\n";
    for (size_t bytes = 0; bytes <= one.content.size(); ++bytes) {
      const Found found = Find({message, bytes}, input_);
      const bool end = message == 2 && bytes == one.content.size();
      EXPECT_EQ(found.all, end);
      EXPECT_TRUE(end || found.before == before + one.content.substr(0, bytes)) << found.before;
    }
    // Beyond the content is its end.
    const size_t size = one.content.size();
    EXPECT_EQ(Find({message, size + 9}, input_).before, Find({message, size}, input_).before);
    before += one.content;
  }
}

TEST_F(PromptPlaceTest, TheEndIsAllOfThePrompt) {
  EXPECT_TRUE(Find({3, 0}, input_).all);
  EXPECT_TRUE(Find({SIZE_MAX, SIZE_MAX}, input_).all);
}

TEST_F(PromptPlaceTest, WhatATemplateTrimsIsNotThere) {
  const std::string trims =
      "{% for m in messages %}<|im_start|>{{ m.content | trim }}<|im_end|>{% endfor %}";
  const ChatInput input{.messages = {{"user", "one \n"}, {"user", "two"}}};
  EXPECT_EQ(Find({0, 5}, input, trims).before, "one");
}

TEST_F(PromptPlaceTest, WhereAPromptSpeaksOfTheTextBeforeItIsThere) {
  const std::string counts = "{{ messages[0].content | length }}:{{ messages[0].content }}";
  const ChatInput input{.messages = {{"user", "aaaaaaaaa"}, {"user", "b"}}};
  EXPECT_EQ(Find({0, 4}, input, counts).before, "");
}

TEST_F(PromptPlaceTest, WhereItCannotBeToldItIsAllOfThePrompt) {
  const std::string refuses =
      "{% if messages[0].content != 'one' %}{{ raise_exception('no') }}{% endif %}"
      "{{ messages[0].content }} and more";
  const ChatInput input{.messages = {{"user", "one"}, {"user", "two"}}};
  EXPECT_TRUE(Find({0, 2}, input, refuses).all);
  // The template does not show the message.
  EXPECT_TRUE(Find({1, 2}, input, refuses).all);
  ChatInput parts = input;
  parts.messages[0].parts = {{.kind = ContentPart::Kind::kText, .text = "one"}};
  EXPECT_TRUE(Find({0, 2}, parts).all);
  // No character begins there.
  EXPECT_TRUE(Find({0, 1}, {.messages = {{"user", "é"}, {"user", "b"}}}).all);
}

}  // namespace
}  // namespace plumb::text
