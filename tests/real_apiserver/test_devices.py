"""Claims of devices on a real API server: written with kube-scheduler's rights, and accepted by its validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.real_apiserver.cluster import OURS_ALONE, PODS, Cluster, Document
from tests.real_apiserver.control_plane import SCHEDULER

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
DRIVER = "gpu.example.com"
GPU = "example.com/gpu"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}


@pytest.fixture
def devices(cluster: Cluster) -> Iterator[Cluster]:
    """A node with two devices and our scheduler; objects that remain are removed, for no controller does it."""
    cluster.scheduler()
    yield from with_devices(cluster)


@pytest.fixture
def with_controllers(cluster: Cluster) -> Iterator[Cluster]:
    """As `devices`, with a controller that creates claims from templates and deallocates devices."""
    cluster.scheduler()
    yield from with_devices(cluster, "--controllers")


@pytest.fixture
def no_scheduler(cluster: Cluster) -> Iterator[Cluster]:
    """The devices alone."""
    yield from with_devices(cluster)


def with_devices(cluster: Cluster, *flags: str) -> Iterator[Cluster]:
    cluster.nodes(1, *flags)
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    provides = {"selectors": [selector], "extendedResourceName": GPU}
    cluster.api.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": provides})
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": 1}
    gpus = [{"name": "gpu-0"}, {"name": "gpu-1"}]
    spec = {"driver": DRIVER, "nodeName": "node-1", "pool": pool, "devices": gpus}
    cluster.api.create(SLICES, {"metadata": {"name": "node-1"}, "spec": spec})
    yield cluster
    cluster.clear()
    for path in (CLAIMS, TEMPLATES, SLICES, CLASSES):
        for each in cluster.api.items(path):
            one = f"{path}/{each['metadata']['name']}"
            cluster.api.merge(one, {"metadata": {"finalizers": None}})
        cluster.api.delete(path)


def a_claim(cluster: Cluster, name: str) -> None:
    cluster.api.create(CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [REQUEST]}}})


def a_pod(cluster: Cluster, name: str, *claims: str) -> None:
    cluster.pod(name, resourceClaims=[{"name": claim, "resourceClaimName": claim} for claim in claims])


def the_claim(cluster: Cluster, name: str) -> Document:
    claim: Document = cluster.api.get(f"{CLAIMS}/{name}")
    return claim


def device_of(claim: Document) -> str:
    results: list[dict[str, Any]] = claim["status"]["allocation"]["devices"]["results"]
    assert len(results) == 1
    return str(results[0]["device"])


def users_of(claim: Document) -> list[str]:
    return sorted(user["name"] for user in claim["status"].get("reservedFor", ()))


def deallocate(cluster: Cluster, claim: str) -> None:
    """As the controller of claims does when the last pod is gone."""
    cluster.api.merge(f"{CLAIMS}/{claim}/status", {"status": {"reservedFor": None}})
    cluster.api.merge(f"{CLAIMS}/{claim}/status", {"status": {"allocation": None}})


def test_claims_are_allocated_reserved_and_protected(devices: Cluster):
    a_claim(devices, "one")
    a_claim(devices, "shared")
    a_pod(devices, "web", "one", "shared")
    a_pod(devices, "other", "shared")
    assert (devices.bound("web"), devices.bound("other")) == ("node-1", "node-1")
    one, shared = the_claim(devices, "one"), the_claim(devices, "shared")
    assert {device_of(one), device_of(shared)} == {"gpu-0", "gpu-1"}
    assert (users_of(one), users_of(shared)) == (["web"], ["other", "web"])
    assert one["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]


def test_a_pod_waits_for_a_device_and_gets_it_when_it_is_free(devices: Cluster):
    for name in ("one", "two", "three"):
        a_claim(devices, name)
    a_pod(devices, "first", "one", "two")
    devices.bound("first")
    a_pod(devices, "second", "three")
    why = devices.refused("second")["message"]
    assert why.startswith("0/1 nodes are available: 1 cannot allocate all claims. still not schedulable")
    devices.api.delete(f"{PODS}/first")
    devices.gone("first")
    deallocate(devices, "one")
    assert devices.bound("second") == "node-1"


def test_an_unused_allocation_that_no_node_serves_is_deallocated(devices: Cluster):
    a_claim(devices, "stuck")
    field = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    result = {"request": "r", "driver": DRIVER, "pool": "node-0", "device": "gpu-0"}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": selector}
    devices.api.merge(f"{CLAIMS}/stuck", {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}})
    devices.api.merge(f"{CLAIMS}/stuck/status", {"status": {"allocation": allocation}})
    a_pod(devices, "web", "stuck")
    assert devices.bound("web") == "node-1"
    assert the_claim(devices, "stuck")["status"]["allocation"]["devices"]["results"][0]["pool"] == "node-1"
    message = devices.event("web", "FailedScheduling")["message"]
    assert "1 resourceclaim not available on the node. deallocation of ResourceClaim completed" in message


def test_extended_resources_get_a_claim_of_their_own(devices: Cluster):
    amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    devices.pod("web", containers=[{"name": "main", "image": "pause", "resources": amounts}])
    assert devices.bound("web") == "node-1"
    status = devices.api.get(f"{PODS}/web")["status"]["extendedResourceClaimStatus"]
    assert status["requestMappings"] == [
        {"containerName": "main", "resourceName": GPU, "requestName": "container-0-request-0"}
    ]
    claim = the_claim(devices, status["resourceClaimName"])
    assert (users_of(claim), claim["metadata"]["generateName"]) == (["web"], "web-extended-resources-")


def test_claims_made_after_a_template_come_and_go_with_their_pods(with_controllers: Cluster):
    cluster = with_controllers
    wanted = [{"name": "device", "resourceClaimTemplateName": "gpu"}]
    cluster.pod("first", resourceClaims=wanted)
    message = cluster.event("first", "FailedResourceClaimCreation")["message"]
    assert message == 'PodResourceClaim device: resource claim template "gpu" not found'

    cluster.api.create(TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": [REQUEST]}}}})
    for name in ("second", "third"):
        cluster.pod(name, resourceClaims=wanted)

    def with_a_device() -> list[Document]:
        return [pod for pod in cluster.pods() if pod["status"]["phase"] == "Running"]

    lucky = cluster.until(lambda: len(with_a_device()) == 2 and with_a_device(), what="a pod for each device")
    assert isinstance(lucky, list)
    claims = {each["metadata"]["name"]: each for each in cluster.api.items(CLAIMS)}
    assert len(claims) == 3
    for pod in lucky:
        [status] = pod["status"]["resourceClaimStatuses"]
        assert users_of(claims[status["resourceClaimName"]]) == [pod["metadata"]["name"]]
    [waiting] = {"first", "second", "third"} - {pod["metadata"]["name"] for pod in lucky}
    assert "1 cannot allocate all claims" in cluster.refused(waiting)["message"]

    # A claim is deleted with its pod, and its device is free for others.
    cluster.api.delete(f"{PODS}/{lucky[0]['metadata']['name']}")
    assert cluster.bound(waiting) == "node-1"
    cluster.until(lambda: len(cluster.api.items(CLAIMS)) == 2, what="the claim to go with its pod")


def test_what_is_written_is_what_kube_scheduler_writes(no_scheduler: Cluster):
    written: dict[str, list[Document]] = {}
    schedulers = {"theirs": no_scheduler.kube_scheduler, "ours": no_scheduler.scheduler}
    for name, scheduler in schedulers.items():
        program = scheduler(f"--kubeconfig={no_scheduler.control_plane.kubeconfig(SCHEDULER)}", *OURS_ALONE)
        a_claim(no_scheduler, "claim")
        a_pod(no_scheduler, "direct", "claim")
        no_scheduler.bound("direct")
        amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
        no_scheduler.pod("extended", containers=[{"name": "main", "image": "pause", "resources": amounts}])
        no_scheduler.bound("extended")
        status = no_scheduler.api.get(f"{PODS}/extended")["status"]["extendedResourceClaimStatus"]
        names = ["claim", status.pop("resourceClaimName")]
        written[name] = [*(without_chance(the_claim(no_scheduler, each)) for each in names), status]
        program.end()
        for each in names:
            no_scheduler.api.merge(f"{CLAIMS}/{each}", {"metadata": {"finalizers": None}})
            no_scheduler.api.delete(f"{CLAIMS}/{each}")
        for pod in ("direct", "extended"):
            no_scheduler.api.delete(f"{PODS}/{pod}")
            no_scheduler.gone(pod)
    assert written["ours"] == written["theirs"]


def without_chance(claim: Document) -> Document:
    """The claim without what differs from one time to the next."""
    metadata = claim["metadata"]
    for each in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "name"):
        metadata.pop(each, None)
    for owner in metadata.get("ownerReferences", ()):
        owner.pop("uid")
    for user in claim["status"]["reservedFor"]:
        user.pop("uid")
    assert claim["status"]["allocation"].pop("allocationTimestamp")
    return claim
