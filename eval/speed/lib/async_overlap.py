"""eval/speed/lib/async_overlap.py
What it is worth that text, events and masks are made beside the next step instead of between two:
many short requests, asynchronous against --synchronous in turn, over HTTP and from a file; and, by
the engine's trace, how much of that work a forward hides. Called by async_overlap.sh.
"""
import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from plain_template import plain
from server import Prompts, Server, served_model, throughput
from speed import Samples, add_common_options, csv_path, describe, run, say

CLIENTS, PROMPT, OUTPUT = 64, 16, 16
MODES = {"asynchronous": [], "synchronous": ["--synchronous"]}
# An answer in sentences: nearly every token may come next, so that its masks take longest.
SENTENCES = {"type": "regex", "regex": r"([A-Z][a-z ,']{3,80}\. ?){1,4}"}
OFFLINE = {"generate": {"ignore_eos": True}, "generate-masked": {"response_format": SENTENCES}}
GAIN_GOAL = 1.0    # never slower
HIDDEN_GOAL = 0.5  # share of the host's work that runs beside a forward


class Measurement:
    def __init__(self, arguments, samples, model, folder):
        self.arguments = arguments
        self.samples = samples
        self.model = model
        self.folder = folder
        self.requests = 2 if arguments.quick else 40  # of each client
        self.lines = 100 if arguments.quick else 2000
        self.answers = {}

    def options(self, mode):
        # Guesses come and go with measured times: off, so that both do the same steps.
        return ["--model", self.model, "--threads", self.arguments.threads, "--sequences", CLIENTS,
                "--speculation", "off", *MODES[mode]]

    def clients(self, mode, number):
        trace = self.folder / "trace.json"
        record = ["--trace", trace] if mode == "asynchronous" else []
        command = [os.environ["PLUMB"], "serve", "--port", "{port}", "--log-level", "error",
                   *self.options(mode), *record]
        with Server(command, "/ready") as server:
            model = served_model(server.port)
            prompts = Prompts(server.port, model, seed=number)
            load = {"clients": CLIENTS, "requests": self.requests, "prompt": PROMPT,
                    "output": OUTPUT, "more": {"ignore_eos": True}}
            speed, _ = throughput(server.port, model, prompts, load)
            self.samples.add(f"clients-{CLIENTS}", mode, number, speed, "tokens/s")
            server.__exit__()  # it tells of the trace when it stops
            told = Path(server.log.name).read_text(errors="replace")
        hidden = re.search(r"; (\d+) % of the host's work ran beside a forward", told)
        if hidden:
            self.samples.add("host-work-hidden", mode, number, int(hidden.group(1)) / 100, "share")

    def offline(self, mode, number):
        for what, more in OFFLINE.items():
            self._generate(what, more, mode, number)

    def _generate(self, what, more, mode, number):
        given, answers = self.folder / "in.jsonl", self.folder / "out.jsonl"
        answers.unlink(missing_ok=True)
        with open(given, "w", encoding="utf-8") as file:
            for line in range(self.lines):
                json.dump({"prompt": f"Line {line}: the", "max_tokens": OUTPUT, **more}, file)
                file.write("\n")
        begin = time.monotonic()
        done = run([os.environ["PLUMB"], "generate", "--input", given, "--output", answers,
                    *self.options(mode)])
        if done is None:
            return
        seconds = time.monotonic() - begin
        self.samples.add(what, mode, number, self.lines * OUTPUT / seconds, "tokens/s")
        answer = hashlib.sha256(answers.read_bytes()).hexdigest()
        self.answers.setdefault(what, set()).add(answer)

    def report(self):
        for what in (f"clients-{CLIENTS}", *OFFLINE):
            ours, theirs = (self.samples.median(what, mode) for mode in MODES)
            ratio = ours / theirs if ours and theirs else None
            remark = f"{ours:.0f} and {theirs:.0f} tokens/s" if ratio else "not measured"
            self.samples.ratio(f"async-of-sync-{what}", ratio, GAIN_GOAL, remark)
        self.samples.ratio("host-work-hidden",
                           self.samples.median("host-work-hidden", "asynchronous"), HIDDEN_GOAL)
        same = all(len(self.answers.get(what, ())) == 1 for what in OFFLINE)
        self.samples.ratio("async-same-answers", 1.0 if same else 0.0, 1.0)
        return same


def main():
    parser = argparse.ArgumentParser(prog="async_overlap.sh")
    add_common_options(parser)
    arguments = parser.parse_args()
    source = os.environ["SMOLLM2_GGUF"]
    model = plain(source)
    about = describe(model, arguments.threads)
    samples = Samples(csv_path(arguments, about, "async-overlap"), about)
    failed = False
    with tempfile.TemporaryDirectory(prefix="speed-async-") as scratch:
        measurement = Measurement(arguments, samples, model, Path(scratch))
        for number in range(1 if arguments.quick else arguments.rounds):
            say(f"round {number + 1}")
            for part in (measurement.clients, measurement.offline):
                for mode in MODES:
                    try:
                        part(mode, number)
                    except (RuntimeError, OSError) as error:
                        say(f"{mode}: {error}")
                        failed = True
        same = measurement.report()
    return 0 if same and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
