// text/template_answer_parser_test.cc
// What answers become in each syntax of calls, and that it does not depend on how they were cut.
// What is no call is content, to the last character.
#include "text/template_answer_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"

namespace plumb::text {
namespace {

using Kind = AnswerDelta::Kind;

struct Answer {
  std::string text;
  TemplateAnswer how;
  bool stopped = true;
};

// Deltas in short: "r:..." reasoning, "c:..." content, "f:..." a call, "a:..." its arguments.
std::vector<std::string> Parse(const Answer& answer, const std::vector<size_t>& cuts = {}) {
  TemplateAnswerParser parser(answer.how);
  std::vector<AnswerDelta> deltas;
  size_t begin = 0;
  const auto push = [&](size_t end) {
    std::vector<AnswerDelta> some;
    parser.Push(std::string_view(answer.text).substr(begin, end - begin), some);
    for (const AnswerDelta& delta : some) {
      EXPECT_FALSE(delta.text.empty());
      AppendDelta(deltas, delta.kind, delta.text);
    }
    begin = end;
  };
  for (const size_t cut : cuts) push(cut);
  push(answer.text.size());
  std::vector<AnswerDelta> last;
  parser.Finish(answer.stopped, last);
  for (const AnswerDelta& delta : last) AppendDelta(deltas, delta.kind, delta.text);
  std::vector<std::string> out;
  for (const AnswerDelta& delta : deltas)
    out.push_back("rcfa"[static_cast<size_t>(delta.kind)] + (":" + delta.text));
  return out;
}

TemplateAnswer Calls(CallSyntax syntax) { return {.calls = syntax}; }
TemplateAnswer Llama() {
  TemplateAnswer how = Calls(CallSyntax::kLlama);
  how.names = {"f", "g"};
  return how;
}
TemplateAnswer Thinks(std::optional<CallSyntax> syntax = {}) {
  return {.may_think = true, .calls = syntax};
}
TemplateAnswer One(TemplateAnswer how) {
  how.one_call = true;
  return how;
}

struct Case {
  const char* what;
  Answer answer;
  std::vector<std::string> expected;
};

const TemplateAnswer kHermes = Calls(CallSyntax::kHermes);
const TemplateAnswer kMistral = Calls(CallSyntax::kMistral);
const TemplateAnswer kNamed = Calls(CallSyntax::kMistralNamed);

std::vector<Case> HermesCases() {
  const std::string call = R"(<tool_call>
{"name": "f", "arguments": {"a": "b}\"</tool_call>", "n": [1, {"x": null}]}}
</tool_call>)";
  const std::string arguments = R"({"a": "b}\"</tool_call>", "n": [1, {"x": null}]})";
  return {
      {"text alone, newlines and all",
       {"\n a <b> 안녕 👋\n\n", kHermes},
       {"c:\n a <b> 안녕 👋\n\n"}},
      {"one call", {call, kHermes}, {"f:f", "a:" + arguments}},
      {"text before and after",
       {"Let me look.\n\n" + call + "\nDone.", kHermes},
       {"c:Let me look.", "f:f", "a:" + arguments, "c:Done."}},
      {"two calls",
       {call + "\n" + call, kHermes},
       {"f:f", "a:" + arguments, "f:f", "a:" + arguments}},
      {"one call is enough", {call + "\n" + call, One(kHermes)}, {"f:f", "a:" + arguments}},
      {"without tools the markup is text", {call, {}}, {"c:" + call}},
      {"arguments before the name",
       {R"(<tool_call>{"arguments": {"a": 1}, "id": 3, "name": "f"}</tool_call>)", kHermes},
       {"f:f", R"(a:{"a": 1})"}},
      {"arguments in a string",
       {R"(<tool_call>{"name": "f", "arguments": "{\"a\": \"\u00e9\"}"}</tool_call>)", kHermes},
       {"f:f", R"(a:{"a": "é"})"}},
      {"no arguments", {R"(<tool_call>{"name": "f"}</tool_call>)", kHermes}, {"f:f", "a:{}"}},
      {"null arguments",
       {R"(<tool_call>{"name": "f", "arguments": null}</tool_call>)", kHermes},
       {"f:f", "a:{}"}},
      {"no object",
       {"<tool_call>\nf(1)\n</tool_call>\n", kHermes},
       {"c:<tool_call>\nf(1)\n</tool_call>\n"}},
      {"no name",
       {R"(a<tool_call>{"arguments": {}}</tool_call>)", kHermes},
       {R"(c:a<tool_call>{"arguments": {}}</tool_call>)"}},
      {"a name that no tool has",
       {R"(<tool_call>{"name": "f g"}</tool_call>)", kHermes},
       {R"(c:<tool_call>{"name": "f g"}</tool_call>)"}},
      {"a tag, then a call",
       {"<tool_call><tool_call>" + call.substr(11), kHermes},
       {"c:<tool_call>", "f:f", "a:" + arguments}},
      {"spelled in text",
       {"Use <tool_call> or <tool_cal.", kHermes},
       {"c:Use <tool_call> or <tool_cal."}},
      {"an end that is missing",
       {R"(<tool_call>{"name": "f", "arguments": {}})", kHermes},
       {"f:f", "a:{}"}},
      {"a brace too few",
       {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}\n</tool_call>\nx", kHermes},
       {"f:f", R"(a:{"a": 1})", "c:x"}},
      {"arguments that break",
       {"<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1]}}</tool_call>\n" + call, kHermes},
       {"f:f", R"(a:{"a": 1)", "f:f", "a:" + arguments}},
      {"cut within arguments",
       {R"(<tool_call>{"name": "f", "arguments": {"a": "x)", kHermes, false},
       {"f:f", R"(a:{"a": "x)"}},
      {"cut within the name", {"Hm\n<tool_call>{\"name\": \"f", kHermes, false}, {"c:Hm"}},
      {"cut within the end",
       {call.substr(0, call.size() - 3), kHermes, false},
       {"f:f", "a:" + arguments}},
  };
}

