"""An extender that is another process, in other code than ours."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.scheduler.conftest import a_live_scheduler
from tests.scheduler.extenders.conftest import calling

from mooring.objects import Node


@pytest.fixture
async def address() -> AsyncIterator[str]:
    program = Path(__file__).with_name("stand_alone.py")
    process = await asyncio.create_subprocess_exec(sys.executable, program, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    yield (await process.stdout.readline()).decode().strip()
    process.kill()
    await process.communicate()


async def test_it_filters_and_scores_and_pods_wait_for_what_it_wants(server, address):
    verbs = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100}
    async with a_live_scheduler(server, calling({"urlPrefix": address, **verbs})) as live:
        await live.node("a")
        await live.node("b", labels={"quiet": "no"})
        await live.pod("web")
        assert (await live.refused("web")).startswith("0/2 nodes are available: 2 node(s) were too loud.")
        await live.client.patch(Node.KIND, "a", None, {"metadata": {"labels": {"quiet": "yes"}}})
        assert await live.bound("web") == ["a"]
        await live.node("c", labels={"quiet": "yes"})
        await live.node("d", labels={"quiet": "yes"})
        await live.pod("next")
        assert await live.bound("next") == ["d"]
