# tests/tidy/tree.py
# The files that tidy judges, each read once, and the few views of their text that the rules share:
# lines, code without comments and strings, includes. A rule is a function Tree -> Violations.
# Read next: tidy.py, which runs the rules.
import functools
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

CPP = (".h", ".cc")
SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__", "target", "node_modules", "shared"}
TEXT_BYTES_MAX = 2 << 20


@dataclass(frozen=True)
class Violation:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclass
class Tree:
    root: Path
    paths: list = field(default_factory=list)

    @staticmethod
    def load(root):
        root = Path(root).resolve()
        return Tree(root, sorted(_git_files(root) or _walk(root)))

    def select(self, *suffixes, under=""):
        return [p for p in self.paths if p.endswith(suffixes) and p.startswith(under)]

    def exists(self, path):
        return (self.root / path).exists()

    @functools.lru_cache(maxsize=None)
    def bytes(self, path):
        try:
            with open(self.root / path, "rb") as file:
                return file.read(TEXT_BYTES_MAX)
        except OSError:
            return b""

    def is_text(self, path):
        return b"\0" not in self.bytes(path)

    @functools.lru_cache(maxsize=None)
    def text(self, path):
        return self.bytes(path).decode("utf-8", errors="replace")

    @functools.lru_cache(maxsize=None)
    def lines(self, path):
        return self.text(path).splitlines()

    @functools.lru_cache(maxsize=None)
    def code(self, path):
        """C++ or Rust with comments and literals blanked; offsets and lines stay as they were."""
        return strip(self.text(path), rust=path.endswith(".rs"))

    @functools.lru_cache(maxsize=None)
    def includes(self, path):
        """[(line, spelling)], spelling with its quotes or angle brackets."""
        found = []
        for number, line in enumerate(self.lines(path), 1):
            match = re.match(r'\s*#\s*include\s+("[^"]+"|<[^>]+>)', line)
            if match:
                found.append((number, match.group(1)))
        return found

    def modules(self):
        return sorted({p.split("/")[1] for p in self.paths if re.match(r"src/[^/]+/", p)})

    def __hash__(self):
        return id(self)


def _git_files(root):
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        return None
    names = done.stdout.decode("utf-8", errors="replace").split("\0")
    return {n for n in names if n and (root / n).is_file()}


def _walk(root):
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS]
        for name in names:
            found.add(str((Path(folder) / name).relative_to(root)))
    return found


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


CPP_LITERALS = re.compile(
    r'R"(?P<d>[^(\s\\]{0,16})\(.*?\)(?P=d)"'   # raw string
    r"|//(?:[^\n\\]|\\.)*"                     # line comment
    r"|/\*.*?\*/"                              # block comment
    r'|(?<!\w)#\s*include[^\n]*'               # include lines hold no code
    r'|"(?:[^"\\\n]|\\.)*"'                    # string
    r"|(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)+'",   # character, but not 1'000
    re.S)
RUST_LITERALS = re.compile(
    r'r(?P<h>#*)".*?"(?P=h)|//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"'
    r"|'(?:[^'\\\n]|\\[^\n']+|\\')'", re.S)


def strip(text, rust=False):
    return (RUST_LITERALS if rust else CPP_LITERALS).sub(blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
