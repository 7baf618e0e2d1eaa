"""ResourceClaims in a live scheduler: what keeps a pod waiting, what is written before it is bound, what is undone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.scheduler.conftest import PATIENCE_SECONDS, Live, a_configuration, a_live_scheduler, a_profile

from mooring.apiserver import EmbeddedApiServer
from mooring.framework import Allow, ClaimsInFlight, Cycle, NodeView, Plugin, Wait, WaitingPods
from mooring.objects import Pod
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.plugins.default.dynamic_resources.plugin import CANNOT_ALLOCATE, DEALLOCATED, NOT_AVAILABLE
from mooring.scheduler.plugin_runtime.claim_writer import FINALIZER

DRIVER = "gpu.example.com"
GPU = "example.com/gpu"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}


class Door(Plugin):
    """Pods labelled so wait on permit until the test lets them in."""

    doors: list[Door] = []

    def __init__(self, waiting: WaitingPods, in_flight: ClaimsInFlight) -> None:
        self._waiting = waiting
        self.in_flight = in_flight
        self.doors[:] = [self]

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        return Wait(600.0) if pod.labels.get("door") == "closed" and cycle.attempt == 1 else Allow()

    def let_in(self, pod: Pod) -> None:
        assert self._waiting.allow(pod.uid, self)

    def holds(self, pod: Pod) -> bool:
        return any(waiting.pod.uid == pod.uid for waiting in self._waiting)


@asynccontextmanager
async def a_cluster(server: EmbeddedApiServer, *gpus: str, node: str = "node-1") -> AsyncIterator[Live]:
    """A node with these devices, and a class of them."""
    configuration = a_configuration(a_profile("default-scheduler", plugins=["Door"]))
    async with a_live_scheduler(server, configuration, [Door]) as live:
        await live.node(node)
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        spec = {"selectors": [selector], "extendedResourceName": GPU}
        await live.client.create(DeviceClass.KIND, a_document(DeviceClass, "gpu", spec))
        if gpus:
            await a_slice(live, node, *gpus)
        yield live


def a_document(kind: type[Any], name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": kind.KIND.api_version,
        "kind": kind.KIND.kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


async def a_slice(live: Live, node: str, *gpus: str, conditions: Sequence[str] = ()) -> None:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices: list[dict[str, Any]] = [{"name": gpu} for gpu in gpus]
    if conditions:
        devices = [
            each | {"bindingConditions": list(conditions), "bindingFailureConditions": ["Broken"]} for each in devices
        ]
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    await live.client.create(ResourceSlice.KIND, a_document(ResourceSlice, node, spec))


async def a_claim(live: Live, name: str, **metadata: Any) -> None:
    spec = {"devices": {"requests": [REQUEST]}}
    await live.client.create(ResourceClaim.KIND, a_document(ResourceClaim, name, spec, **metadata), "default")


async def a_pod(live: Live, name: str, *claims: str, node: str = "", **labels: str) -> Pod:
    uses = [{"name": claim} for claim in claims]
    container = {"name": "main", "image": "pause", "resources": {"claims": uses}}
    spec: dict[str, Any] = {
        "containers": [container],
        "resourceClaims": [{"name": claim, "resourceClaimName": claim} for claim in claims],
    }
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    await live.client.create(Pod.KIND, a_document(Pod, name, spec, labels=labels), "default")
    await live.until(lambda: name in live.pods)
    return live.pods[name]


def the_owner(pod: Pod) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}


async def claim_of(live: Live, name: str) -> dict[str, Any]:
    return await live.client.get(ResourceClaim.KIND, name, "default")


def devices_of(claim: dict[str, Any]) -> list[str]:
    allocation = claim.get("status", {}).get("allocation", {})
    return [result["device"] for result in allocation.get("devices", {}).get("results", ())]


def users_of(claim: dict[str, Any]) -> list[str]:
    return [user["name"] for user in claim.get("status", {}).get("reservedFor", ())]


async def print_line(live: Live, claim: str, status: dict[str, Any]) -> None:
    """What another client writes to the claim."""
    body = {"status": status}
    await live.client.patch(ResourceClaim.KIND, claim, "default", body, form="merge", subresource="status")


async def until(happened: Callable[[], bool]) -> None:
    """For what no watch of the test shows."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not happened():  # noqa: ASYNC110 (nothing sets an event for it)
            await asyncio.sleep(0.01)


