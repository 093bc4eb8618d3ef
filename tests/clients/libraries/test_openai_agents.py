"""OpenAI's Agents SDK: a run with a function, over Responses and Chat Completions.

Answers, streams, structured output, errors."""

import asyncio
import typing

import agents
import openai
import pydantic
import pytest

from conftest import KEY, MODEL

TIMER = "Set a timer for 25 minutes."
SETTINGS = agents.ModelSettings(temperature=0, max_tokens=200)


class Timer(pydantic.BaseModel):
    minutes: typing.Annotated[int, pydantic.Field(ge=0, le=99)]


def make(kind, base_url, name=MODEL, key=KEY):
    client = openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0)
    return kind(name, openai_client=client)


KINDS = [agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel]


@pytest.fixture(scope="module", autouse=True)
def no_traces():
    agents.set_tracing_disabled(True)


@pytest.fixture(params=KINDS)
def model(request, base_url):
    return make(request.param, base_url)


def test_a_question_is_answered(model):
    answer = agents.Runner.run_sync(
        agents.Agent(name="a", model=model, model_settings=SETTINGS), "Why is the sky blue?")
    assert answer.final_output


@pytest.mark.parametrize("kind", KINDS)
def test_stream_is_the_whole_answer(base_url, kind):
    async def stream():
        agent = agents.Agent(name="a", model=make(kind, base_url), model_settings=SETTINGS)
        run = agents.Runner.run_streamed(agent, "Why is the sky blue?")
        deltas = [event.data.delta async for event in run.stream_events()
                  if event.type == "raw_response_event"
                  and event.data.type == "response.output_text.delta"]
        return deltas, run.final_output

    deltas, whole = asyncio.run(stream())
    assert "".join(deltas) == whole and len(deltas) > 3


def test_agent_calls_the_function(model):
    called = []

    @agents.function_tool
    def set_timer(minutes: int) -> str:
        """Set a timer"""
        called.append(minutes)
        return "{\"ok\": true}"

    agent = agents.Agent(name="a", model=model, model_settings=SETTINGS, tools=[set_timer])
    answer = agents.Runner.run_sync(agent, TIMER)
    assert called == [25] and answer.final_output


def test_structured_output(model):
    agent = agents.Agent(name="a", model=model, model_settings=SETTINGS, output_type=Timer)
    assert isinstance(agents.Runner.run_sync(agent, TIMER).final_output, Timer)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_typed(base_url, kind):
    agent = agents.Agent(name="a", model=make(kind, base_url, key="wrong"))
    with pytest.raises(openai.AuthenticationError):
        agents.Runner.run_sync(agent, TIMER)
    agent = agents.Agent(name="a", model=make(kind, base_url, name="gpt-5"))
    with pytest.raises(openai.NotFoundError):
        agents.Runner.run_sync(agent, TIMER)
