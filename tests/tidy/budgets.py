# tests/tidy/budgets.py
# Sizes that keep the code readable (STYLE.md, "Files"): file, header, function and line lengths,
# the size of what git keeps, and the opening comment. Reasons for exceptions are in allow.txt.
import ast
import os
import re

from tree import CPP, Violation, line_of

FILE_LINES_WITHOUT_REASON = 500
FILE_LINES_MAX = 800
HEADER_LINES_MAX = 250
FUNCTION_LINES_MAX = 70
LINE_COLUMNS_MAX = 100
PROLOGUE_LINES = range(2, 7)
MODULE_README_LINES_MAX = 30
FILE_BYTES_MAX = 1 << 20

CODE = CPP + (".rs", ".py", ".sh")


def is_script(tree, path):
    first = tree.lines(path)[:1]
    return "." not in os.path.basename(path) and bool(first) and first[0].startswith("#!")


def code_files(tree):
    return [p for p in tree.paths if p.endswith(CODE) or is_script(tree, p)]


def check_sizes(tree):
    out = []
    for path in code_files(tree):
        lines = tree.lines(path)
        count = len(lines)
        if count > FILE_LINES_MAX:
            out.append(Violation(path, 1, "file-800", f"{count} lines, at most {FILE_LINES_MAX}"))
        elif count > FILE_LINES_WITHOUT_REASON:
            out.append(Violation(path, 1, "file-500", f"{count} lines need a reason in allow.txt"))
        if path.endswith(".h") and not path.endswith("-inl.h") and count > HEADER_LINES_MAX:
            out.append(Violation(path, 1, "header", f"{count} lines, at most {HEADER_LINES_MAX}"))
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_COLUMNS_MAX:
                out.append(Violation(path, number, "line",
                                     f"{len(line)} columns, at most {LINE_COLUMNS_MAX}"))
    for path in tree.paths:
        size = os.path.getsize(tree.root / path)
        if size > FILE_BYTES_MAX:
            out.append(Violation(path, 1, "big-file", f"{size} bytes, at most {FILE_BYTES_MAX}"))
    return out


def check_functions(tree):
    out = []
    for path in code_files(tree):
        for name, first, last in functions(tree, path):
            if last - first + 1 > FUNCTION_LINES_MAX:
                out.append(Violation(path, first, "function", f"{name} has {last - first + 1} "
                                     f"lines, at most {FUNCTION_LINES_MAX}"))
    return out


def functions(tree, path):
    """[(name, first line, last line)] of every function with a body."""
    if path.endswith(CPP):
        return list(cpp_functions(tree.code(path)))
    if path.endswith(".rs"):
        return list(rust_functions(tree.code(path)))
    if path.endswith(".py"):
        return python_functions(tree.text(path))
    return list(shell_functions(tree.lines(path)))


def python_functions(text):
    try:
        parsed = ast.parse(text)
    except SyntaxError as error:
        return [(f"(does not parse: {error.msg})", 1, 1 + FUNCTION_LINES_MAX)]
    return [(n.name, n.lineno, n.end_lineno) for n in ast.walk(parsed)
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]


def shell_functions(lines):
    start = None
    for number, line in enumerate(lines, 1):
        match = re.match(r"(\w+)\s*\(\)\s*[{(]\s*$", line)
        if match:
            start = (match.group(1), number)
        elif start and re.match(r"[})]", line):
            yield start[0], start[1], number
            start = None


def rust_functions(code):
    for match in re.finditer(r"\bfn\s+(\w+)[^;{]*\{", code):
        end = matching_brace(code, match.end() - 1)
        yield match.group(1), line_of(code, match.start()), line_of(code, end)


def matching_brace(code, start):
    depth = 0
    for match in re.compile(r"[{}]").finditer(code, start):
        depth += 1 if match.group(0) == "{" else -1
        if depth == 0:
            return match.start()
    return len(code) - 1


SCOPE = re.compile(r"^\s*(?:inline\s+|export\s+|typedef\s+|template\s*<.*>\s*)*"
                   r"(?:namespace|class|struct|union|enum|extern)\b", re.S)
AFTER_PARAMETERS = re.compile(r"\)\s*(?:const|noexcept(?:\([^)]*\))?|override|final|mutable|try|&&?"
                              r"|->[^{};]*|requires\b[^{};]*|\s)*$", re.S)


def cpp_functions(code):
    """Finds bodies by braces: a `{` after a parameter list, at namespace or class scope."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code,
                  flags=re.M | re.S)
    start, position = 0, 0
    for_next = re.compile(r"[{};]")
    while match := for_next.search(code, position):
        position = match.end()
        if match.group(0) != "{":
            start = position
            continue
        head = re.sub(r"^\s*(?:public|private|protected)\s*:", "", code[start:match.start()])
        if AFTER_PARAMETERS.search(head) or _initialisers_end(head):
            end = matching_brace(code, match.start())
            begin = start + len(code[start:match.start()]) - len(code[start:match.start()].lstrip())
            yield _name(head), line_of(code, begin), line_of(code, end)
            start = position = end + 1
        elif SCOPE.match(head) and "=" not in head.split("{")[0].replace("==", ""):
            start = position
        else:  # a brace initialiser: of a member in a constructor's list, or of a variable
            position = matching_brace(code, match.start()) + 1


def _initialisers_end(head):
    """True when head is `Name(...) : member_{x}, other_(y)` and the next brace is the body."""
    return bool(re.search(r"\)\s*(?:noexcept\s*)?:\s*[\w:<>]", head)) and head.rstrip()[-1:] in ")}"


def _name(head):
    match = re.search(r"([\w~:]+|operator\S+)\s*\(", head)
    return match.group(1) if match else "(function)"


def check_prologue(tree):
    out = []
    for path in code_files(tree):
        comment = prologue(tree, path)
        if len(comment) not in PROLOGUE_LINES:
            out.append(Violation(path, 1, "prologue", f"opens with {len(comment)} comment lines, "
                                 f"not {PROLOGUE_LINES.start} to {PROLOGUE_LINES.stop - 1}"))
        elif path.endswith(CPP):
            name = path.removeprefix("src/")
            if not comment[0].startswith((name, path)):
                out.append(Violation(path, 1, "prologue", f"the first line does not name {name}"))
    return out


def prologue(tree, path):
    """The comment lines that the file opens with, without their markers."""
    if path.endswith(".py"):
        text = tree.text(path)
        docstring = re.match(r'(?:#![^\n]*\n)?"""(.*?)"""', text, re.S)
        if docstring:
            return docstring.group(1).strip().splitlines()
    marker = "//" if path.endswith(CPP + (".rs",)) else "#"
    lines = tree.lines(path)
    if lines and lines[0].startswith("#!"):
        lines = lines[1:]
    comment = []
    for line in lines:
        if not line.startswith(marker):
            break
        comment.append(line.lstrip(marker + "!").strip())
    return comment
