"""eval/speed/lib/compare_llamacpp.py
plumb's engine core against llama.cpp's on the same files, threads and lengths: prompts, one stream,
sixteen streams, long contexts. Rounds alternate (A B A B); a ratio is that of the medians over all
rounds, theirs being the better of flash attention on and off. Called by compare_llamacpp.sh.
"""
import argparse
import os
import sys
from dataclasses import dataclass

import llamacpp
from speed import (Samples, add_common_options, csv_path, describe, file_line, plumb_bench,
                   say)

KINDS = ("prefill", "decode", "batch", "attention", "attention-16k")
BATCH, BATCH_CONTEXT = 16, 128
LONG_CONTEXT = 7936    # of SmolLM2's 8192: pages, and room for the decoded tokens
LONGER_CONTEXT = 16256  # Qwen2.5-Coder-0.5B


@dataclass(frozen=True)
class Model:
    variable: str       # holds the file's path
    kind: str           # quantisation to make of it; empty: the file itself
    prefill_goal: float
    decode_goal: float
    read_share: bool    # decode must reach the machine's read bandwidth


MODELS = {
    "smollm2-q8_0": Model("SMOLLM2_GGUF", "Q8_0", 1.5, 1.5, False),
    "smollm2-q4_0": Model("SMOLLM2_GGUF", "Q4_0", 1.5, 1.5, False),
    "smollm2-q4_1": Model("SMOLLM2_GGUF", "", 1.5, 1.5, False),
    "smollm2-bf16": Model("SMOLLM2_GGUF", "BF16", 1.3, 1.5, False),
    "qwen-0.5b-q4_k_m": Model("QWEN_05B_GGUF", "", 1.5, 1.25, False),
    "qwen-1.5b-q4_k_m": Model("QWEN_15B_GGUF", "", 1.5, 1.25, True),
    "qwen-1.5b-q8_0": Model("QWEN_15B_GGUF", "Q8_0", 1.5, 1.25, True),
    "qwen-1.5b-q4_0": Model("QWEN_15B_GGUF", "Q4_0", 1.5, 1.25, True),
}
PREFILL_LONG_GOAL = 1.7
PREFILL_KEPT_GOAL = 0.9   # 2048 tokens against 512
BATCH_GOAL = 2.0
BATCH_OF_PREFILL_GOAL = 0.8
READ_SHARE_GOAL = 0.85
QUICK_MODELS = ("smollm2-q8_0", "smollm2-q4_1")


