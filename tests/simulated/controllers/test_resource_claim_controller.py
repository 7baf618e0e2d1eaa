"""The resource claim controller: claims are created from templates, deallocated, and deleted with their pods."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated.conftest import POD, Bench, Seen, pod_document

from mooring.base.errors import ApiError
from mooring.client import ApiClient
from mooring.simulated.controllers.resource_claim_controller import FOR_POD_CLAIM, PROTECTED, _generate_name
from mooring.simulated.records import ClaimRecord, ClaimTemplate, PodRecord

CLAIM, TEMPLATE = ClaimRecord.KIND, ClaimTemplate.KIND
REQUEST = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
SPEC = {"devices": {"requests": [REQUEST]}}
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}


@pytest.fixture(autouse=True)
def claims_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Seen, "TYPES", (*Seen.TYPES, ClaimRecord))


async def a_template(bench: Bench, name: str = "gpu", **metadata: Any) -> None:
    body = {"metadata": {"name": name}, "spec": {"metadata": metadata, "spec": SPEC}}
    await bench.client.create(TEMPLATE, body, "default")


async def a_pod(bench: Bench, name: str = "web", **claim: str) -> None:
    claims = [{"name": "device", **(claim or {"resourceClaimTemplateName": "gpu"})}]
    await bench.client.create(POD, pod_document(name, resourceClaims=claims), "default")


async def allocate(bench: Bench, claim: ClaimRecord, *users: PodRecord) -> None:
    """As a scheduler does."""
    reserved = [{"resource": "pods", "name": pod.name, "uid": pod.uid} for pod in users]
    await bench.client.patch(CLAIM, claim.name, "default", {"metadata": {"finalizers": [PROTECTED]}}, form="merge")
    body = {"status": {"allocation": ALLOCATION, "reservedFor": reserved}}
    await bench.client.patch(CLAIM, claim.name, "default", body, subresource="status", form="merge")
    await bench.seen.until(lambda: claims(bench)[claim.name].status.reserved_for)


def claims(bench: Bench) -> dict[str, ClaimRecord]:
    return {claim.name: claim for claim in bench.seen.of("resourceclaims").values()}


def the_pod(bench: Bench, name: str = "web") -> PodRecord:
    return next(pod for pod in bench.seen.pods if pod.name == name)


def is_named(bench: Bench, name: str = "web") -> bool:
    return any(pod.name == name and pod.status.resource_claim_statuses for pod in bench.seen.pods)


async def made_for(bench: Bench, name: str = "web") -> ClaimRecord:
    """Wait for the claim that the pod's status names."""
    await bench.seen.until(lambda: is_named(bench, name))
    [status] = the_pod(bench, name).status.resource_claim_statuses
    assert status.resource_claim_name is not None
    await bench.seen.until(lambda: status.resource_claim_name in claims(bench))
    return claims(bench)[status.resource_claim_name]


async def test_a_claim_is_made_after_its_template(bench: Bench):
    await bench.start(binds=False)
    await a_template(bench, labels={"team": "a"}, annotations={"note": "fast"})
    await a_pod(bench)
    claim = await made_for(bench)
    assert claim.name.startswith("web-device-")
    assert claim.labels == {"team": "a"}
    assert claim.metadata.annotations == {"note": "fast", FOR_POD_CLAIM: "device"}
    [owner] = claim.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("Pod", the_pod(bench).uid, True)
    assert (await bench.client.get(CLAIM, claim.name, "default"))["spec"] == SPEC


async def test_a_pod_before_its_template_gets_an_event_and_its_claim_later(bench: Bench):
    await bench.start(binds=False)
    await a_pod(bench)
    message = 'PodResourceClaim device: resource claim template "gpu" not found'
    await bench.seen.until(lambda: ("FailedResourceClaimCreation", message) in bench.seen.events)
    await a_template(bench)
    await made_for(bench)


async def test_a_template_that_stays_missing_is_one_event_with_a_count_and_one_line(bench: Bench, capsys: Any):
    await bench.start(binds=False)
    await a_pod(bench)

    def counts() -> list[int]:
        events = bench.seen.of("events").values()
        return [event.count for event in events if event.reason == "FailedResourceClaimCreation"]

    await bench.seen.until(lambda: sum(counts()) >= 4)
    assert len(counts()) == 1
    assert capsys.readouterr().err.count('template \\"gpu\\" not found') == 1
    # The pod gets its claim as soon as there is a template.
    await a_template(bench)
    await made_for(bench)


async def test_a_deleted_claim_is_created_again(bench: Bench):
    await bench.start(binds=False)
    await a_template(bench)
    await a_pod(bench)
    first = await made_for(bench)
    await bench.client.delete(CLAIM, first.name, "default")
    await bench.seen.until(lambda: claims(bench) and first.name not in claims(bench))
    [second] = claims(bench).values()
    await bench.seen.until(
        lambda: [each.resource_claim_name for each in the_pod(bench).status.resource_claim_statuses] == [second.name]
    )


async def test_a_claim_goes_with_the_pod_that_it_was_made_for(bench: Bench):
    await bench.start()
    await a_template(bench)
    await a_pod(bench)
    claim = await made_for(bench)
    await allocate(bench, claim, the_pod(bench))
    await bench.client.delete(POD, "web", "default")
    await bench.seen.until(lambda: not claims(bench))