def in_flight() -> int:
    return len(Door.doors[0].in_flight)


async def test_a_pod_waits_for_its_claim_then_for_devices_and_is_bound_with_them(server: EmbeddedApiServer):
    async with a_cluster(server) as live:
        await a_pod(live, "trains", "training")
        await live.pod("web")
        assert await live.bound("web") == ["node-1"]
        assert live.pods["trains"].condition("PodScheduled") is None  # its claim is missing: it is in no queue

        await a_claim(live, "training")
        await live.refused("trains", containing=f"0/1 nodes are available: 1 {CANNOT_ALLOCATE}. still not schedulable")

        await a_slice(live, "node-1", "gpu-0")
        assert await live.bound("trains") == ["node-1"]
        claim = await claim_of(live, "training")
        assert (devices_of(claim), users_of(claim)) == (["gpu-0"], ["trains"])
        assert claim["metadata"]["finalizers"] == [FINALIZER]
        field = {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
        assert claim["status"]["allocation"]["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [field]}]}


async def test_a_claim_made_after_a_template_is_found_by_its_name_in_the_status(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0") as live:
        container = {"name": "main", "image": "pause", "resources": {"claims": [{"name": "gpu"}]}}
        uses = [{"name": "gpu", "resourceClaimTemplateName": "template"}]
        spec = {"containers": [container], "resourceClaims": uses}
        await live.client.create(Pod.KIND, a_document(Pod, "trains", spec), "default")
        await live.until(lambda: "trains" in live.pods)
        owner = the_owner(live.pods["trains"])
        await a_claim(live, "trains-gpu-x7", ownerReferences=[owner])
        made = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "trains-gpu-x7"}]}}
        await live.client.patch(Pod.KIND, "trains", "default", made, subresource="status")
        assert await live.bound("trains") == ["node-1"]
        claim = await claim_of(live, "trains-gpu-x7")
        assert (devices_of(claim), users_of(claim)) == (["gpu-0"], ["trains"])


