#!/usr/bin/env python3
# tests/tidy/doc_commands.py
# Runs the commands that documents show: each fenced block that opens with "```sh run", in order, by
# bash in a scratch folder, with plumb on PATH. A block that fails, or takes too long, is a document
# that lies. scripts/check_docs.sh calls this with a server listening.
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK_SECONDS_MAX = 120
OUTPUT_LINES_SHOWN = 20
BLOCK = re.compile(r"^[ \t]*```sh run[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.M | re.S)


def blocks(text):
    """[(line of the first command, commands)]"""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in BLOCK.finditer(text)]


def run(commands, folder, path):
    """None, or why the block failed."""
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=folder,
                              env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, errors="replace", timeout=BLOCK_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired:
        return f"took longer than {BLOCK_SECONDS_MAX} s"
    if done.returncode == 0:
        return None
    output = (done.stdout + done.stderr).splitlines()[-OUTPUT_LINES_SHOWN:]
    return "\n".join([f"status {done.returncode}", *output])


def main():
    parser = argparse.ArgumentParser(description="Run the commands that documents show.")
    parser.add_argument("--path", required=True, help="folder of the plumb program")
    parser.add_argument("documents", nargs="+")
    arguments = parser.parse_args()
    count = failures = 0
    for document in arguments.documents:
        with tempfile.TemporaryDirectory(prefix="doc_commands.") as folder:
            for line, commands in blocks(Path(document).read_text(encoding="utf-8")):
                count += 1
                problem = run(commands, folder, Path(arguments.path).resolve())
                if problem:
                    failures += 1
                    print(f"{document}:{line}: {problem}")
    print(f"documents: {count} blocks run, {failures} failed")
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
