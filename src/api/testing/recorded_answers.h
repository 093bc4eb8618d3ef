// api/testing/recorded_answers.h
// Tests only. Answers as models give them, by their syntax of calls: what parsers, detokenizers and
// stop strings find hard, where tokens end within characters, marks and names. Here those of
// DeepSeek-V4.1; of models with a template: api/testing/template_answers.h.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "api/testing/recorded_answer.h"
#include "api/testing/template_answers.h"

namespace plumb::api::testing {

// Those that max_tokens ends.
inline std::vector<RecordedAnswer> CutDeepseekAnswers() {
  return {
      {.name = "cut off within the reasoning",
       .tokens = {"Hmm", ", ", "그", "러면", " </thin", "g> ", "\xF0\x9F\x98", "\x80", " and",
                  " so", " on", " and", " on", "</think>", "never"},
       .holds = "Hmm, 그러면 </thing> 😀",
       .bytes_max = 33},
      {.name = "cut off within a call",
       .tokens = {"</think>", "Now.", "\n\n", "<｜DSML｜ calls>\n", "<｜DSML｜ invoke",
                  " name=\"get_weather\">\n", "<｜DSML｜ parameter name=\"city\" string=\"true\">",
                  "부", "\xEC\x82", "\xB0", "광역", "시</｜DSML｜ parameter>"},
       .holds = "get_weather",
       .tools = true,
       .bytes_max = 135},
      {.name = "cut off within a tag",
       .tokens = {"</think>", "Now.", "\n\n", "<｜DSML｜ calls>\n", "<｜DSML｜ invoke",
                  " name=\"get_weather\">\n", "<｜DSML｜ parameter name=\"city\" string=\"true\">",
                  "부산", "</｜DSML｜ parameter>\n", "</｜DSML｜ inv", "oke>\n"},
       .holds = "get_weather",
       .tools = true,
       .lacks = "DSML",
       .bytes_max = 166},
      {.name = "cut off within a tag of a value",
       .tokens = {"</think>", "<｜DSML｜ calls>\n", "<｜DSML｜ invoke", " name=\"get_weather\">\n",
                  "<｜DSML｜ parameter name=\"city\" string=\"true\">", "부산", "</｜DSML｜ param",
                  "eter>"},
       .holds = "get_weather",
       .tools = true,
       .lacks = "DSML",
       .bytes_max = 138},
  };
}

inline std::vector<RecordedAnswer> EndedDeepseekAnswers() {
  return {
      {.name = "reasoning, Korean and emoji",
       .tokens = {"두 ", "글",       "\xEC\x9E", "\x90",       ".",      "</",       "think",
                  ">",   "\n\n",     "안",       "녕",         "하세",   "\xEC\x9A", "\x94",
                  " ",   "\xF0\x9F", "\x98\x80", "👩\xE2\x80", "\x8D💻", "!"},
       .holds = "안녕하세요 😀👩‍💻!"},
      {.name = "one call",
       .tokens = {"call",
                  "</think>",
                  "\n",
                  "\n<",
                  "｜DSML｜",
                  " calls>\n<｜DSML｜",
                  " invoke",
                  " name=\"get_",
                  "weather\">\n",
                  "<｜DSML｜ parameter name=\"ci",
                  "ty\" string=\"",
                  "true\">",
                  "서\xEC",
                  "\x9A\xB8 \"a\\b\"",
                  "</｜DS",
                  "ML｜ parameter>\n",
                  "<｜DSML｜ parameter name=\"days\" string=\"false\">",
                  "[1, {\"x\":",
                  " 2.50}]",
                  "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n",
                  "</｜DSML｜ calls>"},
       .holds = "서울",
       .tools = true},
      {.name = "text, then two calls",
       .tokens = {"</think>", "I ", "look < both ｜", "DSML up", ".\n\n", "<｜DSML｜ calls>\n",
                  "<｜DSML｜ invoke name=\"note\">\n",
                  "<｜DSML｜ parameter name=\"input\" string=\"true\">", "😀 </", "｜DSML｜ x>",
                  "</｜DSML｜ parameter>\n", "</｜DSML｜ invoke>", "\n",
                  "<｜DSML｜ invoke name=\"get_weather\">\n", "<｜DSML｜ parameter name=\"city\"",
                  " string=\"true\">P</｜DSML｜ parameter>", "\n</｜DSML｜ invoke>\n",
                  "</｜DSML｜ calls>"},
       .holds = "I look < both ｜DSML up.",
       .tools = true},
      {.name = "a stop string, after what only begins like it",
       .tokens = {"</think>", "alpha",     " ze",          "ta",   " eta", " the",
                  " zeta",    " z",        "eta e",        "ta ",  "thet", "a and",
                  " more ",   "zeta eta ", "\xEB\x81",     "\x9D", "END",  " zeta",
                  " eta",     " zeta eta", "\xEB\x81\x9D", "EN",   "DE"},
       .holds = "zeta eta theta and more zeta eta ",
       .stop = "끝END"},
      {.name = "what looks like a call, without tools",
       .tokens = {"</think>", "Write ", "<｜DSML｜ ca", "lls>", "\n<｜DSML｜",
                  " invoke name=\"x\">", "</｜DSML｜ invoke>", "\n", "<tool_", "call>{\"name\"",
                  ": 1}</tool_call>", " & ", "</th", "ink", "> ", "<|im", "_end|>", " done"},
       .holds = "done"},
      {.name = "nothing", .tokens = {"</think>", "\n", "\n"}, .holds = ""},
  };
}

// Of one of the models of api/testing/scripted_server.h: "deepseek", or a syntax of templates.
inline std::vector<RecordedAnswer> RecordedAnswers(std::string_view model) {
  if (model != "deepseek") return TemplateAnswers(model);
  std::vector<RecordedAnswer> all = EndedDeepseekAnswers();
  std::ranges::move(CutDeepseekAnswers(), std::back_inserter(all));
  return all;
}

}  // namespace plumb::api::testing
