#!/usr/bin/env python3
"""Makes expected.json: what Jinja2, set up as Hugging Face's transformers sets it up, renders for
the chat templates of the llama-cpp-python sdist and the conversations below. It shares no code with
ours.

    python3 make_goldens.py TEMPLATES_FOLDER      (needs PyPI jinja2; see manifest.json)
"""
import datetime
import hashlib
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox
from jinja2 import nodes

HERE = pathlib.Path(__file__).parent
DATE = datetime.datetime(2026, 11, 29)
VARIABLES = {"bos_token": "<bos>", "eos_token": "<eos>"}


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def system(text):
    return {"role": "system", "content": text}


CONVERSATIONS = {
    "one question": ([user("What is 1 + 1?")], True),
    "with a system message": ([system("Answer briefly."), user("Why?")], True),
    "several turns": (
        [system("You know Korean."), user("안녕하세요 👋"), assistant("안녕하세요! 무엇을 도와드릴까요?"),
         user("  spaces around \n"), assistant(" and here\n\n"),
         user("'quotes\" <b>&amp;</b> \\n")],
        True),
    "reasoning and code": (
        [user("```python\nprint({{ 1 }}) {% if %} {# #}\n```"),
         assistant("<think>\nLet me see.\n</think>\n\nIt prints {1}."), user("Thanks.")], True),
    "no generation prompt": ([user("Hi"), assistant("Hello.")], False),
    "two users in a row": ([user("one"), user("two")], True),
    "ends with the assistant": ([system("S"), user("Go on:"), assistant("Once upon")], True),
}


class TemplateError(Exception):
    """What raise_exception raises."""


class GenerationTag(jinja2.ext.Extension):
    """{% generation %}: marks the assistant's part for training; renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[GenerationTag, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = DATE.strftime
    return env


def render(template, messages, add_generation_prompt):
    try:
        return {"text": template.render(
            messages=messages, tools=None, documents=None,
            add_generation_prompt=add_generation_prompt, **VARIABLES)}
    except TemplateError as error:
        return {"raised": str(error)[:300]}
    except Exception as error:  # what Python says differs from what we say; that it fails does not
        return {"failed": type(error).__name__}


def main():
    folder = pathlib.Path(sys.argv[1])
    expected = {"variables": {**VARIABLES, "date": DATE.strftime("%d %b %Y")},
                "conversations": {name: {"messages": messages, "add_generation_prompt": prompt}
                                  for name, (messages, prompt) in CONVERSATIONS.items()},
                "templates": {}}
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        template = environment().from_string(source)
        expected["templates"][path.name] = {
            "sha256": hashlib.sha256(source.encode()).hexdigest(),
            "renders": {name: render(template, *conversation)
                        for name, conversation in CONVERSATIONS.items()}}
    text = json.dumps(expected, ensure_ascii=False, indent=1) + "\n"
    (HERE / "expected.json").write_text(text, encoding="utf-8")
    manifest = {
        "what": "70 chat templates of PyPI sdist llama-cpp-python==0.3.36 (vendor/llama.cpp/models/"
                "templates), rendered for 7 conversations",
        "tool": f"jinja2 {jinja2.__version__}, Python {sys.version.split()[0]}",
        "command": "python3 make_goldens.py TEMPLATES_FOLDER",
        "date": datetime.date.today().isoformat(),
        "templates": len(expected["templates"]),
        "expected.json sha256": hashlib.sha256(text.encode()).hexdigest()}
    (HERE / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    print(len(expected["templates"]), "templates,", len(text), "bytes")


if __name__ == "__main__":
    main()
