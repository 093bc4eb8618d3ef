"""Completions through the official SDK, as editors and evaluation harnesses ask for them.

Texts and token ids, echo and scores, columns of log-probabilities, best_of, streams, tokens."""

import json
import math

import openai
import pytest

from server import MODEL

PROMPT = "The capital of France is"


def complete(client, **options):
    options = {"prompt": PROMPT, "temperature": 0, "max_tokens": 8, **options}
    return client.completions.create(model=MODEL, **options)


def tokenize(server, **body):
    status, _, answer = server.request("POST", "/v1/tokenize", json.dumps(body).encode(),
                                       {"Content-Type": "application/json"})
    assert status == 200, answer
    return json.loads(answer)["tokens"]


def test_whole_answer_has_text_reason_and_usage(client):
    answer = complete(client)
    assert answer.object == "text_completion" and answer.id.startswith("cmpl-")
    assert answer.choices[0].text
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.completion_tokens <= 8
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_stream_is_the_whole_answer(client):
    whole = complete(client, logprobs=2)
    chunks = list(complete(client, logprobs=2, stream=True,
                           stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in chunks if c.choices) == whole.choices[0].text
    assert chunks[-1].usage == whole.usage
    offsets = [offset for c in chunks if c.choices and c.choices[0].logprobs
               for offset in c.choices[0].logprobs.text_offset]
    assert offsets == whole.choices[0].logprobs.text_offset


def test_token_ids_answer_as_their_text(client, server):
    ids = tokenize(server, prompt=PROMPT)
    assert complete(client, prompt=ids).choices[0].text == complete(client).choices[0].text


def test_prompts_are_answered_in_order(client):
    other = "One, two, three,"
    both = complete(client, prompt=[PROMPT, other], n=2)
    assert [choice.index for choice in both.choices] == [0, 1, 2, 3]
    alone = [complete(client, prompt=prompt).choices[0].text for prompt in (PROMPT, other)]
    assert [choice.text for choice in both.choices] == [alone[0]] * 2 + [alone[1]] * 2


def test_scores_of_a_text_are_those_of_generating_it(client):
    generated = complete(client, logprobs=1, seed=1)
    text = PROMPT + generated.choices[0].text
    scored = complete(client, prompt=text, echo=True, logprobs=1, max_tokens=0)
    columns = scored.choices[0].logprobs
    assert scored.choices[0].text == text
    assert scored.usage.completion_tokens == 0
    assert columns.token_logprobs[0] is None and columns.top_logprobs[0] is None
    assert len(columns.tokens) == scored.usage.prompt_tokens
    assert all(math.isfinite(value) and value <= 0 for value in columns.token_logprobs[1:])
    count = generated.usage.completion_tokens
    if generated.choices[0].finish_reason == "length" and columns.tokens[-count:] == \
            generated.choices[0].logprobs.tokens:
        assert columns.token_logprobs[-count:] == generated.choices[0].logprobs.token_logprobs
    for offset, token in zip(columns.text_offset, columns.tokens):
        assert token.startswith("bytes:") or text[offset:].startswith(token)


def test_best_of_gives_the_likeliest(client):
    options = {"temperature": 1, "seed": 11, "logprobs": 0}
    every = complete(client, n=4, **options)
    best = complete(client, n=1, best_of=4, **options)

    def mean(choice):
        values = choice.logprobs.token_logprobs
        return sum(values) / len(values)

    assert best.choices[0].text == max(every.choices, key=mean).text
    assert best.usage.completion_tokens == every.usage.completion_tokens


def test_suffix_is_refused_by_a_model_without_its_tokens(client):
    with pytest.raises(openai.BadRequestError) as refused:
        complete(client, suffix=" indeed.")
    assert refused.value.param == "suffix"


def test_tokens_come_back_as_their_text(server):
    ids = tokenize(server, prompt=PROMPT, model=MODEL)
    status, _, answer = server.request("POST", "/v1/detokenize",
                                       json.dumps({"tokens": ids}).encode(),
                                       {"Content-Type": "application/json"})
    assert status == 200 and json.loads(answer) == {"prompt": PROMPT}