std::vector<Case> ThinkingCases() {
  const std::string call = R"(<tool_call>{"name": "f"}</tool_call>)";
  return {
      {"reasoning, then text",
       {"<think>\nHm <b>\n</think>\n\nYes.\n", Thinks()},
       {"r:Hm <b>", "c:Yes.\n"}},
      {"reasoning that the prompt began",
       {"Hm\n</think>Yes", {.start = AnswerStart::kReasoning}},
       {"r:Hm", "c:Yes"}},
      {"no reasoning", {"\n Yes <think>", Thinks()}, {"c:\n Yes <think>"}},
      {"white space alone", {" \n", Thinks()}, {"c: \n"}},
      {"almost reasoning", {"<thin", Thinks()}, {"c:<thin"}},
      {"cut in reasoning", {"<think>Hm</thi", Thinks(), false}, {"r:Hm</thi"}},
      {"a call is only looked for in content",
       {"<think>" + call + "</think>\n\n" + call, Thinks(CallSyntax::kHermes)},
       {"r:" + call, "f:f", "a:{}"}},
  };
}

std::vector<Case> OtherCases() {
  return {
      {"llama", {R"( {"name": "f", "parameters": {"a": 1}})", Llama()}, {"f:f", R"(a:{"a": 1})"}},
      {"llama, two",
       {R"({"name": "f", "parameters": {}}; {"name": "g", "parameters": {}})", Llama()},
       {"f:f", "a:{}", "f:g", "a:{}"}},
      {"llama, one is enough",
       {R"({"name": "f", "parameters": {}}; {"name": "g"})", One(Llama())},
       {"f:f", "a:{}"}},
      {"llama, behind its tag",
       {R"(<|python_tag|>{"name": "f", "parameters": {}})", Llama()},
       {"f:f", "a:{}"}},
      {"llama, JSON that is an answer",
       {R"({"name": "Kim", "age": 3})", Llama()},
       {R"(c:{"name": "Kim", "age": 3})"}},
      {"llama, a program",
       {R"(<|python_tag|>print("f"))", Llama()},
       {R"(c:<|python_tag|>print("f"))"}},
      {"llama, a brace in text",
       {R"(See {"name": "f", "parameters": {}})", Llama()},
       {R"(c:See {"name": "f", "parameters": {}})"}},

      {"mistral",
       {R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": [1]}, "id": "abcdefghi"}])", kMistral},
       {"f:f", R"(a:{"a": [1]})"}},
      {"mistral, two",
       {R"([TOOL_CALLS][{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}] x)",
        kMistral},
       {"f:f", "a:{}", "f:g", "a:{}"}},
      {"mistral, an object alone",
       {R"([TOOL_CALLS]{"name": "f", "arguments": {}})", kMistral},
       {"f:f", "a:{}"}},
      {"mistral, no list of calls",
       {"So:\n[TOOL_CALLS][1, 2]", kMistral},
       {"c:So:\n[TOOL_CALLS][1, 2]"}},
      {"mistral, named",
       {R"(Hm.
[TOOL_CALLS]f[ARGS]{"a": "[ARGS]"}[TOOL_CALLS]g[CALL_ID]abcdefghi[ARGS]{})",
        kNamed},
       {"c:Hm.", "f:f", R"(a:{"a": "[ARGS]"})", "f:g", "a:{}"}},
      {"mistral, named without a mark",
       {R"([TOOL_CALLS]f{"a": 1})", kNamed},
       {"f:f", R"(a:{"a": 1})"}},
      {"mistral, no arguments", {"[TOOL_CALLS]f and g", kNamed}, {"c:[TOOL_CALLS]f and g"}},
      {"mistral, arguments that are none", {"[TOOL_CALLS]f[ARGS]none", kNamed}, {"f:f", "a:{}"}},
      {"mistral, a mark at the end", {"[TOOL_CALLS]", kNamed}, {"c:[TOOL_CALLS]"}},
  };
}

