"""Many pods at once: some decisions are made before bindings and events take their time, and not too many."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile, among_themselves

from mooring.base.clock import ManualClock
from mooring.client import ApiClient, Connection
from mooring.framework import Plugin
from mooring.objects.core import Node, Pod
from mooring.scheduler.loop import DECIDING_SECONDS, MOST_DECISIONS

__all__ = ["among_themselves"]


class Taking(Plugin):
    """Lets each decision take a while, and notes how often the event loop has gone round by then."""

    clock: ClassVar[ManualClock]
    seconds: ClassVar[float]
    passes: ClassVar[int]
    seen: ClassVar[list[int]]

    def pre_filter(self, pod: Pod, cycle: Any) -> None:
        self.clock.advance(seconds=self.seconds)
        self.seen.append(Taking.passes)


async def count_passes() -> None:
    while True:
        Taking.passes += 1
        await asyncio.sleep(0)


CASES = {
    "many short decisions share a pass": (0.0, MOST_DECISIONS + 10, [MOST_DECISIONS, 10]),
    "not those that take too long together": (DECIDING_SECONDS / 2.5, 4, [3, 1]),
    "a long one has a pass of its own": (DECIDING_SECONDS * 2, 3, [1, 1, 1]),
}


@pytest.mark.parametrize(("seconds", "pods", "together"), CASES.values(), ids=CASES.keys())
async def test_how_many_decisions_are_made_before_the_event_loop_goes_round(server, seconds, pods, together):
    """All pods are there when the scheduler starts."""
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    async with ApiClient(connection) as client:
        resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        await client.create(Node.KIND, {"metadata": {"name": "node-1"}, "status": {"allocatable": resources}})
        spec = {"containers": [{"name": "main", "image": "pause"}]}
        for number in range(pods):
            await client.create(Pod.KIND, {"metadata": {"name": f"pod-{number}"}, "spec": spec}, "default")
    Taking.clock, Taking.seconds, Taking.passes, Taking.seen = ManualClock(), seconds, 0, []
    config = a_configuration(a_profile("default-scheduler", plugins=["Taking"]))
    counting = asyncio.create_task(count_passes())
    async with a_live_scheduler(server, config, [Taking], clock=Taking.clock) as live:
        for number in range(pods):
            await live.bound(f"pod-{number}")
    counting.cancel()
    assert [Taking.seen.count(each) for each in sorted(set(Taking.seen))] == together
