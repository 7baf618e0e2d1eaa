"""Two thousand clients at once: bounded memory, clear refusals, and a server that serves the next one."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real_browser.clusters import shop
from tests.real_browser.many_clients import load
from tests.real_browser.served import Served, page_of_file

CLIENTS = 2000
MOST_MEMORY_BYTES = 64 * 1024 * 1024
"""More than before."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server of the test's own: its limits are used up."""
    file = tmp_path / "shop.yaml"
    file.write_text(shop(), encoding="utf-8")
    with page_of_file(file) as running:
        yield running


def test_two_thousand_clients_get_a_response_or_a_clear_refusal(served: Served) -> None:
    found = asyncio.run(load(served, CLIENTS, at_once=16))

    assert sum(found.statuses.values()) == 3 * CLIENTS
    assert {key.split(" ")[1] for key in found.statuses} <= {"200", "429", "503"}, found.statuses
    assert found.statuses["/cluster 200"] > 0
    assert found.statuses["/stream 200"] > 0
    assert found.statuses["/nodes 429"] > 0
    assert all(json.loads(text)["error"]["message"] for text in found.texts)
    assert found.memory_peak - found.memory_before < MOST_MEMORY_BYTES
    assert name_of_cluster(served)


def test_two_thousand_connections_in_the_same_moment_cost_little_memory(served: Served) -> None:
    found = asyncio.run(load(served, CLIENTS, at_once=CLIENTS))

    # More than a client may have are closed, those first that have requested nothing yet.
    assert {key.split(" ")[1] for key in found.statuses} <= {"200", "429", "503", "closed"}, found.statuses
    assert found.statuses["/cluster 200"] > 0
    assert found.memory_peak - found.memory_before < MOST_MEMORY_BYTES
    assert name_of_cluster(served)


def name_of_cluster(served: Served) -> str:
    """As soon as the rate allows another request."""
    request = urllib.request.Request(f"{served.origin}/api/v1/cluster")
    request.add_header("Authorization", f"Bearer {served.token}")
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                name: str = json.load(response)["name"]
                return name
        except urllib.error.HTTPError as refused:
            refused.close()
            if refused.code not in (429, 503):
                raise
