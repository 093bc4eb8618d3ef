"""Limits of a key, as the official SDKs live with them.

They wait as Retry-After says and ask again by themselves; a request that is sent again with its
Idempotency-Key is answered once."""

import concurrent.futures
import datetime
import time

import anthropic
import openai
import pytest

from server import MODEL, Server, wait_until

KEYS = {"few": "sk-few-requests-0", "tokens": "sk-few-tokens-00", "one": "sk-one-at-once-0"}
# One request each ten seconds, after a burst of six.
LIMITS = """
[few]
requests-per-minute = 6
[tokens]
tokens-per-minute = 2000
[one]
concurrent-requests = 1
"""
HELLO = [{"role": "user", "content": "Say hello."}]
WAIT_SECONDS_MIN = 5
ASK = {"model": MODEL, "messages": HELLO, "max_tokens": 4}


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    (folder / "limits.toml").write_text(LIMITS)
    (folder / "keys.txt").write_text("".join(f"{name} {key}\n" for name, key in KEYS.items()))
    with Server("--limits", str(folder / "limits.toml"),
                "--api-key-file", str(folder / "keys.txt")) as server:
        yield server


def openai_of(server, name, **options):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=KEYS[name], **options)


def anthropic_of(server, name, **options):
    return anthropic.Anthropic(base_url=server.url, api_key=KEYS[name], **options)


def use_up(server, name):
    """Asks what costs no time, until the next request is some seconds away."""
    headers = {"Content-Type": "application/json", "x-api-key": KEYS[name]}

    def is_used_up():
        status, got, _ = server.request("POST", "/v1/tokenize", b'{"prompt": "a"}', headers)
        assert status in (200, 429)
        return status == 429 and int(got["Retry-After"]) >= WAIT_SECONDS_MIN
    wait_until(is_used_up, 60, "the key's requests are used up")


def sdks(server, name, **options):
    return [openai_of(server, name, **options).chat.completions,
            anthropic_of(server, name, **options).messages]


def test_refusals_are_rate_limit_errors_with_headers(limited):
    for error, api in zip((openai.RateLimitError, anthropic.RateLimitError),
                          sdks(limited, "few", max_retries=0)):
        use_up(limited, "few")
        with pytest.raises(error) as caught:
            api.create(**ASK)
        headers = caught.value.response.headers
        assert 1 <= int(headers["retry-after"]) <= 10
        assert caught.value.request_id
        if error is openai.RateLimitError:
            assert caught.value.code == "rate_limit_exceeded"
            assert headers["x-ratelimit-remaining-requests"] == "0"
            continue
        assert headers["anthropic-ratelimit-requests-limit"] == "6"
        reset = datetime.datetime.fromisoformat(headers["anthropic-ratelimit-requests-reset"])
        left = reset - datetime.datetime.now(datetime.timezone.utc)
        assert datetime.timedelta(0) < left <= datetime.timedelta(seconds=61)


def test_sdks_wait_as_long_as_they_are_told_and_ask_again(limited):
    for api in sdks(limited, "few"):
        use_up(limited, "few")
        started = time.monotonic()
        raw = api.with_raw_response.create(**ASK)
        assert raw.status_code == 200
        assert raw.retries_taken >= 1
        # Without being told, they would wait half a second.
        assert time.monotonic() - started >= WAIT_SECONDS_MIN - 1


def test_what_is_left_is_on_answers_and_streams(limited):
    client = openai_of(limited, "tokens", max_retries=0)
    raw = client.chat.completions.with_raw_response.create(**ASK)
    usage = raw.parse().usage
    reserved = usage.prompt_tokens + ASK["max_tokens"]
    assert int(raw.headers["x-ratelimit-limit-tokens"]) == 2000
    assert int(raw.headers["x-ratelimit-remaining-tokens"]) == 2000 - reserved
    stream = client.chat.completions.with_raw_response.create(**ASK, stream=True)
    left = int(stream.headers["x-ratelimit-remaining-tokens"])
    assert 2000 - usage.total_tokens - reserved <= left <= 2000 - reserved
    assert list(stream.parse())[-1].choices[0].finish_reason
    vectors = client.embeddings.with_raw_response.create(model=MODEL, input=["one", "two"])
    assert int(vectors.headers["x-ratelimit-remaining-tokens"]) < 2000


def test_a_length_beyond_the_keys_tokens_ends_with_length(limited):
    client = openai_of(limited, "tokens")
    answer = client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=32000, n=8, extra_body={"ignore_eos": True})
    assert all(choice.finish_reason == "length" for choice in answer.choices)
    assert 1900 < answer.usage.total_tokens <= 2000


def test_a_second_at_once_waits_for_its_place(limited):
    client = openai_of(limited, "one", max_retries=5)
    with client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=60, stream=True,
                                        extra_body={"ignore_eos": True}) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError) as caught:
            client.with_options(max_retries=0).chat.completions.create(**ASK)
        assert caught.value.code == "concurrency_limit_exceeded"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            second = pool.submit(client.chat.completions.with_raw_response.create, **ASK)
            for _ in stream:
                pass
            assert second.result().status_code == 200
    embedded = client.with_options(max_retries=0).embeddings.create(model=MODEL, input="one")
    assert len(embedded.data) == 1


# The SDKs send no key of their own; one that is given goes with every try.
def test_a_request_sent_again_is_answered_once(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=10)
    ask = {**ASK, "max_tokens": 40, "temperature": 1,
           "extra_headers": {"Idempotency-Key": "the-same-question"},
           "extra_body": {"ignore_eos": True}}
    generated = server.metric("plumb_completion_tokens_total")
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        tries = [pool.submit(client.chat.completions.with_raw_response.create, **ask)
                 for _ in range(3)]
        answers = [one.result() for one in tries]
    assert len({answer.parse().id for answer in answers}) == 1
    assert sorted(answer.headers.get("idempotent-replayed", "") for answer in answers) == [
        "", "true", "true"]
    assert server.metric("plumb_completion_tokens_total") - generated <= 40


def test_an_answer_that_was_cut_off_comes_again(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0)
    ask = {"model": MODEL, "messages": HELLO, "max_tokens": 400, "temperature": 1, "stream": True,
           "extra_headers": {"Idempotency-Key": "cut-off-and-asked-again"},
           "extra_body": {"ignore_eos": True}}
    with client.chat.completions.create(**ask) as stream:
        pieces = [chunk.choices[0].delta.content or "" for chunk, _ in zip(stream, range(5))]
    with client.with_options(max_retries=5).chat.completions.create(**ask) as again:
        text = "".join(chunk.choices[0].delta.content or "" for chunk, _ in zip(again, range(20)))
    assert "".join(pieces) and text.startswith("".join(pieces))
