"""Pydantic AI: an agent that calls a function, over each of the three APIs.

Answers, streams, structured output, errors."""

import typing

import pydantic
import pytest
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from conftest import KEY, MODEL

TIMER = "Set a timer for 25 minutes."
SETTINGS = {"temperature": 0, "max_tokens": 200}


class Timer(pydantic.BaseModel):
    minutes: typing.Annotated[int, pydantic.Field(ge=0, le=99)]


def make(api, url, name=MODEL, key=KEY):
    if api == "messages":
        return AnthropicModel(name, provider=AnthropicProvider(base_url=url, api_key=key))
    provider = OpenAIProvider(base_url=url + "/v1", api_key=key)
    return {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}[api](
        name, provider=provider)


@pytest.fixture(params=["chat", "responses", "messages"])
def model(request, server):
    return make(request.param, server.url)


def test_a_question_is_answered(model):
    answer = Agent(model, model_settings=SETTINGS).run_sync("Why is the sky blue?")
    assert answer.output and answer.usage.output_tokens > 0


def test_stream_is_the_whole_answer(model):
    agent = Agent(model, model_settings=SETTINGS)
    whole = agent.run_sync("Why is the sky blue?").output
    streamed = agent.run_stream_sync("Why is the sky blue?")
    pieces = list(streamed.stream_text(delta=True, debounce_by=None))
    assert "".join(pieces) == whole


def test_agent_calls_the_function(model):
    agent = Agent(model, model_settings=SETTINGS)
    called = []

    @agent.tool_plain
    def set_timer(minutes: int) -> str:
        """Set a timer"""
        called.append(minutes)
        return "{\"ok\": true}"

    answer = agent.run_sync(TIMER)
    assert called == [25] and answer.output


def test_structured_output_by_schema(server):
    agent = Agent(make("chat", server.url), output_type=NativeOutput(Timer),
                  model_settings=SETTINGS)
    assert isinstance(agent.run_sync(TIMER).output, Timer)


def test_errors_are_typed(server):
    for api in ("chat", "responses", "messages"):
        for wrong, status in (({"key": "wrong"}, 401), ({"name": "gpt-5"}, 404)):
            with pytest.raises(ModelHTTPError) as caught:
                Agent(make(api, server.url, **wrong)).run_sync(TIMER)
            assert caught.value.status_code == status
