// text/template_tools.cc
// Probes, and what their renderings show; behind text/template_tools.h.
#include "text/template_tools.h"

#include <algorithm>
#include <vector>

namespace plumb::text {
namespace {

// Nothing that a template writes by itself.
constexpr std::string_view kProbeName = "probe_of_calls";

ToolSpec ProbeTool() {
  return {.name = std::string(kProbeName),
          .description = "Looks.",
          .parameters = R"({"type": "object", "properties": {"at": {"type": "string"}}})"};
}

ChatMessage ProbeCalls(size_t count) {
  ChatMessage message{.role = "assistant", .content = ""};
  for (size_t i = 0; i < count; ++i) {
    message.tool_calls.push_back({.id = "probe000" + std::to_string(i),
                                  .name = std::string(kProbeName),
                                  .arguments = R"({"at": "here"})"});
  }
  return message;
}

base::Result<std::string> RenderProbe(const ChatTemplate& chat_template,
                                      const std::vector<ChatMessage>& messages, bool tools) {
  const ToolSpec tool = ProbeTool();
  TemplateContext context{.messages = messages, .add_generation_prompt = false};
  if (tools) context.tools = std::span(&tool, 1);
  return chat_template.Render(context);
}

std::string WithoutSpaces(std::string_view text) {
  std::string out;
  std::ranges::copy_if(text, std::back_inserter(out),
                       [](char c) { return c != ' ' && c != '\n' && c != '\t'; });
  return out;
}

// How the call in `rendered` is written, which is the last that names the tool.
std::optional<CallSyntax> SyntaxOf(std::string_view rendered) {
  const size_t place = rendered.rfind(kProbeName);
  if (place == rendered.npos) return std::nullopt;
  const std::string before = WithoutSpaces(rendered.substr(0, place));
  const std::string after = WithoutSpaces(rendered.substr(place + kProbeName.size()));
  if (before.ends_with(kMistralBegin)) {
    const bool named = after.starts_with(kMistralArguments) || after.starts_with(kMistralId);
    return named ? std::optional(CallSyntax::kMistralNamed) : std::nullopt;
  }
  if (!before.ends_with(R"({"name":")")) return std::nullopt;
  const std::string_view mark =
      std::string_view(before).substr(0, before.size() - std::string_view(R"({"name":")").size());
  if (after.starts_with(R"(","parameters":{"at")")) return CallSyntax::kLlama;
  if (!after.starts_with(R"(","arguments":{"at")")) return std::nullopt;
  if (mark.ends_with(kHermesBegin)) return CallSyntax::kHermes;
  if (mark.ends_with(std::string(kMistralBegin) + '[')) return CallSyntax::kMistral;
  return std::nullopt;
}

}  // namespace

TemplateTraits FindTraits(const ChatTemplate& chat_template) {
  TemplateTraits traits;
  traits.reasons = chat_template.source().find(kReasoningEnd) != std::string_view::npos;
  const ChatMessage user{.role = "user", .content = "Look."};
  // Its model is told of tools, or it could not know their names.
  const auto told = RenderProbe(chat_template, {user}, /*tools=*/true);
  traits.shows_tools = told.ok() && told->find(kProbeName) != std::string::npos;
  if (!traits.shows_tools) return traits;
  const auto one = RenderProbe(chat_template, {user, ProbeCalls(1)}, /*tools=*/true);
  if (!one.ok()) return traits;
  traits.calls = SyntaxOf(*one);
  const auto two = RenderProbe(chat_template, {user, ProbeCalls(2)}, /*tools=*/true);
  traits.several_calls = two.ok();
  return traits;
}

base::Result<ToolFormat> ToolFormatFromName(std::string_view name) {
  if (name == "auto") return ToolFormat{};
  if (name == "none") return ToolFormat{.automatic = false, .syntax = {}};
  for (const CallSyntax syntax :
       {CallSyntax::kHermes, CallSyntax::kLlama, CallSyntax::kMistral, CallSyntax::kMistralNamed}) {
    if (name == CallSyntaxName(syntax)) return ToolFormat{.automatic = false, .syntax = syntax};
  }
  return base::InvalidArgument("tool-format",
                               "a tool format is auto, none, hermes, llama, mistral or "
                               "mistral-named");
}

}  // namespace plumb::text
