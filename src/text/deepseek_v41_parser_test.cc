// text/deepseek_v41_parser_test.cc
// What answers become, and that it does not depend on how they were cut. Expected events are
// deepseek-recipe's rules (docs/deepseek_v41_chat.md), except where a name says "tolerates".
#include "text/deepseek_v41_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "text/utf8.h"

namespace plumb::text {
namespace {

using Kind = AnswerDelta::Kind;

// What an answer adds up to.
struct Parsed {
  std::string reasoning;
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments

  bool operator==(const Parsed&) const = default;
};

void PrintTo(const Parsed& parsed, std::ostream* out) {
  *out << "reasoning " << parsed.reasoning << "| content " << parsed.content;
  for (const auto& [name, arguments] : parsed.calls) *out << "| " << name << " " << arguments;
}

void Collect(const std::vector<AnswerDelta>& deltas, Parsed& parsed) {
  for (const AnswerDelta& delta : deltas) {
    EXPECT_FALSE(delta.text.empty());
    if (delta.kind == Kind::kReasoning) parsed.reasoning += delta.text;
    if (delta.kind == Kind::kContent) parsed.content += delta.text;
    if (delta.kind == Kind::kCallBegin) parsed.calls.emplace_back(delta.text, "");
    if (delta.kind != Kind::kArguments) continue;
    ASSERT_FALSE(parsed.calls.empty());
    parsed.calls.back().second += delta.text;
  }
}

struct Answer {
  std::string text;
  AnswerStart start = AnswerStart::kReasoning;
  bool calls = true;
  bool stopped = true;
  bool one_call = false;
  bool must_call = false;
};

Parsed Parse(const Answer& answer, const std::vector<size_t>& cuts = {}) {
  DeepseekV41Parser parser({.start = answer.start,
                            .calls = answer.calls,
                            .one_call = answer.one_call,
                            .must_call = answer.must_call});
  std::vector<AnswerDelta> deltas;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    parser.Push(std::string_view(answer.text).substr(begin, cut - begin), deltas);
    begin = cut;
  }
  parser.Push(std::string_view(answer.text).substr(begin), deltas);
  parser.Finish(answer.stopped, deltas);
  Parsed parsed;
  Collect(deltas, parsed);
  return parsed;
}

// One call of f with these lines inside.
std::string Call(const std::string& lines) {
  return "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n" + lines +
         "</｜DSML｜ invoke>\n</｜DSML｜ calls>";
}
std::string Parameter(const std::string& name, const std::string& is_string,
                      const std::string& value) {
  return "<｜DSML｜ parameter name=\"" + name + "\" string=\"" + is_string + "\">" + value +
         "</｜DSML｜ parameter>\n";
}

struct Case {
  const char* what;
  Answer answer;
  Parsed expected;
};

std::vector<Case> Cases() {
  const std::string rome = Parameter("city", "true", "Rome");
  const AnswerStart content = AnswerStart::kContent;
  return {
      {"reasoning, then content", {"\nhm\nso\n\n</think>\n\nHi\n"}, {"hm\nso", "Hi\n", {}}},
      {"reasoning cut off", {"hm\n", AnswerStart::kReasoning, true, false}, {"hm", "", {}}},
      {"the beginning of a marker at the end", {"a</thi"}, {"a</thi", "", {}}},
      {"content alone", {"\nHi", content}, {"", "Hi", {}}},
      {"one </think> too many", {"a</think>b</think>c"}, {"a", "bc", {}}},
      {"<think> is kept", {"a<think>b</think><think>c"}, {"a<think>b", "<think>c", {}}},
      {"a call",
       {"t</think>ok\n\n" + Call(rome + Parameter("days", "false", "2")) + "\nand more"},
       {"t", "ok", {{"f", R"({"city": "Rome", "days": 2})"}}}},
      {"two calls",
       {"</think><｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n"
        "<｜DSML｜ invoke name=\"g\">\n" +
        rome + "</｜DSML｜ invoke>\n</｜DSML｜ calls>"},
       {"", "", {{"f", "{}"}, {"g", R"({"city": "Rome"})"}}}},
      {"a call within reasoning", {"t\n" + Call(rome)}, {"t", "", {{"f", R"({"city": "Rome"})"}}}},
      {"no tools, so no calls", {Call(rome), content, false}, {"", Call(rome), {}}},
      {"a value is escaped",
       {Call(Parameter("a\"b", "true", "\"\\\n\t<x>\xC3\xA9")), content},
       {"", "", {{"f", "{\"a\\\"b\": \"\\\"\\\\\\n\\t<x>\xC3\xA9\"}"}}}},
      {"a value ends in newlines",
       {Call(Parameter("a", "true", "x\n\n")), content},
       {"", "", {{"f", R"({"a": "x\n\n"})"}}}},
      {"bad JSON goes through",
       {Call(Parameter("a", "false", "{x")), content},
       {"", "", {{"f", R"({"a": {x})"}}}},
      {"DeepSeek-V4's tags",
       {"<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" "
        "string=\"true\">x</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
        content},
       {"", "", {{"f", R"({"a": "x"})"}}}},
      {"calls that the prompt has opened",
       {"<｜DSML｜ invoke name=\"f\">\n" + rome + "</｜DSML｜ invoke>\n</｜DSML｜ calls>",
        AnswerStart::kCalls},
       {"", "", {{"f", R"({"city": "Rome"})"}}}},
      {"cut off within a value",
       {"<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" "
        "string=\"true\">Ro</｜DSM",
        content, true, false},
       {"", "", {{"f", R"({"a": "Ro)"}}}},
      {"tolerates an end within a value",
       {"<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" "
        "string=\"true\">Ro",
        content},
       {"", "", {{"f", R"({"a": "Ro"})"}}}},
      {"tolerates a missing attribute",
       {Call("<｜DSML｜ parameter name=\"a\">[1, 2]</｜DSML｜ parameter>\n<｜DSML｜ parameter "
             "name=\"b\">x\"y</｜DSML｜ parameter>\n"),
        content},
       {"", "", {{"f", R"({"a": [1, 2], "b": "x\"y"})"}}}},
      {"tolerates an open parameter",
       {Call("<｜DSML｜ parameter name=\"a\" string=\"true\">x\n" + rome), content},
       {"", "", {{"f", R"({"a": "x", "city": "Rome"})"}}}},
      {"tolerates an open invoke",
       {"<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n" + rome +
            "<｜DSML｜ invoke name=\"g\">\n</｜DSML｜ calls>",
        content},
       {"", "", {{"f", R"({"city": "Rome"})"}, {"g", "{}"}}}},
      {"text among calls is content",
       {"<｜DSML｜ calls>\nwell < then\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>", content},
       {"", "well < then\n", {{"f", "{}"}}}},
  };
}

TEST(DeepseekV41Parser, TakesAnswersApart) {
  for (const Case& c : Cases()) EXPECT_EQ(Parse(c.answer), c.expected) << c.what;
}

std::vector<size_t> CharacterEnds(std::string_view text) {
  std::vector<size_t> ends;
  for (size_t place = 0; place < text.size(); place = ends.back())
    ends.push_back(place + ReadUtf8(text.substr(place)).size);
  ends.pop_back();  // the end is no cut
  return ends;
}

TEST(DeepseekV41Parser, AnyThreeCutsGiveTheSame) {
  for (const Case& c : Cases()) {
    const std::vector<size_t> places = CharacterEnds(c.answer.text);
    // Of long answers, every third place: cuts within each marker are still all there, together
    // with the next test.
    const size_t step = places.size() > 130 ? 3 : 1;
    for (size_t i = 0; i < places.size(); i += step) {
      ASSERT_EQ(Parse(c.answer, {places[i]}), c.expected) << c.what;
      for (size_t j = i + step; j < places.size(); j += step) {
        ASSERT_EQ(Parse(c.answer, {places[i], places[j]}), c.expected) << c.what;
        for (size_t k = j + step; k < places.size(); k += step)
          ASSERT_EQ(Parse(c.answer, {places[i], places[j], places[k]}), c.expected) << c.what;
      }
    }
  }
}

// What an answer says when it is cut off is the beginning of what it would have said: no piece of
// markup becomes text or arguments. Where it may go on as text, a "<" at its end is text.
TEST(DeepseekV41Parser, CutOffItIsTheBeginningOfTheWholeAnswer) {
  const std::string calls = Call(Parameter("city", "true", "R\nome </x>\"\n") +
                                 Parameter("n", "false", "[1, {\"a\": 2}]")) +
                            "<｜DSML｜ invoke name=\"g\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  for (const bool must_call : {false, true}) {
    for (const std::string lead : {"", "t</think>", "t</think>\n\nSee < this.\n\n"}) {
      if (must_call && lead.size() > 10) continue;
      Answer answer{.text = lead + calls, .must_call = must_call};
      if (lead.empty()) answer.start = AnswerStart::kContent;
      const Parsed whole = Parse(answer);
      ASSERT_FALSE(whole.calls.empty());
      const std::string text = answer.text;
      answer.stopped = false;
      for (const size_t end : CharacterEnds(text)) {
        answer.text = text.substr(0, end);
        Parsed cut = Parse(answer);
        if (!must_call && answer.text.ends_with(cut.content))
          cut.content.erase(cut.content.find_last_not_of("\n</") + 1);
        if (answer.text.ends_with(cut.reasoning))
          cut.reasoning.erase(std::min(cut.reasoning.find('<'), cut.reasoning.size()));
        EXPECT_TRUE(whole.content.starts_with(cut.content)) << answer.text;
        EXPECT_TRUE(whole.reasoning.starts_with(cut.reasoning)) << answer.text;
        ASSERT_LE(cut.calls.size(), whole.calls.size()) << answer.text;
        for (size_t i = 0; i < cut.calls.size(); ++i) {
          EXPECT_EQ(cut.calls[i].first, whole.calls[i].first) << answer.text;
          EXPECT_TRUE(whole.calls[i].second.starts_with(cut.calls[i].second) ||
                      answer.text.ends_with('<') || answer.text.ends_with("</"))
              << answer.text << " gives " << cut.calls[i].second;
          EXPECT_EQ(cut.calls[i].second.find("DSML"), std::string::npos) << answer.text;
        }
      }
    }
  }
}

TEST(DeepseekV41Parser, OneCallIsOneHoweverItEnds) {
  const std::string begin = "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n";
  const std::string second = "<｜DSML｜ invoke name=\"g\">\n</｜DSML｜ invoke>\n";
  for (const std::string end : {"</｜DSML｜ invoke>\n", "</｜DSML｜invoke>", ""}) {
    const std::string text = begin + Parameter("k", "true", "v") + end + second + "and more";
    for (size_t cut = 0; cut <= text.size(); ++cut) {
      const Answer answer{.text = text, .start = AnswerStart::kContent, .one_call = true};
      ASSERT_EQ(Parse(answer, {cut}), (Parsed{"", "", {{"f", R"({"k": "v"})"}}})) << end << cut;
    }
    EXPECT_EQ(Parse({.text = text, .start = AnswerStart::kContent}).calls.size(), 2u);
  }
}

TEST(DeepseekV41Parser, RandomTextsAndCutsGiveTheSame) {
  const std::vector<std::string> words = {"a",
                                          "\n",
                                          "\n\n",
                                          " ",
                                          "<",
                                          "</think>",
                                          "<think>",
                                          "<｜DSML｜ calls>",
                                          "</｜DSML｜ calls>",
                                          "<｜DSML｜tool_calls>",
                                          "<｜DSML｜ invoke name=\"f\">",
                                          "</｜DSML｜ invoke>",
                                          "<｜DSML｜ parameter name=\"k\" string=\"true\">",
                                          "</｜DSML｜ parameter>",
                                          "<｜DSML｜ parameter name=\"k\" string=\"false\">",
                                          "<｜DSML｜ parameter name=\"k\">",
                                          "｜DSML｜",
                                          "\"",
                                          "12",
                                          "{}",
                                          "\xE4\xB8\xAD",
                                          "</｜DSML",
                                          " calls>"};
  base::Rng random(41);
  for (int round = 0; round < 10'000; ++round) {
    Answer answer{.start = static_cast<AnswerStart>(random.Below(3)),
                  .calls = random.Below(4) > 0,
                  .stopped = random.Below(2) == 0};
    if (!answer.calls && answer.start == AnswerStart::kCalls) answer.start = AnswerStart::kContent;
    answer.text = "";
    for (size_t count = random.Below(24); count > 0; --count)
      answer.text += words[random.Below(words.size())];
    std::vector<size_t> cuts;
    for (size_t place = 1; place < answer.text.size(); ++place)
      if (random.Below(3) == 0) cuts.push_back(place);
    const Parsed whole = Parse(answer);
    ASSERT_EQ(Parse(answer, cuts), whole) << answer.text;
    std::vector<size_t> every(answer.text.empty() ? 0 : answer.text.size() - 1);
    for (size_t place = 0; place < every.size(); ++place) every[place] = place + 1;
    ASSERT_EQ(Parse(answer, every), whole) << answer.text;
  }
}

// What is out is never more than what is out later, and nothing waits that cannot be markup.
TEST(DeepseekV41Parser, HoldsBackNoMoreThanTheBeginningOfMarkup) {
  DeepseekV41Parser parser({.calls = true});
  std::vector<AnswerDelta> deltas;
  parser.Push("a < b <｜DSML", deltas);
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].text, "a < b ");
  parser.Push("x", deltas);
  EXPECT_EQ(deltas[0].text, "a < b <｜DSMLx");
  parser.Push("\n", deltas);
  EXPECT_EQ(deltas[0].text, "a < b <｜DSMLx") << "it would be trimmed before calls";
  parser.Push("y", deltas);
  EXPECT_EQ(deltas[0].text, "a < b <｜DSMLx\ny");
}

TEST(DeepseekV41Parser, ArgumentsComeWhileTheyAreWritten) {
  DeepseekV41Parser parser({.start = AnswerStart::kCalls, .calls = true});
  std::vector<AnswerDelta> deltas;
  parser.Push("<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"a\" string=\"true\">",
              deltas);
  for (int i = 0; i < 100; ++i) {
    deltas.clear();
    parser.Push("word ", deltas);
    ASSERT_EQ(deltas, (std::vector<AnswerDelta>{{Kind::kArguments, "word "}}));
  }
}

TEST(DeepseekV41Parser, ContinuedTextIsNotTrimmed) {
  DeepseekV41Parser parser({.continues = true});
  std::vector<AnswerDelta> deltas;
  parser.Push("\nb", deltas);
  ASSERT_EQ(deltas.size(), 1u);
  EXPECT_EQ(deltas[0].text, "\nb");
}

TEST(DeepseekV41Parser, LongAnswersTakeTimeInProportion) {
  DeepseekV41Parser parser({.start = AnswerStart::kCalls, .calls = true});
  std::vector<AnswerDelta> deltas;
  parser.Push("<｜DSML｜ invoke name=\"", deltas);
  for (int i = 0; i < 200'000; ++i) parser.Push("name", deltas);
  parser.Push("\">\n<｜DSML｜ parameter name=\"a\">", deltas);
  for (int i = 0; i < 200'000; ++i) parser.Push("\n\n", deltas);
  parser.Finish(true, deltas);
  Parsed parsed;
  Collect(deltas, parsed);
  ASSERT_EQ(parsed.calls.size(), 1u);
  EXPECT_EQ(nlohmann::json::parse(parsed.calls[0].second).at("a").get<std::string>().size(),
            400'000u);
}

}  // namespace
}  // namespace plumb::text
