"""An embedded API server in this process, for the examples to work on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.client import ApiClient, Connection

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def among_themselves(private_runtime_folder: None) -> None:
    """Schedulers of these tests open their control socket there."""


@pytest.fixture
def connection(server: EmbeddedApiServer) -> Connection:
    return Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)


@pytest.fixture
async def client(connection: Connection) -> AsyncIterator[ApiClient]:
    async with ApiClient(connection) as client:
        yield client
