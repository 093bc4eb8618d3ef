"""eval/speed/lib/prefix_ttft.py
What a prompt costs whose beginning was computed before: the time to one token with 2k of cached
prefix against the whole prompt; and that a system prompt which thousands of requests share is kept
once. Called by prefix_ttft.sh.
"""
import argparse
import http.client
import os
import re
import sys
import threading

from plain_template import plain
from server import Client, Prompts, at_once, plumb_server, served_model, token_bytes
from speed import Samples, add_common_options, csv_path, describe, say

PREFIX, REST = 2048, 16
SYSTEM_PROMPT, OWN_WORDS, REQUESTS, CLIENTS = 1024, 8, 10_000, 16
PAGE_TOKENS = 128
CAPACITY_TOKENS = 64 * 1024
TTFT_GOAL = 10
ONCE_GOAL = 1.0


class Measurement:
    def __init__(self, arguments, samples, model):
        self.arguments = arguments
        self.samples = samples
        self.model = model
        self.rounds = 1 if arguments.quick else arguments.rounds
        self.pairs = 2 if arguments.quick else 10
        self.requests = 200 if arguments.quick else REQUESTS
        self.kv_memory = CAPACITY_TOKENS * token_bytes(model)

    def server(self):
        return plumb_server(self.model, self.arguments.threads, "--kv-memory", self.kv_memory)

    def first_token(self, number):
        """Pairs: a prompt never seen, then another end to its first 2048 tokens."""
        with self.server() as server:
            model = served_model(server.port)
            prompts, client = Prompts(server.port, model, seed=number), Client(server.port, model)
            client.ask(prompts.of(PREFIX), 1)
            for _ in range(self.pairs):
                shared = prompts.of(PREFIX)
                for engine in ("cold", "cached"):
                    answer = client.ask(shared + prompts.of(REST + prompts.extra), 1)
                    if answer["prompt"] != PREFIX + REST:
                        raise RuntimeError(f"a prompt of {answer['prompt']} tokens")
                    self.samples.add("first-token-2k", engine, number, 1000 * answer["seconds"],
                                     "ms")

    def stored_once(self):
        """All requests begin alike and end differently, within the page that follows: each leaves
        that one page of its own, kept or given up for others since, and nothing else."""
        with self.server() as server:
            model = served_model(server.port)
            prompts = Prompts(server.port, model, seed=1)
            before = pages(server.port)
            system = prompts.of(SYSTEM_PROMPT)
            Client(server.port, model).ask(system + prompts.of(OWN_WORDS + prompts.extra), 1)
            ask_all(server.port, model,
                    [system + prompts.of(OWN_WORDS + prompts.extra) for _ in range(self.requests)])
            after = pages(server.port)
        stored = sum(after[key] - before[key] for key in ("cached", "evicted"))
        cached = after["cached_tokens"] - before["cached_tokens"]
        prompt = SYSTEM_PROMPT // PAGE_TOKENS
        expected = prompt + self.requests + 1
        self.samples.add("shared-prompt-pages", "plumb", 0, stored, "pages")
        self.samples.add("shared-prompt-cached-share", "plumb", 0,
                         cached / (self.requests * SYSTEM_PROMPT), "share")
        self.samples.ratio(f"shared-prompt-{self.requests}-stored-once",
                           expected / stored if stored else None, ONCE_GOAL,
                           f"{stored} pages for a prompt of {prompt} and {self.requests + 1} ends, "
                           f"{cached} of {self.requests * SYSTEM_PROMPT} tokens reused")

    def report(self):
        cold, cached = (self.samples.median("first-token-2k", e) for e in ("cold", "cached"))
        ratio = cold / cached if cold and cached else None
        remark = f"cold {cold:.1f} ms, cached {cached:.2f} ms" if ratio else "not measured"
        self.samples.ratio("first-token-2k-cached-of-cold", ratio, TTFT_GOAL, remark)


def pages(port):
    """What /metrics says of pages."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()

    def value(name):
        found = re.search(rf"^{name}(?:\{{[^}}]*\}})? ([0-9.e+]+)$", text, re.M)
        if not found:
            raise RuntimeError(f"/metrics has no {name}")
        return int(float(found.group(1)))

    return {"cached": value("plumb_pages_cached"),
            "evicted": value("plumb_page_evictions_total"),
            "cached_tokens": value("plumb_cached_tokens_total")}


def ask_all(port, model, prompts_of_words):
    """By CLIENTS clients at once."""
    queue, lock = iter(prompts_of_words), threading.Lock()

    def work(_):
        client = Client(port, model)
        while True:
            with lock:
                words = next(queue, None)
            if words is None:
                return
            client.ask(words, 1)

    at_once(CLIENTS, work)


def main():
    parser = argparse.ArgumentParser(prog="prefix_ttft.sh")
    add_common_options(parser)
    arguments = parser.parse_args()
    source = os.environ["SMOLLM2_GGUF"]
    model = plain(source)
    about = describe(model, arguments.threads)
    samples = Samples(csv_path(arguments, about, "prefix-ttft"), about)
    measurement = Measurement(arguments, samples, model)
    failed = False
    for number in range(measurement.rounds):
        say(f"round {number + 1} of {measurement.rounds}")
        try:
            measurement.first_token(number)
        except (RuntimeError, OSError) as error:
            say(str(error))
            failed = True
    measurement.report()
    try:
        measurement.stored_once()
    except (RuntimeError, OSError) as error:
        say(str(error))
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
