"""eval/speed/lib/deepseek_speed.py
plumb with a checkpoint of DeepSeek-V4.1's structure: decode as a share of the memory's bandwidth,
prefill as a share of the multiply-adds, and both against fastllm with the same files, in turn
(A B A B). Called by deepseek_speed.sh.
"""
import argparse
import json
import os
import sys
import time
from pathlib import Path

from fastllm import Fastllm
from speed import Samples, add_common_options, csv_path, describe, plumb_bench, say

PROMPT = 512
CONTEXT = 128          # tokens in front of those that are decoded
READ_SHARE_GOAL = 0.6  # aim 0.85
FMA_SHARE_GOAL = 0.4
PEER_GOAL = 5.0
MODEL = "v41"


class Comparison:
    def __init__(self, arguments, model, samples):
        self.arguments, self.model, self.samples = arguments, model, samples
        config = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
        self.peer = Fastllm(model, arguments.threads, config["text_config"]["vocab_size"])
        self.decode = 8 if arguments.quick else 32
        self.rounds = 1 if arguments.quick else arguments.rounds

    def run(self):
        has_peer = not self.arguments.own and self.peer.start()
        try:
            if has_peer:  # as every engine: once for nothing
                self.peer.measure(CONTEXT, 4, seed=-1)
            end = time.monotonic() + 60 * self.arguments.minutes
            for number in range(self.rounds):
                if number > 0 and time.monotonic() > end:
                    say(f"{number} rounds: the time is over")
                    break
                self.ours(number)
                if has_peer:
                    self.theirs(number)
        finally:
            self.peer.stop()
        self.report()

    def ours(self, number):
        bench = plumb_bench(self.model, self.arguments.threads,
                            ["--prompt", PROMPT, "--context", CONTEXT, "--batch", 1, "--decode",
                             self.decode, "--repeat", 1 if self.arguments.quick else 2])
        for point in (bench or {}).get("points", []):
            if "skipped" in point:
                continue
            prefill = point["kind"] == "prefill"
            what = f"prefill-{PROMPT}-{MODEL}" if prefill else f"decode-1-{MODEL}"
            for seconds in point["seconds"]:
                self.samples.add(what, "plumb", number, point["tokens"] / seconds, "tokens/s")
            if prefill:
                self.samples.add(f"fma-share-{MODEL}", "plumb", number, point["fma_share"], "share")
            else:
                self.samples.add_read_rates(MODEL, number, point, bench["memory"])

    def theirs(self, number):
        for what, prompt, output in (("prefill", PROMPT, 1), ("decode", CONTEXT, self.decode)):
            answer = self.peer.measure(prompt, output, seed=2 * number + (what == "decode"))
            if answer and answer[what]:
                name = f"prefill-{PROMPT}-{MODEL}" if what == "prefill" else f"decode-1-{MODEL}"
                self.samples.add(name, "fastllm", number, answer[what], "tokens/s")

    def report(self):
        samples = self.samples
        samples.read_share(MODEL, READ_SHARE_GOAL, "decode of one stream, aim 0.85: ")
        samples.ratio(f"prefill-fma-share-{MODEL}",
                      samples.median(f"fma-share-{MODEL}", "plumb"), FMA_SHARE_GOAL)
        if not self.arguments.own:
            samples.compare(f"prefill-{PROMPT}-{MODEL}", "fastllm", PEER_GOAL)
            samples.compare(f"decode-1-{MODEL}", "fastllm", PEER_GOAL)


def parse():
    parser = argparse.ArgumentParser(prog="deepseek_speed.sh")
    add_common_options(parser)
    parser.add_argument("--own", action="store_true", help="without fastllm")
    parser.add_argument("--minutes", type=float, default=6,
                        help="after so many no further round begins (default 6)")
    return parser.parse_args()


def main():
    arguments = parse()
    model = os.environ["DEEPSEEK_CHECKPOINT"]
    about = describe(model, arguments.threads)
    about["checkpoint"] = os.environ["DEEPSEEK_SHAPE"]
    about["fastllm"] = "none" if arguments.own else os.environ["FASTLLM_VERSION"]
    samples = Samples(csv_path(arguments, about, "deepseek"), about)
    say(f"{model}: {1 if arguments.quick else arguments.rounds} rounds")
    Comparison(arguments, model, samples).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
