"""Claims of pod groups on a real API server with the gate on: kube-scheduler and Mooring end alike.

Claims are created from templates, and released, by the controllers of `mooring nodes --controllers`, for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.apiserver.pod_group_requests import GROUPS
from tests.real_apiserver.cluster import PODS, Cluster, Document
from tests.real_apiserver.control_plane import SCHEDULER
from tests.real_apiserver.group_stories import conditions, seen
from tests.real_apiserver.test_devices import CLAIMS, CLASSES, DRIVER, REQUEST, SLICES, TEMPLATES

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true,DRAWorkloadResourceClaims=true"
WITHOUT_GANGS = "--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"
SPEC = {"devices": {"requests": [REQUEST]}}
BY_NAME = {"name": "gpu", "resourceClaimName": "shared"}
BY_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
STUCK = {
    "devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "gone", "device": "gpu-0"}]},
    "nodeSelector": {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
    },
}


@pytest.fixture
def gated(cluster_of_groups: Cluster) -> Iterator[Cluster]:
    yield cluster_of_groups
    wipe(cluster_of_groups)


def wipe(cluster: Cluster) -> None:
    """No controller removes what is left: it has ended with the nodes."""
    cluster.wipe()
    for path in (GROUPS, CLAIMS, TEMPLATES, SLICES, CLASSES):
        for each in cluster.api.items(path):
            cluster.api.merge(f"{path}/{each['metadata']['name']}", {"metadata": {"finalizers": None}})
        cluster.api.delete(path)


def set_up(cluster: Cluster, *, gpus: int = 1) -> None:
    """Two nodes, and devices that each of them can use."""
    cluster.nodes(2, "--controllers", GATES)
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    cluster.api.create(CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}})
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"gpu-{number}"} for number in range(gpus)]
    spec = {"driver": DRIVER, "allNodes": True, "pool": pool, "devices": devices}
    cluster.api.create(SLICES, {"metadata": {"name": "pool"}, "spec": spec})
    cluster.api.create(TEMPLATES, {"metadata": {"name": "gpu"}, "spec": {"spec": SPEC}})


def a_claim(cluster: Cluster, name: str = "shared") -> None:
    cluster.api.create(CLAIMS, {"metadata": {"name": name}, "spec": SPEC})


def a_gang(cluster: Cluster, name: str, *claims: Document, pods: int = 2, of_pods: tuple[Document, ...] = ()) -> None:
    """A gang with these claims. Its pods use them, and those `of_pods`, which are no claims of the group."""
    policy = {"gang": {"minCount": pods}}
    cluster.api.create(
        GROUPS, {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, "resourceClaims": list(claims)}}
    )
    for number in range(pods):
        group = {"podGroupName": name}
        cluster.pod(f"{name}-{number}", schedulingGroup=group, resourceClaims=[*claims, *of_pods])


def bound(cluster: Cluster, name: str, pods: int = 2) -> None:
    for number in range(pods):
        cluster.running(f"{name}-{number}")


def shared_by_name(cluster: Cluster) -> None:
    set_up(cluster)
    a_claim(cluster)
    a_gang(cluster, "first", BY_NAME)
    bound(cluster, "first")


def shared_by_template(cluster: Cluster) -> None:
    set_up(cluster)
    a_gang(cluster, "first", BY_TEMPLATE)
    bound(cluster, "first")


def own_claims_beside(cluster: Cluster) -> None:
    """A template that the group does not name is one claim per pod."""
    set_up(cluster, gpus=3)
    a_gang(cluster, "first", BY_TEMPLATE, of_pods=({"name": "own", "resourceClaimTemplateName": "gpu"},))
    bound(cluster, "first")


def shared_without_the_group(cluster: Cluster) -> None:
    """The group does not name the claim: it is reserved for each pod."""
    set_up(cluster)
    a_claim(cluster)
    a_gang(cluster, "first", of_pods=(BY_NAME,))
    bound(cluster, "first")


def second_gang_waits(cluster: Cluster) -> None:
    set_up(cluster)
    a_gang(cluster, "first", BY_TEMPLATE)
    bound(cluster, "first")
    a_gang(cluster, "second", BY_TEMPLATE)
    for number in range(2):
        cluster.refused(f"second-{number}")
    group_condition(cluster, "second")


def deletion_releases(cluster: Cluster) -> None:
    """The claim stays reserved when the pods are gone, and is deallocated with the group; no garbage collector runs."""
    second_gang_waits(cluster)
    for number in range(2):
        cluster.api.delete(f"{PODS}/first-{number}")
        cluster.gone(f"first-{number}")
    cluster.api.delete(f"{GROUPS}/first")
    bound(cluster, "second")


def stuck_allocation(cluster: Cluster) -> None:
    """An allocation that no node can use is unreserved for the group, then deallocated, then allocated again."""
    set_up(cluster)
    a_claim(cluster)
    a_gang(cluster, "first", BY_NAME, pods=1)
    cluster.running("first-0")
    cluster.api.delete(f"{PODS}/first-0")
    cluster.gone("first-0")
    cluster.api.merge(f"{CLAIMS}/shared/status", {"status": {"reservedFor": None, "allocation": None}})
    uid = cluster.api.get(f"{GROUPS}/first")["metadata"]["uid"]
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "first", "uid": uid}
    cluster.api.merge(f"{CLAIMS}/shared/status", {"status": {"reservedFor": [user], "allocation": STUCK}})
    cluster.pod("first-0", schedulingGroup={"podGroupName": "first"}, resourceClaims=[BY_NAME])
    cluster.running("first-0")


def group_condition(cluster: Cluster, name: str) -> None:
    cluster.until(lambda: conditions(cluster.api.get(f"{GROUPS}/{name}")), what=f"a condition of {name}")


SCENARIOS = {
    "G45, G46: a claim that the group names is shared": shared_by_name,
    "G46, G49: a claim of the group is created from its template": shared_by_template,
    "G45: a pod's own claim beside the group's": own_claims_beside,
    "G47: a claim that pods share without their group": shared_without_the_group,
    "G46: a second gang waits for the device": second_gang_waits,
    "G50: the deletion of the group releases the device": deletion_releases,
    "G48: an allocation of the group that no node can use": stuck_allocation,
}


def outcome(cluster: Cluster) -> Document:
    return {
        "pods": {pod["metadata"]["name"]: seen(pod) for pod in cluster.api.items(PODS)},
        "groups": {group["metadata"]["name"]: conditions(group) for group in cluster.api.items(GROUPS)},
        "claims": sorted(map(claim_seen, cluster.api.items(CLAIMS))),
        "devices": sorted(device for claim in cluster.api.items(CLAIMS) for device in devices_of(claim)),
    }


def claim_seen(claim: Document) -> tuple[str, int, list[tuple[str, ...]], list[str]]:
    """Its name without what the server generated, how many devices it has, its users, and its finalizers.

    Of equal pods any may be the first, so which claim has which device is left to chance.
    """
    metadata, status = claim["metadata"], claim.get("status", {})
    users = [(user.get("apiGroup", ""), user["resource"], user["name"]) for user in status.get("reservedFor", ())]
    name = metadata.get("generateName", metadata["name"])
    return name, len(devices_of(claim)), sorted(users), metadata.get("finalizers", [])


def devices_of(claim: Document) -> list[str]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    return [result["device"] for result in results]


@pytest.mark.parametrize("story", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_both_schedulers_end_alike(gated: Cluster, story: Callable[[Cluster], None]):
    kubeconfig = f"--kubeconfig={gated.control_plane.kubeconfig(SCHEDULER)}"
    kube_scheduler = gated.kube_scheduler(kubeconfig, GATES, "--leader-elect=false")
    story(gated)
    theirs = outcome(gated)
    kube_scheduler.end()
    wipe(gated)
    gated.scheduler(GATES, "--leader-elect=false")
    story(gated)
    assert outcome(gated) == theirs


def test_a_pod_whose_group_is_missing_is_refused_alike(gated: Cluster):
    """G45: without GangScheduling nothing gates it, and the plugin cannot know which claims belong to the group."""
    kubeconfig = f"--kubeconfig={gated.control_plane.kubeconfig(SCHEDULER)}"
    kube_scheduler = gated.kube_scheduler(kubeconfig, WITHOUT_GANGS, "--leader-elect=false")
    theirs = refusal_without_group(gated)
    kube_scheduler.end()
    wipe(gated)
    gated.scheduler(WITHOUT_GANGS, "--leader-elect=false")
    assert refusal_without_group(gated) == theirs
    assert 'podgroup.scheduling.k8s.io "missing" not found' in theirs


def refusal_without_group(cluster: Cluster) -> str:
    set_up(cluster)
    cluster.pod("lonely", schedulingGroup={"podGroupName": "missing"})
    message: str = cluster.refused("lonely")["message"]
    return message
