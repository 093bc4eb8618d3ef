# tests/tidy/documents.py
# Documents stay true: every path they name exists, every module is described and has its README.
# A path is a word in backticks, a relative link, or a command's argument in a fenced block.
import os
import re

from budgets import MODULE_README_LINES_MAX
from layers import MODULES
from tree import Violation

EXTENSIONS = ("h", "cc", "md", "sh", "py", "rs", "cmake", "talk")  # of names without a folder
TOP_FOLDERS = {"src", "tests", "scripts", "docs", "deploy", "cmake", "rust", "eval", "web", ".ci"}
NOT_OURS = re.compile(r"^(?:https?:|mailto:|#|/|~|\$|build/|application/|text/(?:event-stream|plain"
                      r"|html)|data:)")
REQUIRED = ("README.md", "ARCHITECTURE.md", "STYLE.md", "CONTRIBUTING.md", "LICENSE")


def documents(tree):
    return [p for p in tree.select(".md")
            if p in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")
            or p.startswith(("docs/", "deploy/", "eval/", "scripts/"))
            or os.path.basename(p) == "README.md"]


def check(tree):
    out = []
    for path in documents(tree):
        fenced = False
        for number, line in enumerate(tree.lines(path), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
                continue
            for word in (command_words(line) if fenced else prose_words(line)):
                if is_path(word) and not resolves(tree, path, word):
                    out.append(Violation(path, number, "doc-path", f"{word} does not exist"))
    return out


def prose_words(line):
    for span in re.findall(r"`([^`]+)`", line):
        yield from span.split()
    for link in re.findall(r"\]\(([^)\s]+)\)", line):
        yield link.split("#")[0]


def command_words(line):
    """In code, only words that surely mean a file of the repository."""
    for word in line.split("#")[0].split():
        if word.startswith("./") or (word.split("/")[0] in TOP_FOLDERS and "/" in word):
            yield word


def bare(word):
    """Without the punctuation around it; a leading dot belongs to the name."""
    return word.lstrip("(\"'").rstrip(".,;:)\"'")


def is_path(word):
    word = bare(word)
    if not word or NOT_OURS.match(word) or re.search(r"[<>{}$=|…\\]|\bNAME\b|\bMODEL\b", word):
        return False
    if re.fullmatch(r"[\w.-]+\.(?:%s)" % "|".join(EXTENSIONS), word):
        return True
    first = word.removeprefix("./").split("/")[0]
    return "/" in word and (first in TOP_FOLDERS or first in MODULES) \
        and re.fullmatch(r"[\w./*@+-]+", word) is not None


def resolves(tree, document, word):
    word = re.sub(r"(:\d+)?$", "", bare(word)).removeprefix("./").rstrip("/")
    if word.startswith("build/"):
        return True
    folder = os.path.dirname(document)
    for base in {folder, "", "src", "rust/src", "rust"}:
        pattern = os.path.normpath(os.path.join(base, word))
        if any(tree.root.glob(pattern)) or any(tree.root.glob(pattern + ".*")):
            return True
    # A bare file name may be any file of that name: "the glossary is in ARCHITECTURE.md".
    return "/" not in word and any(os.path.basename(p) == word for p in tree.paths)


def check_modules(tree):
    out = []
    architecture = tree.text("ARCHITECTURE.md")
    for name in REQUIRED:
        if name not in tree.paths:
            out.append(Violation(name, 1, "doc-missing", "every repository of ours has one"))
    for module in tree.modules():
        readme = f"src/{module}/README.md"
        if readme not in tree.paths:
            out.append(Violation(readme, 1, "module-readme", "a module needs a README.md"))
        elif len(tree.lines(readme)) > MODULE_README_LINES_MAX:
            out.append(Violation(readme, 1, "module-readme", f"{len(tree.lines(readme))} lines, "
                                 f"at most {MODULE_README_LINES_MAX}"))
        if architecture and not re.search(rf"\b{module}\b", architecture):
            out.append(Violation("ARCHITECTURE.md", 1, "module-named", f"{module} is missing"))
    return out
