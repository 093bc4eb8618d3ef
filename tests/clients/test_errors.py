"""Errors as the SDK's typed exceptions, and hostile bodies past the SDK.

The server lives on, and its words give nothing away."""

import json
import os

import openai
import pytest

from conftest import KEY
from server import MODEL, Server

HELLO = [{"role": "user", "content": "hi"}]
PLAIN = {"model": MODEL, "messages": HELLO, "max_tokens": 4}


def check_shape(body: dict) -> dict:
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    for leak in ("0x", "/src/", os.path.expanduser("~"), os.getcwd(), ".cc", "terminate", "std::"):
        assert leak not in error["message"], error
    return error


@pytest.mark.parametrize(
    "options, param",
    [
        ({"temperature": 2.01}, "temperature"),
        ({"n": 1 << 31}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1 << 63}, "max_tokens"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"seed": 1 << 63}, "seed"),
        ({"stop": ["x"] * 17}, "stop"),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {
            "type": "array", "uniqueItems": True}}}}, "response_format"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
        ({"extra_body": {"guided_json": {}}}, "guided_json"),
        ({"extra_body": {"top_k": -1}}, "top_k"),
    ],
)
def test_bad_request(client, options, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=HELLO, **options)
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_unknown_model(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-5", messages=HELLO)
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt-5")


def test_prompt_beyond_the_context(client):
    messages = [{"role": "user", "content": "word " * 20000}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=messages)
    assert caught.value.code == "context_length_exceeded"
    assert sum(part.strip("(),").isdigit() for part in caught.value.message.split()) >= 3


def test_wrong_and_missing_keys():
    key = "correct-horse-battery-staple"
    with Server(environment={"PLUMB_API_KEY": key}) as server:
        for bad in ("wrong-horse-battery-staple", key[:-1], key + "x"):
            with openai.OpenAI(base_url=server.url + "/v1", api_key=bad, max_retries=0) as client:
                with pytest.raises(openai.AuthenticationError):
                    client.models.list()
                with pytest.raises(openai.AuthenticationError):
                    client.chat.completions.create(model=MODEL, messages=HELLO)
        with openai.OpenAI(base_url=server.url + "/v1", api_key=key) as client:
            assert client.models.list().data
            assert client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=2).id
        assert server.status("/metrics") == 401
        assert server.status("/ready") == 200


HOSTILE = ["-5", "2147483648", "9223372036854775808", "1e18", "1e400", "NaN", "Infinity",
           "-Infinity", '"1"', "[]", "{}", "true"]


@pytest.mark.parametrize("field", ["temperature", "top_p", "max_tokens", "n", "seed", "top_k"])
@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_numbers(server, field, value):
    if field == "seed" and value in ("-5", "2147483648"):
        pytest.skip("a valid seed")
    body = json.dumps({key: PLAIN[key] for key in PLAIN if key != field})[:-1]
    status, _, answer = server.chat(f'{body}, "{field}": {value}}}'.encode())
    assert status == 400, answer
    assert check_shape(answer)["param"] == field


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"model": "\xc3\x28"}',
        b'{"model": "' + MODEL.encode() + b'", "messages": ' + b"[" * 100000,
        b'{"a":' * 50000,
        b'{"model":"x","model":"y"}',
        b'{"messages":[{"role":"user","content":"\\ud800"}]}',
        b"\x00" * 100,
    ],
)
def test_hostile_json(server, body):
    status, _, answer = server.chat(body)
    assert status == 400
    check_shape(answer)
    assert server.status("/ready") == 200


def test_oversized_body_and_headers(server):
    status, _, answer = server.chat(b'{"model":"' + b"x" * (9 << 20) + b'"}')
    assert status == 413
    check_shape(answer)
    status, _, answer = server.chat(PLAIN, {"X-Large": "x" * 100000})
    assert status == 431
    check_shape(answer)
    assert server.chat(PLAIN)[0] == 200


def test_paths_and_methods(server):
    status, headers, _ = server.request("GET", "/v1/chat/completions")
    assert (status, headers["Allow"]) == (405, "POST")
    assert server.status("/v1/audio/speech") == 404
    assert "Server" not in headers
    text = {"Content-Type": "text/plain"}
    assert server.request("POST", "/v1/chat/completions", b"{}", text)[0] == 415


def test_sdk_key_is_ignored_without_keys(server):
    assert server.chat(PLAIN, {"Authorization": f"Bearer {KEY}"})[0] == 200
