"""LangChain's ChatOpenAI, over Chat Completions and over Responses.

Answers, streams, tools and their results, structured output, errors."""

import typing

import openai
import pydantic
import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from conftest import KEY, MODEL

TIMER = "Set a timer for 25 minutes."


@tool
def set_timer(minutes: int) -> str:
    """Set a timer"""
    return f"{minutes} minutes"


class Timer(pydantic.BaseModel):
    """Set a timer"""

    # As the tool that the model knows: LangChain makes one of the class.
    model_config = {"title": "set_timer"}
    minutes: typing.Annotated[int, pydantic.Field(ge=0, le=99)]


@pytest.fixture(params=[False, True], ids=["chat", "responses"])
def model(request, base_url):
    return ChatOpenAI(model=MODEL, base_url=base_url, api_key=KEY, temperature=0, max_retries=0,
                      max_tokens=200, use_responses_api=request.param)


def test_chat_and_stream_say_the_same(model):
    whole = model.invoke("Why is the sky blue?")
    assert whole.text and whole.usage_metadata["output_tokens"] > 0
    pieces = list(model.stream("Why is the sky blue?"))
    assert "".join(piece.text for piece in pieces) == whole.text
    assert len(pieces) > 3


def test_tool_call_and_its_result(model):
    with_tools = model.bind_tools([set_timer])
    asked = with_tools.invoke(TIMER)
    assert [(call["name"], call["args"]) for call in asked.tool_calls] == [
        ("set_timer", {"minutes": 25})]
    result = ToolMessage(set_timer.invoke(asked.tool_calls[0]["args"]),
                         tool_call_id=asked.tool_calls[0]["id"])
    answer = with_tools.invoke([HumanMessage(TIMER), asked, result])
    assert answer.text and not answer.tool_calls


def test_streamed_tool_call(model):
    total = None
    for piece in model.bind_tools([set_timer]).stream(TIMER):
        total = piece if total is None else total + piece
    assert [(call["name"], call["args"]) for call in total.tool_calls] == [
        ("set_timer", {"minutes": 25})]


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(model, method):
    answer = model.with_structured_output(Timer, method=method).invoke(TIMER)
    assert isinstance(answer, Timer)


def test_errors_are_typed(base_url):
    model = ChatOpenAI(model=MODEL, base_url=base_url, api_key="wrong", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        model.invoke(TIMER)
    model = ChatOpenAI(model="gpt-5", base_url=base_url, api_key=KEY, max_retries=0)
    with pytest.raises(openai.NotFoundError):
        model.invoke(TIMER)
