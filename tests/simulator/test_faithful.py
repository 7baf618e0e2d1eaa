"""A simulation decides as the scheduler does on the embedded cluster: every placement and every refusal."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from tests.scheduler.conftest import Live, a_live_scheduler
from tests.simulator import without_ties
from tests.simulator.without_ties import URGENT, Placed

from mooring.objects import Pod
from mooring.simulator import Cluster


@pytest.fixture(autouse=True)
def apart(private_runtime_folder: None) -> None:
    """The live scheduler opens its control socket there."""


@pytest.mark.parametrize("seed", without_ties.SEEDS)
async def test_one_pod_after_the_other(seed: int, server, tmp_path: Path):
    nodes, classes = without_ties.nodes(), without_ties.priority_classes(seed)
    async with a_live_scheduler(server) as live:
        server.load([*classes, *nodes])
        placed = await placed_by(live, seed)
    (file := tmp_path / "cluster.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [*classes, *nodes]})
    )
    assert placed == without_ties.simulated(Cluster.read(file), seed, tmp_path)


async def placed_by(live: Live, seed: int) -> Placed:
    refusals = {}
    for document in without_ties.pods(seed):
        name = document["metadata"]["name"]
        await live.client.create(Pod.KIND, document, "default")
        await live.until(partial(is_decided, live, name))
        if name != URGENT and not live.pods[name].spec.node_name:
            refusals[name] = await live.refused(name)
    await live.bound(URGENT)
    return Placed({pod.name: pod.spec.node_name for pod in live.pods.values() if pod.spec.node_name}, refusals)


def is_decided(live: Live, name: str) -> bool:
    pod = live.pods.get(name)
    return pod is not None and bool(pod.spec.node_name or pod.condition("PodScheduled"))
