"""Extenders take part in choosing victims: fewer nodes, or none."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.scheduler.conftest import Live, a_live_scheduler
from tests.scheduler.cycle.test_preemption import a_pod_of, classes
from tests.scheduler.extenders.conftest import calling


async def full(live: Live, *names: str) -> dict[str, str]:
    """A node and a pod of low priority that fills it, for each name; returns which pod is on which node."""
    await classes(live)
    for name in names:
        await live.node(name)
        await a_pod_of(live, "low", f"low-{name}", nodeName=name)
    await live.bound(*(f"low-{name}" for name in names))
    return {name: f"low-{name}" for name in names}


@pytest.mark.parametrize("is_capable", [False, True], ids=["whole pods", "uids"])
async def test_victims_are_where_the_extender_allows_them(server, extender, is_capable):
    def preempt(args: dict[str, Any]) -> dict[str, Any]:
        if is_capable:
            assert args["NodeNameToVictims"] is None
            reported = args["NodeNameToMetaVictims"]
        else:
            assert args["NodeNameToMetaVictims"] is None
            reported = {
                node: {"pods": [{"uid": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
                for node, victims in args["NodeNameToVictims"].items()
            }
        assert sorted(reported) == ["a", "b", "c"]
        return {"nodeNameToMetaVictims": {"b": reported["b"]}}

    extender.on["preempt"] = preempt
    config = calling({"urlPrefix": extender.url, "preemptVerb": "preempt", "nodeCacheCapable": is_capable})
    async with a_live_scheduler(server, config) as live:
        lows = await full(live, "a", "b", "c")
        await a_pod_of(live, "high", "high")
        assert await live.bound("high") == ["b"]
        assert sorted(live.pods) == sorted([lows["a"], lows["c"], "high"])
        assert extender.requested[0][1]["Pod"]["metadata"]["name"] == "high"


REFUSALS: dict[str, tuple[Any, str]] = {
    "no node is left": (
        lambda _: {"NodeNameToMetaVictims": {}},
        "no new claims to deallocate, preemption: no candidate node for preemption",
    ),
    "a node without victims": (
        lambda _: {"NodeNameToMetaVictims": {"a": {"Pods": []}}},
        'preemption: extender {}: expected at least one victim pod on node "a"',
    ),
    "a pod that is not there": (
        lambda _: {"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "x"}]}}},
        "preemption: extender: {} claims to preempt pod (UID: x) on node: a, but the pod is not found on that node",
    ),
    "a node that is not there": (
        lambda _: {"NodeNameToMetaVictims": {"z": {"Pods": [{"UID": "x"}]}}},
        'preemption: extender {} would preempt on node "z", which does not exist',
    ),
    "an error": (
        lambda _: web.Response(status=503),
        "preemption: failed preempt with extender at URL {}/preempt, code 503",
    ),
}


@pytest.mark.parametrize(("handler", "message"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_without_a_proper_response_no_pod_is_evicted_and_the_condition_names_why(
    server, extender, handler, message
):
    extender.on["preempt"] = handler
    config = calling({"urlPrefix": extender.url, "preemptVerb": "preempt", "nodeCacheCapable": True})
    async with a_live_scheduler(server, config) as live:
        lows = await full(live, "a")
        await a_pod_of(live, "high", "high")
        reported = await live.refused("high")
        assert reported == f"0/1 nodes are available: 1 Insufficient cpu. {message.format(extender.url)}"
        assert live.condition("high").reason == "Unschedulable"
        assert not live.pods[lows["a"]].is_terminating


async def test_an_ignorable_extender_that_fails_changes_nothing(server, extender):
    extender.on["preempt"] = lambda _: web.Response(status=503)
    config = calling({"urlPrefix": extender.url, "preemptVerb": "preempt", "ignorable": True})
    async with a_live_scheduler(server, config) as live:
        await full(live, "a")
        await a_pod_of(live, "high", "high")
        assert await live.bound("high") == ["a"]


async def test_the_nominated_node_is_sent_alone_and_the_others_where_it_is_refused(server, extender):
    def preempt(args: dict[str, Any]) -> dict[str, Any]:
        return {"NodeNameToMetaVictims": {"a": args["NodeNameToMetaVictims"]["a"]}}

    def refuse_a(args: dict[str, Any]) -> dict[str, Any]:
        return {"NodeNames": [name for name in args["NodeNames"] if name != "a"], "FailedNodes": {"a": "no"}}

    extender.on |= {"preempt": preempt, "filter": refuse_a}
    verbs = {"preemptVerb": "preempt", "filterVerb": "filter"}
    config = calling({"urlPrefix": extender.url, "nodeCacheCapable": True, **verbs})
    async with a_live_scheduler(server, config) as live:
        await full(live, "a")
        await a_pod_of(live, "high", "high")
        await live.until(lambda: "low-a" not in live.pods)
        await live.node("b")
        assert await live.bound("high") == ["b"]
        requested = [args["NodeNames"] for verb, args in extender.requested if verb == "filter"]
        assert ["a"] in requested
        assert sorted(requested[-1]) == ["a", "b"]
