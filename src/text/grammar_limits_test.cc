// text/grammar_limits_test.cc
// Grammars that would take seconds for a mask: refused, or followed within the limits until the
// answer fails by itself, alone and for good.
#include <gtest/gtest.h>

#include "base/random.h"
#include "text/grammar_hostile_testing.h"
#include "text/grammar_testing.h"

namespace plumb::text {
namespace {

using testing::Allows;

constexpr int kStepsMax = 150;

bool IsOverrun(const base::Status& status) {
  return status.code() == base::Code::kInvalidArgument && status.reason() == "grammar_too_large";
}

class GrammarLimitsTest : public ::testing::Test {
 protected:
  base::Status FillMask(GrammarState& state) {
    mask_.resize((tokenizer_->size() + 31) / 32);
    return state.FillMask(mask_);
  }
  // An answer of random tokens, as far as it comes.
  base::Status Walk(GrammarState& state, std::string_view start, uint64_t seed) {
    for (const TokenId token : testing::ByteTokens(start)) RETURN_IF_ERROR(state.Accept(token));
    base::Rng rng(seed);
    for (int step = 0; step < kStepsMax && !state.Complete(); ++step) {
      RETURN_IF_ERROR(FillMask(state));
      std::vector<TokenId> allowed;
      for (uint32_t id = 0; id < tokenizer_->size(); ++id)
        if (Allows(mask_, TokenId{id}) && !IsEnd(TokenId{id})) allowed.push_back(TokenId{id});
      if (allowed.empty()) break;
      RETURN_IF_ERROR(state.Accept(allowed[rng.Below(allowed.size())]));
    }
    return base::OkStatus();
  }
  bool IsEnd(TokenId token) const {
    const auto ends = tokenizer_->end_tokens();
    return std::find(ends.begin(), ends.end(), token) != ends.end();
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler_{*tokenizer_};
  std::vector<uint32_t> mask_;
};

TEST_F(GrammarLimitsTest, HostileGrammarsAreRefusedOrFailAlone) {
  const auto good = compiler_.Compile({.kind = GrammarKind::kJsonObject});
  ASSERT_TRUE(good.ok());
  const std::string_view text = R"({"name": ["the", 12, true]})";
  int followed = 0;
  for (const testing::HostileGrammar& hostile : testing::HostileGrammars()) {
    const auto grammar = compiler_.Compile(hostile.spec);
    if (!grammar.ok()) {
      EXPECT_EQ(grammar.status().code(), base::Code::kInvalidArgument)
          << hostile.name << ": " << grammar.status().ToString();
      continue;
    }
    ++followed;
    const auto state = (*grammar)->NewState();
    const base::Status walked = Walk(*state, hostile.start, 5);
    EXPECT_TRUE(walked.ok() || IsOverrun(walked)) << hostile.name << ": " << walked.ToString();
    EXPECT_TRUE(testing::Takes(**good, *tokenizer_, text)) << "beside " << hostile.name;
  }
  EXPECT_GE(followed, 5);
}

// Without a limit its third mask takes seconds.
TEST_F(GrammarLimitsTest, AMaskThatTakesTooLongEndsItsAnswerForGood) {
  const auto grammar =
      compiler_.Compile({.kind = GrammarKind::kLark, .source = testing::CubicGrammar(700)});
  ASSERT_TRUE(grammar.ok()) << grammar.status().ToString();
  const auto state = (*grammar)->NewState();
  ASSERT_TRUE(FillMask(*state).ok()) << "the first was made when it was compiled";
  const base::Status walked = Walk(*state, "zz", 1);
  ASSERT_TRUE(IsOverrun(walked)) << walked.ToString();
  EXPECT_TRUE(IsOverrun(FillMask(*state)));
  EXPECT_TRUE(IsOverrun(state->Accept(TokenId{'a'})));
  EXPECT_EQ(state->CountAllowed(testing::ByteTokens("a")), 0u);
  EXPECT_FALSE(state->Complete());
  std::vector<TokenId> forced;
  state->AppendForced(4, forced);
  EXPECT_TRUE(forced.empty());
  state->Rollback(0);
  // Another answer of the same grammar begins as the first did.
  EXPECT_TRUE(FillMask(*(*grammar)->NewState()).ok());
}

// What an answer's masks take together is bounded as well, but long answers are not cut off.
TEST_F(GrammarLimitsTest, LongAnswersOfOrdinaryGrammarsGoOn) {
  const auto grammar = compiler_.Compile({.kind = GrammarKind::kJsonObject});
  ASSERT_TRUE(grammar.ok());
  const auto state = (*grammar)->NewState();
  std::string text = "{";
  for (int i = 0; i < 400; ++i) text += fmt::format("\"k{}\":[{},true],", i, i);
  text += "\"end\":{}}";
  for (const TokenId token : testing::ByteTokens(text)) {
    ASSERT_TRUE(FillMask(*state).ok());
    ASSERT_TRUE(state->Accept(token).ok());
  }
  EXPECT_TRUE(state->Complete());
}

}  // namespace
}  // namespace plumb::text
