// text/jinja_chat_format.cc
// Mask, render, encode; behind text/jinja_chat_format.h.
#include "text/jinja_chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/control_mask.h"
#include "text/deepseek_v41_tools.h"
#include "text/prompt_segments.h"
#include "text/template_answer_parser.h"
#include "text/tool_grammar.h"

namespace plumb::text {
namespace {

using base::InvalidArgument;
using base::Result;
using base::Status;

// How this answer is to be: decided once, before anything is rendered.
struct Mode {
  std::span<const ToolSpec> tools;  // those that are declared
  bool forced = false;              // a call must come
  std::optional<bool> thinking;     // nothing: as the model likes
};

constexpr std::string_view kEfforts[] = {"minimal", "low", "medium", "high", "xhigh", "max"};

bool IsEffort(std::string_view effort) {
  const bool number = effort.find_first_not_of("0123456789") == effort.npos;
  return effort == "none" || number || std::ranges::find(kEfforts, effort) != std::end(kEfforts);
}

Status CheckTools(const ChatInput& input) {
  for (size_t i = 0; i < input.tools.size(); ++i) {
    if (IsToolName(input.tools[i].name)) continue;
    return InvalidArgument(fmt::format("tools[{}].function.name", i),
                           "the name of a tool has 1 to 64 letters, digits, '_' and '-'");
  }
  const bool named = input.tool_choice == ToolChoice::kNamed;
  if (!MustCall(input.tool_choice)) return base::OkStatus();
  if (input.tools.empty())
    return InvalidArgument("tool_choice", "tool_choice asks for a call, and there are no tools");
  const bool known =
      std::ranges::find(input.tools, input.tool_name, &ToolSpec::name) != input.tools.end();
  if (named && !known)
    return InvalidArgument("tool_choice.function.name", "tool_choice names no tool of tools");
  return base::OkStatus();
}

// Each result is of a call of the assistant's message before it.
Status CheckResults(const std::vector<ChatMessage>& messages) {
  const std::vector<ToolCall>* calls = nullptr;
  for (size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role != "tool") {
      calls = message.tool_calls.empty() ? nullptr : &message.tool_calls;
      continue;
    }
    if (calls == nullptr) {
      return InvalidArgument(fmt::format("messages[{}].role", i),
                             "a message of role \"tool\" follows the tool_calls that it answers");
    }
    if (std::ranges::find(*calls, message.tool_call_id, &ToolCall::id) == calls->end()) {
      return InvalidArgument(fmt::format("messages[{}].tool_call_id", i),
                             "tool_call_id names a call of the message before");
    }
  }
  return base::OkStatus();
}

// Whether a template that knows nothing of tools would leave something out.
bool SpeaksOfTools(const ChatInput& input) {
  if (!input.tools.empty() && input.tool_choice != ToolChoice::kNone) return true;
  return std::ranges::any_of(input.messages, [](const ChatMessage& message) {
    return message.role == "tool" || !message.tool_calls.empty();
  });
}

Result<Mode> DecideMode(const ChatInput& input, bool calls, bool reasons) {
  Mode mode;
  if (calls) {
    RETURN_IF_ERROR(CheckTools(input));
    RETURN_IF_ERROR(CheckResults(input.messages));
    if (input.tool_choice != ToolChoice::kNone) mode.tools = input.tools;
    mode.forced = MustCall(input.tool_choice);
  }
  if (!reasons) return mode;
  if (!IsEffort(input.effort)) {
    return InvalidArgument("reasoning_effort",
                           "reasoning_effort is \"none\", \"minimal\", \"low\", \"medium\", "
                           "\"high\", \"xhigh\", \"max\" or a number from 1 to 100");
  }
  mode.thinking = input.thinking;
  if (!mode.thinking && !input.effort.empty()) mode.thinking = input.effort != "none";
  if (!mode.thinking && input.reasoning_tokens_max) mode.thinking = true;
  // Nobody has asked for reasoning: then a call that must come comes at once. Where calls are held
  // to schemas, it must be known whether reasoning comes first.
  if (!mode.thinking && mode.forced) mode.thinking = false;
  if (!mode.thinking && std::ranges::any_of(mode.tools, &ToolSpec::strict)) mode.thinking = true;
  return mode;
}

// Makes the end of a rendered prompt say whether the model thinks, where the template does not;
// from then on the answer's beginning is known.
AnswerStart DecideStart(std::optional<bool> thinking, std::string& rendered, bool& may_think) {
  std::string_view end = rendered;
  end = end.substr(0, end.find_last_not_of(" \n") + 1);
  const bool open = end.ends_with(kReasoningBegin);
  const bool closed = end.ends_with(kReasoningEnd);
  if (thinking == false && !closed) {
    rendered +=
        fmt::format("{}\n{}\n\n", open ? "" : fmt::format("{}\n", kReasoningBegin), kReasoningEnd);
  } else if (thinking == true && !open && !closed) {
    rendered += fmt::format("{}\n", kReasoningBegin);
    return AnswerStart::kReasoning;
  }
  may_think = !thinking && !open && !closed;
  return open && thinking != false ? AnswerStart::kReasoning : AnswerStart::kContent;
}

}  // namespace

