"""What was computed for one request is reused by the next that begins alike: the usage says so, the
metrics count it, and the answer is the one of a server that reuses nothing."""

import openai

from server import MODEL, Server

KEYS = ("first-key-of-the-test", "second-key-of-the-test")
RULES = "You answer in one short sentence. " + "Rule: be polite, exact and brief. " * 40


def ask(url: str, key: str, question: str):
    """(cached tokens, prompt tokens, [(token, logprob)])."""
    with openai.OpenAI(base_url=url + "/v1", api_key=key, max_retries=0, timeout=600) as sdk:
        answer = sdk.chat.completions.create(
            model=MODEL,
            messages=[{"role": "system", "content": RULES}, {"role": "user", "content": question}],
            max_tokens=12,
            temperature=0.7,
            seed=5,
            logprobs=True,
        )
    tokens = [(entry.token, entry.logprob) for entry in answer.choices[0].logprobs.content]
    usage = answer.usage
    return usage.prompt_tokens_details.cached_tokens, usage.prompt_tokens, tokens


def test_a_shared_beginning_is_reused_and_changes_nothing():
    questions = ["Where is Lyon?", "Who wrote Faust?", "Where is Lyon?"]
    with Server("--prefix-cache", "off", "--api-key", KEYS[0]) as server:
        cold = [ask(server.url, KEYS[0], question) for question in questions]
    assert all(cached == 0 for cached, _, _ in cold)
    with Server("--api-key", KEYS[0], "--api-key", KEYS[1]) as server:
        warm = [ask(server.url, KEYS[0], question) for question in questions]
        other_tenant, _, other_tokens = ask(server.url, KEYS[1], questions[0])
        headers = {"Authorization": f"Bearer {KEYS[0]}"}
        metrics = server.request("GET", "/metrics", headers=headers)[2].decode()
    assert [tokens for _, _, tokens in warm] == [tokens for _, _, tokens in cold]
    prompts = [prompt for _, prompt, _ in warm]
    assert warm[0][0] == 0
    # The rules, whatever pages they fill; a few tokens of a page are not worth a copy.
    assert prompts[1] - 30 < warm[1][0] < prompts[1]
    assert prompts[2] - 10 < warm[2][0] < prompts[2]
    assert other_tenant == 0 and other_tokens == cold[0][2]
    assert "plumb_prefix_hits_total 2\n" in metrics
    assert f"plumb_cached_tokens_total {warm[1][0] + warm[2][0]}\n" in metrics