std::vector<Case> Cases() {
  std::vector<Case> all = HermesCases();
  for (const std::vector<Case>& more : {ThinkingCases(), OtherCases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(TemplateAnswerParser, TakesAnswersApart) {
  for (const Case& c : Cases()) EXPECT_EQ(Parse(c.answer), c.expected) << c.what;
}

TEST(TemplateAnswerParser, PiecesDoNotMatter) {
  base::Rng rng(7);
  for (const Case& c : Cases()) {
    const size_t size = c.answer.text.size();
    std::vector<size_t> every;
    for (size_t i = 1; i < size; ++i) every.push_back(i);
    EXPECT_EQ(Parse(c.answer, every), c.expected) << c.what;
    for (size_t a = 0; a <= size; ++a) {
      for (size_t b = a; b <= size; b += 1 + rng.Below(5))
        ASSERT_EQ(Parse(c.answer, {a, b}), c.expected) << c.what << " cut at " << a << ", " << b;
    }
  }
}

// What an answer says when it is cut off is the beginning of what it would have said: no piece
// of a call becomes text.
TEST(TemplateAnswerParser, CutOffItIsTheBeginningOfTheWholeAnswer) {
  const std::string object = R"({"name": "f", "arguments": {"a": "b}\"", "n": [1, {"x": null}]}})";
  const std::string hermes = "<tool_call>\n" + object + "\n</tool_call>";
  const std::string named = R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[CALL_ID]abcdefghi[ARGS]{})";
  std::vector<Answer> answers = {
      {"So < it is.\n\n" + hermes + "\n" + hermes, kHermes},
      {"<think>\nhm <\n</think>\n\n" + hermes, Thinks(CallSyntax::kHermes)},
      {"So:[TOOL_CALLS] [" + object + ", " + object + "]", kMistral},
      {named, kNamed},
      {object, Llama()},
  };
  for (Answer& whole : answers) {
    const std::vector<std::string> expected = Parse(whole);
    for (const bool must_call : {false, true}) {
      if (must_call == (whole.text.starts_with("So"))) continue;  // as such answers are asked for
      Answer cut = whole;
      cut.stopped = false;
      cut.how.must_call = must_call;
      for (size_t end = 0; end < whole.text.size(); ++end) {
        cut.text = whole.text.substr(0, end);
        std::vector<std::string> got = Parse(cut);
        if (got.empty()) continue;
        for (size_t i = 0; i + 1 < got.size(); ++i) EXPECT_EQ(got[i], expected[i]) << cut.text;
        std::string last = got.back();
        // Text that may go on as text ends in what may be the beginning of a mark, or in
        // newlines.
        if (last[0] == 'c' || last[0] == 'r') {
          const std::string_view mark = last[0] == 'r' ? "</think>" : CallMark(*whole.how.calls);
          for (size_t size = mark.size() - 1; size > 0; --size) {
            if (!last.ends_with(mark.substr(0, size))) continue;
            EXPECT_FALSE(must_call && last[0] == 'c') << cut.text;
            last.resize(last.size() - size);
            break;
          }
          last.erase(last.find_last_not_of('\n') + 1);
          if (last.size() == 2) continue;
        }
        ASSERT_LE(got.size(), expected.size()) << cut.text;
        EXPECT_TRUE(expected[got.size() - 1].starts_with(last)) << cut.text << " gives " << last;
      }
    }
  }
}

TEST(TemplateAnswerParser, AnObjectThatIsCutIsTextUnlessItMustBeACall) {
  const std::string text = R"({"name": "Ki)";
  Answer answer{text, Llama(), /*stopped=*/false};
  EXPECT_EQ(Parse(answer), std::vector<std::string>{"c:" + text});
  answer.how.must_call = true;
  EXPECT_EQ(Parse(answer), std::vector<std::string>{});
}

TEST(TemplateAnswerParser, ArgumentsComeAsTheyAreWritten) {
  TemplateAnswerParser parser(kHermes);
  std::vector<AnswerDelta> deltas;
  parser.Push(R"(<tool_call>{"name": "f", "arguments": {"text": "one)", deltas);
  ASSERT_EQ(deltas.size(), 2u);
  EXPECT_EQ(deltas[1].text, R"({"text": "one)");
  deltas.clear();
  parser.Push(" two", deltas);
  EXPECT_EQ(deltas, (std::vector<AnswerDelta>{{Kind::kArguments, " two"}}));
}

// Work grows with the answer and not with its square, however often a call seems to begin.
TEST(TemplateAnswerParser, MarksWithoutCallsAreReadOnce) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += R"(<tool_call>{"x": ")";
  const std::vector<std::string> out = Parse({text, kHermes});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0], "c:" + text);
}

}  // namespace
}  // namespace plumb::text
