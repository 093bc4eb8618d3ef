// text/tool_grammar.cc
// The source of a grammar of kind kCalls, a JSON object:
//   {"syntax": "dsml", "lead": " calls>\n", "parallel": true,
//    "tools": [{"name": "f", "schema": {...} or null}]}
// `lead` is what stands before the first call; `schema` null: any arguments.
#include "text/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/deepseek_v41_tools.h"
#include "text/ordered_json.h"

namespace plumb::text {
namespace {

// What every spelling of a block of calls begins with that the parser reads, so that none gets
// around the grammar.
constexpr std::string_view kDsmlBegin = "<｜DSML｜";
constexpr std::string_view kHermesBegin = "<tool_call>";

struct Place {
  std::string_view begin;  // GrammarSpec
  std::string_view lead;
};

Place PlaceOf(CallSyntax syntax, bool must, AnswerStart start) {
  if (syntax == CallSyntax::kHermes) {
    return must ? Place{.begin = "", .lead = kHermesBegin}
                : Place{.begin = kHermesBegin, .lead = ""};
  }
  if (start == AnswerStart::kCalls) return {.begin = "", .lead = ""};
  if (must) return {.begin = "", .lead = "<｜DSML｜ calls>\n"};
  return {.begin = kDsmlBegin, .lead = " calls>\n"};
}

}  // namespace

base::Result<std::optional<GrammarSpec>> ToolGrammar(CallSyntax syntax, const ChatInput& input,
                                                     AnswerStart start) {
  const bool named = input.tool_choice == ToolChoice::kNamed;
  const bool must = named || input.tool_choice == ToolChoice::kRequired;
  const bool strict = std::ranges::any_of(input.tools, &ToolSpec::strict);
  if (input.tools.empty() || input.tool_choice == ToolChoice::kNone || !(must || strict))
    return std::optional<GrammarSpec>();

  using Kind = OrderedJson::Kind;
  OrderedJson tools{.kind = Kind::kArray};
  for (size_t i = 0; i < input.tools.size(); ++i) {
    const ToolSpec& tool = input.tools[i];
    if (named && tool.name != input.tool_name) continue;
    OrderedJson schema;
    if (tool.strict) {
      ASSIGN_OR_RETURN(schema, ReadToolParameters(tool, fmt::format("tools[{}].function", i)));
    }
    OrderedJson one{.kind = Kind::kObject};
    one.Set("name", OrderedJson::String(tool.name));
    one.Set("schema", std::move(schema));
    tools.items.push_back(std::move(one));
  }
  const Place place = PlaceOf(syntax, must, start);
  OrderedJson source{.kind = Kind::kObject};
  source.Set("syntax", OrderedJson::String(syntax == CallSyntax::kDsml ? "dsml" : "hermes"));
  source.Set("lead", OrderedJson::String(place.lead));
  source.Set("parallel", OrderedJson::Bool(input.parallel_tool_calls));
  source.Set("tools", std::move(tools));
  GrammarSpec spec{.kind = GrammarKind::kCalls};
  AppendPythonJson(spec.source, source);
  spec.begin = place.begin;
  return std::optional<GrammarSpec>(std::move(spec));
}

}  // namespace plumb::text
