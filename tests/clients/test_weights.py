"""Weights are replaced while the server runs: answers, fingerprints and streams under way, and who
may do it. And what a rollout says of its weights is what a server says."""

import json
import subprocess

import openai
import pytest

from server import BINARY, MODEL, Server, free_port

ADMIN_KEY = "an-operators-key"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "Name three rivers."}],
        "temperature": 0, "max_tokens": 24}


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory):
    """The model again, its weights rounded otherwise."""
    path = tmp_path_factory.mktemp("weights") / "other.gguf"
    subprocess.run([BINARY, "model", "quantize", "--model", MODEL, "--type", "Q8_0",
                    "--requantize", "--output", str(path)], check=True, capture_output=True)
    return str(path)


class AdminServer(Server):
    def __init__(self):
        self.admin_port = free_port()
        super().__init__("--admin-port", str(self.admin_port),
                         environment={"PLUMB_ADMIN_KEY": ADMIN_KEY})

    def admin(self, method, body=None, key=ADMIN_KEY):
        port, self.port = self.port, self.admin_port
        try:
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            raw = None if body is None else json.dumps(body).encode()
            status, _, answer = self.request(method, "/admin/weights", raw, headers)
            return status, json.loads(answer)
        finally:
            self.port = port


def ask(server):
    status, _, answer = server.chat(BODY)
    assert status == 200, answer
    return answer["choices"][0]["message"]["content"], answer["system_fingerprint"]


def test_other_weights_answer_from_then_on(other_weights):
    with Server("--name", MODEL, model=other_weights) as server:
        expected, expected_fingerprint = ask(server)
    with AdminServer() as server:
        first, first_fingerprint = ask(server)
        assert first_fingerprint != expected_fingerprint
        status, answer = server.admin("POST", {"model": other_weights})
        assert (status, answer["weights_version"]) == (200, 2)
        assert answer["system_fingerprint"] == expected_fingerprint
        assert ask(server) == (expected, expected_fingerprint)
        assert server.admin("GET")[1]["model"] == other_weights
        assert server.admin("POST", {"model": MODEL})[0] == 200
        assert ask(server) == (first, first_fingerprint)


def test_a_stream_ends_on_the_weights_it_began_with(other_weights):
    with AdminServer() as server:
        whole, fingerprint = ask(server)
        long = {**BODY, "max_tokens": 400, "ignore_eos": True}
        with openai.OpenAI(base_url=server.url + "/v1", api_key="unused", max_retries=0) as sdk:
            stream = sdk.chat.completions.create(
                stream=True, extra_body={"ignore_eos": True},
                **{key: value for key, value in long.items() if key != "ignore_eos"})
            chunks = [next(stream), next(stream)]
            status, _ = server.admin("POST", {"model": other_weights})
            assert status == 200
            chunks += list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert {chunk.system_fingerprint for chunk in chunks} == {fingerprint}
        assert text.startswith(whole[:40])
        assert ask(server)[1] != fingerprint


def test_only_operators_and_only_weights_that_fit(other_weights):
    with AdminServer() as server:
        _, fingerprint = ask(server)
        assert server.admin("POST", {"model": other_weights}, key="a-wrong-key")[0] == 401
        assert server.request("POST", "/admin/weights", b"{}")[0] == 404, "not on the callers' port"
        assert server.admin("POST", {"model": "/no/such/file"})[0] == 404
        assert server.admin("POST", {"model": BINARY})[0] == 400
        assert server.admin("POST", {})[0] == 400
        assert ask(server)[1] == fingerprint
    with pytest.raises(AssertionError, match="--admin-key"):
        with Server("--admin-port", str(free_port())):
            pass


def test_a_rollout_names_the_weights_that_a_server_names(tmp_path):
    prompts, rollouts = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    line = {"messages": BODY["messages"], "max_tokens": 12}
    prompts.write_text(json.dumps(line) + "\n")
    subprocess.run([BINARY, "rollout", "--model", MODEL, "--input", str(prompts), "--output",
                    str(rollouts), "--samples", "3", "--seed", "7"], check=True,
                   capture_output=True)
    answer = json.loads(rollouts.read_text())
    sample = answer["samples"][2]
    assert len(answer["samples"]) == 3
    assert len(sample["token_ids"]) == len(sample["logprobs"]) <= 12
    with Server() as server:
        status, _, served = server.chat({**BODY, "temperature": 1, "max_tokens": 12, "n": 3,
                                         "seed": sample["seed"], "logprobs": True})
    assert status == 200
    choice = served["choices"][sample["seed_index"]]
    assert choice["message"]["content"] == sample["text"]
    assert [entry["logprob"] for entry in choice["logprobs"]["content"]] == sample["logprobs"]
    assert served["system_fingerprint"] == answer["weights"]["system_fingerprint"]
