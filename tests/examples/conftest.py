"""An embedded API server in this process, for the examples to work on."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.client import ApiClient, Connection

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def private_runtime_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Not tmp_path: a socket's path may have 108 bytes at most.
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
async def server() -> AsyncIterator[EmbeddedApiServer]:
    server = EmbeddedApiServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def connection(server: EmbeddedApiServer) -> Connection:
    return Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)


@pytest.fixture
async def client(connection: Connection) -> AsyncIterator[ApiClient]:
    async with ApiClient(connection) as client:
        yield client
