"""How each agent is pointed at a server: what docs/clients.md tells people, for programs.

An agent gets a home of its own, so that nothing of the user's is read or changed."""

import dataclasses
import json
import os
import pathlib

TASK = "greet.py misspells a word. Correct it, and change nothing else."


@dataclasses.dataclass
class Agent:
    command: list[str]
    environment: dict[str, str]
    version: list[str]


def codex(modules: pathlib.Path, url: str, model: str, home: pathlib.Path) -> Agent:
    binary = str(modules / "node_modules/.bin/codex")
    (home / "config.toml").write_text(f"""
model = "{model}"
model_provider = "plumb"
check_for_update_on_startup = false
[model_providers.plumb]
name = "plumb"
base_url = "{url}/v1"
wire_api = "responses"
[analytics]
enabled = false
""")
    return Agent([binary, "exec", "--skip-git-repo-check",
                  "--dangerously-bypass-approvals-and-sandbox", TASK],
                 {"CODEX_HOME": str(home)}, [binary, "--version"])


def claude_code(modules: pathlib.Path, url: str, model: str, home: pathlib.Path) -> Agent:
    binary = str(modules / "node_modules/.bin/claude")
    return Agent([binary, "-p", TASK, "--permission-mode", "acceptEdits"],
                 {"CLAUDE_CONFIG_DIR": str(home), "ANTHROPIC_BASE_URL": url,
                  "ANTHROPIC_API_KEY": "any", "ANTHROPIC_MODEL": model,
                  "ANTHROPIC_SMALL_FAST_MODEL": model,
                  "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, [binary, "--version"])


def opencode(modules: pathlib.Path, url: str, model: str, home: pathlib.Path) -> Agent:
    binary = str(modules / "node_modules/.bin/opencode")
    config = {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "provider": {"plumb": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "plumb",
            "options": {"baseURL": url + "/v1"},
            "models": {model: {"name": model, "tool_call": True}},
        }},
        "model": f"plumb/{model}",
        "small_model": f"plumb/{model}",
    }
    return Agent([binary, "run", TASK],
                 {"OPENCODE_CONFIG_CONTENT": json.dumps(config),
                  "OPENCODE_DISABLE_MODELS_FETCH": "1",
                  "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}, [binary, "--version"])


AGENTS = {"codex": codex, "claude_code": claude_code, "opencode": opencode}


def environment(agent: Agent, home: pathlib.Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "HOME": str(home),
            "NO_PROXY": "127.0.0.1", **agent.environment}
