#!/usr/bin/env python3
# tests/tidy/tidy.py
# Judges the tree against STYLE.md: who includes whom, budgets, banned calls, documents that name
# what exists. Prints one line a violation, exit status 1 if any. Standard library only.
# Rules are functions Tree -> violations in the files beside this one; exceptions are in allow.txt.
import argparse
import shutil
import sys
import time
from pathlib import Path

import api_fields
import banned
import budgets
import compiled
import documents
import layers
import sources
from tree import Tree, Violation

HERE = Path(__file__).resolve().parent
STATIC_RULES = [
    layers.check, budgets.check_sizes, budgets.check_functions, budgets.check_prologue,
    banned.check, banned.check_todo, banned.check_machine_paths,
    sources.check_headers, sources.check_dead, sources.check_tests,
    documents.check, documents.check_modules, api_fields.check,
]


def read_allow(text):
    """{(rule, path): (line, reason)}; each line is `rule path reason...`."""
    allowed, wrong = {}, []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split(None, 2)
        if len(words) < 3 or len(words[2]) < 10:
            wrong.append(Violation("tests/tidy/allow.txt", number, "allow", "rule path reason"))
        else:
            allowed[(words[0], words[1])] = (number, words[2])
    return allowed, wrong


def apply_allow(violations, allowed):
    """Drops what is allowed; an entry that allows nothing is itself a violation."""
    used, out = set(), []
    for violation in violations:
        entry = (violation.rule, violation.path)
        if entry in allowed:
            used.add(entry)
        else:
            out.append(violation)
    for (rule, path), (line, _) in allowed.items():
        if (rule, path) not in used:
            out.append(Violation("tests/tidy/allow.txt", line, "allow",
                                 f"{rule} {path} is no longer needed"))
    return out


def judge(tree, compiler=None, cache_path=None):
    """All violations of the tree, and the notes on rules that could not run."""
    violations, notes = [], []
    for rule in STATIC_RULES:
        violations += rule(tree)
    cache = compiled.Cache(cache_path)
    if compiler:
        violations += compiled.check_self_contained(tree, compiler, cache)
    else:
        notes.append("self-contained: not checked, no --compiler given")
    for rule, tool in ((compiled.check_format, compiled.FORMATTER),
                       (compiled.check_shell, compiled.SHELLCHECK)):
        if shutil.which(tool):
            violations += rule(tree, cache)
        else:
            notes.append(f"not checked, no {tool} here: {rule.__name__}")
    cache.save()
    allowed, wrong = read_allow(tree.text("tests/tidy/allow.txt"))
    return sorted(set(wrong + apply_allow(violations, allowed)), key=str), notes


def main():
    parser = argparse.ArgumentParser(description="Judge the tree against STYLE.md.")
    parser.add_argument("--root", default=HERE.parent.parent, help="the repository")
    parser.add_argument("--compiler", help="C++ compiler for the check that headers stand alone")
    parser.add_argument("--cache", help="file that keeps the verdicts of compilers and formatters")
    parser.add_argument("--only", help="show this rule alone")
    arguments = parser.parse_args()
    start = time.monotonic()
    tree = Tree.load(arguments.root)
    violations, notes = judge(tree, arguments.compiler, arguments.cache)
    if arguments.only:
        violations = [v for v in violations if v.rule == arguments.only]
    for line in [*notes, *violations]:
        print(line)
    print(f"tidy: {len(tree.paths)} files, {len(violations)} violations, "
          f"{time.monotonic() - start:.1f} s")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
