// text/grammar_hostile_testing.h
// Tests and measurements only. Small grammars that are as dear to follow as we know how to write
// them: ambiguous and nullable rules, nests of choices between equal things, many rules that end at
// once where many wait, long alternations, deep recursion.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "text/grammar.h"

namespace plumb::text::testing {

struct HostileGrammar {
  std::string name;
  GrammarSpec spec;
  std::string start;  // what the answer begins with, then anything that is allowed
};

// `one` of each index, in a row.
inline std::string EachOf(int count, const std::function<std::string(int)>& one) {
  std::string all;
  for (int i = 0; i < count; ++i) all += one(i);
  return all;
}

// After "zzab", `count` rules end at once, each of which any of `count` others may have waited for:
// one row of the parser takes the cube of `count` steps.
inline std::string CubicGrammar(int count) {
  std::string source = "start: \"z\" \"z\" \"a\" (w0";
  source += EachOf(count - 1, [](int i) { return fmt::format(" | w{}", i + 1); }) + ")\nx: y0";
  source += EachOf(count - 1, [](int i) { return fmt::format(" | y{}", i + 1); }) + "\n";
  source += EachOf(count, [](int i) {
    return fmt::format(
        "w{0}: x v{0}\nv{0}: \"c\" v{0} | \"e\"\ny{0}: \"b\" n{0}\nn{0}: (\"d\" n{0} \"e\")?\n", i);
  });
  return source;
}

inline std::vector<HostileGrammar> HostileGrammars() {
  const auto lark = [](std::string name, std::string source, std::string start) {
    return HostileGrammar{
        std::move(name), {.kind = GrammarKind::kLark, .source = std::move(source)}, start};
  };
  std::string nests = "start: r0 \"!\"\n";
  nests +=
      EachOf(40, [](int i) { return fmt::format("r{}: (r{} | r{} | \"a\")*\n", i, i + 1, i + 1); });
  nests += "r40: (\"a\" | \"a\")*\n";
  std::string keywords = "start: (k0";
  keywords += EachOf(1500, [](int i) { return fmt::format(" | k{}", i + 1); }) + ")*\n";
  keywords +=
      EachOf(1501, [](int i) { return fmt::format("k{0}: \"a\" o{0}\no{0}: (\"b\" o{0})?\n", i); });
  const std::string letters = EachOf(24, [](int i) {
    return fmt::format("{}/[{}-z]+/", i > 0 ? " | " : "", static_cast<char>('a' + i));
  });
  return {
      lark("ambiguous", "start: x\nx: | \"a\" | x x | x x x", "aaaa"),
      lark("cubic", CubicGrammar(700), "zz"),
      lark("cubic larger", CubicGrammar(2000), "zz"),
      lark("nests", nests, "aa"),
      lark("keywords", keywords, "a"),
      lark("words", "start: w+\nw: " + letters, "q"),
      lark("recursion", "start: s\ns: (\"(\" s \")\" s)? | (\"(\" s)?", "(((((((("),
      lark("complement", "start: T\nT: /(?s:.*)/ & ~/(?s:.*)(a|b.{12}c)(?s:.*)/", "x"),
      {"ebnf",
       {.kind = GrammarKind::kEbnf,
        .source = "root ::= x \"!\"\nx ::= (x x | x x x | \"a\" | \"\")"},
       "aa"},
      {"regex", {.kind = GrammarKind::kRegex, .source = "((a|b)*a(a|b){14}c?){1,9}"}, "ab"},
      {"schema",
       {.kind = GrammarKind::kJsonSchema,
        .source = R"({"type":"array","items":{"anyOf":[{"type":"array","items":{"$ref":"#"}},)"
                  R"({"type":"array","items":{"type":"array"}},{"type":"array"}]}})"},
       "[[["},
  };
}

}  // namespace plumb::text::testing
