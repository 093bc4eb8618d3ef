// api/testing/template_answers.h
// Tests only. Answers of models that are talked to by a template, in each syntax of calls that
// templates have (api/testing/tool_templates.h): text before calls, several of them, what only
// begins like one, and cut off at every kind of place.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include "api/testing/recorded_answer.h"
#include "base/check.h"

namespace plumb::api::testing {

// max_tokens ends it behind its last token.
inline RecordedAnswer Cut(RecordedAnswer answer) {
  answer.bytes_max = 0;
  for (const std::string_view token : answer.tokens)
    answer.bytes_max += static_cast<uint32_t>(token.size());
  return answer;
}

inline std::vector<RecordedAnswer> HermesAnswers() {
  return {
      {.name = "text, then two calls",
       .tokens = {"Let ", "me <tool", "_cal look.", "\n\n", "<tool", "_call>", "\n{\"na",
                  "me\": \"note\", \"argu", "ments\": {\"input\": \"\xF0\x9F", "\x98\x80 </tool_",
                  "call> x\"}}\n</", "tool_call>", "\n<tool_call>\n", "{\"name\": \"get_",
                  "weather\", \"arguments\": {\"ci", "ty\": \"서\xEC", "\x9A\xB8\"}}",
                  "\n</tool_call>"},
       .holds = "Let me <tool_cal look.",
       .tools = true,
       .lacks = "<tool_call>"},
      {.name = "what is no call, and one",
       .tokens = {"<tool_", "call>\nget_", "weather(\"", "부산", "\")\n</tool", "_call>\n",
                  "<tool_call>\n", "{\"name\": ", "\"get_weather\", ",
                  "\"arguments\": ", "{\"city\": \"서울\"", "}}\n</tool", "_call>\nd", "one"},
       .holds = "부산",
       .tools = true},
      {.name = "arguments that break, and a call",
       .tokens = {"<tool_call>{\"name\": \"note\", ", "\"arguments\": {\"input\": ", "\"a\"",
                  "]}}</tool", "_call>", "\n<tool", "_call>{\"name\": \"get_weather\", ",
                  "\"arguments\": {\"city\": \"서울\"}", "}</tool_call>"},
       .holds = "서울",
       .tools = true},
      {.name = "arguments in a string, before the name",
       .tokens = {"<tool_call>\n{\"arguments\"", ": \"{\\\"ci", "ty\\\": \\", "\"\\uc1", "1c울\\",
                  "\"}\", ", "\"name\": ", "\"get_wea", "ther\"}\n", "</tool_call>"},
       .holds = "울",
       .tools = true},
      {.name = "a stop string behind a call",
       .tokens = {"<tool_call>{\"name\": \"get_weather\", ", "\"arguments\": {\"city\": \"서울\"}}",
                  "</tool_call>", "\nS", "TO", " ST", "OP", "더"},
       .holds = "서울",
       .tools = true,
       .lacks = "더",
       .stop = "STOP"},
      {.name = "what looks like a call, without tools",
       .tokens = {"Write <tool_", "call>\n{\"name\"", ": \"f\", \"arguments\"", ": {}}\n</tool",
                  "_call>", " or [TOOL_", "CALLS][] or <|python", "_tag|>{}."},
       .holds = "call> or [TOOL_CALLS][] or <|python_tag|>{}."},
      Cut({.name = "cut off within arguments",
           .tokens = {"Now.\n", "<tool_call>\n", "{\"name\": \"get_weather\", ",
                      "\"arguments\": {\"city\"", ": \"서\xEC\x9A", "\xB8\", \"days\": [1, ", "2"},
           .holds = "서울",
           .tools = true}),
      Cut({.name = "cut off within a name",
           .tokens = {"<tool_call>{\"name\": \"get_weather\", ",
                      "\"arguments\": {\"city\": \"서울\"}}</tool", "_call>\n<tool", "_call>",
                      "{\"na", "me\": \"no"},
           .holds = "서울",
           .tools = true,
           .lacks = R"(\"no)"}),
      Cut({.name = "cut off within a mark",
           .tokens = {"<tool_call>{\"name\": \"get_weather\", ",
                      "\"arguments\": {\"city\": \"서울\"}}", "\n</to", "ol_ca"},
           .holds = "서울",
           .tools = true,
           .lacks = "</to"}),
  };
}

inline std::vector<RecordedAnswer> LlamaAnswers() {
  return {
      {.name = "one call, and what behind it is none",
       .tokens = {" ", "{\"na", "me\": \"get_", "weather\", \"para", "meters\"", ": {\"ci",
                  "ty\": \"서\xEC", "\x9A\xB8 \\\"a\\", "\\b\\\"\"", "}}", "; {\"name\": \"",
                  "note\", \"parameters\": ", "{\"input\": \"더\"}}"},
       .holds = "서울",
       .tools = true,
       .lacks = "더"},
      {.name = "text, then a call behind its tag",
       .tokens = {"Let ", "me {look}", " <|py", ".\n", "\n<|python", "_tag|>", "{\"name\": ",
                  "\"get_weather\", ", "\"parameters\": {", "\"city\": ", "\"서울\"}", "}"},
       .holds = "Let me {look} <|py.",
       .tools = true,
       .lacks = "_tag|>"},
      {.name = "JSON that is an answer",
       .tokens = {"{\"na", "me\": \"Ki", "m\", ", "\"cities\": [\"서", "울\", {}", "]}\n"},
       .holds = "cities",
       .tools = true},
      {.name = "a program behind the tag",
       .tokens = {"<|python_", "tag|>", "print(\"", "서\xEC\x9A", "\xB8\")", "\n"},
       .holds = "<|python_tag|>print",
       .tools = true},
      Cut({.name = "cut off within arguments",
           .tokens = {"{\"name\": \"get_weather\", ", "\"parameters\": {\"city\"", ": \"서\xEC\x9A",
                      "\xB8\", \"days\": [1, ", "2"},
           .holds = "서울",
           .tools = true}),
      Cut({.name = "cut off within a name, so that it may be an answer",
           .tokens = {" {\"na", "me\": \"get", "_wea"},
           .holds = R"({\"name\": \"get_wea)",
           .tools = true}),
  };
}

inline std::vector<RecordedAnswer> MistralAnswers() {
  return {
      {.name = "text, then two calls in a list",
       .tokens = {"So [TOOL", "_CALL:", "\n\n[TOOL_", "CALLS]", " [{\"na", "me\": \"note\", \"argu",
                  "ments\": {\"input\": \"[TOOL_CALLS]\xF0\x9F", "\x98\x80\"}, \"id\": \"abcd",
                  "efghi\"}", ", ", "{\"name\": \"get_weather\", ",
                  "\"arguments\": {\"city\": \"서\xEC", "\x9A\xB8\"}}", "]", " 더"},
       .holds = "So [TOOL_CALL:",
       .tools = true,
       .lacks = "더"},
      {.name = "a call that is no list",
       .tokens = {"[TOOL_CALLS]{\"name\"", ": \"get_weather\", \"argum", "ents\": {\"city\": \"서",
                  "울\"}}"},
       .holds = "서울",
       .tools = true},
      {.name = "a list that is none of calls",
       .tokens = {"So: [TOOL", "_CALLS]", "[1, ", "{\"name\"", ": \"서울\"}]"},
       .holds = "So: [TOOL_CALLS][1, {",
       .tools = true},
      Cut({.name = "cut off within arguments",
           .tokens = {"Now.\n", "[TOOL_CALLS][", "{\"name\": \"get_weather\", ",
                      "\"arguments\": {\"city\"", ": \"서\xEC\x9A", "\xB8\", \"days\": [1, ", "2"},
           .holds = "서울",
           .tools = true}),
      Cut({.name = "cut off within a name",
           .tokens = {"[TOOL_CALLS][{\"name\": \"get_weather\", ",
                      "\"arguments\": {\"city\": \"서울\"}},", " {\"na", "me\": \"no"},
           .holds = "서울",
           .tools = true,
           .lacks = R"(\"no)"}),
  };
}

inline std::vector<RecordedAnswer> MistralNamedAnswers() {
  return {
      {.name = "text, then two calls",
       .tokens = {"So [TOOL", "_CALL:", "\n[TOOL_", "CALLS]no", "te[CALL", "_ID]abcd", "efghi[AR",
                  "GS]{\"input\": ", "\"[ARGS]\xF0\x9F", "\x98\x80 [TOOL_CALLS]\"}", "[TOOL_",
                  "CALLS]get_", "weather", "[ARGS]", "{\"city\": \"서\xEC", "\x9A\xB8\"}"},
       .holds = "So [TOOL_CALL:",
       .tools = true,
       .lacks = "abcdefghi"},
      {.name = "what is no call",
       .tokens = {"[TOOL_", "CALLS]get", "_weather and", " [ARGS]", " 서울"},
       .holds = "[TOOL_CALLS]get_weather and [ARGS] 서울",
       .tools = true},
      Cut({.name = "cut off within arguments",
           .tokens = {"Now.\n", "[TOOL_CALLS]get_", "weather[ARGS]", "{\"city\"", ": \"서\xEC\x9A",
                      "\xB8\", \"days\": [1, ", "2"},
           .holds = "서울",
           .tools = true}),
      Cut({.name = "cut off within a mark",
           .tokens = {"[TOOL_CALLS]get_weather[ARGS]", "{\"city\": \"서울\"}", "[TOOL_CALLS]no",
                      "te[CALL_ID]abc", "defghi[AR"},
           .holds = "서울",
           .tools = true,
           .lacks = "defghi"}),
  };
}

// Of the Hermes syntax, where reasoning comes first.
inline std::vector<RecordedAnswer> ThinkingAnswers() {
  return {
      {.name = "reasoning with a call in it, and one",
       .tokens = {" <thi", "nk>", "\nHm, <tool_", "call>{\"name\": ", "\"note\"}</tool_call>?\n",
                  "</thi", "nk", ">\n\n", "<tool", "_call>\n{\"name\": \"get_",
                  "weather\", \"arguments\": ", "{\"city\": \"서울\"}}\n", "</tool_call>"},
       .holds = "서울",
       .tools = true,
       .lacks = "<think>"},
      {.name = "reasoning, Korean and emoji",
       .tokens = {"<think>", "두 글\xEC\x9E", "\x90 </thin", "g>.", "\n</think", ">\n", "\n안",
                  "녕하세\xEC", "\x9A\x94 \xF0\x9F", "\x98\x80 <think>", "!"},
       .holds = "안녕하세요 😀 <think>!"},
      {.name = "no reasoning", .tokens = {"<thin", "g> ", "서\xEC\x9A", "\xB8\n"}, .holds = "서울"},
      Cut({.name = "cut off within the end of the reasoning",
           .tokens = {"<think>\n", "그\xEB\x9F", "\xAC면", "\n", "</th"},
           .holds = "그러면"}),
  };
}

// By the names of api/testing/tool_templates.h.
inline std::vector<RecordedAnswer> TemplateAnswers(std::string_view name) {
  if (name == "hermes") return HermesAnswers();
  if (name == "llama") return LlamaAnswers();
  if (name == "mistral") return MistralAnswers();
  if (name == "mistral-named") return MistralNamedAnswers();
  CHECK(name == "thinking") << name;
  return ThinkingAnswers();
}

}  // namespace plumb::api::testing
