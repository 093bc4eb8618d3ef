// text/grammar_trigger_test.cc
// Free text around a grammar: however `begin` is cut into tokens, the grammar holds from its last
// byte on, and nothing else of the answer is touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "text/grammar_testing.h"

namespace plumb::text {
namespace {

using testing::Allows;
using testing::ControlToken;
using testing::MaskOf;

class GrammarTriggerTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrammarState> NewState(const std::string& begin, const std::string& end) {
    auto grammar = compiler_.Compile({.kind = GrammarKind::kJsonSchema,
                                      .source = R"({"type":"array","items":{"type":"integer"}})",
                                      .begin = begin,
                                      .end = end});
    EXPECT_TRUE(grammar.ok()) << grammar.status().ToString();
    return (*grammar)->NewState();
  }
  // How many bytes of the text are taken, one byte a token.
  size_t TakenBytes(GrammarState& state, std::string_view text) {
    size_t taken = 0;
    for (const TokenId token : testing::ByteTokens(text)) {
      const bool allowed = Allows(MaskOf(state, *tokenizer_), token);
      EXPECT_EQ(state.Accept(token).ok(), allowed) << taken;
      if (!allowed) break;
      ++taken;
    }
    return taken;
  }
  bool MayEnd(GrammarState& state) {
    return Allows(MaskOf(state, *tokenizer_), tokenizer_->end_tokens()[0]);
  }
  TokenId Token(std::string_view bytes) { return testing::LongestTokens(*tokenizer_, bytes)[0]; }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler_{*tokenizer_};
};

TEST_F(GrammarTriggerTest, HoldsToTheEndAfterATextOfSeveralTokens) {
  const auto state = NewState("</think>", "");
  EXPECT_TRUE(MayEnd(*state)) << "free text may end";
  EXPECT_EQ(TakenBytes(*state, "so { [ </thin</think>"), 21u);
  EXPECT_FALSE(MayEnd(*state));
  EXPECT_EQ(TakenBytes(*state, "x"), 0u);
  EXPECT_EQ(TakenBytes(*state, "[1, 12]"), 7u);
  EXPECT_TRUE(state->Complete());
  EXPECT_TRUE(MayEnd(*state));
  EXPECT_EQ(TakenBytes(*state, "x"), 0u);
}

TEST_F(GrammarTriggerTest, ATokenMayNotRunOverTheBegin) {
  const auto state = NewState("</think>", "");
  ASSERT_EQ(TakenBytes(*state, "</thin"), 6u);
  const TokenId over = Token("k>{");
  EXPECT_FALSE(Allows(MaskOf(*state, *tokenizer_), over));
  EXPECT_FALSE(state->Accept(over).ok());
  state->Rollback(1);
  EXPECT_TRUE(Allows(MaskOf(*state, *tokenizer_), over)) << "</thi + k>{ is only text";
  EXPECT_TRUE(Allows(MaskOf(*state, *tokenizer_), Token("hink>"))) << "only text, too";
}

TEST_F(GrammarTriggerTest, FreeTextGoesOnAfterTheEndAndAgain) {
  const auto state = NewState("<call>", "</call>");
  ASSERT_EQ(TakenBytes(*state, "a<call>[1]"), 10u);
  EXPECT_FALSE(MayEnd(*state));
  EXPECT_EQ(TakenBytes(*state, "x"), 0u);
  ASSERT_EQ(TakenBytes(*state, "</call>"), 7u);
  EXPECT_FALSE(state->Complete());
  EXPECT_TRUE(MayEnd(*state));
  ASSERT_EQ(TakenBytes(*state, "free [x] <call>[]</call>"), 24u);
  ASSERT_EQ(TakenBytes(*state, "<call>"), 6u);
  EXPECT_EQ(TakenBytes(*state, "no"), 0u);
}

TEST_F(GrammarTriggerTest, ControlTokensBeginAndEnd) {
  const auto state = NewState("<|tool|>", "<|/tool|>");
  const TokenId begin = ControlToken(*tokenizer_, "<|tool|>");
  const TokenId end = ControlToken(*tokenizer_, "<|/tool|>");
  EXPECT_EQ(TakenBytes(*state, "<|tool|>x"), 9u) << "its spelling is text";
  ASSERT_TRUE(state->Accept(begin).ok());
  EXPECT_FALSE(state->Accept(end).ok());
  ASSERT_EQ(TakenBytes(*state, "[12]"), 4u);
  const std::vector<uint32_t> mask = MaskOf(*state, *tokenizer_);
  EXPECT_TRUE(Allows(mask, end));
  EXPECT_FALSE(Allows(mask, begin));
  ASSERT_TRUE(state->Accept(end).ok());
  EXPECT_EQ(TakenBytes(*state, "free"), 4u);
}

TEST_F(GrammarTriggerTest, RollsBackAcrossItsParts) {
  const auto grammar = compiler_.Compile(
      {.kind = GrammarKind::kChoice, .choices = {"ab", "abc"}, .begin = "<<", .end = ">>"});
  ASSERT_TRUE(grammar.ok()) << grammar.status().ToString();
  std::vector<TokenId> tokens = testing::LongestTokens(*tokenizer_, "the <<abc>> <<ab>><<abc>>x");
  tokens.push_back(tokenizer_->end_tokens()[0]);
  base::Rng rng(3);
  const auto wild = (*grammar)->NewState();
  size_t at = 0;
  for (int round = 0; round < 200; ++round) {
    const size_t to = rng.Below(tokens.size() + 1);
    if (to < at) wild->Rollback(static_cast<uint32_t>(at - to));
    for (; at < to; ++at) ASSERT_TRUE(wild->Accept(tokens[at]).ok()) << at;
    at = to;
    EXPECT_EQ(wild->CountAllowed(std::span(tokens).subspan(at)), tokens.size() - at);
    const auto fresh = (*grammar)->NewState();
    for (size_t i = 0; i < at; ++i) ASSERT_TRUE(fresh->Accept(tokens[i]).ok());
    ASSERT_EQ(MaskOf(*wild, *tokenizer_), MaskOf(*fresh, *tokenizer_)) << at;
    ASSERT_EQ(wild->Complete(), fresh->Complete());
  }
}

TEST_F(GrammarTriggerTest, ForcesNoEndWhereTextGoesOn) {
  const auto grammar = compiler_.Compile(
      {.kind = GrammarKind::kChoice, .choices = {"xyz"}, .begin = "<", .end = ">"});
  ASSERT_TRUE(grammar.ok()) << grammar.status().ToString();
  const auto state = (*grammar)->NewState();
  std::vector<TokenId> forced;
  state->AppendForced(8, forced);
  EXPECT_TRUE(forced.empty());
  ASSERT_TRUE(state->Accept(TokenId{'<'}).ok());
  state->AppendForced(8, forced);
  EXPECT_EQ(forced, testing::ByteTokens("xyz>"));
}

TEST_F(GrammarTriggerTest, TriggersThatEndTheAnswerAreRefused) {
  const std::string end(tokenizer_->TokenName(tokenizer_->end_tokens()[0]));
  for (const auto& [first, second] : {std::pair<std::string, std::string>{end, ""}, {"<", end}}) {
    const auto grammar =
        compiler_.Compile({.kind = GrammarKind::kJsonObject, .begin = first, .end = second});
    EXPECT_EQ(grammar.status().code(), base::Code::kInvalidArgument) << first;
  }
  EXPECT_FALSE(compiler_.Compile({.kind = GrammarKind::kJsonObject, .end = ">"}).ok());
}

}  // namespace
}  // namespace plumb::text
