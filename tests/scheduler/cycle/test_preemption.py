"""A pod of high priority on a full cluster, from its refusal to its binding, on the embedded API server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.framework import Allow, Cycle, NodeView, Plugin, Pod, Wait
from mooring.objects import Kind
from mooring.objects.policy import PodDisruptionBudget

PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False)


async def classes(live: Live) -> None:
    for name, value in (("low", 1), ("middle", 50), ("high", 100)):
        head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        await live.client.create(PRIORITY_CLASSES, head | {"value": value})
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "patient"}}
    await live.client.create(PRIORITY_CLASSES, head | {"value": 100, "preemptionPolicy": "Never"})


async def a_pod_of(
    live: Live, priority: str, name: str, *, cpu: str = "4", finalizers: list[str] | None = None, **more: Any
) -> None:
    """With a finalizer it stays, terminating, after it was deleted: as with a grace period."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}, "finalizers": finalizers or []},
        "spec": {
            "priorityClassName": priority,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}],
            **more,
        },
    }
    await live.client.create(Pod.KIND, document, "default")


async def a_full_node(live: Live, **more: Any) -> None:
    """By one pod of low priority."""
    await classes(live)
    await live.node("node-1")
    await a_pod_of(live, "low", "low", **more)
    await live.bound("low")


async def let_go(live: Live, name: str) -> None:
    await live.client.patch(Pod.KIND, name, "default", {"metadata": {"finalizers": None}})


async def test_a_pod_of_high_priority_takes_the_place_of_a_lower_one(server):
    """4.7.b, 4.8: victims are evicted concurrently; what changes nominatedNodeName."""
    async with a_live_scheduler(server) as live:
        await a_full_node(live)
        await a_pod_of(live, "high", "high")
        assert await live.bound("high") == ["node-1"]
        assert "low" not in live.pods
        [preempted] = [event for event in await live.events("low") if event["reason"] == "Preempted"]
        assert preempted["note"] == f"Preempted by pod {live.pods['high'].uid} on node node-1"
        assert (preempted["type"], preempted["action"]) == ("Normal", "Preempting")
        assert not live.pods["high"].status.nominated_node_name, "the API server clears it at the binding"
        counted = live.scheduler.metrics.text().decode()
        assert "scheduler_preemption_attempts_total 1.0" in counted
        assert "scheduler_preemption_victims_sum 1.0" in counted


async def test_the_node_is_kept_for_the_pod_while_its_victim_goes(server):
    """4.8: what changes nominatedNodeName."""
    async with a_live_scheduler(server) as live:
        await a_full_node(live, finalizers=["example.com/slow"])
        await a_pod_of(live, "high", "high")
        await live.until(lambda: "high" in live.pods and live.pods["high"].status.nominated_node_name == "node-1")
        await live.until(lambda: live.pods["low"].is_terminating)
        victim = live.pods["low"].condition("DisruptionTarget")
        assert victim is not None
        assert (victim.status, victim.reason) == ("True", "PreemptionByScheduler")
        assert victim.message == "default-scheduler: preempting to accommodate a higher priority pod"
        # A pod of lower priority does not slip in between, nor does the pod preempt again.
        await a_pod_of(live, "middle", "middle", cpu="1")
        await live.refused("middle")
        await let_go(live, "low")
        assert await live.bound("high") == ["node-1"]


async def test_a_second_try_waits_for_the_victims_of_the_first(server):
    async with a_live_scheduler(server) as live:
        await a_full_node(live, finalizers=["example.com/slow"])
        await a_pod_of(live, "high", "high")
        await live.until(lambda: live.pods["low"].is_terminating)
        await live.node("node-2", taints=["example.com/no:NoSchedule"])  # large enough to wake the pod
        await live.refused("high", containing="not eligible due to a terminating pod on the nominated node.")
        assert live.pods["high"].status.nominated_node_name == "node-1"
        await let_go(live, "low")
        assert await live.bound("high") == ["node-1"]


async def test_a_pod_that_must_not_preempt_waits(server):
    async with a_live_scheduler(server) as live:
        await a_full_node(live)
        await a_pod_of(live, "patient", "patient")
        await live.refused("patient", containing="preemption: not eligible due to preemptionPolicy=Never.")
        assert not live.pods["low"].is_terminating


