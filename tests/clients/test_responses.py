"""The Responses API through the official SDK: created, streamed, parsed, kept and gone on from.

The model calls no tools; calls of tools are shown over the wire (tests/wire/responses_*.talk)."""

import openai
import pydantic
import pytest

from server import MODEL, Server

SAY = {"model": MODEL, "input": "Say a word.", "max_output_tokens": 8, "temperature": 0}


def test_create_and_stream_say_the_same(client):
    whole = client.responses.create(**SAY)
    assert whole.object == "response" and whole.id.startswith("resp_")
    assert whole.status in ("completed", "incomplete")
    assert whole.output_text
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens
    assert whole.usage.output_tokens <= 8

    deltas, types = [], []
    for number, event in enumerate(client.responses.create(**SAY, stream=True)):
        assert event.sequence_number == number
        types.append(event.type)
        if event.type == "response.output_text.delta":
            deltas.append(event.delta)
    assert types[:2] == ["response.created", "response.in_progress"]
    assert types[-1] == "response." + whole.status
    assert "".join(deltas) == whole.output_text


def test_stream_helper_accumulates(client):
    with client.responses.stream(**SAY) as stream:
        snapshots = [e.snapshot for e in stream if e.type == "response.output_text.delta"]
        done = stream.get_final_response() if not snapshots else None
    assert snapshots or done
    assert snapshots == sorted(snapshots, key=len)


def test_a_conversation_goes_on(client):
    first = client.responses.create(**SAY)
    second = client.responses.create(**{**SAY, "input": "Another."},
                                     previous_response_id=first.id)
    assert second.previous_response_id == first.id
    by_items = client.responses.create(**{**SAY, "input": [
        {"role": "user", "content": "Say a word."},
        *[item.model_dump(exclude_unset=True) for item in first.output],
        {"role": "user", "content": "Another."},
    ]})
    assert by_items.output_text == second.output_text
    assert by_items.usage.input_tokens == second.usage.input_tokens
    items = client.responses.input_items.list(second.id, order="asc", limit=2)
    assert [item.role for item in items] == ["user", "assistant", "user"]  # over two pages


def test_retrieve_and_delete(client):
    made = client.responses.create(**SAY, metadata={"a": "b"})
    read = client.responses.retrieve(made.id)
    assert read.output_text == made.output_text and read.metadata == {"a": "b"}
    client.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    unkept = client.responses.create(**SAY, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(unkept.id)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**SAY, previous_response_id=unkept.id)
    assert caught.value.code == "previous_response_not_found"


def test_background_answers_come_later(client):
    made = client.responses.create(**SAY, background=True)
    assert made.status == "queued"
    while (now := client.responses.retrieve(made.id)).status == "queued":
        pass
    assert now.status in ("completed", "incomplete")
    assert now.output_text == client.responses.create(**SAY).output_text
    long = client.responses.create(model=MODEL, input="Count to a thousand.", background=True,
                                   max_output_tokens=4000, extra_body={"ignore_eos": True})
    assert client.responses.cancel(long.id).status == "cancelled"
    assert client.responses.retrieve(long.id).status == "cancelled"


class Place(pydantic.BaseModel):
    name: str
    inhabitants: int


def test_parse_gives_the_schemas_type(client):
    answer = client.responses.parse(model=MODEL, input="Rome", text_format=Place, temperature=0,
                                    max_output_tokens=200)
    if answer.status == "completed":
        assert isinstance(answer.output_parsed, Place)
    with client.responses.stream(model=MODEL, input="Rome", text_format=Place, temperature=0,
                                 max_output_tokens=200) as stream:
        texts = [event.text for event in stream if event.type == "response.output_text.done"]
    assert texts == [answer.output_text]


def test_logprobs_are_as_many_as_tokens(client):
    answer = client.responses.create(**SAY, include=["message.output_text.logprobs"],
                                     top_logprobs=2)
    logprobs = answer.output[0].content[0].logprobs
    assert len(logprobs) == answer.usage.output_tokens
    assert all(len(entry.top_logprobs) == 2 for entry in logprobs)


def test_input_tokens(client):
    counted = client.responses.input_tokens.count(model=MODEL, input="Say a word.")
    assert counted.input_tokens == client.responses.create(**SAY).usage.input_tokens


@pytest.mark.parametrize("options, param", [
    ({"temperature": 2.01}, "temperature"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"tools": [{"type": "function", "name": "f", "parameters": {}, "strict": False}]},
     "tools[0]"),
    ({"conversation": "conv_1"}, "conversation"),
    ({"text": {"format": {"type": "json_schema", "name": "n",
                          "schema": {"type": "array", "uniqueItems": True}}}}, "text.format"),
    ({"extra_body": {"messages": []}}, "input"),
    ({"extra_body": {"max_tokens": 5}}, "max_tokens"),
])
def test_bad_request(client, options, param):
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model=MODEL, input="hi", **options)
    assert caught.value.param == param


def test_tools_that_a_server_would_run_are_left_out(client):
    answer = client.responses.create(**SAY, tools=[{"type": "web_search"}])
    assert answer.tools == []


def test_another_key_sees_nothing():
    keys = "correct-horse-battery-staple", "staple-of-another-kind"
    with Server("--api-key", keys[0], "--api-key", keys[1]) as server:
        one, two = (openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0)
                    for key in keys)
        made = one.responses.create(**SAY)
        assert one.responses.retrieve(made.id).id == made.id
        with pytest.raises(openai.NotFoundError):
            two.responses.retrieve(made.id)
        with pytest.raises(openai.NotFoundError):
            two.responses.delete(made.id)
        with pytest.raises(openai.BadRequestError):
            two.responses.create(**SAY, previous_response_id=made.id)
        one.close()
        two.close()
