"""Files and batches through the official SDK; a batch over a server that is killed.

Every answer of a batch is the one that the same body gets when it is sent alone."""

import json
import signal

import openai
import pytest

from conftest import KEY
from server import MODEL, Server, wait_until

ENDPOINT = "/v1/chat/completions"
ENDED = ("completed", "failed", "cancelled", "expired")


def sdk_of(server, key=KEY):
    return openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with Server("--data-dir", str(folder)) as server, sdk_of(server) as sdk:
        yield sdk


def body(number, **more):
    return {"model": MODEL, "messages": [{"role": "user", "content": f"Name {number} fruits."}],
            "max_tokens": 12, "seed": number, **more}


def upload(sdk, bodies, url=ENDPOINT):
    lines = [json.dumps({"custom_id": f"line-{i}", "method": "POST", "url": url, "body": one})
             for i, one in enumerate(bodies)]
    return sdk.files.create(file=("in.jsonl", "\n".join(lines).encode()), purpose="batch")


def start(sdk, bodies, endpoint=ENDPOINT, **options):
    return sdk.batches.create(input_file_id=upload(sdk, bodies, endpoint).id, endpoint=endpoint,
                              completion_window="24h", **options)


def wait_for_end(sdk, batch, seconds=120):
    def ended():
        now = sdk.batches.retrieve(batch.id)
        return now if now.status in ENDED else None
    return wait_until(ended, seconds, "the batch ends")


def lines_of(sdk, file_id):
    return [json.loads(line) for line in sdk.files.content(file_id).text.splitlines()]


