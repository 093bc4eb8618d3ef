"""eval/speed/lib/latency_under_prefill.py
What a long prompt costs those who were there before it, and those who come after: the time between
two tokens of 8 running streams, and the time to the first token of a short request, while a
16k-token prompt is computed, against without it: before it came and after it was done, since the
streams grow meanwhile, and longer ones are slower by themselves. Called by
latency_under_prefill.sh.
"""
import argparse
import os
import sys
import threading
import time

from plain_template import plain
from server import Client, Prompts, plumb_server, served_model, token_bytes
from speed import Samples, add_common_options, csv_path, describe, say
from streams import Streams, percentile

STREAMS, STREAM_PROMPT, STREAM_OUTPUT = 8, 64, 8000
LONG_PROMPT, SHORT_PROMPT = 16_000, 100
ITL_GOAL = 1 / 2    # without over with: at most twice as long
FIRST_GOAL = 1 / 3  # at most three times
SHORT_PAUSE_SECONDS = 1.0


class Measurement:
    def __init__(self, arguments, samples, model):
        self.arguments = arguments
        self.samples = samples
        self.model = model
        self.long = 2_000 if arguments.quick else LONG_PROMPT
        self.quiet_seconds = 3 if arguments.quick else 15
        self.shorts = 2 if arguments.quick else 8
        tokens = self.long + STREAMS * (STREAM_PROMPT + STREAM_OUTPUT) + 4096
        self.kv_memory = tokens * token_bytes(model)

    def server(self):
        more = ["--itl-target-ms", self.arguments.itl_target_ms] if self.arguments.itl_target_ms \
            else []
        return plumb_server(self.model, self.arguments.threads, "--kv-memory", self.kv_memory,
                            *more)

    def round(self, number):
        with self.server() as server:
            model = served_model(server.port)
            prompts = Prompts(server.port, model, seed=number)
            shape = {"count": STREAMS, "prompt": STREAM_PROMPT, "output": STREAM_OUTPUT}
            with Streams((server.port, model), prompts, shape) as streams:
                gaps = self._without(streams, prompts, (server.port, model), number)
                self._with(streams, prompts, (server.port, model), number)
                gaps += self._without(streams, prompts, (server.port, model), number)
                self._add_gaps(gaps, "without", number)
                streams.check()

    def _first_token(self, client, prompts, engine, number):
        answer = client.ask(prompts.of(SHORT_PROMPT), 1, {"speculation": "off"})
        self.samples.add("first-token-100", engine, number, 1000 * answer["seconds"], "ms")

    def _without(self, streams, prompts, where, number):
        begin = time.monotonic()
        time.sleep(self.quiet_seconds)
        gaps = streams.gaps_ms(begin, time.monotonic())
        client = Client(*where)
        for _ in range(self.shorts):
            self._first_token(client, prompts, "without", number)
        return gaps

    def _with(self, streams, prompts, where, number):
        words, outcome = prompts.of(self.long), {}
        begin = time.monotonic()

        def ask_long():
            try:
                outcome.update(Client(*where).ask(words, 1))
            except (RuntimeError, OSError) as error:
                outcome["failure"] = str(error)
            outcome["end"] = time.monotonic()

        long = threading.Thread(target=ask_long)
        long.start()
        time.sleep(SHORT_PAUSE_SECONDS)
        client, behind = Client(*where), 0
        while long.is_alive() and behind < self.shorts:
            self._first_token(client, prompts, "with", number)
            behind += 1
            time.sleep(SHORT_PAUSE_SECONDS if not self.arguments.quick else 0.1)
        long.join()
        if "failure" in outcome:
            raise RuntimeError(f"the long prompt failed: {outcome['failure']}")
        if behind == 0:
            say("the long prompt was computed before a short one came; take a longer one")
        self._add_gaps(streams.gaps_ms(begin, outcome["end"]), "with", number)
        self.samples.add("long-prompt", "with", number, outcome["seconds"], "s")

    def _add_gaps(self, gaps, engine, number):
        if not gaps:
            raise RuntimeError("no token came meanwhile")
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            self.samples.add(f"itl-{name}", engine, number, percentile(gaps, share), "ms")
        self.samples.add("itl-max", engine, number, max(gaps), "ms")

    def report(self):
        for what, goal in (("itl-p99", ITL_GOAL), ("first-token-100", FIRST_GOAL)):
            without, under = (self.samples.median(what, e) for e in ("without", "with"))
            ratio = without / under if without and under else None
            remark = f"without {without:.1f} ms, with {under:.1f} ms" if ratio else "not measured"
            self.samples.ratio(f"{what}-under-prefill-{self.long}", ratio, round(goal, 3), remark)


def main():
    parser = argparse.ArgumentParser(prog="latency_under_prefill.sh")
    add_common_options(parser)
    parser.add_argument("--itl-target-ms", type=int, default=0, metavar="MS",
                        help="as of plumb serve (default: automatic)")
    arguments = parser.parse_args()
    source = os.environ["SMOLLM2_GGUF" if arguments.quick else "QWEN_05B_GGUF"]
    model = plain(source)
    about = describe(model, arguments.threads)
    samples = Samples(csv_path(arguments, about, "latency-under-prefill"), about)
    measurement = Measurement(arguments, samples, model)
    failed = False
    for number in range(1 if arguments.quick else arguments.rounds):
        say(f"round {number + 1}")
        try:
            measurement.round(number)
        except (RuntimeError, OSError) as error:
            say(str(error))
            failed = True
    measurement.report()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
