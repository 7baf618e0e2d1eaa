"""Extenders end to end: a scheduler on the embedded API server calls an HTTP server of the test."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from aiohttp import web
from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_live_scheduler, a_profile
from tests.scheduler.extenders.conftest import an_extender, calling, names_of, only, soon

from mooring.base.clock import ManualClock
from mooring.base.tls import make_identity
from mooring.framework import Cycle, NodeView, Plugin
from mooring.objects import Node, Pod


async def a_pod_with(live: Live, name: str, **resources: str) -> None:
    container = {"name": "main", "image": "pause", "resources": {"requests": resources, "limits": resources}}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    await live.client.create(Pod.KIND, document, "default")


def reason_of(live: Live, name: str) -> str:
    condition = live.pods[name].condition("PodScheduled")
    return condition.reason if condition is not None else ""


@pytest.mark.parametrize("capable", [False, True], ids=["whole nodes", "names"])
async def test_a_filter_chooses_among_the_nodes_that_passed(server, extender, capable):
    extender.on["filter"] = only("b")
    config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": capable})
    async with a_live_scheduler(server, config) as live:
        for name in ("a", "b", "c"):
            await live.node(name, labels={"tier": name})
        await live.node("small", cpu="10m")
        await live.pod("web")
        assert await live.bound("web") == ["b"]
        [(_, args)] = extender.requested
        assert sorted(names_of(args)) == ["a", "b", "c"]
        assert args["Pod"]["metadata"]["name"] == "web"


async def test_objects_are_sent_as_the_api_server_wrote_them(server, extender):
    extender.on["filter"] = only("a")
    async with a_live_scheduler(server, calling({"urlPrefix": extender.url, "filterVerb": "filter"})) as live:
        await live.node("a")
        status = {"status": {"nodeInfo": {"kernelVersion": "6.1-test"}}}
        await live.client.patch(Node.KIND, "a", None, status, subresource="status")
        await live.pod("web")
        await live.bound("web")
    args = extender.requested[-1][1]
    [node] = args["Nodes"]["items"]
    assert node["status"]["nodeInfo"]["kernelVersion"] == "6.1-test"
    assert args["Pod"]["spec"]["containers"][0]["image"] == "pause"
    assert args["Pod"]["metadata"]["creationTimestamp"]


async def test_refused_nodes_are_counted_and_anything_may_wake_the_pod(server, extender):
    failed = {"FailedNodes": {"a": "too hot", "b": "too hot"}, "failedandunresolvablenodes": {"b": "leaks"}}
    extender.on["filter"] = only(**failed)
    config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True})
    async with a_live_scheduler(server, config) as live:
        for name in ("a", "b"):
            await live.node(name)
        await live.pod("web")
        message = await live.refused("web")
        assert message.startswith("0/2 nodes are available: 1 leaks, 1 too hot.")
        # Only where the extender sees a way is preemption tried.
        assert "1 No preemption victims found for incoming pod, 1 Preemption is not helpful" in message
        extender.on["filter"] = only("b")
        # Nothing of NodeResourcesFit or another plugin: a label that no plugin reads.
        await live.client.patch(Node.KIND, "b", None, {"metadata": {"labels": {"x": "y"}}})
        assert await live.bound("web") == ["b"]


async def test_scores_are_weighted_and_added(server, extender):
    extender.on["filter"] = lambda args: {"NodeNames": args["NodeNames"]}
    extender.on["prioritize"] = lambda _: [{"host": "c", "score": 10}, {"Host": "a", "Score": 1}]
    config = calling(
        {
            "urlPrefix": extender.url + "/",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 100,
            "nodeCacheCapable": True,
        }
    )
    async with a_live_scheduler(server, config) as live:
        for name in ("a", "b", "c"):
            await live.node(name)
        for number in range(4):
            await live.pod(f"web-{number}")
        assert await live.bound(*(f"web-{number}" for number in range(4))) == ["c"] * 4
        decision = live.scheduler.decision_log.read("default/web-0")
        assert decision is not None
        [score] = [each for each in decision["scores"] if each["plugin"].startswith("http")]
        assert (score["raw"], score["weight"], score["weighted"]) == (10, 100, 10_000)


async def test_a_prioritizer_that_fails_gives_nothing(server, extender):
    extender.on["prioritize"] = lambda _: web.Response(status=500)
    config = calling({"urlPrefix": extender.url, "prioritizeVerb": "prioritize", "weight": 1})
    async with a_live_scheduler(server, config) as live:
        await live.node("a")
        await live.node("b")
        await live.pod("web")
        await live.bound("web")
        assert extender.verbs() == ["prioritize"]


async def test_a_binder_binds_in_place_of_the_plugins(server, extender):
    config = calling({"urlPrefix": extender.url, "bindVerb": "bind"})
    async with a_live_scheduler(server, config) as live:

        async def bind(args: dict[str, Any]) -> dict[str, str]:
            await live.client.bind(args["PodNamespace"], args["PodName"], args["PodUID"], args["Node"])
            return {"Error": ""}

        extender.on["bind"] = bind
        await live.node("a")
        await live.pod("web")
        assert await live.bound("web") == ["a"]
        uid = live.pods["web"].uid
        assert extender.requested == [
            ("bind", {"PodName": "web", "PodNamespace": "default", "PodUID": uid, "Node": "a"})
        ]


async def test_a_binder_that_cannot_bind_fails_the_attempt_and_the_place_is_free_again(server, extender):
    extender.on["bind"] = lambda _: {"Error": "the node is asleep"}
    async with a_live_scheduler(server, calling({"urlPrefix": extender.url, "bindVerb": "bind"})) as live:
        await live.node("a")
        await live.pod("web")
        assert (await live.refused("web")).endswith("returned an error for bind: the node is asleep")
        [event, *_] = await live.events("web")
        assert (event["reason"], event["type"]) == ("FailedScheduling", "Warning")
        assert reason_of(live, "web") == "SchedulerError"
        await live.until(lambda: not live.scheduler.state.is_assumed(live.pods["web"].uid))


FAILURES: dict[str, tuple[Any, str]] = {
    "one that returns 500": (
        lambda _: web.Response(status=500),
        "failed filter with extender at URL {}/filter, code 500",
    ),
    "one that returns an invalid value": (
        lambda _: web.Response(text="<html>"),
        "extender {} responded to filter with an invalid body",
    ),
    "one that returns another shape": (
        lambda _: {"NodeNames": 3},
        "extender {} responded to filter with an invalid body: NodeNames",
    ),
    "one that reports what is wrong": (
        lambda _: {"Error": "no quorum"},
        "extender {} returned an error for filter: no quorum",
    ),
    "one that names a node that was not in the request": (
        lambda _: {"NodeNames": ["a", "moon"]},
        'extender "{}" claims a filtered node "moon" which is not found in the input node list',
    ),
    "one that is slow": (
        lambda _: asyncio.Event().wait(),
        "extender {} cannot be called for filter: it did not respond within 0.2 s",
    ),
}


@pytest.mark.parametrize(("handler", "message"), FAILURES.values(), ids=FAILURES.keys())
async def test_an_extender_that_fails_fails_the_attempt(server, extender, handler, message):
    extender.on["filter"] = handler
    # A busy machine must not make those slow that are not.
    patience = "200ms" if "0.2 s" in message else "1m"
    config = calling(
        {"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": patience}
    )
    async with a_live_scheduler(server, config) as live:
        await live.node("a")
        await live.pod("web")
        assert (await live.refused("web")).startswith(message.format(extender.url))
        assert reason_of(live, "web") == "SchedulerError"
        extender.on["filter"] = only("a")
        # Retried with the error backoff: nothing has to happen for that.
        assert await live.bound("web") == ["a"]


async def test_an_extender_that_is_down_is_named(server, unused_tcp_port):
    config = calling({"urlPrefix": f"http://user:secret@127.0.0.1:{unused_tcp_port}/x", "filterVerb": "filter"})
    async with a_live_scheduler(server, config) as live:
        await live.node("a")
        await live.pod("web")
        message = await live.refused("web")
        assert message.startswith(f"extender http://127.0.0.1:{unused_tcp_port}/x cannot be called for filter: ")
        assert "secret" not in message


async def test_an_ignorable_extender_that_is_down_is_passed_over_and_called_last(server, extender, unused_tcp_port):
    extender.on["filter"] = only("b")
    down = {
        "urlPrefix": f"http://127.0.0.1:{unused_tcp_port}",
        "filterVerb": "filter",
        "bindVerb": "bind",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "ignorable": True,
    }
    config = calling(down, {"urlPrefix": extender.url, "filterVerb": "filter"})
    async with a_live_scheduler(server, config) as live:
        await live.node("a")
        await live.node("b")
        await live.pod("web")
        assert await live.bound("web") == ["b"]


async def test_an_extender_is_called_only_for_pods_with_its_resources_which_need_not_fit(server, extender):
    extender.on["filter"] = only("b")
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "managedResources": managed})
    async with a_live_scheduler(server, config) as live:
        await live.node("a")
        await live.pod("plain")
        await live.bound("plain")
        assert extender.requested == []
        await live.node("b")
        await a_pod_with(live, "fast", **{"example.com/gpu": "1"})
        assert await live.bound("fast") == ["b"]
        assert len(extender.requested) == 1


async def test_the_cluster_may_change_while_an_extender_is_called(server, extender):
    may_respond = asyncio.Event()

    async def slowly(args: dict[str, Any]) -> dict[str, Any]:
        if len(extender.requested) == 1:
            await may_respond.wait()
        return {"NodeNames": args["NodeNames"]}

    extender.on["filter"] = slowly
    config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True})
    async with a_live_scheduler(server, config) as live:
        await live.node("old")
        await live.pod("web")
        await extender.is_requested.wait()
        await live.client.delete(Node.KIND, "old")
        await live.node("new")
        known = live.scheduler.state.node
        await soon(lambda: known("old") is None and known("new") is not None)
        may_respond.set()
        assert await live.bound("web") == ["new"]
        assert [names_of(args) for _, args in extender.requested] == [["old"], ["new"]]


async def test_a_pod_that_is_deleted_while_an_extender_is_called_leaves_nothing_behind(server, extender):
    may_respond = asyncio.Event()

    async def slowly(args: dict[str, Any]) -> dict[str, Any]:
        await may_respond.wait()
        return {"NodeNames": args["NodeNames"]}

    extender.on["filter"] = slowly
    config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "nodeCacheCapable": True})
    async with a_live_scheduler(server, config) as live:
        await live.node("a")
        await live.pod("web")
        await extender.is_requested.wait()
        await live.until(lambda: "web" in live.pods)
        uid = live.pods["web"].uid
        await live.client.delete(Pod.KIND, "web", "default", grace_seconds=0)
        await soon(lambda: live.scheduler.pods.latest(uid) is None)
        may_respond.set()
        await live.pod("next")
        assert await live.bound("next") == ["a"]
        assert live.scheduler.state.pod(uid) is None


async def test_the_scheduler_ends_at_once_while_an_extender_is_called(server, extender):
    extender.on["filter"] = lambda _: asyncio.Event().wait()
    config = calling({"urlPrefix": extender.url, "filterVerb": "filter", "httpTimeout": "1h"})
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with a_live_scheduler(server, config) as live:
            await live.node("a")
            await live.pod("web")
            await extender.is_requested.wait()
    assert not live.scheduler.state.is_assumed(live.pods["web"].uid)


async def test_over_https_with_a_ca_and_without(server):
    identity = make_identity(["localhost"], "extender")
    async with an_extender(identity.ssl_context()) as extender:
        extender.on["filter"] = only("a")
        ca = base64.b64encode(identity.ca_pem.encode()).decode()
        checked = {"enableHTTPS": True, "tlsConfig": {"caData": ca, "serverName": "localhost"}}
        for extra in (checked, {"enableHTTPS": True}):
            config = calling({"urlPrefix": extender.url, "filterVerb": "filter", **extra})
            async with a_live_scheduler(server, config) as live:
                if not await live.client.list(Node.KIND):
                    await live.node("a")
                name = f"web-{len(extra)}"
                await live.pod(name)
                assert await live.bound(name) == ["a"]
        assert len(extender.requested) == 2


async def test_a_certificate_that_is_not_trusted_fails_the_attempt(server):
    async with an_extender(make_identity(["127.0.0.1"], "extender").ssl_context()) as extender:
        config = calling({"urlPrefix": extender.url, "filterVerb": "filter"})
        async with a_live_scheduler(server, config) as live:
            await live.node("a")
            await live.pod("web")
            assert "certificate verify failed" in await live.refused("web")
            assert extender.requested == []


class Rack(Plugin):
    """Adds to the bindings of pods that have the label."""

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        if "rack" in pod.labels:
            cycle.add_to_binding(self, annotations={"example.com/rack": "r1"})


async def test_a_pod_whose_binding_plugins_added_to_is_not_handed_to_an_extender_that_cannot_carry_it(server, extender):
    extender.on["bind"] = lambda _: {}
    config = calling({"urlPrefix": extender.url, "bindVerb": "bind"})
    config += "profiles:\n" + a_profile("default-scheduler", plugins=["Rack"])
    async with a_live_scheduler(server, config, [Rack], clock=ManualClock()) as live:
        await live.node("node-1")
        await live.pod("plain")
        await soon(lambda: extender.verbs() == ["bind"])
        await live.pod("web", rack="yes")
        message = await live.refused("web")
        assert message.startswith("Rack added annotations or labels to the binding, and extender http://")
        assert message.endswith("binds the pod and cannot carry them; write them by PodWriter in pre_bind")
        assert extender.verbs() == ["bind"]