async def test_the_last_device_goes_to_one_pod_and_to_the_next_when_that_one_is_gone(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0") as live:
        await a_claim(live, "one")
        await a_claim(live, "two")
        first = await a_pod(live, "first", "one", door="closed")
        await until(lambda: Door.doors[0].holds(first))
        assert in_flight() == 1

        await a_pod(live, "second", "two")
        await live.refused("second", containing=f"0/1 nodes are available: 1 {CANNOT_ALLOCATE}. still not schedulable")
        Door.doors[0].let_in(first)
        assert await live.bound("first") == ["node-1"]
        assert in_flight() == 0

        await live.client.delete(Pod.KIND, "first", "default", grace_seconds=0)
        await print_line(live, "one", {"allocation": None, "reservedFor": None})  # as the controller of claims does
        assert await live.bound("second") == ["node-1"]
        assert devices_of(await claim_of(live, "two")) == ["gpu-0"]


async def test_a_claim_can_be_shared_and_is_allocated_once(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0") as live:
        await a_claim(live, "shared")
        first = await a_pod(live, "first", "shared", door="closed")
        await until(lambda: Door.doors[0].holds(first))
        await a_pod(live, "second", "shared")
        await live.refused("second", containing="resource claim default/shared is in the process of being allocated")
        Door.doors[0].let_in(first)
        assert await live.bound("first", "second") == ["node-1", "node-1"]
        claim = await claim_of(live, "shared")
        assert (devices_of(claim), sorted(users_of(claim))) == (["gpu-0"], ["first", "second"])


async def test_a_claim_that_another_client_changed_is_written_all_the_same(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0") as live:
        await a_claim(live, "training")
        pod = await a_pod(live, "trains", "training", door="closed")
        await until(lambda: Door.doors[0].holds(pod))
        labels = {"metadata": {"labels": {"team": "red"}}}
        await live.client.patch(ResourceClaim.KIND, "training", "default", labels)
        Door.doors[0].let_in(pod)
        assert await live.bound("trains") == ["node-1"]
        claim = await claim_of(live, "training")
        assert (devices_of(claim), claim["metadata"]["labels"]) == (["gpu-0"], {"team": "red"})
        assert [event["reason"] for event in await live.events("trains")] == ["Scheduled"]


async def test_a_failure_half_way_leaves_nothing_behind(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0", "gpu-1") as live:
        for name in ("one", "two", "other"):
            await a_claim(live, name)
        pod = await a_pod(live, "trains", "one", "two", door="closed")
        await until(lambda: Door.doors[0].holds(pod))
        await live.client.delete(ResourceClaim.KIND, "two", "default")
        Door.doors[0].let_in(pod)
        await live.refused("trains", containing="add finalizer to claim default/two: ")
        one = await claim_of(live, "one")
        assert (devices_of(one), users_of(one)) == (["gpu-0"], [])  # as kube-scheduler leaves it: the next try uses it
        assert in_flight() == 0
        await a_pod(live, "another", "other")
        assert await live.bound("another") == ["node-1"]


async def test_an_allocation_that_stands_in_the_way_is_given_back(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0") as live:
        await a_claim(live, "training")
        elsewhere = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
        result = {"request": "r", "driver": DRIVER, "pool": "node-0", "device": "gpu-0"}
        selector = {"nodeSelectorTerms": [{"matchFields": [elsewhere]}]}
        await print_line(live, "training", {"allocation": {"devices": {"results": [result]}, "nodeSelector": selector}})
        await a_pod(live, "trains", "training")
        await live.refused("trains", containing=f"0/1 nodes are available: 1 {NOT_AVAILABLE}. {DEALLOCATED}")
        assert await live.bound("trains") == ["node-1"]
        claim = await claim_of(live, "training")
        assert claim["status"]["allocation"]["devices"]["results"][0]["pool"] == "node-1"


async def test_extended_resources_get_a_claim_that_the_pod_names(server: EmbeddedApiServer):
    async with a_cluster(server, "gpu-0") as live:
        amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
        spec = {"containers": [{"name": "main", "image": "pause", "resources": amounts}]}
        await live.client.create(Pod.KIND, a_document(Pod, "trains", spec), "default")
        assert await live.bound("trains") == ["node-1"]
        made = live.pods["trains"].status.extended_resource_claim_status
        assert made is not None
        assert made.resource_claim_name.startswith("trains-extended-resources-")
        assert [(each.container_name, each.resource_name) for each in made.request_mappings] == [("main", GPU)]
        claim = await claim_of(live, made.resource_claim_name)
        assert (devices_of(claim), users_of(claim)) == (["gpu-0"], ["trains"])
        assert claim["metadata"]["ownerReferences"][0]["uid"] == live.pods["trains"].uid
        assert in_flight() == 0


async def test_a_claim_left_over_from_a_failed_attempt_is_deleted_first(server: EmbeddedApiServer):
    async with a_cluster(server) as live:
        amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
        spec = {
            "containers": [{"name": "main", "image": "pause", "resources": amounts}],
            "schedulingGates": [{"name": "x"}],
        }
        await live.client.create(Pod.KIND, a_document(Pod, "trains", spec), "default")
        await live.until(lambda: "trains" in live.pods)
        owner = the_owner(live.pods["trains"])
        annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
        await a_claim(live, "left-over", ownerReferences=[owner], annotations=annotations, finalizers=[FINALIZER])
        await a_slice(live, "node-1", "gpu-0")
        await live.client.patch(Pod.KIND, "trains", "default", {"spec": {"schedulingGates": None}}, form="merge")
        assert await live.bound("trains") == ["node-1"]
        names = [claim["metadata"]["name"] for claim in await live.client.list(ResourceClaim.KIND, "default")]
        assert "left-over" not in names


async def test_devices_with_conditions_are_looked_at_before_the_pod_is_bound(server: EmbeddedApiServer):
    async with a_cluster(server) as live:
        await a_slice(live, "node-1", "gpu-0", conditions=["Attached"])
        await a_claim(live, "training")
        device = {"driver": DRIVER, "pool": "node-1", "device": "gpu-0"}
        result = {"request": "r", "bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"], **device}
        ready = {"type": "Attached", "status": "True", "reason": "Done", "message": ""}
        ready["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        await print_line(live, "training", {"allocation": {"devices": {"results": [result]}}})
        await print_line(live, "training", {"devices": [device | {"conditions": [ready]}]})
        await a_pod(live, "trains", "training")
        assert await live.bound("trains") == ["node-1"]
        claim = await claim_of(live, "training")
        assert users_of(claim) == ["trains"]
        assert claim["status"]["allocation"]["allocationTimestamp"]
        events = {event["reason"]: event["note"] for event in await live.events("trains")}
        assert events["BindingConditionsPending"] == "waiting for binding conditions for device on node node-1"
