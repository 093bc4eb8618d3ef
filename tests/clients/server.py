"""A plumb server as a child process.

Start, wait until ready, look at its metrics, stop, kill."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

BINARY = os.environ["PLUMB_BINARY"]
MODEL = os.environ.get("PLUMB_CLIENTS_MODEL", "smollm2-135m")
START_SECONDS_MAX = 120
HOST = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds: float, what: str, pause: float = 0.01):
    """Polls until `condition()` is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        threading.Event().wait(pause)


class Server:
    def __init__(self, *flags: str, port: int | None = None, environment: dict | None = None,
                 model: str = MODEL):
        self.port = port or free_port()
        self.log = tempfile.NamedTemporaryFile("w+", prefix="plumb-clients-", suffix=".log")
        command = [BINARY, "serve", "--model", model, "--host", HOST, "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, *flags],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )

    def __enter__(self) -> "Server":
        wait_until(self.ready_or_dead, START_SECONDS_MAX, "the server is ready", 0.05)
        assert self.process.poll() is None, f"the server ended:\n{self.output()}"
        return self

    def __exit__(self, *_) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def ready_or_dead(self) -> bool:
        return self.process.poll() is not None or self.status("/ready") == 200

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def output(self) -> str:
        return pathlib.Path(self.log.name).read_text()

    def request(self, method: str, path: str, body: bytes | None = None,
                headers: dict | None = None):
        """One plain request: (status, headers, body)."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=120)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def chat(self, body: bytes | dict, headers: dict | None = None):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        status, got, answer = self.request("POST", "/v1/chat/completions", raw, headers)
        return status, got, json.loads(answer)

    def status(self, path: str) -> int:
        """0 when nobody listens."""
        try:
            return self.request("GET", path)[0]
        except OSError:
            return 0

    def metric(self, name: str) -> float:
        """The value of an unlabelled metric."""
        _, _, text = self.request("GET", "/metrics")
        for line in text.decode().splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise AssertionError(f"no metric {name}")

    def pages_used(self) -> float:
        return self.metric("plumb_pages_used")

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=120)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)
