"""The resource claim controller with DRAWorkloadResourceClaims: claims of PodGroups are created, named and released."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.simulated.conftest import POD, Bench, Seen, pod_document
from tests.simulated.controllers.test_resource_claim_controller import ALLOCATION, CLAIM, a_template, claims, the_pod

from mooring.apiserver import EmbeddedApiServer
from mooring.simulated.controllers.resource_claim_controller import FOR_POD_CLAIM, PROTECTED
from mooring.simulated.records import ClaimRecord, Document, PodGroupRecord

GATES = ("GenericWorkload", "GangScheduling", "DRAWorkloadResourceClaims")
GROUP = PodGroupRecord.KIND
BY_TEMPLATE = {"name": "device", "resourceClaimTemplateName": "gpu"}
BY_NAME = {"name": "device", "resourceClaimName": "mine"}
OWN = {"name": "own", "resourceClaimTemplateName": "gpu"}


@pytest.fixture(autouse=True)
def more_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seen, "TYPES", (*Seen.TYPES, ClaimRecord, PodGroupRecord))


@pytest.fixture
async def grouped() -> AsyncIterator[Bench]:
    server = EmbeddedApiServer(features=GATES)
    await server.start()
    bench = Bench(server)
    try:
        await bench.start(1, binds=False, features=GATES)
        yield bench
    finally:
        await bench.stop()
        await server.stop()


async def a_group(bench: Bench, *entries: Document) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": list(entries)}
    await bench.client.create(GROUP, {"metadata": {"name": "gang"}, "spec": spec}, "default")


async def a_member(bench: Bench, name: str, *entries: Document, **spec: Any) -> None:
    group = {"podGroupName": "gang"}
    document = pod_document(name, schedulingGroup=group, resourceClaims=list(entries), **spec)
    await bench.client.create(POD, document, "default")


def the_group(bench: Bench) -> PodGroupRecord:
    [group] = bench.seen.of("podgroups").values()
    assert isinstance(group, PodGroupRecord)
    return group


def named(bench: Bench, pod: str) -> dict[str, str | None]:
    """The claims that the pod's status names, by entry."""
    found = [each for each in bench.seen.pods if each.name == pod]
    return {each.name: each.resource_claim_name for one in found for each in one.status.resource_claim_statuses}


async def the_claim(bench: Bench) -> ClaimRecord:
    """Wait for the claim that the group's status names."""

    def created() -> list[str]:
        groups = bench.seen.of("podgroups").values()
        return [each.resource_claim_name for group in groups for each in group.status.resource_claim_statuses]

    await bench.seen.until(lambda: created() and created()[0] in claims(bench))
    return claims(bench)[created()[0]]


async def reserve_for_group(bench: Bench, claim: str) -> None:
    """As a scheduler does."""
    group = the_group(bench)
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": group.name, "uid": group.uid}
    await bench.client.patch(CLAIM, claim, "default", {"metadata": {"finalizers": [PROTECTED]}}, form="merge")
    body = {"status": {"allocation": ALLOCATION, "reservedFor": [user]}}
    await bench.client.patch(CLAIM, claim, "default", body, subresource="status", form="merge")
    await bench.seen.until(lambda: claims(bench)[claim].status.reserved_for)


async def delete(bench: Bench, *pods: str) -> None:
    for pod in pods:
        await bench.client.delete(POD, pod, "default")
    await bench.client.delete(GROUP, "gang", "default")


async def test_a_group_gets_one_claim_that_its_pods_share(grouped: Bench):
    """G49: it is owned by the group; the status of the group names it, and then that of each pod."""
    await a_template(grouped, labels={"team": "a"})
    await a_group(grouped, BY_TEMPLATE)
    for pod in ("one", "two"):
        await a_member(grouped, pod, BY_TEMPLATE, OWN)
    claim = await the_claim(grouped)
    assert claim.name.startswith("gang-device-")
    assert (claim.labels, claim.metadata.annotations) == ({"team": "a"}, {FOR_POD_CLAIM: "device"})
    [owner] = claim.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.uid) == (GROUP.api_version, "PodGroup", the_group(grouped).uid)
    assert owner.controller
    await grouped.seen.until(lambda: all(len(named(grouped, pod)) == 2 for pod in ("one", "two")))
    assert {named(grouped, pod)["device"] for pod in ("one", "two")} == {claim.name}
    assert len({named(grouped, pod)["own"] for pod in ("one", "two")}) == 2


