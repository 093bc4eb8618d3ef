// api/testing/tool_templates.h
// Tests only. Small chat templates of our own, in each syntax of calls that templates have, over
// the byte vocabulary; what real ones render is in tests/golden/template.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/testing/byte_vocabulary.h"
#include "text/chat_template.h"
#include "text/jinja_chat_format.h"

namespace plumb::api::testing {

// Calls between <tool_call> tags, results as what a user says, as Hermes and Qwen have them.
constexpr std::string_view kHermesTemplate =
    "{% if tools %}<|im_start|>system\nTools:{% for t in tools %}\n{{ t | tojson }}{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}\n"
    "{% if m.role == 'tool' %}<tool_response>\n{{ m.content }}\n</tool_response>"
    "{% else %}{{ m.content }}{% endif %}"
    "{% for c in m.tool_calls or [] %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

// The same for a model that reasons, as Qwen3 has it.
inline std::string ThinkingTemplate() {
  return std::string(kHermesTemplate) +
         "{% if add_generation_prompt and enable_thinking is defined and not enable_thinking %}"
         "<think>\n\n</think>\n\n{% endif %}";
}

constexpr std::string_view kLlamaTemplate =
    "{% if tools %}<|im_start|>system\nRespond in the format {\"name\": function name, "
    "\"parameters\": dictionary}.{% for t in tools %}\n{{ t | tojson(indent=4) }}{% endfor %}"
    "<|im_end|>\n{% endif %}"
    "{% for m in messages %}{% if m.tool_calls %}"
    "{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at once!') }}{% endif %}"
    "<|im_start|>assistant\n{\"name\": \"{{ m.tool_calls[0].function.name }}\", \"parameters\": "
    "{{ m.tool_calls[0].function.arguments | tojson }}}"
    "{% else %}<|im_start|>{{ 'ipython' if m.role == 'tool' else m.role }}\n{{ m.content }}"
    "{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

constexpr std::string_view kMistralTemplate =
    "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
    "{% for m in messages %}{% if m.tool_calls %}[TOOL_CALLS][{% for c in m.tool_calls %}"
    "{% if c.id | length != 9 %}{{ raise_exception('ids have nine characters') }}{% endif %}"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}, "
    "\"id\": \"{{ c.id }}\"}{{ ', ' if not loop.last }}{% endfor %}]<|im_end|>"
    "{% elif m.role == 'tool' %}[TOOL_RESULTS]{\"call_id\": \"{{ m.tool_call_id }}\", "
    "\"content\": {{ m.content }}}[/TOOL_RESULTS]"
    "{% elif m.role == 'assistant' %}{{ m.content }}<|im_end|>"
    "{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}";

constexpr std::string_view kMistralNamedTemplate =
    "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}"
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}[TOOL_CALLS]{{ c.function.name }}[ARGS]"
    "{{ c.function.arguments | tojson }}{% endfor %}<|im_end|>"
    "{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]"
    "{% else %}[INST]{{ m.content }}[/INST]{% endif %}{% endfor %}";

// By the name of a syntax of calls, or "thinking"; empty: there is no such template here.
inline std::string ToolTemplate(std::string_view name) {
  if (name == "hermes") return std::string(kHermesTemplate);
  if (name == "thinking") return ThinkingTemplate();
  if (name == "llama") return std::string(kLlamaTemplate);
  if (name == "mistral") return std::string(kMistralTemplate);
  if (name == "mistral-named") return std::string(kMistralNamedTemplate);
  return "";
}

// Borrows the tokenizer.
inline std::unique_ptr<text::JinjaChatFormat> MakeToolFormat(std::string_view name,
                                                             const text::Tokenizer& tokenizer) {
  auto compiled =
      text::ChatTemplate::Compile(ToolTemplate(name), {.bos_token = "", .eos_token = "<|im_end|>"});
  return text::JinjaChatFormat::Create(std::move(compiled).value(), tokenizer).value();
}

}  // namespace plumb::api::testing
