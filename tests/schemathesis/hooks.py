# tests/schemathesis/hooks.py
# What schemathesis is told beside the document: the names and token ids of this server, since
# others are refused by right; how the events of a stream are described; and for most of what it
# makes up, what only several fields together can say (settle), so that it is answered and not
# refused. At the end the statuses of each operation are written for statuses.py.
import atexit
import collections
import itertools
import json
import os
import random

import schemathesis

MODELS = json.loads(os.environ["PLUMB_SCHEMATHESIS_MODELS"])
FILE = os.environ["PLUMB_SCHEMATHESIS_FILE"]
ENDLESS_FILE = os.environ["PLUMB_SCHEMATHESIS_ENDLESS_FILE"]
STATUSES = os.environ["PLUMB_SCHEMATHESIS_STATUSES"]
TOKEN_MAX = 271  # of the scripted model's vocabulary
TOKEN_KEY = "^([0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-6][0-9])$"
# Ends of prompts that tests/browser/scripted_server.cc has an answer for.
WORDS = ["hello", "markdown", "weather", "sunny", "안녕"]
CALLS = {"function_call", "custom_tool_call", "function_call_output", "custom_tool_call_output",
         "tool_use", "tool_result", "item_reference", "tool_addition", "tool_removal"}

numbers = itertools.count()
statuses = collections.defaultdict(collections.Counter)
chance = random.Random(int(os.environ["PLUMB_SCHEMATHESIS_SEED"]))


@schemathesis.hook
def before_load_schema(context, raw_schema):
    schemas = raw_schema["components"]["schemas"]
    schemas["ModelName"]["enum"] = MODELS
    schemas["TokenId"]["maximum"] = TOKEN_MAX
    biases = schemas["LogitBias"]["patternProperties"]
    schemas["LogitBias"]["patternProperties"] = {TOKEN_KEY: next(iter(biases.values()))}
    for path in raw_schema["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict) and "responses" in operation:
                describe_events(operation["responses"])


def describe_events(responses):
    for response in responses.values():
        for media in response.get("content", {}).values():
            if "x-itemSchema" in media:
                media["itemSchema"] = media.pop("x-itemSchema")
                del media["schema"]


# A form has texts and nothing else: what is of the wrong type in the body becomes one, or goes.
@schemathesis.hook
def filter_case(context, case):
    mode = case.meta.generation.mode if case.meta else None
    if mode != schemathesis.GenerationMode.NEGATIVE or case.media_type != "multipart/form-data":
        return True
    fields = case.body.values() if isinstance(case.body, dict) else []
    return all(isinstance(field, (str, bytes)) for field in fields)


@schemathesis.hook
def before_call(context, case, kwargs):
    # The scripted model has no more to say after its end, and would wait.
    if isinstance(case.body, dict) and case.body.get("ignore_eos") is True:
        case.body = {**case.body, "ignore_eos": False}
    # Of few keys, which is what is made up, nearly all would stand for another request.
    if "Idempotency-Key" in (case.headers or {}) and chance.random() < 0.9:
        if case.headers["Idempotency-Key"].isprintable():
            case.headers["Idempotency-Key"] += f"-{next(numbers)}"
    mode = case.meta.generation.mode if case.meta else None
    if mode == schemathesis.GenerationMode.POSITIVE and isinstance(case.body, dict):
        if chance.random() < 0.9:
            case.body = settle(case.operation.path, case.body)


def settle(path, body):
    body = dict(body)
    word = chance.choice(WORDS)
    if body.get("stream_options") is not None:
        body["stream"] = True
    if not body.get("tools"):
        body.pop("tool_choice", None)
    if "/tokenize" in path and "messages" in body:
        body.pop("prompt", None)
        body.pop("add_special_tokens", None)
    if path == "/v1/batches":
        endless = chance.random() < 0.2
        body.update(input_file_id=ENDLESS_FILE if endless else FILE,
                    endpoint="/v1/chat/completions")
    if "/responses" in path:
        body.pop("previous_response_id", None)
        body.setdefault("input", word)
        body["background"] = chance.random() < 0.3
        if body.get("background"):
            body.update(store=True, stream=False)
            body.pop("stream_options", None)
    if "messages" in body:
        body["messages"] = conversation(body["messages"], word)
    for name in ("input", "prompt"):
        if isinstance(body.get(name), str):
            body[name] += word
        elif name == "input" and name in body:
            body[name] = conversation(body[name] or [], word)
    return body


# Without calls and their results, which would have to answer each other; the last turn a user's.
def conversation(turns, word):
    kept = []
    for turn in turns if isinstance(turns, list) else []:
        if not isinstance(turn, dict) or turn.get("role") == "tool" or is_call(turn):
            continue
        content = turn.get("content")
        if isinstance(content, list):
            turn = {**turn, "content": [part for part in content if not is_call(part)]}
        kept.append({name: value for name, value in turn.items()
                     if name not in ("tool_calls", "prefix", "task")})
        if kept[-1].get("content") in ([], "") and kept[-1].get("role") != "system":
            kept[-1]["content"] = word
    return kept + [{"role": "user", "content": word}]


def is_call(item):
    if not isinstance(item, dict):
        return False
    kind = item.get("type")
    return (isinstance(kind, str) and kind in CALLS) or set(item) == {"id"}


@schemathesis.hook
def after_call(context, case, response):
    statuses[case.operation.label][response.status_code] += 1


@atexit.register
def write_statuses():
    with open(STATUSES, "w") as file:
        json.dump({name: dict(sorted(counts.items())) for name, counts in sorted(statuses.items())},
                  file, indent=1)