async def test_the_node_without_a_protected_victim_is_chosen(server):
    async with a_live_scheduler(server) as live:
        await classes(live)
        await live.node("node-1")
        await live.node("node-2")
        for name in ("first", "second"):
            await a_pod_of(live, "low", name)
        where = dict(zip(("first", "second"), await live.bound("first", "second"), strict=True))
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "first"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "first"}}},
        }
        await live.client.create(PodDisruptionBudget.KIND, budget, "default")
        budgets = live.scheduler.informers.store(PodDisruptionBudget)
        await until(lambda: budgets.get("first", "default") is not None)
        await a_pod_of(live, "high", "high")
        assert await live.bound("high") == [where["second"]]
        assert "first" in live.pods


async def test_a_nomination_that_ends_wakes_those_behind_it(server):
    """3.2: changed fields decide which events are raised."""
    async with a_live_scheduler(server) as live:
        await classes(live)
        await live.node("node-1")
        await a_pod_of(live, "high", "nominated", cpu="3", schedulingGates=[{"name": "example.com/not-yet"}])
        status = {"status": {"nominatedNodeName": "node-1"}}
        await live.client.patch(Pod.KIND, "nominated", "default", status, subresource="status")
        await live.until(lambda: live.pods["nominated"].status.nominated_node_name == "node-1")
        await live.until(lambda: "node-1" in live.scheduler.state.nominations.nodes)
        await a_pod_of(live, "middle", "behind", cpu="2")
        await live.refused("behind", containing="Insufficient cpu")
        await live.client.delete(Pod.KIND, "nominated", "default")
        assert await live.bound("behind") == ["node-1"]


async def test_after_a_restart_nominations_are_known(server):
    async with a_live_scheduler(server) as live:
        await a_full_node(live, finalizers=["example.com/slow"])
        await a_pod_of(live, "high", "high")
        await live.until(lambda: "high" in live.pods and bool(live.pods["high"].status.nominated_node_name))
    async with a_live_scheduler(server) as live:
        await live.until(lambda: "high" in live.pods)
        uid = live.pods["high"].uid
        assert live.scheduler.state.nominations.node_of(uid) == "node-1"
        await let_go(live, "low")
        assert await live.bound("high") == ["node-1"]


# Victims that are not bound yet


class Hold(Plugin):
    """Lets pods with the label wait on permit for a minute, or in pre_bind for ever."""

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        return Wait(60.0) if pod.name == "permit" else Allow()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        if pod.name == "prebind":
            await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("on_its_way", ["permit", "prebind"])
async def test_a_victim_on_its_way_is_taken_back_and_not_deleted(server, on_its_way):
    """4.4.5, 4.7.b: PreBind plugins run in order or in parallel; victims are evicted concurrently."""
    async with a_live_scheduler(
        server, a_configuration(a_profile("default-scheduler", plugins=["Hold"])), [Hold]
    ) as live:
        await classes(live)
        await live.node("node-1")
        await a_pod_of(live, "low", on_its_way)
        await live.until(lambda: on_its_way in live.pods)
        uid = live.pods[on_its_way].uid
        if on_its_way == "permit":
            await live.until(lambda: live.pods["permit"].status.nominated_node_name == "node-1")
        await until(lambda: live.core.bindings.is_binding(uid))
        await a_pod_of(live, "high", "high")
        assert await live.bound("high") == ["node-1"]
        assert live.pods[on_its_way].uid == uid
        [event] = [each for each in await live.events(on_its_way) if each["reason"] == "Preempted"]
        assert event["note"].endswith("on node node-1 (in kube-scheduler memory).")
        await live.refused(on_its_way)


async def until(happened: Callable[[], bool]) -> None:
    """For what the watch does not show."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happened():  # noqa: ASYNC110  # nothing sets an event for it
            await asyncio.sleep(0)


# Faults


async def test_an_eviction_that_the_server_refuses_is_tried_again(server, monkeypatch, capsys):
    """4.7.d: the preemptor is gated until then."""
    async with a_live_scheduler(server) as live:
        await a_full_node(live)
        refused = refuse_once(monkeypatch, live, "delete")
        await a_pod_of(live, "high", "high")
        assert await live.bound("high") == ["node-1"]
        assert refused == ["low"]
        assert "Failed to evict pod" in capsys.readouterr().err


def refuse_once(monkeypatch: pytest.MonkeyPatch, live: Live, verb: str) -> list[str]:
    """The scheduler's next request of this verb fails; returns which pod it was about."""
    from mooring.base.errors import ApiError

    client = live.scheduler.client
    requested = getattr(client, verb)
    refused: list[str] = []

    async def request(kind: Kind, name: str, *rest: Any, **more: Any) -> Any:
        if not refused:
            refused.append(name)
            raise ApiError(403, "Forbidden", "not this time")
        return await requested(kind, name, *rest, **more)

    monkeypatch.setattr(client, verb, request)
    return refused
