# tests/tidy/sources.py
# How files hold together: #pragma once, own header first, no file that nobody includes or builds,
# test names that state a behaviour, tests that assert something.
import fnmatch
import os
import re

from budgets import matching_brace
from tree import CPP, Violation, line_of

TEST = re.compile(r"\b(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)")
ASSERTS = re.compile(r"\b(?:EXPECT_|ASSERT_|FAIL\s*\(|ADD_FAILURE"
                     r"|(?:Expect|Assert|Check|Verify)(?:[A-Z]|\s*\())")
VAGUE = re.compile(r"^(?:Test|Basic|Simple|Misc|Foo|Smoke|Case)[A-Z]?\w{0,3}$|(?:Test|Case)\d*$"
                   r"|^(?:It|This)?Works$")


def check_headers(tree):
    out = []
    for path in tree.select(".h"):
        if not path.endswith("-inl.h") and "\n#pragma once\n" not in "\n" + tree.text(path):
            out.append(Violation(path, 1, "pragma-once", "a header needs #pragma once"))
    for path in tree.select(".cc", under="src/"):
        own = path.removesuffix(".cc") + ".h"
        includes = tree.includes(path)
        if own in tree.paths and (not includes or
                                  includes[0][1] != f'"{own.removeprefix("src/")}"'):
            line = includes[0][0] if includes else 1
            out.append(Violation(path, line, "own-header",
                                 f'the first include is "{own.removeprefix("src/")}"'))
    return out


def check_dead(tree):
    return _dead_headers(tree) + _dead_sources(tree) + _dead_rust(tree)


def _dead_headers(tree):
    """A header is alive when a file other than its own source, test or bench includes it."""
    users = {}
    for path in tree.select(*CPP):
        for _, spelling in tree.includes(path):
            name = spelling[1:-1]
            for candidate in (f"src/{name}", name, f"{os.path.dirname(path)}/{name}"):
                users.setdefault(candidate, set()).add(path)
    out = []
    for path in tree.select(".h"):
        if path.startswith("rust/include/") or not path.startswith(("src/", "tests/")):
            continue
        stem = path.removesuffix(".h")
        own = {stem + suffix for suffix in (".h", ".cc", "_test.cc", "_bench.cc")}
        if not users.get(path, set()) - own:
            out.append(Violation(path, 1, "dead-file", "no file but its own includes it"))
    return out


def _dead_sources(tree):
    """src/ is built by the globs of cmake/modules.cmake, tests/ by what a CMakeLists.txt names."""
    out = []
    for path in tree.select(".cc"):
        folder, name = os.path.split(path)
        if path.startswith("src/"):
            if path.count("/") > 3:
                out.append(Violation(path, 1, "dead-file", "too deep: no glob builds it"))
        elif path.startswith(("tests/", "eval/")):
            words = [w for lists in _cmake_lists(folder)
                     for w in re.findall(r"[\w*.${}/-]+\.cc\b", tree.text(lists))]
            if not any(fnmatch.fnmatch(name, os.path.basename(w)) for w in words):
                out.append(Violation(path, 1, "dead-file", f"{folder}/CMakeLists.txt omits it"))
    return out


def _cmake_lists(folder):
    """The CMakeLists.txt of the folder and of those above it, the root's left out."""
    while folder:
        yield f"{folder}/CMakeLists.txt"
        folder = os.path.dirname(folder)


def _dead_rust(tree):
    sources = tree.select(".rs", under="rust/src/")
    named = {name for p in sources for name in re.findall(r"\bmod\s+(\w+)\s*;", tree.code(p))}
    return [Violation(p, 1, "dead-file", "no `mod` names it") for p in sources
            if os.path.basename(p).removesuffix(".rs") not in named | {"lib", "main", "mod"}]


def check_tests(tree):
    out = []
    for path in tree.select(".cc"):
        code = tree.code(path)
        for match in TEST.finditer(code):
            line, name = line_of(code, match.start()), match.group(3)
            if len(camel_words(name)) < 2 or VAGUE.search(name):
                out.append(Violation(path, line, "test-name", f"{name} states no behaviour"))
            brace = code.find("{", match.end())
            body = code[brace:matching_brace(code, brace) + 1]
            if not ASSERTS.search(body):
                out.append(Violation(path, line, "test-asserts", f"{name} asserts nothing"))
    for path in tree.select(".py", under="tests/"):
        for match in re.finditer(r"^[ \t]*(?:async )?def (test\w*)\(", tree.text(path), re.M):
            words = [w for w in match.group(1).split("_")[1:] if w and not w.isdigit()]
            if len(words) < 2:
                out.append(Violation(path, line_of(tree.text(path), match.start(1)), "test-name",
                                     f"{match.group(1)} states no behaviour"))
    for path in tree.select(".rs"):
        for match in re.finditer(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)", tree.code(path)):
            if match.group(1).count("_") < 1:
                out.append(Violation(path, line_of(tree.code(path), match.start(1)), "test-name",
                                     f"{match.group(1)} states no behaviour"))
    return out


def camel_words(name):
    return [w for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name) if not w.isdigit()]
