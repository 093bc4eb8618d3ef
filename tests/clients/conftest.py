"""One server for all tests that leave it as it was.

Tests of its life start their own (server.py)."""

import openai
import pytest

from server import Server

KEY = "unused-without-api-key"


@pytest.fixture(scope="session")
def server():
    with Server() as running:
        yield running
        assert running.process.poll() is None, f"the server died:\n{running.output()}"


@pytest.fixture(scope="session")
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key=KEY, max_retries=0) as sdk:
        yield sdk
