"""eval/speed/lib/streams.py
Answers that are streamed while something else happens: when each token came, at the client. A
stream is read by a thread of its own and is ended by closing its connection. Standard library only.
"""
import http.client
import json
import math
import threading
import time

from server import REQUEST_SECONDS_MAX


class Stream:
    """One chat request with a long answer. `times`: when tokens came, by time.monotonic()."""

    def __init__(self, port, model, words, max_tokens):
        self.times = []
        self.failure = ""
        self.closing = False
        self.connection = http.client.HTTPConnection("127.0.0.1", port,
                                                     timeout=REQUEST_SECONDS_MAX)
        # With log-probabilities every token shows, also one that completes no character.
        body = {"model": model, "max_tokens": max_tokens, "temperature": 0, "stream": True,
                "ignore_eos": True, "logprobs": True, "speculation": "off",
                "messages": [{"role": "user", "content": "".join(f" {w}" for w in words)}]}
        self.connection.request("POST", "/v1/chat/completions", json.dumps(body).encode(),
                                {"Content-Type": "application/json"})
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            response = self.connection.getresponse()
            if response.status != 200:
                raise RuntimeError(f"status {response.status}: {response.read()[:300]!r}")
            for line in response:
                now = time.monotonic()
                if line.startswith(b"data: {"):
                    self._take(json.loads(line[6:]), now)
        except (RuntimeError, OSError, ValueError, AttributeError,
                http.client.HTTPException) as error:
            # AttributeError: how http.client ends when its socket is closed under it.
            if not self.closing:
                self.failure = str(error)

    def _take(self, chunk, now):
        if "error" in chunk:
            raise RuntimeError(str(chunk["error"]))
        for choice in chunk["choices"]:
            tokens = (choice.get("logprobs") or {}).get("content") or []
            self.times.extend([now] * len(tokens))

    def await_tokens(self, count):
        while len(self.times) < count:
            if self.failure or not self.thread.is_alive():
                raise RuntimeError(f"a stream ended early: {self.failure or 'complete'}")
            time.sleep(0.002)

    def gaps_ms(self, begin, end):
        """Between tokens, of those gaps that lie within [begin, end] or overlap it."""
        times = list(self.times)
        return [1000 * (b - a) for a, b in zip(times, times[1:]) if b >= begin and a <= end]

    def close(self):
        self.closing = True
        if self.connection.sock is not None:
            self.connection.sock.close()
        self.connection.close()
        self.thread.join(10)


class Streams:
    """`count` streams side by side; use as a context, which begins when all have begun."""

    def __init__(self, server, prompts, shape):
        self.server, self.prompts, self.shape = server, prompts, shape
        self.streams = []

    def __enter__(self):
        port, model = self.server
        try:
            for _ in range(self.shape["count"]):
                words = self.prompts.of(self.shape["prompt"])
                self.streams.append(Stream(port, model, words, self.shape["output"]))
            for stream in self.streams:
                stream.await_tokens(2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def gaps_ms(self, begin, end):
        return [gap for stream in self.streams for gap in stream.gaps_ms(begin, end)]

    def check(self):
        for stream in self.streams:
            if stream.failure:
                raise RuntimeError(f"a stream failed: {stream.failure}")

    def __exit__(self, *_):
        for stream in self.streams:
            stream.close()


def percentile(values, share):
    """The smallest value that at least `share` of all are not above."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
