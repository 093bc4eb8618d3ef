"""eval/speed/lib/speed.py
What every comparison shares: samples that go to a CSV with the machine's description, medians,
RATIO lines, and programs that are run with a time limit. A ratio is always "at least" its goal:
ours over theirs for speeds, theirs over ours for times and sizes.
"""
import argparse
import functools
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

SECONDS_MAX = 1800  # of one program


def say(text):
    print(f"speed: {text}", file=sys.stderr, flush=True)


def run(command, seconds_max=SECONDS_MAX, **more):
    """The program's standard output; None, with a message, when it failed or took too long."""
    try:
        done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace",
                              timeout=seconds_max, check=False, **more)
    except subprocess.TimeoutExpired:
        say(f"{Path(str(command[0])).name} took longer than {seconds_max} s: left out")
        return None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        say(f"{Path(str(command[0])).name} failed ({done.returncode}): {last[:300]}")
        return None
    return done.stdout


def plumb_bench(model, threads, options, seconds_max=SECONDS_MAX):
    """The JSON of `plumb bench engine`, or None."""
    command = [os.environ["PLUMB"], "bench", "engine", "--model", model, "--threads", threads,
               "--kernels", os.environ.get("PLUMB_KERNELS", "auto"), "--json", *options]
    text = run(command, seconds_max)
    return None if text is None else json.loads(text)


def describe(model, threads):
    """Machine, probe, programs: lines for the head of a CSV."""
    bench = plumb_bench(model, threads, ["--prompt", 16, "--context", 0, "--batch", 1,
                                         "--repeat", 1, "--decode", 1])
    if bench is None:
        sys.exit("speed: plumb bench engine does not work here")
    about = {key: value for key, value in bench["run"].items()
             if not key.startswith(("note", "chunk", "model", "architecture", "parameters", "file",
                                    "resident", "kv_"))}
    about["model_file"] = file_line(model)
    about["commit"] = os.environ.get("PLUMB_SPEED_COMMIT", "unknown")
    about["governor"] = _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return about


@functools.lru_cache(maxsize=16)
def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def file_line(path):
    """What a CSV says of a model: "name.gguf, 123 bytes, sha256 0123456789abcdef"."""
    path = Path(path)
    if not path.is_file():
        return path.name  # an alias or a folder
    return f"{path.name}, {path.stat().st_size} bytes, sha256 {sha256_of(path)[:16]}"


def _first_line(path):
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return "unknown"


def machine_name(about):
    """Short, for a file name: "amd-epyc-f25m17-2t"."""
    cpu = about.get("cpu", "unknown")
    family = re.search(r"family (\d+), model (\d+)", cpu)
    name = re.sub(r"\(.*|@.*", "", cpu)
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    numbers = f"-f{family.group(1)}m{family.group(2)}" if family else ""
    return f"{name}{numbers}-{about.get('threads', '0')}t"


class Samples:
    """Keeps every sample, and writes each to the CSV as it comes."""

    def __init__(self, path, about):
        self.values = {}
        self.path = Path(path) if path else None
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "w", encoding="utf-8") as file:
                for key, value in about.items():
                    file.write(f"# {key}: {value}\n")
                file.write("what,engine,round,value,unit\n")

    def add(self, what, engine, round_number, value, unit):
        self.values.setdefault((what, engine), []).append(value)
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"{what},{engine},{round_number},{value:.4f},{unit}\n")

    def add_read_rates(self, name, round_number, point, memory):
        """What a decoding point of `plumb bench engine` read a second, and what memory gave between
        its samples."""
        for seconds in point["seconds"]:
            self.add(f"decode-reads-{name}", "plumb", round_number, point["bytes"] / seconds / 1e9,
                     "GB/s")
        for rate in memory["read_bytes_per_second"]:
            self.add(f"memory-gives-{name}", "probe", round_number, rate / 1e9, "GB/s")

    def read_share(self, name, goal, remark=""):
        """RATIO of two medians over the whole run, never of one sample by one reading."""
        reads = self.median(f"decode-reads-{name}", "plumb")
        gives = self.values.get((f"memory-gives-{name}", "probe"))
        if not reads or not gives:
            return self.ratio(f"read-share-{name}", None, goal, "not measured")
        middle, best = statistics.median(gives), max(gives)
        return self.ratio(f"read-share-{name}", reads / middle, goal,
                          f"{remark}{reads:.4g} GB/s, memory {middle:.4g}, the median of "
                          f"{len(gives)}; of its best, {best:.4g}: {reads / best:.3f}")

    def forget(self, what):
        """What was measured so far was a warm-up; its lines in the CSV have round -1."""
        self.values = {key: v for key, v in self.values.items() if key[0] != what}

    def comment(self, text):
        if self.path:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(f"# {text}\n")

    def median(self, what, engine):
        values = self.values.get((what, engine))
        return statistics.median(values) if values else None

    def best_of(self, what, prefix, pick=max):
        """(median, engine) of the best setting of an engine: "llama.cpp fa=on", ..."""
        medians = [(self.median(what, engine), engine) for name, engine in self.values
                   if name == what and engine.startswith(prefix)]
        return pick(medians) if medians else (None, None)

    def ratio(self, what, value, goal, remark=""):
        """The line that a claim is read from; a missing measurement is shown, not left out."""
        shown = "nan" if value is None else f"{value:.3f}"
        line = f"RATIO {what} {shown} {goal:g}"
        print(line, flush=True)
        if remark:
            say(f"  {remark}")
        self.comment(line + (f" ({remark})" if remark else ""))
        return value is not None and value >= goal

    def compare(self, what, theirs, goal, faster_is="more"):
        """RATIO of our median to their best one."""
        pick = max if faster_is == "more" else min
        best, engine = self.best_of(what, theirs, pick)
        ours = self.median(what, "plumb")
        if not best or not ours:
            return self.ratio(what, None, goal, "not measured")
        value = ours / best if faster_is == "more" else best / ours
        return self.ratio(what, value, goal, f"plumb {ours:.4g}, {engine} {best:.4g}")


def csv_path(arguments, about, script):
    if arguments.csv:
        return None if arguments.csv == "none" else arguments.csv
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return Path(arguments.results) / f"{day}-{machine_name(about)}-{script}.csv"


def add_common_options(parser):
    parser.add_argument("--results", default="results", help=argparse.SUPPRESS)
    parser.add_argument("--csv", default="", metavar="FILE",
                        help="where every sample goes; 'none': nowhere (default: results/)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5, help="pairs (default 5)")
    parser.add_argument("--quick", action="store_true",
                        help="one short round: shows that it works, measures little")

