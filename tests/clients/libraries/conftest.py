"""One server of v41-mini, which thinks and calls tools, for all libraries.

Its answers are greedy, so each test knows what it gets."""

import pytest

from server import Server

MODEL = "v41-mini"
KEY = "a-key-of-the-libraries"


@pytest.fixture(scope="session")
def server():
    with Server(model=MODEL, environment={"PLUMB_API_KEY": KEY}) as running:
        yield running
        assert running.process.poll() is None, f"the server died:\n{running.output()}"


@pytest.fixture(scope="session")
def base_url(server):
    return server.url + "/v1"
