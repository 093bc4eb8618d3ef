// text/reasoning_budget_test.cc
// Reasoning is counted by its tokens, however its end is written; and closed when its budget is
// used up, under any other grammar, drafts and steps back included.
#include "text/reasoning_budget.h"

#include <gtest/gtest.h>

#include "text/grammar_testing.h"
#include "text/reasoning_meter.h"

namespace plumb::text {
namespace {

using testing::Allows;

uint32_t Count(const std::vector<std::string>& tokens, AnswerStart start, bool may_think,
               const std::vector<std::string>& ends = {"</think>"}) {
  ReasoningMeter meter(start, may_think, ends);
  for (const std::string& token : tokens) meter.Push(token);
  return meter.tokens();
}

TEST(ReasoningMeter, CountsTokensOfReasoningAlone) {
  constexpr AnswerStart kInside = AnswerStart::kReasoning, kOutside = AnswerStart::kContent;
  EXPECT_EQ(Count({"Hm", ",", " well", "</think>", "Yes", "</think>"}, kInside, false), 3u);
  EXPECT_EQ(Count({"</think>", "Yes"}, kInside, false), 0u);
  EXPECT_EQ(Count({"Hm", "</th", "ink>", "Yes"}, kInside, false), 1u);
  EXPECT_EQ(Count({"Hm.</", "think>"}, kInside, false), 1u);
  EXPECT_EQ(Count({"Hm", "</think>\n\nYes"}, kInside, false), 1u);
  EXPECT_EQ(Count({"Hm", "", "</thin", "</thinks>"}, kInside, false), 4u);
  EXPECT_EQ(Count({"\n", "<think>", "Hm", "\n", "</think>", "Yes"}, kOutside, true), 2u);
  EXPECT_EQ(Count({"<th", "ink>Hm", "</think>"}, kOutside, true), 1u);
  EXPECT_EQ(Count({"Yes", "<think>", "Hm"}, kOutside, true), 0u);
  EXPECT_EQ(Count({"<think>", "Hm"}, kOutside, false), 0u);
  EXPECT_EQ(Count({"Hm", "<calls>", "x"}, kInside, false, {"</think>", "<calls>"}), 1u);
  EXPECT_EQ(Count({"Hm"}, kInside, false, {}), 0u);
}

class ReasoningBudgetTest : public ::testing::Test {
 protected:
  std::unique_ptr<GrammarState> NewState(uint32_t tokens_max,
                                         std::shared_ptr<const Grammar> inner = nullptr) {
    return compiler_.WithBudget(tokens_max, {"</think>"}, std::move(inner)).value()->NewState();
  }
  void Accept(GrammarState& state, std::string_view text) {
    for (const TokenId token : testing::ByteTokens(text)) {
      const std::vector<uint32_t> mask = testing::MaskOf(state, *tokenizer_);
      EXPECT_TRUE(Allows(mask, token)) << text;
      EXPECT_TRUE(state.Accept(token).ok()) << text;
    }
  }
  // The tokens that may come, as text; "*" where they are many.
  std::string Next(GrammarState& state) {
    const std::vector<uint32_t> mask = testing::MaskOf(state, *tokenizer_);
    std::string text;
    for (uint32_t id = 0; id < tokenizer_->size(); ++id) {
      if (Allows(mask, TokenId{id})) text += tokenizer_->TokenBytes(TokenId{id});
      if (text.size() > 16) return "*";
    }
    return text;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler_{*tokenizer_};
};

TEST_F(ReasoningBudgetTest, ClosesWhatHasUsedItUp) {
  const auto state = NewState(3);
  Accept(*state, "abc");
  std::string closing;
  for (int i = 0; i < 16 && Next(*state) != "*"; ++i) {
    std::vector<TokenId> forced;
    state->AppendForced(1, forced);
    ASSERT_EQ(forced.size(), 1u);
    EXPECT_EQ(Next(*state), tokenizer_->TokenBytes(forced[0]));
    EXPECT_FALSE(state->Accept(TokenId{'x'}).ok());
    closing += tokenizer_->TokenBytes(forced[0]);
    ASSERT_TRUE(state->Accept(forced[0]).ok());
  }
  EXPECT_EQ(closing, "</think>");
  Accept(*state, "Yes, </think> and more of it.");
  EXPECT_FALSE(state->Complete());
  EXPECT_TRUE(state->Accept(*tokenizer_->eos()).ok());
  EXPECT_TRUE(state->Complete());
}

TEST_F(ReasoningBudgetTest, LeavesAloneWhatEndsInTime) {
  const auto state = NewState(12);
  Accept(*state, "ab</think>");
  Accept(*state, "0123456789 0123456789");
  EXPECT_EQ(Next(*state), "*");
}

TEST_F(ReasoningBudgetTest, StepsBackAsIfNothingHadBeen) {
  const auto state = NewState(3);
  Accept(*state, "ab");
  const std::vector<TokenId> draft = testing::ByteTokens("c</think>xyz");
  EXPECT_EQ(state->CountAllowed(draft), draft.size());
  EXPECT_EQ(state->CountAllowed(testing::ByteTokens("cd")), 1u);
  EXPECT_EQ(Next(*state), "*");
  Accept(*state, "c");
  const std::string forced = Next(*state);
  EXPECT_NE(forced, "*");
  state->Rollback(1);
  EXPECT_EQ(Next(*state), "*");
  Accept(*state, "d");
  EXPECT_EQ(Next(*state), forced);
}

TEST_F(ReasoningBudgetTest, HoldsBesideAnotherGrammar) {
  GrammarSpec spec{
      .kind = GrammarKind::kChoice, .source = {}, .choices = {"yes"}, .begin = {}, .end = {}};
  spec.begin = "</think>";
  const auto state = NewState(2, compiler_.Compile(spec).value());
  Accept(*state, "ab");
  for (int i = 0; i < 16; ++i) {
    std::vector<TokenId> forced;
    state->AppendForced(1, forced);
    ASSERT_EQ(forced.size(), 1u);
    ASSERT_TRUE(state->Accept(forced[0]).ok());
    if (Next(*state) == "y") break;
  }
  EXPECT_EQ(Next(*state), "y");
  Accept(*state, "yes");
  EXPECT_TRUE(state->Complete());
}

}  // namespace
}  // namespace plumb::text
