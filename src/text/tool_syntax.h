// text/tool_syntax.h
// How models write calls of tools into their answers. Whoever makes a format knows which
// (text/template_tools.h finds it in a chat template); parsers and grammars follow it. Rules:
// docs/tools.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace plumb::text {

enum class CallSyntax : uint8_t {
  kDsml,          // DeepSeek-V4.1: <｜DSML｜ calls> ... ; text/deepseek_v41_parser.h
  kHermes,        // Hermes, Qwen: <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>
  kLlama,         // Llama 3: {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>
  kMistral,       // [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]
  kMistralNamed,  // newer: [TOOL_CALLS]name[ARGS]{...}, one after another
};

constexpr std::string_view kHermesBegin = "<tool_call>";
constexpr std::string_view kHermesEnd = "</tool_call>";
constexpr std::string_view kLlamaBegin = "<|python_tag|>";
constexpr std::string_view kMistralBegin = "[TOOL_CALLS]";
constexpr std::string_view kMistralArguments = "[ARGS]";
constexpr std::string_view kMistralId = "[CALL_ID]";
constexpr std::string_view kReasoningBegin = "<think>";
constexpr std::string_view kReasoningEnd = "</think>";

// Whether it is markup of answers. Where a vocabulary has it as a control token, it is text in
// answers all the same, since parsers look for it there; never in what a message says.
constexpr bool IsAnswerMarkup(std::string_view name) {
  for (const std::string_view markup :
       {kHermesBegin, kHermesEnd, kLlamaBegin, kMistralBegin, kMistralArguments, kMistralId,
        kReasoningBegin, kReasoningEnd}) {
    if (name == markup) return true;
  }
  return false;
}

// The spelling of a syntax in options and in the grammar's source.
constexpr std::string_view CallSyntaxName(CallSyntax syntax) {
  switch (syntax) {
    case CallSyntax::kDsml:
      return "dsml";
    case CallSyntax::kHermes:
      return "hermes";
    case CallSyntax::kLlama:
      return "llama";
    case CallSyntax::kMistral:
      return "mistral";
    case CallSyntax::kMistralNamed:
      return "mistral-named";
  }
  return "";
}

// What begins a call in a text that is free until then; nothing: a call is the whole answer.
constexpr std::string_view CallMark(CallSyntax syntax) {
  switch (syntax) {
    case CallSyntax::kHermes:
      return kHermesBegin;
    case CallSyntax::kLlama:
      return kLlamaBegin;
    case CallSyntax::kMistral:
    case CallSyntax::kMistralNamed:
      return kMistralBegin;
    case CallSyntax::kDsml:
      return "<｜DSML｜";
  }
  return "";
}

}  // namespace plumb::text