async def test_a_pod_whose_deletion_was_watched_is_not_requested(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    requested: list[str] = []

    async def get_as(_: ApiClient, type_: type[PodRecord], name: str, namespace: str) -> PodRecord:
        requested.append(name)
        raise ApiError(404, "NotFound", f'pods "{name}" not found')

    monkeypatch.setattr(ApiClient, "get_as", get_as)
    await bench.start(binds=False)
    await a_template(bench)
    await a_pod(bench)
    claim = await made_for(bench)
    await allocate(bench, claim, the_pod(bench))
    await bench.client.delete(POD, "web", "default", grace_seconds=0)
    await bench.seen.until(lambda: not claims(bench))
    assert not requested


async def test_a_shared_claim_is_free_when_its_last_pod_is_gone(bench: Bench):
    await bench.start()
    await bench.client.create(CLAIM, {"metadata": {"name": "shared"}, "spec": SPEC}, "default")
    for name in ("first", "second"):
        await a_pod(bench, name, resourceClaimName="shared")
    await bench.seen.until(lambda: "shared" in claims(bench) and len(bench.seen.pods) == 2)
    first, second = the_pod(bench, "first"), the_pod(bench, "second")
    await allocate(bench, claims(bench)["shared"], first, second)

    await bench.client.delete(POD, "first", "default")
    await bench.seen.until(lambda: len(claims(bench)["shared"].status.reserved_for) == 1)
    assert claims(bench)["shared"].status.allocation == ALLOCATION
    await bench.client.delete(POD, "second", "default")
    await bench.seen.until(lambda: not claims(bench)["shared"].metadata.finalizers)
    assert claims(bench)["shared"].status.allocation is None
    assert not claims(bench)["shared"].status.reserved_for


async def test_a_protected_claim_that_is_deleted_waits_for_its_pod(bench: Bench):
    await bench.start()
    await bench.client.create(CLAIM, {"metadata": {"name": "shared"}, "spec": SPEC}, "default")
    await a_pod(bench, resourceClaimName="shared")
    await bench.seen.until(lambda: "shared" in claims(bench) and bench.seen.pods)
    await allocate(bench, claims(bench)["shared"], the_pod(bench))
    await bench.client.delete(CLAIM, "shared", "default")
    await bench.seen.until(lambda: claims(bench)["shared"].is_terminating)
    await bench.client.delete(POD, "web", "default")
    await bench.seen.until(lambda: not claims(bench))


async def test_a_claim_that_is_about_to_be_allocated_keeps_its_finalizer(bench: Bench):
    await bench.start()
    for name in ("next", "last"):
        await bench.client.create(CLAIM, {"metadata": {"name": name}, "spec": SPEC}, "default")
    await a_pod(bench, resourceClaimName="last")
    await bench.seen.until(lambda: len(claims(bench)) == 2 and bench.seen.pods)
    await allocate(bench, claims(bench)["last"], the_pod(bench))

    # As a scheduler does before it writes the allocation.
    await bench.client.patch(CLAIM, "next", "default", {"metadata": {"finalizers": [PROTECTED]}}, form="merge")
    await bench.client.delete(POD, "web", "default")
    # The controller observes both claims on one watch, `next` first.
    await bench.seen.until(lambda: not claims(bench)["last"].metadata.finalizers)
    assert claims(bench)["next"].metadata.finalizers == [PROTECTED]


async def test_a_protected_claim_without_allocation_can_be_deleted(bench: Bench):
    await bench.start()
    metadata = {"name": "left-over", "finalizers": [PROTECTED]}
    await bench.client.create(CLAIM, {"metadata": metadata, "spec": SPEC}, "default")
    await bench.client.delete(CLAIM, "left-over", "default")
    await bench.seen.until(lambda: not claims(bench))


async def test_a_pod_that_was_placed_by_hand_gets_its_reservation(bench: Bench):
    await bench.start(binds=False)
    await bench.client.create(CLAIM, {"metadata": {"name": "shared"}, "spec": SPEC}, "default")
    body = {"status": {"allocation": ALLOCATION}}
    await bench.client.patch(CLAIM, "shared", "default", body, subresource="status", form="merge")
    await bench.seen.until(lambda: "shared" in claims(bench) and claims(bench)["shared"].status.allocation)
    claim = {"name": "device", "resourceClaimName": "shared"}
    await bench.client.create(POD, pod_document(nodeName="node-1", resourceClaims=[claim]), "default")
    await bench.seen.until(lambda: claims(bench)["shared"].status.reserved_for)
    assert claims(bench)["shared"].status.reserved_for[0]["uid"] == the_pod(bench).uid


async def test_where_the_server_has_no_claims_the_rest_works(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    request = bench.client.transport.request

    async def without_claims(method: str, path: str, *args: Any, **options: Any) -> bytes:
        if path.startswith("/apis/resource.k8s.io"):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return await request(method, path, *args, **options)

    await bench.seen.synced()
    monkeypatch.setattr(bench.client.transport, "request", without_claims)
    await bench.start()
    await bench.client.create(POD, pod_document(), "default")
    await bench.seen.until(lambda: bench.seen.pods and the_pod(bench).status.phase == "Running")


@pytest.mark.parametrize(
    ("pod", "claim", "base"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 60, "gpu", "p" * 52 + "-gp"),
        ("p" * 60, "c" * 60, "p" * 28 + "-" + "c" * 28),
    ],
)
def test_names_give_way_in_proportion(pod: str, claim: str, base: str):
    assert _generate_name(pod, claim) == base
