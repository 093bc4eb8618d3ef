# tests/tidy/compiled.py
# The rules that run a tool per file: every header compiles alone, every C++ file is formatted,
# every script passes shellcheck. A verdict is kept under a hash of all that it depends on, so that
# a second run costs nothing.
import concurrent.futures
import hashlib
import json
import os
import subprocess
from pathlib import Path

from budgets import is_script
from tree import CPP, Violation

FORMATTER = "clang-format-19"
SHELLCHECK = "shellcheck"
TOOL_SECONDS_MAX = 300
KEPT_MAX = 5000


class Cache:
    """Hashes of the inputs that passed. A verdict "wrong" is not kept: it is computed again."""

    def __init__(self, path):
        self.path = Path(path) if path else None
        self.passed = {}
        if self.path and self.path.is_file():
            try:
                self.passed = dict.fromkeys(json.loads(self.path.read_text()))
            except (ValueError, TypeError):
                self.passed = {}

    def save(self):
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self.path.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(list(self.passed)[-KEPT_MAX:]))
            temporary.replace(self.path)


def check_self_contained(tree, compiler, cache):
    """Each header, included alone into an empty file, must compile."""
    version = _version(compiler)
    flags = ["-std=c++20", "-fsyntax-only", "-w", "-Isrc", "-Irust/include", "-x", "c++", "-"]
    headers = [p for p in tree.select(".h", under="src/") if not p.endswith("-inl.h")]

    def judge(path):
        name = path.removeprefix("src/")
        done = _run([compiler, *flags], tree.root, f'#include "{name}"\n')
        first = next((l for l in done.stderr.splitlines() if "error" in l), done.stderr[:200])
        return done.returncode == 0, f"does not compile alone: {first}"

    def key(path):
        return ("header", version, flags, [tree.text(p) for p in _closure(tree, path)], path)

    return _judge_all(tree, headers, "self-contained", judge, key, cache)


def check_format(tree, cache):

    def judge(path):
        done = _run([FORMATTER, "--dry-run", "-Werror", path], tree.root, "")
        first = next((l for l in done.stderr.splitlines() if "error" in l), "")
        return done.returncode == 0, f"run {FORMATTER} -i on it ({first.split(':')[1:2]})"

    style, version = tree.text(".clang-format"), _version(FORMATTER)
    return _judge_all(tree, tree.select(*CPP), "format", judge,
                      lambda path: ("format", version, style, tree.text(path)), cache)


def check_shell(tree, cache):
    scripts = [p for p in tree.paths if p.endswith(".sh") or
               (is_script(tree, p) and "sh" in tree.lines(p)[0])]

    def judge(path):
        done = _run([SHELLCHECK, "--format=gcc", path], tree.root, "")
        return done.returncode == 0, (done.stdout.splitlines() or [done.stderr])[0]

    common = [tree.text(p) for p in scripts if "/lib/" in p] + [tree.text(".shellcheckrc")]
    return _judge_all(tree, scripts, "shellcheck", judge,
                      lambda path: ("shell", _version(SHELLCHECK), common, tree.text(path)), cache)


def _judge_all(tree, paths, rule, judge, key, cache):
    keys = {p: hashlib.sha256(repr(key(p)).encode()).hexdigest() for p in paths}
    todo = [p for p in paths if keys[p] not in cache.passed]
    out = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, (good, message) in zip(todo, pool.map(judge, todo)):
            if not good:
                out.append(Violation(path, 1, rule, message))
                keys.pop(path)
    for value in keys.values():  # the newest at the end, so that old ones are dropped first
        cache.passed.pop(value, None)
        cache.passed[value] = None
    return out


def _closure(tree, path):
    """The project's headers that `path` reaches, itself first."""
    seen, waiting = [], [path]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.append(current)
        for _, spelling in tree.includes(current):
            for candidate in (f"src/{spelling[1:-1]}", f"rust/include/{spelling[1:-1]}"):
                if tree.exists(candidate):
                    waiting.append(candidate)
    return seen


def _version(tool):
    return _run([tool, "--version"], ".", "").stdout


def _run(command, folder, text):
    try:
        return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True,
                              timeout=TOOL_SECONDS_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", f"error: {error}")
