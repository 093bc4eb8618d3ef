// text/tool_grammar.cc
// The source of a grammar of kind kCalls, a JSON object:
//   {"syntax": "dsml", "lead": " calls>\n", "marked": false, "free": false, "parallel": true,
//    "tools": [{"name": "f", "schema": {...} or null}]}
// `lead` is what stands before the first call; `marked`: its mark is written already; `free`: a
// text without calls will do, or stand before them; `schema` null: any arguments.
#include "text/tool_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "text/deepseek_v41_tools.h"
#include "text/ordered_json.h"

namespace plumb::text {
namespace {

// Where calls begin, and what is written of the first before the grammar holds.
struct Place {
  std::string_view begin = {};  // GrammarSpec
  std::string_view lead = {};
  bool marked = false;
  bool free = false;
};

Place PlaceOfDsml(bool must, AnswerStart start) {
  if (start == AnswerStart::kCalls) return {};
  if (must && start == AnswerStart::kReasoning)
    return {.begin = kReasoningEnd, .lead = "\n\n<｜DSML｜ calls>\n"};
  if (must) return {.lead = "<｜DSML｜ calls>\n"};
  // What every spelling of a block of calls begins with that the parser reads, in the reasoning
  // too, so that none gets around the grammar.
  return {.begin = CallMark(CallSyntax::kDsml), .lead = " calls>\n"};
}

// In the reasoning the parser looks for no calls.
Place PlaceOf(CallSyntax syntax, bool must, AnswerStart start) {
  if (syntax == CallSyntax::kDsml) return PlaceOfDsml(must, start);
  const bool thinks = start == AnswerStart::kReasoning;
  if (must && !thinks) return {};
  if (must) return {.begin = kReasoningEnd, .lead = "\n\n"};
  if (thinks) return {.begin = kReasoningEnd, .free = true};
  if (syntax == CallSyntax::kLlama) return {.free = true};
  return {.begin = CallMark(syntax), .marked = true};
}

// The tools that may be called, each with its schema where it is strict.
base::Result<OrderedJson> ToolList(const ChatInput& input) {
  OrderedJson tools{.kind = OrderedJson::Kind::kArray};
  for (size_t i = 0; i < input.tools.size(); ++i) {
    const ToolSpec& tool = input.tools[i];
    if (input.tool_choice == ToolChoice::kNamed && tool.name != input.tool_name) continue;
    OrderedJson schema;
    if (tool.strict) {
      ASSIGN_OR_RETURN(schema, ReadToolParameters(tool, fmt::format("tools[{}].function", i)));
    }
    OrderedJson one{.kind = OrderedJson::Kind::kObject};
    one.Set("name", OrderedJson::String(tool.name));
    one.Set("schema", std::move(schema));
    tools.items.push_back(std::move(one));
  }
  return tools;
}

}  // namespace

base::Result<std::optional<GrammarSpec>> ToolGrammar(CallSyntax syntax, const ChatInput& input,
                                                     AnswerStart start) {
  const bool must = MustCall(input.tool_choice);
  const bool strict = std::ranges::any_of(input.tools, &ToolSpec::strict);
  // DSML has a text that ends a call, so that a stop string does.
  const bool one = !input.parallel_tool_calls && syntax != CallSyntax::kDsml;
  if (input.tools.empty() || input.tool_choice == ToolChoice::kNone || !(must || strict || one))
    return std::optional<GrammarSpec>();

  ASSIGN_OR_RETURN(OrderedJson tools, ToolList(input));
  const Place place = PlaceOf(syntax, must, start);
  OrderedJson source{.kind = OrderedJson::Kind::kObject};
  source.Set("syntax", OrderedJson::String(CallSyntaxName(syntax)));
  source.Set("lead", OrderedJson::String(place.lead));
  source.Set("marked", OrderedJson::Bool(place.marked));
  source.Set("free", OrderedJson::Bool(place.free));
  source.Set("parallel", OrderedJson::Bool(input.parallel_tool_calls));
  source.Set("tools", std::move(tools));
  GrammarSpec spec{.kind = GrammarKind::kCalls};
  AppendPythonJson(spec.source, source);
  spec.begin = place.begin;
  return std::optional<GrammarSpec>(std::move(spec));
}

}  // namespace plumb::text
