"""Answers member by member, judged by the types of the official SDKs.

An SDK takes what it does not know and misses what is not there without a word. Here each answer is
validated as its type says, and every member that no type names must be one that the documents name
as ours: docs/api.md, docs/api_coverage.md."""

import json

import anthropic.types
import openai.types
import pydantic
import pytest
from anthropic.types.shared import ErrorResponse
from openai.types import chat, responses
from openai.types.shared import ErrorObject

from server import Server

MODEL = "v41-mini"
HI = [{"role": "user", "content": "hi"}]
# One value is possible, so that a call is short whatever the model's weights are.
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Rome"]}},
        "required": ["city"], "additionalProperties": False}
FUNCTION = {"name": "look", "parameters": CITY, "strict": True}

OURS = {  # by type
    "ChatCompletion": {"plumb"}, "ChatCompletionChunk": {"plumb"},
    "ChatCompletionMessage": {"reasoning_content"}, "ChoiceDelta": {"reasoning_content"},
    "CompletionUsage": {"prompt_cache_hit_tokens", "prompt_cache_miss_tokens"},
    "Completion": {"plumb"},
    # OpenAI's own answers have `store` and the status; earlier versions of the SDK want the name.
    "Response": {"plumb", "store"},
    "ResponseFunctionCallArgumentsDoneEvent": {"name"}, "ResponseCustomToolCall": {"status"},
    # In a delta as in what it becomes part of: a token may be a part of a character.
    "Logprob": {"bytes"}, "LogprobTopLogprob": {"bytes"},
    "Message": {"plumb"},
    "Model": {"context_length", "max_model_len", "capabilities", "architecture",
              "supported_parameters", "type", "display_name", "created_at"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with Server("--data-dir", str(folder), model=MODEL) as running:
        yield running


def strays(value, ours, path="$"):
    """Members that no type names, nor `ours`."""
    if isinstance(value, list):
        return [s for i, one in enumerate(value) for s in strays(one, ours, f"{path}[{i}]")]
    if isinstance(value, dict):
        return [s for name, one in value.items() for s in strays(one, ours, f"{path}.{name}")]
    if not isinstance(value, pydantic.BaseModel):
        return []
    known = ours.get(type(value).__name__, set())
    found = [f"{path}.{name} of {type(value).__name__}"
             for name in (value.model_extra or {}) if name not in known]
    for name in type(value).model_fields:
        found += strays(getattr(value, name), ours, f"{path}.{name}")
    return found


def check(kind, raw, ours=OURS):
    value = pydantic.TypeAdapter(kind).validate_python(raw)
    assert strays(value, ours) == [], json.dumps(raw)[:2000]
    return value


def ask(server, path, body, headers=None):
    headers = {"Content-Type": "application/json", **(headers or {})}
    status, _, raw = server.request("POST", path, json.dumps(body).encode(), headers)
    return status, raw.decode()


def whole(server, path, body):
    status, raw = ask(server, path, body)
    assert status == 200, raw
    return json.loads(raw)


def events(server, path, body):
    status, raw = ask(server, path, {**body, "stream": True})
    assert status == 200, raw
    lines = [line[6:] for line in raw.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def chat_body(**more):
    return {"model": MODEL, "messages": HI, "max_tokens": 200, "seed": 1, **more}


CHATS = {
    "plain": {"max_tokens": 6, "n": 2, "logprobs": True, "top_logprobs": 2,
              "reasoning_effort": "none"},
    "reasoning": {"max_tokens": 6, "reasoning_effort": "low"},
    "function": {"tools": [{"type": "function", "function": FUNCTION}],
                 "tool_choice": "required", "reasoning_effort": "none"},
    "custom": {"tools": [{"type": "custom", "custom": {"name": "note"}}], "max_tokens": 60,
               "tool_choice": {"type": "custom", "custom": {"name": "note"}},
               "reasoning_effort": "none"},
}


@pytest.mark.parametrize("name", CHATS)
def test_chat_answers_have_the_members_of_their_types(server, name):
    body = chat_body(**CHATS[name])
    answer = check(chat.ChatCompletion, whole(server, "/v1/chat/completions", body))
    message = answer.choices[0].message
    if name in ("function", "custom"):
        assert message.tool_calls[0].type == name
    body["stream_options"] = {"include_usage": True}
    raw = events(server, "/v1/chat/completions", body)
    if name == "custom":  # the SDK has no type for pieces of such calls yet
        pieces = [call for chunk in raw for choice in chunk["choices"]
                  for call in choice["delta"].pop("tool_calls", [])]
        assert set(pieces[0]) == {"index", "id", "type", "custom"}
        assert all(set(piece) == {"index", "custom"} for piece in pieces[1:])
        assert pieces[0]["custom"]["name"] == "note"
        text = "".join(piece["custom"]["input"] for piece in pieces)
        assert text == message.tool_calls[0].custom.input
    chunks = [check(chat.ChatCompletionChunk, one) for one in raw]
    assert chunks[-1].usage.completion_tokens == answer.usage.completion_tokens


def test_completions_and_embeddings_have_the_members_of_their_types(server):
    body = {"model": MODEL, "prompt": "Once", "max_tokens": 4, "logprobs": 2}
    check(openai.types.Completion, whole(server, "/v1/completions", body))
    for one in events(server, "/v1/completions",
                      {**body, "stream_options": {"include_usage": True}}):
        for choice in one["choices"]:  # null until the end, which the type leaves out
            choice["finish_reason"] = choice["finish_reason"] or "stop"
        check(openai.types.Completion, one)
    body = {"model": MODEL, "input": ["one", "two"]}
    check(openai.types.CreateEmbeddingResponse, whole(server, "/v1/embeddings", body))


RESPONSES = {
    "message": {"max_output_tokens": 6, "top_logprobs": 2, "reasoning": {"effort": "none"},
                "include": ["message.output_text.logprobs"]},
    "reasoning": {"max_output_tokens": 6, "reasoning": {"effort": "low"},
                  "include": ["reasoning.encrypted_content"]},
    "function_call": {"tools": [{"type": "function", **FUNCTION}], "tool_choice": "required",
                      "reasoning": {"effort": "none"}},
    "custom_tool_call": {"tools": [{"type": "custom", "name": "note"}], "max_output_tokens": 60,
                         "tool_choice": {"type": "custom", "name": "note"},
                         "reasoning": {"effort": "none"}},
}


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_and_events_have_the_members_of_their_types(server, name):
    body = {"model": MODEL, "input": "hi", "max_output_tokens": 200, "seed": 1, **RESPONSES[name]}
    answer = check(responses.Response, whole(server, "/v1/responses", body))
    assert answer.output[0].type == name
    seen = [check(responses.ResponseStreamEvent, one)
            for one in events(server, "/v1/responses", body)]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    _, _, raw = server.request("GET", f"/v1/responses/{answer.id}")
    check(responses.Response, json.loads(raw))
    _, _, raw = server.request("GET", f"/v1/responses/{answer.id}/input_items")
    items = json.loads(raw)
    assert set(items) == {"object", "data", "first_id", "last_id", "has_more"}
    for item in items["data"]:
        check(responses.ResponseItem, item)
    check(responses.InputTokenCountResponse,
          whole(server, "/v1/responses/input_tokens", {"model": MODEL, "input": "hi"}))


MESSAGES = {
    "text": {"max_tokens": 6},
    "thinking": {"max_tokens": 6, "thinking": {"type": "adaptive"}},
    "tool_use": {"tools": [{"name": "look", "input_schema": CITY, "strict": True}],
                 "tool_choice": {"type": "any"}},
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_and_events_have_the_members_of_their_types(server, name):
    body = {"model": MODEL, "messages": HI, "max_tokens": 200, **MESSAGES[name]}
    answer = check(anthropic.types.Message, whole(server, "/v1/messages", body))
    assert answer.content[0].type == name
    kinds = []
    for event in events(server, "/v1/messages", body):
        kinds.append(event["type"])
        if event["type"] != "ping":  # which the types leave out
            check(anthropic.types.RawMessageStreamEvent, event)
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    check(anthropic.types.MessageTokensCount, whole(server, "/v1/messages/count_tokens", body))


def test_models_have_the_members_of_each_api(server):
    _, _, raw = server.request("GET", "/v1/models")
    for model in json.loads(raw)["data"]:
        check(openai.types.Model, model)
    version = {"anthropic-version": "2023-06-01"}
    _, _, raw = server.request("GET", "/v1/models", headers=version)
    models = json.loads(raw)
    assert set(models) == {"data", "has_more", "first_id", "last_id"}
    for model in models["data"]:
        check(anthropic.types.ModelInfo, model)


def test_files_and_batches_have_the_members_of_their_types(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="unused", max_retries=0) as sdk:
        line = {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
                "body": chat_body(max_tokens=2)}
        made = sdk.files.create(file=("in.jsonl", json.dumps(line).encode()), purpose="batch")
        batch = sdk.batches.create(input_file_id=made.id, endpoint=line["url"],
                                   completion_window="24h", metadata={"a": "b"})
        spare = sdk.files.create(file=("in.jsonl", b"{}"), purpose="batch")
    for path, kind in ((f"/v1/files/{made.id}", openai.types.FileObject),
                       (f"/v1/batches/{batch.id}", openai.types.Batch)):
        _, _, raw = server.request("GET", path)
        check(kind, json.loads(raw))
    _, _, raw = server.request("DELETE", f"/v1/files/{spare.id}")
    check(openai.types.FileDeleted, json.loads(raw))


WRONG = [("/v1/chat/completions", {"messages": []}), ("/v1/completions", {"prompt": 1}),
         ("/v1/embeddings", {"input": []}), ("/v1/responses", {"input": 1}),
         ("/v1/responses", {"input": [{"type": "function_call_output", "call_id": "a",
                                       "output": "b"}]})]


@pytest.mark.parametrize("path, body", WRONG)
def test_errors_have_the_members_of_openais(server, path, body):
    for named in ({**body, "model": MODEL}, {**body, "model": "another"}):
        status, raw = ask(server, path, named)
        assert status in (400, 404)
        error = json.loads(raw)
        assert set(error) == {"error"}
        check(ErrorObject, error["error"])


def test_errors_have_the_members_of_anthropics(server):
    for body in ({"model": MODEL}, {"model": "another", "max_tokens": 1, "messages": HI}):
        status, raw = ask(server, "/v1/messages", body)
        assert status in (400, 404)
        check(ErrorResponse, json.loads(raw))
