// text/grammar_compiler_test.cc
// The cache: one compilation for all who ask for the same, refusals remembered, bounded, stopped
// cleanly.
#include "text/grammar_compiler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>

#include "text/grammar_testing.h"

namespace plumb::text {
namespace {

GrammarSpec Choice(const std::string& text) {
  return {.kind = GrammarKind::kChoice, .choices = {text}};
}

TEST(GrammarCompiler, CompilesTheSameOnce) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer);
  std::vector<base::Thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back("ask", [&] {
      for (int j = 0; j < 4; ++j)
        if (compiler.Compile(Choice("x" + std::to_string(j))).ok()) ++good;
    });
  }
  for (base::Thread& thread : threads) thread.Join();
  EXPECT_EQ(good.load(), 32);
  EXPECT_EQ(compiler.compiled(), 4u);
  EXPECT_EQ(compiler.Compile(Choice("x0")).value(), compiler.Compile(Choice("x0")).value());
}

TEST(GrammarCompiler, RemembersRefusals) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer);
  const GrammarSpec bad{.kind = GrammarKind::kRegex, .source = "("};
  EXPECT_FALSE(compiler.Compile(bad).ok());
  EXPECT_FALSE(compiler.Compile(bad).ok());
  EXPECT_EQ(compiler.compiled(), 1u);
}

TEST(GrammarCompiler, ForgetsTheLeastRecentlyUsed) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer, {.cached_max = 2});
  const auto held = compiler.Compile(Choice("a"));
  ASSERT_TRUE(held.ok());
  ASSERT_TRUE(compiler.Compile(Choice("b")).ok());
  ASSERT_TRUE(compiler.Compile(Choice("a")).ok());
  ASSERT_TRUE(compiler.Compile(Choice("c")).ok());  // b goes
  ASSERT_TRUE(compiler.Compile(Choice("a")).ok());
  EXPECT_EQ(compiler.compiled(), 3u);
  ASSERT_TRUE(compiler.Compile(Choice("b")).ok());
  EXPECT_EQ(compiler.compiled(), 4u);
  EXPECT_TRUE(testing::Takes(**held, *tokenizer, "a"));
}

TEST(GrammarCompiler, TellsSpecsApartByEveryField) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer);
  const GrammarSpec specs[] = {
      {.kind = GrammarKind::kRegex, .source = "ab"},
      {.kind = GrammarKind::kRegex, .source = "ab", .begin = "<"},
      {.kind = GrammarKind::kRegex, .source = "ab", .begin = "<", .end = ">"},
      {.kind = GrammarKind::kChoice, .choices = {"ab"}},
      {.kind = GrammarKind::kChoice, .choices = {"a", "b"}},
  };
  for (const GrammarSpec& spec : specs) EXPECT_TRUE(compiler.Compile(spec).ok());
  EXPECT_EQ(compiler.compiled(), 5u);
}

TEST(GrammarCompiler, RefusesMalformedSpecsAtOnce) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer);
  for (const GrammarSpec& spec : {
           GrammarSpec{.kind = GrammarKind::kChoice},
           GrammarSpec{.kind = GrammarKind::kChoice, .choices = {""}},
           GrammarSpec{.kind = GrammarKind::kRegex, .source = "a", .choices = {"a"}},
           GrammarSpec{.kind = GrammarKind::kRegex, .source = "a", .end = ">"},
           GrammarSpec{.kind = GrammarKind::kRegex, .source = "a", .begin = std::string(65, 'a')},
           GrammarSpec{.kind = GrammarKind::kChoice,
                       .choices = std::vector<std::string>(GrammarCompiler::kChoicesMax + 1, "a")},
       }) {
    EXPECT_EQ(compiler.Compile(spec).status().code(), base::Code::kInvalidArgument);
  }
  EXPECT_EQ(compiler.compiled(), 0u);
}

TEST(GrammarCompiler, RefusesRepetitionsOfRepetitionsAtOnce) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer);
  for (const std::string& source : {
           std::string(R"(root ::= (("a"{1,1000}){1,1000}){1,1000})"),
           "root ::= (\"a\" root)" + std::string(1000, '?'),
       }) {
    const auto grammar = compiler.Compile({.kind = GrammarKind::kEbnf, .source = source});
    EXPECT_EQ(grammar.status().code(), base::Code::kInvalidArgument) << source;
  }
}

// It must not hold up what others ask for, nor the end.
TEST(GrammarCompiler, GivesUpWhatTakesTooLong) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer, {.compile_ms_max = 1});
  std::string source = "start: \"0\"";
  for (int i = 1; i < 8000; ++i) source += fmt::format(" | \"x{}\" start", i);
  const auto slow = compiler.Compile({.kind = GrammarKind::kLark, .source = source});
  ASSERT_EQ(slow.status().code(), base::Code::kInvalidArgument) << slow.status().ToString();
  EXPECT_EQ(slow.status().reason(), "grammar_too_large");
  // Known by now: it is not begun again.
  const uint64_t compiled = compiler.compiled();
  EXPECT_FALSE(compiler.Compile({.kind = GrammarKind::kLark, .source = source}).ok());
  EXPECT_EQ(compiler.compiled(), compiled);
}

TEST(GrammarCompiler, StopsAndThenRefuses) {
  const auto tokenizer = testing::MakeGrammarTokenizer();
  GrammarCompiler compiler(*tokenizer);
  const auto held = compiler.Compile(Choice("a"));
  compiler.Stop();
  compiler.Stop();
  EXPECT_FALSE(compiler.Compile(Choice("b")).ok());
  ASSERT_TRUE(held.ok());
  EXPECT_TRUE(testing::Takes(**held, *tokenizer, "a"));
}

}  // namespace
}  // namespace plumb::text