async def test_pods_that_come_before_their_group_wait_for_its_claim(grouped: Bench):
    """G49: without the PodGroup it is unknown which claims belong to it, so that none is created for the pod."""
    await a_template(grouped)
    await a_member(grouped, "one", BY_TEMPLATE)
    await a_group(grouped, BY_TEMPLATE)
    claim = await the_claim(grouped)
    await grouped.seen.until(lambda: named(grouped, "one"))
    assert named(grouped, "one") == {"device": claim.name}
    assert list(claims(grouped)) == [claim.name]


async def test_a_missing_template_is_an_event_of_the_group(grouped: Bench):
    await a_group(grouped, BY_TEMPLATE)
    message = 'PodGroupResourceClaim device: resource claim template "gpu" not found'
    await grouped.seen.until(lambda: ("FailedResourceClaimCreation", message) in grouped.seen.events)
    await a_template(grouped)
    await the_claim(grouped)


async def test_a_claim_of_a_group_that_was_deleted_is_created_again(grouped: Bench):
    await a_template(grouped)
    await a_group(grouped, BY_TEMPLATE)
    first = await the_claim(grouped)
    await grouped.client.delete(CLAIM, first.name, "default")
    await grouped.seen.until(lambda: first.name not in claims(grouped) and claims(grouped))
    assert (await the_claim(grouped)).name != first.name


async def test_the_claim_stays_until_the_group_is_deleted(grouped: Bench):
    """G50: pods come and go; with the PodGroup its claim is deallocated and deleted."""
    await a_template(grouped)
    await a_group(grouped, BY_TEMPLATE)
    await a_member(grouped, "one", BY_TEMPLATE)
    claim = await the_claim(grouped)
    await grouped.seen.until(lambda: named(grouped, "one"))
    await reserve_for_group(grouped, claim.name)
    await grouped.client.delete(POD, "one", "default")
    await grouped.seen.until(lambda: not grouped.seen.pods)
    await a_member(grouped, "two", BY_TEMPLATE)
    await grouped.seen.until(lambda: named(grouped, "two"))
    assert [user["resource"] for user in claims(grouped)[claim.name].status.reserved_for] == ["podgroups"]
    await delete(grouped, "two")
    await grouped.seen.until(lambda: not claims(grouped))


async def test_a_claim_that_the_group_names_is_deallocated_with_it(grouped: Bench):
    """G50: it is a user's, and stays."""
    spec: Document = {"devices": {"requests": []}}
    await grouped.client.create(CLAIM, {"metadata": {"name": "mine"}, "spec": spec}, "default")
    await a_group(grouped, BY_NAME)
    await grouped.seen.until(lambda: grouped.seen.of("podgroups") and claims(grouped))
    await reserve_for_group(grouped, "mine")
    await delete(grouped)
    await grouped.seen.until(lambda: not claims(grouped)["mine"].metadata.finalizers)
    assert claims(grouped)["mine"].status.allocation is None


async def test_a_pod_that_is_bound_without_a_scheduler_reserves_the_claim_for_its_group(grouped: Bench):
    """G46: as the scheduler would have done."""
    await a_template(grouped)
    await a_group(grouped, BY_TEMPLATE)
    claim = await the_claim(grouped)
    body = {"status": {"allocation": ALLOCATION}}
    await grouped.client.patch(CLAIM, claim.name, "default", body, subresource="status", form="merge")
    await grouped.seen.until(lambda: claims(grouped)[claim.name].status.allocation)
    await a_member(grouped, "one", BY_TEMPLATE, nodeName="node-1")
    await grouped.seen.until(lambda: claims(grouped)[claim.name].status.reserved_for)
    [user] = claims(grouped)[claim.name].status.reserved_for
    assert (user["apiGroup"], user["resource"], user["name"]) == ("scheduling.k8s.io", "podgroups", "gang")
    assert the_pod(grouped, "one").spec.node_name == "node-1"
