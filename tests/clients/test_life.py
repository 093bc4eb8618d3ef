"""The life of the process.

A port in use, SIGTERM with running streams, kill -9 and start again."""

import json
import signal
import subprocess
import threading
import time

import openai

from conftest import KEY
from server import BINARY, HOST, MODEL, Server, wait_until

STORY = [{"role": "user", "content": "Tell me a long story about a lighthouse."}]


def test_port_in_use_is_said(server):
    command = [BINARY, "serve", "--model", MODEL, "--host", HOST, "--port", str(server.port)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert second.returncode != 0
    assert "--port" in second.stderr and str(server.port) in second.stderr
    assert "in use" in second.stderr
    assert server.status("/ready") == 200


def test_other_hosts_need_a_key():
    command = [BINARY, "serve", "--model", MODEL, "--host", "0.0.0.0", "--port", "0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "--api-key" in refused.stderr


def test_sigterm_finishes_streams_and_refuses_new_ones():
    with Server() as server:
        client = openai.OpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0)
        streams = [
            client.chat.completions.create(
                model=MODEL, messages=STORY, max_tokens=100, temperature=0, stream=True,
                extra_body={"ignore_eos": True}, stream_options={"include_usage": True},
            )
            for _ in range(4)
        ]
        firsts = [next(stream) for stream in streams]
        assert all(first.choices[0].delta.role == "assistant" for first in firsts)
        server.terminate()
        wait_until(lambda: server.status("/ready") == 503, 10, "readiness turns")
        assert server.status("/health") == 200
        body = {"model": MODEL, "messages": STORY}
        status, headers, answer = server.chat(body)
        assert status == 503
        assert int(headers["Retry-After"]) >= 1
        assert answer["error"]["type"] == "server_error"
        for stream in streams:
            chunks = list(stream)
            assert chunks[-1].usage.completion_tokens == 100
            assert chunks[-2].choices[0].finish_reason == "length"
        assert server.process.wait(timeout=30) == 0, server.output()


def test_what_the_drain_cuts_ends_with_an_error():
    long = {"model": MODEL, "messages": STORY, "max_tokens": 8000, "ignore_eos": True}
    with Server("--drain-seconds", "0") as server:
        answers = []
        whole = threading.Thread(target=lambda: answers.append(server.chat(long)))
        whole.start()
        stream = openai.OpenAI(base_url=server.url + "/v1", api_key=KEY,
                               max_retries=0).chat.completions.create(
            model=MODEL, messages=STORY, max_tokens=8000, stream=True,
            extra_body={"ignore_eos": True})
        next(stream)
        wait_until(lambda: server.metric("plumb_requests_running") == 2, 30, "both run")
        server.terminate()
        try:
            list(stream)
            assert False, "a cut stream must not end as if it were whole"
        except openai.APIError as error:
            assert "stopping" in str(error)
        whole.join()
        status, headers, answer = answers[0]
        assert status == 503 and int(headers["Retry-After"]) >= 1
        assert answer["error"]["code"] == "server_stopping"
        assert server.process.wait(timeout=30) == 0, server.output()


def test_a_context_too_small_for_anything_is_refused():
    command = [BINARY, "serve", "--model", MODEL, "--port", "0", "--context", "4"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 2
    assert "--context" in refused.stderr


def test_idle_server_stops_at_once():
    with Server() as server:
        start = time.monotonic()
        server.terminate()
        assert server.process.wait(timeout=10) == 0, server.output()
        assert time.monotonic() - start < 5


def test_kill_and_restart_on_the_same_port():
    body = {"model": MODEL, "messages": STORY, "max_tokens": 12, "seed": 5, "temperature": 0.7}
    with Server() as server:
        port = server.port
        status, _, before = server.chat(body)
        assert status == 200
        running = server.connect()
        raw = json.dumps(body | {"stream": True, "max_tokens": 500, "ignore_eos": True}).encode()
        running.sendall(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(raw) + raw
        )
        running.recv(1)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        running.close()
    with Server(port=port) as server:
        status, _, after = server.chat(body)
        assert status == 200
        assert after["choices"] == before["choices"]
        assert after["system_fingerprint"] == before["system_fingerprint"]
