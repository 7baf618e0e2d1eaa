"""A client that can only read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mooring.base.errors import Fault
from mooring.client import ApiClient, Connection
from mooring.objects import Pod
from mooring.scheduler.shadow import ReadOnlyClient

NOWHERE = Connection(server="https://127.0.0.1:1", source="the test")
BODY = {"metadata": {"name": "web", "namespace": "default"}}


@pytest.mark.parametrize(
    ("method", "write"),
    [
        ("POST", lambda client: client.create(Pod.KIND, BODY, "default")),
        ("PUT", lambda client: client.update(Pod.KIND, BODY)),
        ("PATCH", lambda client: client.patch(Pod.KIND, "web", "default", BODY)),
        ("DELETE", lambda client: client.delete(Pod.KIND, "web", "default")),
        ("POST", lambda client: client.bind("default", "web", "uid", "node")),
    ],
)
async def test_no_verb_that_writes_leaves(method: str, write: Callable[[ApiClient], Awaitable[Any]]):
    async with ReadOnlyClient(NOWHERE, qps=5.0, burst=5) as client, client.beside("events") as other:
        for each in (client, other):
            with pytest.raises(Fault, match=f"a shadow only reads, but was about to send {method} /api/v1/"):
                await write(each)
