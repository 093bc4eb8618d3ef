"""eval/speed/lib/server.py
A server as a child process: started, waited for, measured, stopped; and a client that sends chat
requests with prompts of exactly N tokens over connections that stay open. Standard library only.
"""
import http.client
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from speed import run

READY_SECONDS_MAX = 600
STOP_SECONDS_MAX = 30
REQUEST_SECONDS_MAX = 600
POLL_SECONDS = 0.003
# Common words, one token each with the space before them; checked against the server.
WORDS = ("time people way water day part sound work place year back thing name sentence man line "
         "boy farm end men land home hand picture air animal house page letter point mother answer "
         "world food country plant school father tree city earth eye head story example life paper "
         "group river car feet book science room friend idea fish mountain horse watch color face "
         "wood list bird body dog family song door product wind ship area half rock order fire "
         "problem piece top bottom king space hour step hold west ground interest table").split()


# So that a script which is ended by a signal still stops the servers that it started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`command` with {port} in it. Use as a context; `startup_seconds` is until it was ready."""

    def __init__(self, command, ready_path):
        self.port = free_port()
        self.command = [str(word).replace("{port}", str(self.port)) for word in command]
        self.ready_path = ready_path
        self.log = tempfile.NamedTemporaryFile(prefix="speed-server-", suffix=".log")
        self.process = None
        self.startup_seconds = None

    def __enter__(self):
        begin = time.monotonic()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=subprocess.STDOUT)
        try:
            self._await_ready(begin)
        except BaseException:  # also a signal: nobody else would stop it
            self.__exit__()
            raise
        self.startup_seconds = time.monotonic() - begin
        return self

    def _await_ready(self, begin):
        while not self._ready():
            if self.process.poll() is not None or time.monotonic() - begin > READY_SECONDS_MAX:
                tail = Path(self.log.name).read_text(errors="replace").splitlines()[-3:]
                raise RuntimeError(f"{self.command[0]} did not get ready: {' | '.join(tail)}")
            time.sleep(POLL_SECONDS)

    def _ready(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", self.ready_path)
            return connection.getresponse().status == 200
        except OSError:
            return False
        except http.client.HTTPException:
            return False
        finally:
            connection.close()

    def memory_bytes(self):
        """The most that was resident so far."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def token_bytes(model):
    """Bytes of keys and values for a token."""
    text = run([os.environ["PLUMB"], "model", "inspect", model, "--json"])
    if text is None:
        sys.exit(f"speed: cannot inspect '{model}'")
    return json.loads(text)["memory"]["token_bytes"]


def plumb_server(model, threads, *options):
    """`plumb serve` on a free port, not started yet."""
    return Server([os.environ["PLUMB"], "serve", "--model", model, "--port", "{port}", "--threads",
                   threads, "--log-level", "error", *options], "/ready")


class Client:
    """One connection. A prompt is a list of words; ask() gives usage and seconds."""

    def __init__(self, port, model):
        self.connection = http.client.HTTPConnection("127.0.0.1", port,
                                                     timeout=REQUEST_SECONDS_MAX)
        self.model = model

    def ask(self, words, max_tokens, more=None):
        body = {"model": self.model, "max_tokens": max_tokens, "temperature": 0,
                "messages": [{"role": "user", "content": "".join(f" {word}" for word in words)}]}
        body.update(more or {})
        data = json.dumps(body).encode()
        begin = time.monotonic()
        self.connection.request("POST", "/v1/chat/completions", data,
                                {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        answer = response.read()
        seconds = time.monotonic() - begin
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {answer[:300]!r}")
        usage = json.loads(answer)["usage"]
        return {"prompt": usage["prompt_tokens"], "output": usage["completion_tokens"],
                "seconds": seconds}


def served_model(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/v1/models")
    name = json.loads(connection.getresponse().read())["data"][0]["id"]
    connection.close()
    return name


class Prompts:
    """Random prompts of exactly N tokens for a server: N less what it adds by itself."""

    def __init__(self, port, model, seed):
        self.random = random.Random(seed)
        client = Client(port, model)
        one = client.ask(WORDS[:1], 1)["prompt"]
        self.extra = one - 1  # a template, or a token at the beginning
        self.words = [word for word in WORDS
                      if client.ask([word, word], 1)["prompt"] == self.extra + 2]
        if len(self.words) < 20:
            raise RuntimeError("hardly any word is one token for this model")

    def of(self, tokens):
        return [self.random.choice(self.words) for _ in range(max(1, tokens - self.extra))]


def at_once(count, work):
    """work(0) to work(count - 1), each on a thread of its own, begun together; the seconds until
    the last has ended. RuntimeError when one of them fails."""
    failures, barrier = [], threading.Barrier(count + 1)

    def begin_together(index):
        barrier.wait()
        try:
            work(index)
        except (RuntimeError, OSError, http.client.HTTPException) as error:
            failures.append(str(error))

    threads = [threading.Thread(target=begin_together, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    barrier.wait()
    begin = time.monotonic()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    if failures:
        raise RuntimeError(f"{len(failures)} clients failed: {failures[0]}")
    return seconds


def throughput(port, model, prompts, load):
    """Output tokens/s of load["clients"] clients that each send load["requests"] requests."""
    outputs = []
    plans = [[prompts.of(load["prompt"]) for _ in range(load["requests"])]
             for _ in range(load["clients"])]

    def work(index):
        client = Client(port, model)
        for words in plans[index]:
            answer = client.ask(words, load["output"], load.get("more"))
            outputs.append(answer["output"])
            if answer["prompt"] != load["prompt"]:
                raise RuntimeError(f"a prompt of {answer['prompt']} tokens")

    seconds = at_once(load["clients"], work)
    return sum(outputs) / seconds, sum(outputs)


def latencies_ms(port, model, prompts_of_words):
    """Of requests with one output token, one after the other on one connection."""
    client = Client(port, model)
    return [1000 * client.ask(words, 1)["seconds"] for words in prompts_of_words]


def p50(values):
    return statistics.median(values)