JinjaChatFormat::JinjaChatFormat(std::unique_ptr<ChatTemplate> chat_template,
                                 std::unique_ptr<ChatTemplate> tool_template,
                                 const Tokenizer& tokenizer, const TemplateTraits& traits,
                                 bool reasons)
    : template_(std::move(chat_template)),
      tool_template_(std::move(tool_template)),
      id_(tool_template_ == nullptr
              ? std::string(template_->source())
              : fmt::format("{}\n{}", template_->source(), tool_template_->source())),
      tokenizer_(tokenizer),
      traits_(traits),
      reasons_(reasons) {}

Result<std::unique_ptr<JinjaChatFormat>> JinjaChatFormat::Create(
    std::unique_ptr<ChatTemplate> chat_template, const Tokenizer& tokenizer,
    const ToolFormat& tool_format, std::unique_ptr<ChatTemplate> tool_template) {
  TemplateTraits traits = FindTraits(*chat_template);
  const bool reasons = traits.reasons;
  if (tool_template != nullptr) traits = FindTraits(*tool_template);
  if (!tool_format.automatic) {
    if (tool_format.syntax && !traits.shows_tools) {
      return InvalidArgument("tool-format",
                             "the chat template shows its model no tools, so no format of calls "
                             "can be chosen; leave --tool-format out");
    }
    traits.calls = tool_format.syntax;
  }
  return std::unique_ptr<JinjaChatFormat>(new JinjaChatFormat(
      std::move(chat_template), std::move(tool_template), tokenizer, traits, reasons));
}

Result<ChatPrompt> JinjaChatFormat::Encode(const ChatInput& input, uint32_t tokens_max,
                                           const TokenScope& scope) const {
  const bool of_tools = tool_template_ != nullptr && SpeaksOfTools(input);
  const bool reasons = of_tools ? traits_.reasons : reasons_;
  ASSIGN_OR_RETURN(const Mode mode, DecideMode(input, traits_.calls.has_value(), reasons));
  ControlMask mask(tokenizer_);
  TemplateContext context{.messages = input.messages, .tools = mode.tools, .mask = &mask};
  context.thinking = mode.thinking;
  context.effort = input.effort;
  context.number_calls =
      traits_.calls == CallSyntax::kMistral || traits_.calls == CallSyntax::kMistralNamed;
  const ChatTemplate& chosen = of_tools ? *tool_template_ : *template_;
  ASSIGN_OR_RETURN(std::string rendered, chosen.Render(context));
  ChatPrompt prompt;
  if (reasons) prompt.start = DecideStart(mode.thinking, rendered, prompt.may_think);
  RETURN_IF_ERROR(CheckPromptSize(rendered.size(), tokenizer_, tokens_max));
  auto tokens = mask.Encode(rendered, scope);
  if (!tokens.ok() && tokens.status().code() == base::Code::kInvalidArgument)
    return InvalidArgument("messages", tokens.status().message());
  if (!tokens.ok()) return tokens.status();
  if (tokens->empty()) return InvalidArgument("messages", "the messages give an empty prompt");
  prompt.text = mask.Unmask(std::move(rendered));
  prompt.tokens = std::move(tokens).value();
  if (prompt.start == AnswerStart::kReasoning) prompt.content_after = kReasoningEnd;
  if (reasons) prompt.reasoning_ends.emplace_back(kReasoningEnd);
  if (mode.tools.empty()) return prompt;
  prompt.calls = true;
  prompt.one_call = !input.parallel_tool_calls || !traits_.several_calls;
  prompt.must_call = mode.forced;
  for (const ToolSpec& tool : mode.tools) prompt.tool_names.push_back(tool.name);
  ASSIGN_OR_RETURN(prompt.grammar, ToolGrammar(*traits_.calls, input, prompt.start));
  return prompt;
}

std::unique_ptr<AnswerParser> JinjaChatFormat::NewParser(const ChatPrompt& prompt) const {
  if (!prompt.calls && prompt.reasoning_ends.empty()) return std::make_unique<PlainAnswerParser>();
  TemplateAnswer how{.start = prompt.start, .may_think = prompt.may_think};
  if (prompt.calls) how.calls = traits_.calls;
  how.one_call = prompt.one_call;
  how.must_call = prompt.must_call;
  if (traits_.calls == CallSyntax::kLlama) how.names = prompt.tool_names;
  return std::make_unique<TemplateAnswerParser>(std::move(how));
}

}  // namespace plumb::text
