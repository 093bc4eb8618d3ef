"""LiteLLM, as a library: OpenAI's routes as `openai/...`, Anthropic's as `anthropic/...`.

Answers, streams, tools and their results, structured output, errors."""

import json

import litellm
import pytest

from conftest import KEY, MODEL

TIMER = [{"role": "user", "content": "Set a timer for 25 minutes."}]
TOOLS = [{"type": "function", "function": {
    "name": "set_timer", "description": "Set a timer",
    "parameters": {"type": "object", "properties": {"minutes": {"type": "integer"}},
                   "required": ["minutes"]}}}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "timer", "strict": True, "schema": {
    "type": "object", "properties": {"minutes": {"type": "integer", "maximum": 99}},
    "required": ["minutes"], "additionalProperties": False}}}


@pytest.fixture(params=["openai", "anthropic"])
def ask(request, server):
    base = server.url + ("/v1" if request.param == "openai" else "")

    def call(**options):
        options = {"messages": TIMER, "temperature": 0, "max_tokens": 200, "num_retries": 0,
                   "model": f"{request.param}/{MODEL}", "api_key": KEY, **options}
        return litellm.completion(api_base=base, **options)

    return call


def test_a_question_is_answered(ask):
    answer = ask(messages=[{"role": "user", "content": "Why is the sky blue?"}])
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_stream_is_the_whole_answer(ask):
    options = {"messages": [{"role": "user", "content": "Why is the sky blue?"}]}
    whole = ask(**options).choices[0].message.content
    chunks = list(ask(stream=True, **options))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == whole
    assert len(chunks) > 3


def test_tool_call_and_its_result(ask):
    message = ask(tools=TOOLS).choices[0].message
    call = message.tool_calls[0]
    assert call.function.name == "set_timer" and json.loads(call.function.arguments) == {
        "minutes": 25}
    result = {"role": "tool", "tool_call_id": call.id, "content": "{\"ok\": true}"}
    answer = ask(tools=TOOLS, messages=[*TIMER, message.model_dump(exclude_none=True), result])
    assert answer.choices[0].message.content
    assert not answer.choices[0].message.tool_calls


def test_streamed_tool_call(ask):
    chunks = list(ask(tools=TOOLS, stream=True))
    whole = litellm.stream_chunk_builder(chunks, messages=TIMER)
    call = whole.choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == (
        "set_timer", {"minutes": 25})


def test_structured_output(server):
    answer = litellm.completion(
        model=f"openai/{MODEL}", api_base=server.url + "/v1", api_key=KEY, messages=TIMER,
        temperature=0, max_tokens=200, response_format=SCHEMA)
    assert set(json.loads(answer.choices[0].message.content)) == {"minutes"}


@pytest.mark.parametrize("options, kind", [
    ({"api_key": "wrong"}, litellm.AuthenticationError),
    ({"temperature": 3}, litellm.BadRequestError),
    ({"messages": [{"role": "user", "content": "word " * 20000}]}, litellm.BadRequestError),
])
def test_errors_are_typed(ask, options, kind):
    with pytest.raises(kind):
        ask(**options)


def test_unknown_model(server):
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(model="openai/gpt-5", api_base=server.url + "/v1", api_key=KEY,
                           messages=TIMER, num_retries=0)
