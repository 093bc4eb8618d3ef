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

KINDS = ("prefill", "decode", "batch", "attention", "attention-16k", "explained", "explained-16k")
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
PAIRS_IN_A_ROUND = 5     # of decode with and without a context
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
        """One run for prompts and one stream, one for many streams, which are also compared with a
        prompt of 512."""
        prefill = "prefill" in self.wanted
        if prefill or "decode" in self.wanted:
            self._one_run(name, path, number, ("512,2048" if prefill else "16", 0, 1))
        if "batch" in self.wanted:
            self._one_run(name, path, number, ("16" if prefill else "512", BATCH_CONTEXT, BATCH))

    def _one_run(self, name, path, number, shape):
        prompts, context, batch = shape
        bench = plumb_bench(path, self.arguments.threads,
                            ["--prompt", prompts, "--context", context, "--batch", batch,
                             "--decode", self.decode, "--repeat", self.repeat])
        if bench is None:
            return
        for point in bench["points"]:
            if "skipped" in point:
                continue
            if point["kind"] == "prefill":
                if point["prompt"] >= 512:
                    self._add_ours(f"prefill-{point['prompt']}-{name}", point, number)
            else:
                self._add_ours(f"decode-{batch}-{name}", point, number)
                if batch == 1:
                    self.samples.add_read_rates(name, number, point, bench["memory"])

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
                for what in ("prefill-512", "prefill-2048", f"decode-{BATCH}")}
        if "prefill" in self.wanted:
            samples.compare(f"prefill-512-{name}", "llama.cpp", model.prefill_goal)
            samples.compare(f"prefill-2048-{name}", "llama.cpp", PREFILL_LONG_GOAL)
            samples.ratio(f"own-prefill-2048-of-512-{name}",
                          quotient(ours["prefill-2048"], ours["prefill-512"]), PREFILL_KEPT_GOAL)
        if "decode" in self.wanted:
            samples.compare(f"decode-1-{name}", "llama.cpp", model.decode_goal)
            if model.read_share:
                samples.read_share(name, READ_SHARE_GOAL)
        if "batch" in self.wanted:
            samples.compare(f"decode-{BATCH}-{name}", "llama.cpp", BATCH_GOAL)
            samples.ratio(f"own-decode-{BATCH}-of-prefill-{name}",
                          quotient(ours[f"decode-{BATCH}"], ours["prefill-512"]),
                          BATCH_OF_PREFILL_GOAL)

    def attention(self, name, path, context):
        """A prompt that fills the context; decode at its end against decode at its start."""
        threads = self.arguments.threads
        say(f"{name} at {context} tokens: {self.rounds} rounds")
        self.samples.comment(f"model {name}: {file_line(path)}")
        prefill = f"prefill-{context}-{name}"
        for number in range(self.rounds):
            self._our_prompt(name, path, context, number)
            self._our_pairs(name, path, context, number)
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
        self._report_explained(name, context)

    def explained(self, name, path, context):
        """Of attention(), the part that needs no other engine."""
        say(f"{name} at {context} tokens against none: {self.rounds} rounds")
        self.samples.comment(f"model {name}: {file_line(path)}")
        for number in range(self.rounds):
            self._our_pairs(name, path, context, number)
        self._report_explained(name, context)

    def _report_explained(self, name, context):
        speeds = [self.samples.median(f"decode-at-{at}-{name}", "plumb") for at in (0, context)]
        size = [self.samples.median(f"bytes-a-token-at-{at}-{name}", "plumb")
                for at in (0, context)]
        remark = "" if None in speeds + size else (
            f"{speeds[0]:.4g} to {speeds[1]:.4g} tokens/s, {size[0] / 1e6:.4g} to "
            f"{size[1] / 1e6:.4g} MB a token")
        self.samples.ratio(f"own-decode-at-{context}-explained-{name}",
                           self.samples.median(f"explained-at-{context}-{name}", "plumb"), 1.0,
                           remark)

    def _our_prompt(self, name, path, context, number):
        bench = plumb_bench(path, self.arguments.threads,
                            ["--prompt", context, "--context", 0, "--batch", 1, "--decode", 1,
                             "--repeat", 1])
        for point in (bench or {}).get("points", []):
            if point["kind"] == "prefill":
                self._add_ours(f"prefill-{context}-{name}", point, number)

    def _our_pairs(self, name, path, context, number):
        """Decode without context and with it in turn (A B A B). Each pair is a sample: the part of
        the speed that the longer context leaves, by the part of the bytes that were there before.
        1: slower exactly as the bytes of keys and values explain."""
        bench = plumb_bench(path, self.arguments.threads,
                            ["--prompt", 16, "--context", f"0,{context}", "--batch", 1, "--decode",
                             self.decode, "--repeat", 1 if self.arguments.quick
                             else PAIRS_IN_A_ROUND])
        points = {point["context"]: point for point in (bench or {}).get("points", [])
                  if point["kind"] == "decode" and "skipped" not in point}
        if len(points) != 2:
            return
        for at, point in points.items():
            self._add_ours(f"decode-at-{at}-{name}", point, number)
            self.samples.add(f"bytes-a-token-at-{at}-{name}", "plumb", number,
                             point["bytes"] / point["tokens"], "bytes")
        for seconds, longer in zip(points[0]["seconds"], points[context]["seconds"]):
            explained = seconds / longer * points[context]["bytes"] / points[0]["bytes"]
            self.samples.add(f"explained-at-{context}-{name}", "plumb", number, explained, "share")


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
    for kind, measure in (("attention", comparison.attention), ("explained", comparison.explained)):
        if kind in arguments.only:
            path = llamacpp.requantised(smallest, "Q8_0")
            if path:
                measure("smollm2-q8_0", path, LONG_CONTEXT)
        if f"{kind}-16k" in arguments.only:
            measure("qwen-0.5b-q4_k_m", os.environ["QWEN_05B_GGUF"], LONGER_CONTEXT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
