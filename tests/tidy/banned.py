# tests/tidy/banned.py
# Calls that have one home (STYLE.md, "Determinism", "Concurrency", "Errors"): outside it they make
# a run depend on time, chance, threads or the environment, where neither test nor simulator sees.
import re
from dataclasses import dataclass

from tree import CPP, Violation, blank, line_of


@dataclass(frozen=True)
class Ban:
    rule: str
    pattern: re.Pattern
    homes: tuple      # path prefixes where it is right
    instead: str
    where: tuple = CPP
    scope: tuple = ("src/", "tests/", "eval/", "rust/")
    not_in: str = "\0"  # names that end so are spared


def _ban(rule, pattern, homes, instead, **more):
    return Ban(rule, re.compile(pattern), homes, instead, **more)


BANS = [
    _ban("now", r"\b\w*_clock\s*::\s*now\s*\(|\b(?:clock_gettime|gettimeofday)\s*\("
                r"|(?<![\w.>:])(?:std::)?time\s*\(\s*(?:nullptr|NULL|0|&)",
         ("src/base/clock.cc",), "base/clock.h"),
    _ban("random", r"\bstd::(?:random_device|mt19937|default_random_engine|minstd_rand)"
                   r"|(?<![\w.>:])(?:std::)?(?:s?rand|rand_r|drand48|random_shuffle)\s*\("
                   r"|\bgetrandom\s*\(",
         ("src/base/random.",), "base/random.h"),
    _ban("thread", r"\bstd::(?:thread|jthread|async)\b|\bpthread_create\b",
         ("src/base/thread.",), "base/thread.h"),
    _ban("printf", r"(?<![\w.>])(?:std::)?(?:v?f?printf|v?sprintf|puts|putchar)\s*\(",
         (), "telemetry's log, fmt, or the stream handed in"),
    _ban("getenv", r"\b(?:secure_)?getenv\s*\(|\b(?:set|unset|put)env\s*\(",
         ("src/cli/",), "a parameter: cli/ alone reads the environment"),
    _ban("regex", r"\bstd::(?:basic_)?regex\w*", (),
         "a hand-written scan: std::regex recurses on hostile input"),
    _ban("using-namespace", r"\busing\s+namespace\b", (), "a using declaration or an alias",
         where=(".h",)),
    _ban("sleep", r"\b(?:sleep_for|sleep_until|usleep|nanosleep)\s*\(|(?<![\w.>:])sleep\s*\(",
         ("src/base/",), "a clock that the test owns, or a condition"),
    _ban("new", r"\bnew\s+[A-Za-z_:(]|\bdelete\b\s*(?:\[\s*\])?\s*[A-Za-z_(]"
                r"|\b(?:malloc|calloc|realloc)\s*\(",
         (), "make_unique, a container or a member"),
    _ban("disk", r"\bstd::(?:i|o)?fstream\b|(?<![\w.>:])(?:std::)?fopen\s*\("
                 r"|(?<!\w)::(?:open|openat|mmap|pread|pwrite|fsync)\s*\(",
         ("src/base/disk.",), "base/disk.h", scope=("src/",), not_in="_test.cc"),
    _ban("network", r"(?<!\w)::(?:socket|bind|connect|listen|accept4?|recv|send|getaddrinfo)\s*\(",
         ("src/net/",), "net/", scope=("src/",)),
    _ban("throw", r"\bthrow\b", (), "a Status, or CHECK for a bug", scope=("src/",)),
    _ban("rtti", r"\bdynamic_cast\s*<|\btypeid\s*\(", (), "an interface or a variant"),
    _ban("now", r"\b(?:Instant|SystemTime)::now\s*\(", (), "no time in rust/", where=(".rs",)),
    _ban("sleep", r"\btime\.sleep\s*\(", (), "waiting for a condition, with a bound",
         where=(".py",), scope=("tests/",)),
]

# A private constructor's object goes straight to its owner: that `new` is not naked.
OWNED_NEW = re.compile(r"unique_ptr<[^;{}()]*>\s*(?:\w+\s*)?[({]\s*new\b")

TODO = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
TODO_RIGHT = re.compile(r"\bTODO\((?:perf|port|test|security)\): \S")

MACHINE_PATH = re.compile("(?<![\\w.])/(?:" + "|".join([
    "wo" + r"rk/", "ro" + r"ot(?![\w])", "tmp/b" + "-", "tmp/p" + "k"]) + ")")


def check(tree):
    out = []
    for ban in BANS:
        for path in tree.select(*ban.where):
            if (not path.startswith(ban.scope) or path.startswith(ban.homes or ("\0",))
                    or path.endswith(ban.not_in)):
                continue
            code = tree.text(path) if path.endswith(".py") else tree.code(path)
            code = OWNED_NEW.sub(blank, code)
            for match in ban.pattern.finditer(code):
                out.append(Violation(path, line_of(code, match.start()), ban.rule,
                                     f"{match.group(0).strip()}: use {ban.instead}"))
    return out


def check_todo(tree):
    out = []
    for path in tree.select(*CPP, ".rs", ".py", ".sh", ".cmake", "CMakeLists.txt"):
        if path.startswith("tests/tidy/"):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            if TODO.search(line) and not TODO_RIGHT.search(line):
                out.append(Violation(path, number, "todo",
                                     "write TODO(perf|port|test|security): and what"))
    return out


def check_machine_paths(tree):
    out = []
    for path in tree.paths:
        if not tree.is_text(path):
            continue
        for number, line in enumerate(tree.lines(path), 1):
            match = MACHINE_PATH.search(line)
            if match:
                out.append(Violation(path, number, "machine-path",
                                     f"{match.group(0)} exists on one machine only"))
    return out