def test_a_file_is_kept_as_it_was_sent(client):
    content = b'{"a": 1}\n' * 1000
    made = client.files.create(file=("../\u00e9 name.jsonl", content), purpose="batch")
    assert made.id.startswith("file-") and made.bytes == len(content)
    assert made.purpose == "batch" and made.filename.endswith("\u00e9 name.jsonl")
    assert client.files.retrieve(made.id) == made
    assert client.files.content(made.id).content == content
    assert made.id in [file.id for file in client.files.list(purpose="batch", limit=1)]
    assert client.files.delete(made.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(made.id)


def test_files_for_what_nobody_reads_are_refused(client):
    with pytest.raises(openai.BadRequestError) as caught:
        client.files.create(file=("a.pdf", b"%PDF"), purpose="user_data")
    assert caught.value.param == "purpose"


def test_answers_are_those_of_requests_that_are_sent_alone(client):
    bodies = [body(number) for number in range(6)] + [body(9, temperature=0)]
    batch = wait_for_end(client, start(client, bodies, metadata={"run": "1"}))
    assert batch.status == "completed" and batch.metadata == {"run": "1"}
    assert batch.request_counts.model_dump() == {"total": 7, "completed": 7, "failed": 0}
    answers = lines_of(client, batch.output_file_id)
    assert [line["custom_id"] for line in answers] == [f"line-{i}" for i in range(7)]
    for line, alone in zip(answers, bodies):
        assert line["response"]["status_code"] == 200 and line["error"] is None
        got = line["response"]["body"]["choices"][0]
        choice = client.chat.completions.create(**alone).choices[0]
        assert got["message"]["content"] == choice.message.content
        assert got["finish_reason"] == choice.finish_reason


@pytest.mark.parametrize("endpoint, one", [
    ("/v1/completions", {"model": MODEL, "prompt": "One, two,", "max_tokens": 4}),
    ("/v1/responses", {"model": MODEL, "input": "Say a word.", "max_output_tokens": 8}),
])
def test_other_endpoints(client, endpoint, one):
    batch = wait_for_end(client, start(client, [one], endpoint))
    assert batch.status == "completed"
    assert lines_of(client, batch.output_file_id)[0]["response"]["status_code"] == 200


def test_lines_that_fail_have_a_file_of_their_own(client):
    batch = wait_for_end(client, start(client, [body(1), body(2, temperature=9)]))
    assert batch.status == "completed"
    assert (batch.request_counts.completed, batch.request_counts.failed) == (1, 1)
    failed = lines_of(client, batch.error_file_id)
    assert [line["custom_id"] for line in failed] == ["line-1"]
    assert failed[0]["response"]["body"]["error"]["param"] == "temperature"


def test_an_input_that_is_no_batch_fails(client):
    batch = wait_for_end(client, start(client, [body(1), body(2, stream=True)]))
    assert batch.status == "failed"
    assert [(error.line, error.param) for error in batch.errors.data] == [(2, "body.stream")]


def test_cancel_and_list(client):
    long = [body(number, max_tokens=4000, ignore_eos=True) for number in range(3)]
    batch = start(client, long)
    wait_until(lambda: client.batches.retrieve(batch.id).status == "in_progress", 60, "it runs")
    with pytest.raises(openai.BadRequestError) as caught:
        client.files.delete(batch.input_file_id)
    assert caught.value.code == "file_in_use"
    assert client.batches.cancel(batch.id).status in ("cancelling", "cancelled")
    ended = wait_for_end(client, batch)
    assert ended.status == "cancelled"
    errors = lines_of(client, ended.error_file_id)
    assert {line["error"]["code"] for line in errors} == {"batch_cancelled"}
    assert batch.id in [one.id for one in client.batches.list(limit=1)]


def test_another_key_sees_nothing(tmp_path):
    keys = "correct-horse-battery-staple", "staple-of-another-kind"
    with Server("--data-dir", str(tmp_path), "--api-key", keys[0], "--api-key", keys[1]) as server:
        one, two = (sdk_of(server, key) for key in keys)
        batch = wait_for_end(one, start(one, [body(1)]))
        for ask in (lambda: two.batches.retrieve(batch.id), lambda: two.batches.cancel(batch.id),
                    lambda: two.files.content(batch.output_file_id),
                    lambda: two.files.delete(batch.input_file_id)):
            with pytest.raises(openai.NotFoundError):
                ask()
        assert not two.files.list().data and not two.batches.list().data
        assert len(lines_of(one, batch.output_file_id)) == 1
        one.close()
        two.close()


def test_without_a_data_folder_it_says_how_to_get_one(server):
    with sdk_of(server) as sdk, pytest.raises(openai.NotFoundError) as caught:
        sdk.files.list()
    assert "--data-dir" in caught.value.message


def test_a_killed_server_goes_on_where_it_was(tmp_path):
    """kill -9, again and again: what was told stays, and no line is in the output twice."""
    bodies = [{**body(number, max_tokens=24), "ignore_eos": True} for number in range(40)]
    told, kills, batch = 0, 0, None
    while True:
        with Server("--data-dir", str(tmp_path), "--batch-lines", "4") as server:
            with sdk_of(server) as sdk:
                batch = batch or start(sdk, bodies)

                def advanced():
                    now = sdk.batches.retrieve(batch.id)
                    assert now.request_counts.completed >= told, "what was told is taken back"
                    return now if (now.request_counts.completed >= told + 8
                                   or now.status in ENDED) else None
                now = wait_until(advanced, 120, "the batch goes on", 0.001)
                told = now.request_counts.completed
                if now.status in ENDED:
                    break
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            kills += 1
    with Server("--data-dir", str(tmp_path)) as server, sdk_of(server) as sdk:
        ended = sdk.batches.retrieve(batch.id)
        assert ended.status == "completed" and ended.request_counts.completed == len(bodies)
        lines = lines_of(sdk, ended.output_file_id)
        assert [line["custom_id"] for line in lines] == [f"line-{i}" for i in range(len(bodies))]
        for index in (0, 17, 39):
            alone = sdk.chat.completions.create(
                **body(index, max_tokens=24), extra_body={"ignore_eos": True})
            content = lines[index]["response"]["body"]["choices"][0]["message"]["content"]
            assert content == alone.choices[0].message.content
        assert len(sdk.files.list().data) == 2
    assert kills >= 2
