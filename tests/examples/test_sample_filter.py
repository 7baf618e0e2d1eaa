"""The sample filter in a live scheduler: the label wakes the pod that waits for it, and no time needs to pass."""

from __future__ import annotations

from tests.examples.conftest import EXAMPLES
from tests.scheduler.conftest import a_live_scheduler

from mooring.base.clock import ManualClock
from mooring.objects import Node

CONFIG = (EXAMPLES / "sample-filter" / "scheduler-config.yaml").read_text(encoding="utf-8")


async def test_a_pod_runs_as_soon_as_a_node_has_the_label_however_often_it_was_refused(server):
    # Time stands still: whatever waited for a backoff to end would wait for ever.
    async with a_live_scheduler(server, CONFIG, clock=ManualClock()) as live:
        await live.node("gpu02")
        await live.pod("web", scheduler="sample-scheduler")
        await live.refused("web", containing="0/1 nodes are available: 1 Node: gpu02.")
        for number in range(3, 8):
            # A new node that has the label and is cordoned: worth a try, and refused again.
            await live.client.create(
                Node.KIND,
                {"metadata": {"name": f"gpu{number:02}", "labels": {"cpu": "true"}}, "spec": {"unschedulable": True}},
            )
            await live.refused("web", containing=f"{number - 2} node(s) were unschedulable.")
        await live.client.patch(Node.KIND, "gpu02", None, {"metadata": {"labels": {"cpu": "true"}}})
        assert await live.bound("web") == ["gpu02"]
