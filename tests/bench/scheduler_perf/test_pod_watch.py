"""The watch counts pods that reach a stage, and ends a wait with the last of them."""

from __future__ import annotations

import asyncio

import msgspec
from tests.bench.scheduler_perf.conftest import NODE, watching

from mooring.bench.scheduler_perf.manifests import NAMESPACES, PODS, default_pod
from mooring.bench.scheduler_perf.operations import Barrier, Operation, Sleep, needs_pending_pods
from mooring.bench.scheduler_perf.pod_watch import PodWatch, WatchedPod
from mooring.client import ApiClient


def a_watched_pod(
    name: str, *, uid: str = "1", node: str = "", is_refused: bool = False, app: str = "web"
) -> WatchedPod:
    document = {
        "metadata": {"name": name, "namespace": "shop", "uid": uid, "labels": {"app": app}},
        "spec": {"nodeName": node},
        "status": {"conditions": [{"type": "PodScheduled"}] if is_refused else []},
    }
    return msgspec.convert(document, WatchedPod)


async def test_a_count_follows_the_watch():
    pods = PodWatch()
    pods.changed(a_watched_pod("a", node=NODE))
    with pods.counting("shop", {}, "scheduled", 2) as count:
        assert (count.reached, count.all.done()) == (1, False)
        pods.changed(a_watched_pod("b"))
        pods.deleted(a_watched_pod("a", node=NODE))
        assert (count.reached, count.all.done()) == (0, False)
        pods.changed(a_watched_pod("b", node=NODE))
        pods.changed(a_watched_pod("c", node=NODE))
        assert (count.reached, count.all.done()) == (2, True)


async def test_a_count_is_of_one_namespace_and_of_labels():
    pods = PodWatch()
    with (
        pods.counting("shop", {"app": "web"}, "scheduled", 1) as of_web,
        pods.counting("", {}, "scheduled", 1) as other,
    ):
        pods.changed(a_watched_pod("a", node=NODE, app="db"))
        assert (of_web.reached, other.reached) == (0, 0)
        pods.changed(a_watched_pod("b", node=NODE))
        assert of_web.all.done()


async def test_a_pod_that_no_node_fits_is_attempted():
    pods = PodWatch()
    with pods.counting("shop", {}, "attempted", 2) as count:
        pods.changed(a_watched_pod("a"))
        assert count.reached == 0
        pods.changed(a_watched_pod("a", is_refused=True))
        pods.changed(a_watched_pod("b", node=NODE))
        assert count.all.done()


async def test_nothing_is_waited_for_where_nothing_is_wanted():
    with PodWatch().counting("shop", {}, "scheduled", 0) as count:
        assert count.all.done()


async def test_a_recreated_pod_is_scheduled_again():
    pods, scheduled = PodWatch(), list[str]()
    pods.on_scheduled(lambda pod: scheduled.append(pod.uid))
    for uid in ("1", "1", "2"):
        pods.changed(a_watched_pod("a", uid=uid, node=NODE))
    assert scheduled == ["1", "2"]


async def test_a_watch_of_scheduled_pods_brings_no_other(client: ApiClient):
    pods, seen = PodWatch(is_of_scheduled=True), asyncio.Queue[tuple[str, str]]()
    pods.on_scheduled(lambda pod: seen.put_nowait((pod.name, pod.spec.node_name)))
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    async with watching(pods, client):
        for name in ("pending", "bound"):
            await client.create(PODS, default_pod() | {"metadata": {"name": name}}, "shop")
        bound = await client.get(PODS, "bound", "shop")
        await client.bind("shop", "bound", bound["metadata"]["uid"], NODE)
        assert await seen.get() == ("bound", NODE)
        with pods.counting("shop", {}, "attempted", 1) as count:
            assert count.reached == 1


def test_only_a_barrier_for_attempts_needs_pending_pods():
    operations: list[Operation] = [Barrier(), Barrier(stage_requirement="Attempted"), Sleep(duration="1s")]
    assert list(map(needs_pending_pods, operations)) == [False, True, False]
