"""eval/speed/lib/speculation.py
Speculation against none: the same greedy answers of `plumb serve` to prompts that edit code and
JSON, in turn. One stream: decode speed from the first token to the last. Sixteen: tokens/s of as
many clients, answers cut at a length that all of them reach. Called by speculation.sh.
"""
import argparse
import http.client
import json
import os
import sys
import time
from pathlib import Path

from server import REQUEST_SECONDS_MAX, at_once, plumb_server, served_model, token_bytes
from speed import Samples, add_common_options, csv_path, describe, say

GOALS = {"speculation-batch-1": 1.5, "speculation-batch-16": 0.97, "speculation-same-answers": 1}
CLIENTS = 16
ANSWER_TOKENS_MAX = 400
CUT_TOKENS = 96  # with sixteen clients: every answer is longer
WARM_UP_TOKENS = 32
KV_TOKENS = CLIENTS * 1024
OFF = "off"


class Stream:
    """One streamed answer: its text, its tokens, and when its first and last piece came."""

    def __init__(self, port, model, prompt, tokens_max):
        body = {"model": model, "temperature": 0, "max_tokens": tokens_max, "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [{"role": "user", "content": prompt}]}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_SECONDS_MAX)
        connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {response.read()[:300]!r}")
        self.text, self.tokens, self.first, self.last = "", 0, None, None
        for line in response:
            if line.startswith(b"data: {"):
                self._take(json.loads(line[len(b"data: "):]))
        connection.close()
        if self.tokens == 0 or self.first is None:
            raise RuntimeError("an answer without usage or text")

    def _take(self, event):
        if "error" in event:
            raise RuntimeError(f"an answer failed: {event['error']}")
        for choice in event.get("choices", []):
            piece = choice.get("delta", {}).get("content")
            if piece:
                self.first = self.first or time.monotonic()
                self.last = time.monotonic()
                self.text += piece
        if event.get("usage"):
            self.tokens = event["usage"]["completion_tokens"]


class Comparison:
    def __init__(self, arguments, samples, prompts):
        self.arguments = arguments
        self.samples = samples
        self.prompts = prompts
        self.kv_memory = KV_TOKENS * token_bytes(arguments.model_file)
        self.answers = {}  # (what, prompt) -> text, of whoever answered first
        self.compared, self.different = 0, []

    def server(self, mode):
        return plumb_server(self.arguments.model_file, self.arguments.threads, "--kv-memory",
                            self.kv_memory, "--speculation", mode)

    def go(self):
        rounds = 1 if self.arguments.quick else self.arguments.rounds
        for number in range(rounds):
            for mode in (OFF, self.arguments.speculation):
                say(f"round {number + 1} of {rounds}, speculation {mode}")
                with self.server(mode) as server:
                    model = served_model(server.port)
                    self._warm_up(server.port, model)
                    self._one_stream(server.port, model, mode, number)
                    self._sixteen(server.port, model, mode, number)

    def _warm_up(self, port, model):
        """Afterwards the prompts' pages are cached, and the server knows what its steps cost."""
        for prompt in self.prompts.values():
            Stream(port, model, prompt, WARM_UP_TOKENS)

    def _one_stream(self, port, model, mode, number):
        tokens = seconds = 0
        for name, prompt in self.prompts.items():
            answer = Stream(port, model, prompt, self.arguments.answer_tokens)
            self._same("batch-1", name, mode, answer.text)
            if answer.tokens < 2 or answer.last <= answer.first:
                raise RuntimeError(f"{name}: the answer has {answer.tokens} tokens")
            took = answer.last - answer.first
            self.samples.add(f"batch-1/{name}", mode, number, (answer.tokens - 1) / took,
                             "tokens/s")
            tokens += answer.tokens - 1
            seconds += took
        self.samples.add("batch-1", mode, number, tokens / seconds, "tokens/s")

    def _sixteen(self, port, model, mode, number):
        names, answers = list(self.prompts), []

        def work(client):
            name = names[client % len(names)]
            for _ in range(2):
                answers.append((name, Stream(port, model, self.prompts[name],
                                             self.arguments.cut_tokens)))

        seconds = at_once(CLIENTS, work)
        for name, answer in answers:
            self._same("batch-16", name, mode, answer.text)
            if answer.tokens != self.arguments.cut_tokens:
                say(f"{name}: only {answer.tokens} tokens; the batch was not full to the end")
        tokens = sum(answer.tokens for _, answer in answers)
        self.samples.add("batch-16", mode, number, tokens / seconds, "tokens/s")

    def _same(self, what, name, mode, text):
        expected = self.answers.setdefault((what, name), text)
        self.compared += 1
        if text != expected:
            self.different.append(f"{what} {name} ({mode})")

    def report(self):
        mode, good = self.arguments.speculation, True
        for what in ("batch-1", "batch-16"):
            ours, plain = self.samples.median(what, mode), self.samples.median(what, OFF)
            name = f"speculation-{what}"
            if not ours or not plain:
                good = self.samples.ratio(name, None, GOALS[name], "not measured") and good
                continue
            good = self.samples.ratio(name, ours / plain, GOALS[name],
                                      f"{mode} {ours:.4g}, off {plain:.4g} tokens/s") and good
        for name in self.prompts:
            ours = self.samples.median(f"batch-1/{name}", mode)
            plain = self.samples.median(f"batch-1/{name}", OFF)
            if ours and plain:
                say(f"  {name}: {ours / plain:.2f}")
        same = self.compared > 0 and not self.different
        remark = f"{self.compared} compared" if same else ", ".join(self.different[:5])
        name = "speculation-same-answers"
        return self.samples.ratio(name, 1.0 if same else 0.0, GOALS[name], remark) and good


def parse_arguments():
    parser = argparse.ArgumentParser(prog="speculation.sh")
    add_common_options(parser)
    parser.add_argument("--model", default="large", metavar="small|large|FILE",
                        help="Qwen2.5-Coder 0.5B or 1.5B, or any model with a chat template")
    parser.add_argument("--speculation", default="auto", metavar="MODE",
                        help="as of plumb serve: ngram, draft:MODEL, auto (default)")
    arguments = parser.parse_args()
    if arguments.speculation == OFF:
        parser.error("--speculation off is what the other one is compared with")
    named = {"small": os.environ.get("QWEN_05B_GGUF"), "large": os.environ.get("QWEN_15B_GGUF")}
    arguments.model_file = named.get(arguments.model) or arguments.model
    arguments.answer_tokens = 64 if arguments.quick else ANSWER_TOKENS_MAX
    arguments.cut_tokens = 16 if arguments.quick else CUT_TOKENS
    return arguments


def main():
    arguments = parse_arguments()
    files = sorted(Path(os.environ["SPEED_PROMPTS"]).glob("*.txt"))
    prompts = {file.stem: file.read_text(encoding="utf-8")
               for file in (files[:2] if arguments.quick else files)}
    about = describe(arguments.model_file, arguments.threads)
    about["speculation"] = arguments.speculation
    samples = Samples(csv_path(arguments, about, "speculation"), about)
    comparison = Comparison(arguments, samples, prompts)
    try:
        comparison.go()
    except (RuntimeError, OSError, http.client.HTTPException) as error:
        say(str(error))
    return 0 if comparison.report() else 1


if __name__ == "__main__":
    sys.exit(main())
