"""64 streams at once give, token for token and log-probability for log-probability, what each gives
alone: greedy, and with temperature and a seed."""

import asyncio

import openai
import pytest

from conftest import KEY
from server import MODEL

STREAMS = 64
TOKENS = 16
SUBJECTS = ["the sea", "Python lists", "서울", "tea", "π", "owls", "a sonnet", "rust"]


def prompt(index: int) -> list[dict]:
    subject = SUBJECTS[index % len(SUBJECTS)]
    filler = "Please think about it. " * (index % 7) * (index % 5)
    content = f"Question {index}: tell me something about {subject}. {filler}"
    return [{"role": "user", "content": content}]


async def ask(client, index: int, sampling: dict):
    """(text, [(token, bytes, logprob)], finish reason)."""
    stream = await client.chat.completions.create(
        model=MODEL,
        messages=prompt(index),
        max_tokens=TOKENS,
        stream=True,
        logprobs=True,
        **sampling,
    )
    text, tokens, reason = "", [], None
    async for chunk in stream:
        choice = chunk.choices[0]
        text += choice.delta.content or ""
        if choice.logprobs:
            tokens += [(e.token, tuple(e.bytes or ()), e.logprob) for e in choice.logprobs.content]
        reason = choice.finish_reason or reason
    return text, tokens, reason


async def compare(url: str, sampling) -> None:
    limits = {"base_url": url + "/v1", "api_key": KEY, "max_retries": 0, "timeout": 600}
    async with openai.AsyncOpenAI(**limits) as client:
        together = await asyncio.gather(*(ask(client, i, sampling(i)) for i in range(STREAMS)))
        for index in range(STREAMS):
            alone = await ask(client, index, sampling(index))
            assert together[index] == alone, f"stream {index}"
    assert len({text for text, _, _ in together}) > STREAMS // 4
    assert all(tokens and reason in ("stop", "length") for _, tokens, reason in together)


@pytest.mark.parametrize(
    "sampling",
    [lambda i: {"temperature": 0}, lambda i: {"temperature": 0.8, "seed": 1000 + i}],
    ids=["greedy", "seeded"],
)
def test_concurrent_streams_equal_single_ones(server, sampling):
    asyncio.run(compare(server.url, sampling))
