"""Anthropic's SDK against the Messages API.

Answers whole and streamed, counts, stop sequences, keys, errors as its typed exceptions."""

import anthropic
import pytest

from server import MODEL, Server

QUESTION = [{"role": "user", "content": "Name the capital of France in one short sentence."}]


@pytest.fixture(scope="module")
def messages(server):
    with anthropic.Anthropic(base_url=server.url, api_key="unused", max_retries=0) as client:
        yield client.messages


# What version 2026-10-21 of the API has taken out of the SDK, and this server keeps.
GREEDY = {"temperature": 0}


def ask(api, **options):
    options = {"max_tokens": 24, "messages": QUESTION, **options}
    options["extra_body"] = {**GREEDY, **options.get("extra_body", {})}
    return api.create(model=MODEL, **options)


def test_whole_answer_has_blocks_reason_and_usage(messages):
    answer = ask(messages)
    assert (answer.type, answer.role, answer.model) == ("message", "assistant", MODEL)
    assert [block.type for block in answer.content] == ["text"]
    assert "Paris" in answer.content[0].text
    assert answer.stop_reason in ("end_turn", "max_tokens")
    assert answer.usage.input_tokens + answer.usage.cache_read_input_tokens > 5
    assert 1 <= answer.usage.output_tokens <= 24
    assert answer._request_id


def test_stream_is_the_whole_answer(messages):
    whole = ask(messages)
    options = {"max_tokens": 24, "messages": QUESTION, "extra_body": GREEDY}
    with messages.stream(model=MODEL, **options) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
        assert stream.request_id
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def test_events_come_in_order(messages):
    events = list(ask(messages, stream=True))
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start" and kinds[1] == "content_block_start"
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert events[0].message.content == []


def test_count_is_what_an_answer_reports(messages):
    cached = {"cache_control": {"type": "ephemeral"}}
    blocks = {"system": [{"type": "text", "text": "Be brief.", **cached}]}
    count = messages.count_tokens(model=MODEL, messages=QUESTION, **blocks).input_tokens
    usage = ask(messages, **blocks).usage
    stored = usage.cache_creation_input_tokens
    assert count == usage.input_tokens + usage.cache_read_input_tokens + stored
    longer = [{"role": "user", "content": QUESTION[0]["content"] + " Please."}]
    assert messages.count_tokens(model=MODEL, messages=longer, **blocks).input_tokens > count


def test_stop_sequence_is_told(messages):
    text = ask(messages).content[0].text
    stop = text.split()[2]
    answer = ask(messages, stop_sequences=[stop])
    assert answer.stop_reason == "stop_sequence"
    assert answer.stop_sequence == stop
    assert text.startswith(answer.content[0].text) and stop not in answer.content[0].text


def test_a_second_turn_reads_from_the_cache(messages):
    first = ask(messages, system="You answer questions. " * 100)
    turns = [*QUESTION, {"role": "assistant", "content": first.content},
             {"role": "user", "content": "And of Italy?"}]
    second = ask(messages, system="You answer questions. " * 100, messages=turns)
    assert second.usage.cache_read_input_tokens > 0
    assert second.usage.cache_creation_input_tokens == 0


def test_a_marked_prompt_is_counted_as_stored_then_as_read(messages):
    hour = {"type": "ephemeral", "ttl": "1h"}
    system = [{"type": "text", "text": "You know all capitals. " * 100, "cache_control": hour}]
    first = ask(messages, system=system).usage
    assert first.cache_creation_input_tokens > 0
    assert first.cache_creation.ephemeral_1h_input_tokens == first.cache_creation_input_tokens
    assert first.cache_creation.ephemeral_5m_input_tokens == 0
    turns = [{"role": "user", "content": "What is the capital of Italy?"}]
    second = ask(messages, system=system, messages=turns).usage
    assert second.cache_read_input_tokens >= first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0


def test_a_model_without_thoughts_takes_a_budget(messages):
    answer = ask(messages, max_tokens=2000, stop_sequences=["."],
                 thinking={"type": "enabled", "budget_tokens": 1024})
    assert {block.type for block in answer.content} == {"text"}


@pytest.mark.parametrize(
    "options, words",
    [
        ({"extra_body": {"temperature": 1.5}}, "temperature"),
        ({"extra_body": {"max_tokens": 1 << 40}}, "max_tokens"),
        ({"messages": []}, "messages"),
        ({"messages": [*QUESTION, {"role": "assistant", "content": "It is"}]}, "prefill"),
        ({"tools": [{"name": "f", "input_schema": {"type": "object"}}]}, "tools"),
        ({"messages": [{"role": "user", "content": "word " * 20000}]}, "prompt is too long"),
        ({"extra_headers": {"anthropic-version": "latest"}}, "anthropic-version"),
        ({"extra_body": {"magic": 1}}, "magic"),
    ],
)
def test_bad_request(messages, options, words):
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(messages, **options)
    body = caught.value.body
    assert set(body) == {"type", "error", "request_id"}
    assert body["error"]["type"] == "invalid_request_error"
    assert words in body["error"]["message"]
    assert caught.value.request_id == body["request_id"]


def test_unknown_model(messages):
    with pytest.raises(anthropic.NotFoundError) as caught:
        messages.create(model="claude-opus-5", max_tokens=9, messages=QUESTION)
    assert caught.value.body["error"]["type"] == "not_found_error"


def test_keys_and_a_second_name():
    key = "correct-horse-battery-staple"
    with Server("--name", "claude-sonnet-9", environment={"PLUMB_API_KEY": key}) as server:
        with anthropic.Anthropic(base_url=server.url, api_key=key) as client:
            answer = client.messages.create(
                model="claude-sonnet-9", max_tokens=2, messages=QUESTION)
            assert answer.model == "claude-sonnet-9"
        with anthropic.Anthropic(base_url=server.url, auth_token=key) as client:
            assert client.messages.count_tokens(model=MODEL, messages=QUESTION).input_tokens > 5
        with anthropic.Anthropic(base_url=server.url, api_key=key + "x", max_retries=0) as client:
            with pytest.raises(anthropic.AuthenticationError) as caught:
                client.messages.create(model=MODEL, max_tokens=2, messages=QUESTION)
            assert caught.value.body["error"]["type"] == "authentication_error"
