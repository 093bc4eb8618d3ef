"""Embeddings through the official SDK: shapes, orders, encodings, the same numbers in any company.

What they must be: tests/golden/embeddings. Here: that the served model's are of length 1, do not
depend on company, and mean something."""

import base64
import concurrent.futures
import json
import math
import struct

import openai
import pytest

from server import MODEL

TEXTS = ["The cat sleeps on the sofa.", "A kitten is napping on the couch.",
         "Interest rates rose by half a percent.", "Grüße aus Köln 한국어 😀"]


def embed(client, text, **options):
    answer = client.embeddings.create(model=MODEL, input=text, **options)
    return [one.embedding for one in answer.data]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_a_text_is_a_vector_of_length_one(client):
    answer = client.embeddings.create(model=MODEL, input=TEXTS[0])
    assert answer.object == "list" and answer.model == MODEL
    assert [(one.object, one.index) for one in answer.data] == [("embedding", 0)]
    assert math.isclose(dot(answer.data[0].embedding, answer.data[0].embedding), 1, abs_tol=1e-5)
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 3


def test_encodings_are_the_same_numbers(client):
    # The SDK asks for base64 and decodes it unless told otherwise.
    (decoded,) = embed(client, TEXTS[3])
    (written,) = embed(client, TEXTS[3], encoding_format="float")
    assert decoded == written_as_f32(written)
    (raw,) = embed(client, TEXTS[3], encoding_format="base64")
    data = base64.b64decode(raw)
    assert list(struct.unpack(f"<{len(data) // 4}f", data)) == decoded


def written_as_f32(numbers):
    return [struct.unpack("<f", struct.pack("<f", x))[0] for x in numbers]


def test_inputs_are_answered_in_order_and_as_alone(client):
    together = embed(client, TEXTS)
    assert together == [embed(client, text)[0] for text in TEXTS]
    assert len({tuple(one) for one in together}) == len(TEXTS)


def test_more_inputs_than_run_at_once(client):
    texts = [f"sentence number {i % 40}" for i in range(130)]
    answers = embed(client, texts)
    assert len(answers) == 130
    assert answers[:40] == answers[40:80] == answers[80:120]
    assert answers[7] == embed(client, texts[7])[0]


def test_token_ids_are_their_text(client, server):
    question = json.dumps({"prompt": TEXTS[0]}).encode()
    status, _, body = server.request("POST", "/v1/tokenize", question,
                                     {"Content-Type": "application/json"})
    assert status == 200
    ids = json.loads(body)["tokens"]
    assert embed(client, ids) == embed(client, [ids]) == embed(client, TEXTS[0])


def test_what_is_alike_is_near(client):
    cat, kitten, rates, _ = embed(client, TEXTS)
    assert dot(cat, kitten) > dot(cat, rates)


def test_company_does_not_change_a_bit(client):
    """Long texts, cut into steps beside generating requests, whatever is cached."""
    long = " ".join(TEXTS[:3] * 15)
    alone = {pooling: embed(client, long, extra_body={"pooling": pooling})[0]
             for pooling in ("mean", "last")}
    assert alone["mean"] != alone["last"]

    def one(i):
        if i % 3 == 0:
            client.completions.create(model=MODEL, prompt=long[i:], max_tokens=20)
        pooling = ("mean", "last")[i % 2]
        return pooling, embed(client, long, extra_body={"pooling": pooling})[0]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for pooling, answer in pool.map(one, range(9)):
            assert answer == alone[pooling]


def test_mean_is_the_default(client):
    assert embed(client, TEXTS[0]) == embed(client, TEXTS[0], extra_body={"pooling": "mean"})


@pytest.mark.parametrize("options, param", [
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": ["x", ""]}, "input[1]"),
    ({"input": ["x"] * 2049}, "input"),
    ({"input": "x", "dimensions": 8}, "dimensions"),
    ({"input": "x", "extra_body": {"pooling": "max"}}, "pooling"),
    ({"input": "x", "extra_body": {"truncate": True}}, "truncate"),
])
def test_what_cannot_be_is_refused_by_name(client, options, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(model=MODEL, **options)
    assert refused.value.body["param"] == param


def test_too_long_is_told_with_both_counts(client):
    with pytest.raises(openai.BadRequestError) as refused:
        embed(client, "word " * 20000)
    assert refused.value.body["code"] == "context_length_exceeded"


def test_they_are_counted(client, server):
    def count():
        _, _, body = server.request("GET", "/metrics")
        lines = body.decode().splitlines()
        return next(int(line.split()[1]) for line in lines
                    if line.startswith("plumb_embeddings_total "))
    before = count()
    embed(client, TEXTS)
    assert count() == before + len(TEXTS)
