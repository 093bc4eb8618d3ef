"""eval/speed/lib/compare_server.py
plumb serve against llama-server on the same file and threads, in turn: 16 clients, the time to one
token for short and for mostly cached prompts, start-up, memory. The file has a plain chat template,
so that prompts have exactly as many tokens as is said. Called by compare_server.sh.
"""
import argparse
import os
import sys

import llamacpp
from plain_template import plain
from server import (Prompts, Server, latencies_ms, p50, plumb_server, served_model, throughput,
                    token_bytes)
from speed import Samples, add_common_options, csv_path, describe, say

KINDS = ("clients", "short", "cached", "startup", "memory")
CLIENTS, PROMPT, OUTPUT = 16, 256, 128
CAPACITY_TOKENS = CLIENTS * 512  # of keys and values, for both
CACHED_PROMPT, CACHED_SHARED = 1024, 960
SHORT_PROMPT = 4
GOALS = {"clients": 2.0, "short": 2.0, "cached": 2.0, "startup": 1.0, "memory": 1.0}


class Comparison:
    def __init__(self, arguments, samples, model):
        self.arguments = arguments
        self.samples = samples
        self.model = model
        self.rounds = 1 if arguments.quick else arguments.rounds
        self.requests = 1 if arguments.quick else 2
        self.prompt, self.output = (64, 16) if arguments.quick else (PROMPT, OUTPUT)
        self.short_count = 20 if arguments.quick else 100
        self.cached_count = 3 if arguments.quick else 10
        self.kv_memory = CAPACITY_TOKENS * token_bytes(model)

    def plumb(self):
        return plumb_server(self.model, self.arguments.threads, "--kv-memory", self.kv_memory)

    def llama(self, slots, flash, context=CAPACITY_TOKENS):
        threads = self.arguments.threads
        return Server([llamacpp.tool("llama-server"), "-m", self.model, "--host", "127.0.0.1",
                       "--port", "{port}", "-t", threads, "-tb", threads, "-np", slots, "-c",
                       context, "-fa", flash, "-cb", "--jinja"], "/health")

    def llama_settings(self):
        """[(slots, flash)] that its best is taken of."""
        if self.arguments.quick:
            return [(16, "on")]
        return [(8, "on"), (16, "on"), (32, "on"), (16, "off")]

    def clients(self, number):
        load = {"clients": CLIENTS, "requests": self.requests, "prompt": self.prompt,
                "output": self.output, "more": {"ignore_eos": True}}
        self._throughput("plumb", self.plumb(), load, number)
        for slots, flash in self.llama_settings():
            context = max(CAPACITY_TOKENS, slots * 512)
            self._throughput(f"llama-server np={slots} fa={flash}",
                             self.llama(slots, flash, context), load, number)

    def _throughput(self, engine, server, load, number):
        with server:
            model = served_model(server.port)
            prompts = Prompts(server.port, model, seed=number)
            speed, tokens = throughput(server.port, model, prompts, load)
            self.samples.add("clients-16", engine, number, speed, "tokens/s")
            expected = load["clients"] * load["requests"] * load["output"]
            if tokens != expected:
                say(f"{engine}: {tokens} output tokens, not {expected}")
            if engine == "plumb" or "np=16 fa=on" in engine:
                self.samples.add("memory", engine, number, server.memory_bytes() / 1e6, "MB")

    def latency(self, number):
        """One slot is llama-server's best for one client."""
        settings = ["on"] if self.arguments.quick else ["on", "off"]
        self._latency("plumb", self.plumb(), number)
        for flash in settings:
            self._latency(f"llama-server np=1 fa={flash}", self.llama(1, flash), number)

    def _latency(self, engine, server, number):
        with server:
            model = served_model(server.port)
            prompts = Prompts(server.port, model, seed=number)
            short = [prompts.of(SHORT_PROMPT) for _ in range(self.short_count)]
            latencies_ms(server.port, model, short[:5])
            self.samples.add("short", engine, number,
                             p50(latencies_ms(server.port, model, short)), "ms")
            shared = prompts.of(CACHED_SHARED)
            rest = CACHED_PROMPT - CACHED_SHARED + prompts.extra
            cached = [shared + prompts.of(rest) for _ in range(self.cached_count + 1)]
            times = latencies_ms(server.port, model, cached)
            self.samples.add("cold-1024", engine, number, times[0], "ms")
            self.samples.add("cached", engine, number, p50(times[1:]), "ms")

    def startup(self, number):
        """The file is in the page cache: it was read before."""
        for engine, make in (("plumb", self.plumb), ("llama-server", lambda: self.llama(16, "on"))):
            with make() as server:
                self.samples.add("startup", engine, number, 1000 * server.startup_seconds, "ms")

    def go(self, wanted):
        self._attempt(self.startup, -1, keep=False)
        for number in range(self.rounds):
            say(f"round {number + 1} of {self.rounds}")
            if "startup" in wanted:
                for _ in range(1 if self.arguments.quick else 3):
                    self._attempt(self.startup, number)
            if {"short", "cached"} & set(wanted):
                self._attempt(self.latency, number)
            if {"clients", "memory"} & set(wanted):
                self._attempt(self.clients, number)

    def _attempt(self, part, number, keep=True):
        try:
            part(number)
        except (RuntimeError, OSError) as error:
            say(f"{part.__name__}: {error}")
        if not keep:
            self.samples.forget("startup")

    def report(self, wanted):
        names = {"clients": "clients-16"}
        for kind in wanted:
            self.samples.compare(names.get(kind, kind), "llama-server", GOALS[kind],
                                 "more" if kind == "clients" else "less")


def main():
    parser = argparse.ArgumentParser(prog="compare_server.sh")
    add_common_options(parser)
    parser.add_argument("--only", default=",".join(KINDS), metavar="WHAT,...",
                        help=f"of {', '.join(KINDS)}")
    arguments = parser.parse_args()
    wanted = arguments.only.split(",")
    if set(wanted) - set(KINDS):
        parser.error(f"--only takes {', '.join(KINDS)}")
    source = llamacpp.requantised(os.environ["SMOLLM2_GGUF"], "Q8_0")
    if source is None:
        return 1
    model = plain(source)
    about = describe(model, arguments.threads)
    llamacpp.describe_into(about, model, arguments.threads)
    samples = Samples(csv_path(arguments, about, "server"), about)
    comparison = Comparison(arguments, samples, model)
    comparison.go(wanted)
    comparison.report(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
