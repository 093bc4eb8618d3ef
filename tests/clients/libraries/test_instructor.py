"""instructor: answers as pydantic models, by tools and by a schema that is enforced.

Whole and growing; what the server refuses reaches the caller."""

import typing

import instructor
import openai
import pydantic
import pytest
from instructor.core.exceptions import InstructorRetryException

from conftest import KEY, MODEL

TIMER = [{"role": "user", "content": "Set a timer for 25 minutes."}]
OPTIONS = {"model": MODEL, "messages": TIMER, "temperature": 0, "max_tokens": 200,
           "max_retries": 1}


# Named as the tool that the model knows: libraries make one of the class.
class set_timer(pydantic.BaseModel):
    """Set a timer"""

    minutes: typing.Annotated[int, pydantic.Field(ge=0, le=99)]


def client(base_url, mode):
    return instructor.from_openai(
        openai.OpenAI(base_url=base_url, api_key=KEY, max_retries=0), mode=mode)


MODES = [instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA]


@pytest.mark.parametrize("mode", MODES)
def test_model_is_filled(base_url, mode):
    answer, raw = client(base_url, mode).chat.completions.create_with_completion(
        response_model=set_timer, **OPTIONS)
    assert isinstance(answer, set_timer)
    assert raw.usage.completion_tokens > 0


@pytest.mark.parametrize("mode", MODES)
def test_stream_grows_to_the_model(base_url, mode):
    snapshots = list(client(base_url, mode).chat.completions.create_partial(
        response_model=set_timer, **OPTIONS))
    assert snapshots[0].minutes is None and 0 <= snapshots[-1].minutes <= 99


def test_errors_reach_the_caller(base_url):
    with pytest.raises(InstructorRetryException, match="model_not_found"):
        client(base_url, MODES[0]).chat.completions.create(
            response_model=set_timer, **{**OPTIONS, "model": "gpt-5"})
