#!/usr/bin/env python3
"""Makes tool_expected.json: what Jinja2, set up as in make_goldens.py, renders for conversations
with tools, calls, results and reasoning, of the templates whose syntax of calls is known here; and
which syntax that is, by a reading of the template.

    python3 make_tool_goldens.py TEMPLATES_FOLDER      (needs PyPI jinja2; see manifest.json)
"""
import datetime
import json
import pathlib
import sys

import jinja2

import make_goldens as base

HERE = pathlib.Path(__file__).parent
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a \"city\" <now>.",
        "parameters": {"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "도시"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14}}}}},
    {"type": "function", "function": {
        "name": "now", "description": "The time.",
        "parameters": {"type": "object", "properties": {}}}},
]


def call(number, name, arguments):
    return {"id": f"{number:09}", "type": "function",
            "function": {"name": name, "arguments": arguments}}


def calls(content, *some, **more):
    return {"role": "assistant", "content": content, **more, "tool_calls": list(some)}


def result(number, name, text):
    return {"role": "tool", "content": text, "name": name, "tool_call_id": f"{number:09}"}


ROME = call(1, "get_weather", {"city": "Rome é", "days": 2, "x": [1.5, None, True, {"y": "\""}]})
CONVERSATIONS = {
    "tools": [base.user("How is Rome?")],
    "tools and a system message": [base.system("Be brief."), base.user("How is Rome?")],
    "one call": [base.user("How is Rome?"), calls("", ROME),
                 result(1, "get_weather", "{\"sky\": \"clear\"}")],
    "a call after text": [base.user("How is Rome?"), calls("Let me look.", ROME),
                          result(1, "get_weather", "clear"), base.assistant("Clear."),
                          base.user("And the time?")],
    "two calls": [base.user("Both?"), calls("", ROME, call(2, "now", {})),
                  result(1, "get_weather", "clear"), result(2, "now", "noon")],
    "reasoning": [base.user("How is Rome?"),
                  calls("", ROME, reasoning_content="I should look."),
                  result(1, "get_weather", "clear")],
}
SYNTAXES = {
    "Bielik-11B-v3.0-Instruct.jinja": "hermes",
    "MiMo-VL.jinja": "hermes",
    "Mistral-Small-3.2-24B-Instruct-2506.jinja": "mistral-named",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja": "hermes",
    "Qwen-QwQ-32B.jinja": "hermes",
    "Qwen-Qwen2.5-7B-Instruct.jinja": "hermes",
    "Qwen-Qwen3-0.6B.jinja": "hermes",
    "Reka-Edge.jinja": "hermes",
    "ibm-granite-granite-4.0.jinja": "hermes",
    "ibm-granite-granite-4.1.jinja": "hermes",
    "meta-llama-Llama-3.1-8B-Instruct.jinja": "llama",
    "meta-llama-Llama-3.2-3B-Instruct.jinja": "llama",
    "meta-llama-Llama-3.3-70B-Instruct.jinja": "llama",
    "mistralai-Ministral-3-14B-Reasoning-2512.jinja": "mistral-named",
    "mistralai-Mistral-Nemo-Instruct-2407.jinja": "mistral",
    "unsloth-mistral-Devstral-Small-2507.jinja": "mistral-named",
}


def render(template, messages):
    try:
        return {"text": template.render(messages=messages, tools=TOOLS, documents=None,
                                        add_generation_prompt=True, **base.VARIABLES)}
    except base.TemplateError as error:
        return {"raised": str(error)[:300]}
    except Exception as error:  # what Python says differs from what we say; that it fails does not
        return {"failed": type(error).__name__}


def main():
    folder = pathlib.Path(sys.argv[1])
    expected = {"variables": {**base.VARIABLES, "date": base.DATE.strftime("%d %b %Y")},
                "tools": TOOLS, "conversations": CONVERSATIONS, "templates": {}}
    for name, syntax in SYNTAXES.items():
        template = base.environment().from_string((folder / name).read_text(encoding="utf-8"))
        expected["templates"][name] = {
            "syntax": syntax,
            "renders": {title: render(template, messages)
                        for title, messages in CONVERSATIONS.items()}}
    text = json.dumps(expected, ensure_ascii=False, indent=1) + "\n"
    (HERE / "tool_expected.json").write_text(text, encoding="utf-8")
    manifest = {
        "what": f"{len(SYNTAXES)} chat templates of PyPI sdist llama-cpp-python==0.3.36, rendered "
                "for 6 conversations with tools",
        "tool": f"jinja2 {jinja2.__version__}, Python {sys.version.split()[0]}",
        "command": "python3 make_tool_goldens.py TEMPLATES_FOLDER",
        "date": datetime.date.today().isoformat()}
    (HERE / "tool_manifest.json").write_text(json.dumps(manifest, indent=1) + "\n",
                                             encoding="utf-8")
    print(len(SYNTAXES), "templates,", len(text), "bytes")


if __name__ == "__main__":
    main()