class Comparison:
    def __init__(self, arguments, samples):
        self.arguments = arguments
        self.samples = samples
        self.decode = 16 if arguments.quick else 64
        self.repeat = 1 if arguments.quick else arguments.repeat
        self.rounds = 1 if arguments.quick else arguments.rounds
        self.wanted = arguments.only

    def one_model(self, name):
        model = MODELS[name]
        path = os.environ[model.variable]
        if model.kind:
            path = llamacpp.requantised(path, model.kind)
            if path is None:
                return
        say(f"{name}: {self.rounds} rounds")
        self.samples.comment(f"model {name}: {file_line(path)}")
        for number in range(self.rounds):
            self._ours(name, path, number)
            self._theirs(name, path, number)
        self._report(name, model)

    def _ours(self, name, path, number):
        bench = plumb_bench(path, self.arguments.threads,
                            ["--prompt", "512,2048", "--context", f"0,{BATCH_CONTEXT}", "--batch",
                             f"1,{BATCH}", "--decode", self.decode, "--repeat", self.repeat])
        for point in (bench or {}).get("points", []):
            if "skipped" in point:
                continue
            if point["kind"] == "prefill":
                what = f"prefill-{point['prompt']}-{name}"
            elif point["batch"] == 1 and point["context"] == 0:
                what = f"decode-1-{name}"
                for share in point["read_shares"]:
                    self.samples.add(f"read-share-{name}", "plumb", number, share, "share")
            elif point["batch"] == BATCH and point["context"] == BATCH_CONTEXT:
                what = f"decode-{BATCH}-{name}"
            else:
                continue
            self._add_ours(what, point, number)

    def _add_ours(self, what, point, number):
        for seconds in point["seconds"]:
            self.samples.add(what, "plumb", number, point["tokens"] / seconds, "tokens/s")

    def _theirs(self, name, path, number):
        threads = self.arguments.threads
        prompts = (512, 2048) if "prefill" in self.wanted else ()
        decode = self.decode if "decode" in self.wanted else 0
        if prompts or decode:
            for kind, length, engine, speeds in llamacpp.bench(path, threads, prompts, decode,
                                                               self.repeat):
                what = f"prefill-{length}-{name}" if kind == "prefill" else f"decode-1-{name}"
                for speed in speeds:
                    self.samples.add(what, engine, number, speed, "tokens/s")
        if "batch" in self.wanted:
            shape = {"batch": BATCH, "context": BATCH_CONTEXT, "decode": self.decode}
            for engine, speeds in llamacpp.batched(path, threads, shape, self.repeat):
                for speed in speeds:
                    self.samples.add(f"decode-{BATCH}-{name}", engine, number, speed, "tokens/s")

    def _report(self, name, model):
        samples = self.samples
        ours = {what: samples.median(f"{what}-{name}", "plumb")
                for what in ("prefill-512", "prefill-2048", f"decode-{BATCH}", "read-share")}
        if "prefill" in self.wanted:
            samples.compare(f"prefill-512-{name}", "llama.cpp", model.prefill_goal)
            samples.compare(f"prefill-2048-{name}", "llama.cpp", PREFILL_LONG_GOAL)
            samples.ratio(f"own-prefill-2048-of-512-{name}",
                          quotient(ours["prefill-2048"], ours["prefill-512"]), PREFILL_KEPT_GOAL)
        if "decode" in self.wanted:
            samples.compare(f"decode-1-{name}", "llama.cpp", model.decode_goal)
            if model.read_share:
                samples.ratio(f"read-share-{name}", ours["read-share"], READ_SHARE_GOAL)
        if "batch" in self.wanted:
            samples.compare(f"decode-{BATCH}-{name}", "llama.cpp", BATCH_GOAL)
            samples.ratio(f"own-decode-{BATCH}-of-prefill-{name}",
                          quotient(ours[f"decode-{BATCH}"], ours["prefill-512"]),
                          BATCH_OF_PREFILL_GOAL)

    def attention(self, name, path, context):
        """A prompt that fills the context; decode at its end against decode at its start."""
        threads = self.arguments.threads
        rounds = self.rounds
        say(f"{name} at {context} tokens: {rounds} rounds")
        self.samples.comment(f"model {name}: {file_line(path)}")
        prefill = f"prefill-{context}-{name}"
        for number in range(rounds):
            bench = plumb_bench(path, threads,
                                ["--prompt", context, "--context", f"0,{context}", "--batch", 1,
                                 "--decode", self.decode, "--repeat", 1])
            for point in (bench or {}).get("points", []):
                if point["kind"] == "prefill":
                    self._add_ours(prefill, point, number)
                elif "skipped" not in point:
                    what = f"{point['context']}-{name}"
                    self._add_ours(f"decode-at-{what}", point, number)
                    for share in point["read_shares"]:
                        self.samples.add(f"read-share-at-{what}", "plumb", number, share, "share")
            for _, _, engine, speeds in llamacpp.bench(path, threads, (context,), 0, 1):
                for speed in speeds:
                    self.samples.add(prefill, engine, number, speed, "tokens/s")
            for _, _, engine, speeds in llamacpp.bench(path, threads, (), self.decode, 1, context):
                for speed in speeds:
                    self.samples.add(f"decode-at-{context}-{name}", engine, number, speed,
                                     "tokens/s")
        samples = self.samples
        samples.compare(prefill, "llama.cpp", PREFILL_LONG_GOAL)
        samples.compare(f"decode-at-{context}-{name}", "llama.cpp", 1.0)
        # 1: slower exactly as the bytes of keys and values explain, since both reach the same
        # share of the bandwidth.
        share = {at: samples.median(f"read-share-at-{at}-{name}", "plumb") for at in (0, context)}
        samples.ratio(f"own-decode-at-{context}-explained-{name}",
                      quotient(share[context], share[0]), 1.0)


def quotient(a, b):
    return a / b if a and b else None


def parse():
    parser = argparse.ArgumentParser(prog="compare_llamacpp.sh")
    add_common_options(parser)
    parser.add_argument("--only", default="prefill,decode,batch,attention", metavar="WHAT,...",
                        help=f"of {', '.join(KINDS)}")
    parser.add_argument("--repeat", type=int, default=3, metavar="N",
                        help="samples of each engine in a round (default 3)")
    parser.add_argument("--models", default="", metavar="NAME,...",
                        help=f"of {', '.join(MODELS)}")
    arguments = parser.parse_args()
    arguments.only = arguments.only.split(",")
    default = QUICK_MODELS if arguments.quick else tuple(MODELS)
    arguments.models = arguments.models.split(",") if arguments.models else list(default)
    for word, known in ([(w, KINDS) for w in arguments.only]
                        + [(m, MODELS) for m in arguments.models]):
        if word not in known:
            parser.error(f"'{word}' is not one of {', '.join(known)}")
    return arguments


def main():
    arguments = parse()
    smallest = os.environ["SMOLLM2_GGUF"]
    about = describe(smallest, arguments.threads)
    llamacpp.describe_into(about, smallest, arguments.threads)
    samples = Samples(csv_path(arguments, about, "llamacpp"), about)
    comparison = Comparison(arguments, samples)
    if {"prefill", "decode", "batch"} & set(arguments.only):
        for name in arguments.models:
            comparison.one_model(name)
    if "attention" in arguments.only:
        path = llamacpp.requantised(smallest, "Q8_0")
        if path:
            comparison.attention("smollm2-q8_0", path, LONG_CONTEXT)
    if "attention-16k" in arguments.only:
        comparison.attention("qwen-0.5b-q4_k_m", os.environ["QWEN_05B_GGUF"], LONGER_CONTEXT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
