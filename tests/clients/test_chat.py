"""The SDK's view of answers.

Whole, streamed, log-probabilities, several samples, stop strings, models."""

import math

import pytest

from server import MODEL

QUESTION = [{"role": "user", "content": "Name the capital of France in one short sentence."}]


def ask(client, **options):
    options = {"temperature": 0, "max_tokens": 24, **options}
    return client.chat.completions.create(model=MODEL, messages=QUESTION, **options)


def test_models_are_listed_and_found(client):
    models = client.models.list().data
    assert MODEL in [model.id for model in models]
    assert client.models.retrieve(MODEL).object == "model"


def test_whole_answer_has_text_reason_and_usage(client):
    answer = ask(client)
    assert answer.object == "chat.completion"
    assert answer.choices[0].message.role == "assistant"
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.prompt_tokens > 5
    assert 1 <= answer.usage.completion_tokens <= 24
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.system_fingerprint


def test_stream_is_the_whole_answer(client):
    whole = ask(client)
    stream = ask(client, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    reasons = [c.choices[0].finish_reason for c in chunks if c.choices]
    assert reasons[-1] == whole.choices[0].finish_reason
    assert not any(reasons[:-1])
    assert chunks[-1].usage == whole.usage
    assert len({chunk.id for chunk in chunks}) == 1


def test_logprobs_rank_sum_up_and_stream_alike(client):
    answer = ask(client, logprobs=True, top_logprobs=3)
    entries = answer.choices[0].logprobs.content
    assert len(entries) == answer.usage.completion_tokens
    for entry in entries:
        assert entry.logprob <= 0 and math.isfinite(entry.logprob)
        assert len(entry.top_logprobs) == 3
        ranked = [top.logprob for top in entry.top_logprobs]
        assert ranked == sorted(ranked, reverse=True)
        # Greedy takes the first.
        assert entry.token == entry.top_logprobs[0].token
    spoken = b"".join(bytes(entry.bytes or []) for entry in entries)
    assert spoken.decode() == answer.choices[0].message.content
    streamed = []
    for chunk in ask(client, logprobs=True, top_logprobs=3, stream=True):
        if chunk.choices and chunk.choices[0].logprobs:
            streamed += chunk.choices[0].logprobs.content
    assert streamed == entries


def test_samples_differ_and_repeat(client):
    options = {"n": 2, "temperature": 1.2, "seed": 11, "max_tokens": 24}
    first = ask(client, **options)
    assert [choice.index for choice in first.choices] == [0, 1]
    texts = [choice.message.content for choice in first.choices]
    assert texts[0] != texts[1]
    again = ask(client, **options)
    assert [choice.message.content for choice in again.choices] == texts
    streamed = ["", ""]
    for chunk in ask(client, stream=True, **options):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert streamed == texts


def test_drawn_seed_repeats_the_answer(client):
    first = ask(client, temperature=1.0)
    seed = first.model_extra["plumb"]["seed"]
    again = ask(client, temperature=1.0, seed=seed)
    assert again.choices[0].message.content == first.choices[0].message.content


def test_stop_and_max_tokens(client):
    whole = ask(client).choices[0].message.content
    stop = whole[4:8]
    cut = ask(client, stop=[stop])
    assert cut.choices[0].finish_reason == "stop"
    assert cut.choices[0].message.content == whole[: whole.index(stop)]
    short = ask(client, max_tokens=2)
    assert short.choices[0].finish_reason == "length"
    assert short.usage.completion_tokens == 2


def test_logit_bias_decides(client):
    first = ask(client, logprobs=True, top_logprobs=1, max_tokens=1)
    greedy = first.choices[0].logprobs.content[0].token
    # With every one of the first thousand tokens banned and one outside raised, that one wins.
    raised = {str(i): -100 for i in range(1000)} | {"5000": 100}
    biased = ask(client, max_tokens=1, logprobs=True, logit_bias=raised)
    chosen = biased.choices[0].logprobs.content[0].token
    assert chosen != greedy
    again = ask(client, max_tokens=2, logprobs=True, logit_bias=raised)
    assert [entry.token for entry in again.choices[0].logprobs.content] == [chosen, chosen]


TEXTS = ["안녕하세요 😀", "def f(x):\n\treturn x\n", "\x00\x07 \u202e", "é" * 50]


@pytest.mark.parametrize("text", TEXTS)
def test_any_characters_are_taken(client, text):
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    answer = client.chat.completions.create(model=MODEL, messages=messages, max_tokens=4)
    assert answer.usage.completion_tokens >= 1
