"""Empty lines before whole answers that take long.

SDKs read the answer behind them, and find an error in it that comes too late for a status."""

import anthropic
import openai
import pytest

from conftest import KEY
from server import MODEL, Server

STORY = [{"role": "user", "content": "Tell me a long story about a lighthouse."}]
# Stories of which none ends by itself, so many that they take seconds on any machine.
SLOW = {"ignore_eos": True}


@pytest.fixture(scope="module")
def slow():
    with Server("--keep-alive-whole", "1") as server:
        yield server


def test_openai_reads_an_answer_behind_empty_lines(slow):
    client = openai.OpenAI(base_url=slow.url + "/v1", api_key=KEY, max_retries=0)
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=STORY, max_tokens=1000, n=8, extra_body=SLOW)
    assert raw.http_response.text.startswith("\n")
    assert raw.headers["content-type"] == "application/json"
    completion = raw.parse()
    assert completion.usage.completion_tokens == 8000
    assert [choice.finish_reason for choice in completion.choices] == ["length"] * 8


def test_openai_shows_a_late_error_in_the_body(slow):
    client = openai.OpenAI(base_url=slow.url + "/v1", api_key=KEY, max_retries=0)
    body = {**SLOW, "deadline_ms": 3500}
    completion = client.chat.completions.create(
        model=MODEL, messages=STORY, max_tokens=1500, n=8, extra_body=body)
    assert completion.choices is None
    assert completion.error["code"] == "deadline_exceeded"


def test_openai_raises_an_error_that_comes_in_time(slow):
    client = openai.OpenAI(base_url=slow.url + "/v1", api_key=KEY, max_retries=0)
    body = {**SLOW, "deadline_ms": 200}
    with pytest.raises(openai.InternalServerError) as raised:
        client.chat.completions.create(
            model=MODEL, messages=STORY, max_tokens=1500, n=8, extra_body=body)
    assert raised.value.status_code == 504


def test_anthropic_reads_an_answer_behind_empty_lines(slow):
    client = anthropic.Anthropic(base_url=slow.url, api_key=KEY, max_retries=0)
    raw = client.messages.with_raw_response.create(
        model=MODEL, messages=STORY, max_tokens=800, extra_body=SLOW)
    assert raw.http_response.text.startswith("\n")
    message = raw.parse()
    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 800


def test_anthropic_shows_a_late_error_in_the_body(slow):
    client = anthropic.Anthropic(base_url=slow.url, api_key=KEY, max_retries=0)
    body = {**SLOW, "deadline_ms": 3500}
    message = client.messages.create(
        model=MODEL, messages=STORY, max_tokens=1900, extra_body=body)
    assert message.type == "error"
