"""Claims that are allocated already: where the pod can use them, when they are given back, and binding conditions."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_slice,
    allocated,
    devices,
    wants,
)

from mooring.framework import PostFilterRefusal
from mooring.framework.verdicts import ClaimRelease
from mooring.objects.resource import DeviceCondition, DeviceStatus, ResourceClaim
from mooring.plugins.default.dynamic_resources.binding_conditions import Readiness, readiness
from mooring.plugins.default.dynamic_resources.plugin import (
    CANNOT_ALLOCATE,
    DEALLOCATED,
    NOT_AVAILABLE,
    STILL_NOT,
)
from mooring.testing import a_node

HERE, THERE = a_claim("here", allocation=allocated(on="node")), a_claim("there", allocation=allocated(on="other"))
ANYWHERE = a_claim("anywhere", allocation=allocated(on=None))

AVAILABLE: dict[str, tuple[list[ResourceClaim], str | None]] = {
    "an allocation for this node": ([HERE], None),
    "an allocation for another": ([THERE], NOT_AVAILABLE),
    "an allocation for any": ([ANYWHERE], None),
    "every claim must be available": ([HERE, ANYWHERE, THERE], NOT_AVAILABLE),
    "with one that is not allocated yet": ([HERE, a_claim("new", wants())], None),
    "devices are sought before allocations are looked at": (
        [THERE, a_claim("new", wants("r", 5))],
        CANNOT_ALLOCATE,
    ),
}


@pytest.mark.parametrize(("claims", "reason"), AVAILABLE.values(), ids=AVAILABLE.keys())
def test_where_an_allocated_claim_can_be_used(claims, reason):
    world = World(slices=[a_slice(*devices("gpu-0", "gpu-1"))], claims=claims)
    pod = a_claiming_pod(*(claim.name for claim in claims))
    refusal = world.filter(pod)
    assert (None if refusal is None else refusal.reasons[0]) == reason
    decision = world.cluster.decide(pod)
    assert (decision.node is None) is (reason is not None)


def test_many_nodes_are_filtered_at_once():
    world = World(a_node("node"), a_node("other"), a_node("third"), claims=[HERE])
    decision = world.cluster.decide(a_claiming_pod("here"))
    assert decision.node == "node"
    assert {name: refusal.reasons for name, (_, refusal) in decision.rejections.items()} == {
        "other": (NOT_AVAILABLE,),
        "third": (NOT_AVAILABLE,),
    }


def far_away(*users: str) -> ResourceClaim:
    return a_claim("claim", allocation=allocated(on="gone"), reserved_for=users)


GIVEN_BACK: dict[str, tuple[list[ResourceClaim], list[str], str]] = {
    "an allocation that no pod uses": ([far_away()], ["claim"], DEALLOCATED),
    "one that only this pod uses": ([far_away("uid")], ["claim"], DEALLOCATED),
    "not one that another pod uses": ([far_away("another")], [], STILL_NOT),
    "nor one that another uses too": ([far_away("uid", "another")], [], STILL_NOT),
    "not one that was no obstacle": ([HERE, a_claim("new", wants("r", 9))], [], STILL_NOT),
    "one at a time": (
        [far_away(), a_claim("second", allocation=allocated(on="gone"))],
        ["claim"],
        DEALLOCATED,
    ),
    "one in use is left for one that is not": (
        [a_claim("first", allocation=allocated(on="gone"), reserved_for=["another"]), far_away()],
        ["claim"],
        DEALLOCATED,
    ),
}


@pytest.mark.parametrize(("claims", "released", "message"), GIVEN_BACK.values(), ids=GIVEN_BACK.keys())
def test_which_allocation_is_given_back(claims, released, message):
    world = World(claims=claims)
    decision = world.cluster.decide(a_claiming_pod(*(claim.name for claim in claims)))
    assert decision.message.endswith(f". {message}")
    given = [release for remedy in decision.post_filtered.remedies for release in remedy.deallocate]
    assert given == [ClaimRelease("default", name, f"claim-{name}") for name in released]
    assert all(isinstance(remedy, PostFilterRefusal) for remedy in decision.post_filtered.remedies)


def waiting(*reported: tuple[str, str], since: str | None = None) -> ResourceClaim:
    """A claim whose device must report Ready and may report Failed; and what it reported."""
    claim = a_claim(
        "claim", allocation=allocated(on=None, conditions=["Ready", "Linked"], failures=["Failed"], at=since)
    )
    if reported:
        conditions = [DeviceCondition(type=type, status=status) for type, status in reported]
        force_setattr(
            claim.status,
            "devices",
            (
                DeviceStatus(driver="gpu.example.com", pool="node", device="another", conditions=()),
                DeviceStatus(driver="gpu.example.com", pool="node", device="gpu-0", conditions=tuple(conditions)),
            ),
        )
    return claim


READY, LINKED, FAILED = ("Ready", "True"), ("Linked", "True"), ("Failed", "True")
CONDITIONS: dict[str, tuple[ResourceClaim, Readiness]] = {
    "no conditions to wait for": (HERE, Readiness.READY),
    "nothing reported": (waiting(), Readiness.WAITING),
    "all reported": (waiting(READY, LINKED), Readiness.READY),
    "one missing": (waiting(READY), Readiness.WAITING),
    "one false": (waiting(READY, ("Linked", "False")), Readiness.WAITING),
    "failed": (waiting(READY, LINKED, FAILED), Readiness.FAILED),
    "not failed": (waiting(READY, LINKED, ("Failed", "False")), Readiness.READY),
}


@pytest.mark.parametrize(("claim", "reported"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_what_drivers_report(claim, reported):
    assert readiness(claim) is reported


LONG_AGO, NOT_YET = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
OVERDUE: dict[str, tuple[ResourceClaim, dict[str, bool], bool]] = {
    "devices that are ready can be used": (waiting(READY, LINKED, since=LONG_AGO), {}, True),
    "devices that have failed cannot": (waiting(FAILED), {}, False),
    "devices may take their time": (waiting(since=NOT_YET), {}, True),
    "but not longer than ten minutes": (waiting(since=LONG_AGO), {}, False),
    "without a time they may take for ever": (waiting(), {}, True),
    "conditions do not count without the gate": (waiting(FAILED), {"DRADeviceBindingConditions": False}, True),
    "nor without the other": (
        waiting(since=LONG_AGO),
        {"DRADeviceBindingConditions": False, "DRAResourceClaimDeviceStatus": False},
        True,
    ),
}


@pytest.mark.parametrize(("claim", "gates", "is_available"), OVERDUE.values(), ids=OVERDUE.keys())
@pytest.mark.parametrize("nodes", [1, 2])
def test_binding_conditions(claim, gates, is_available, nodes):
    world = World(*(a_node(f"node-{at}") for at in range(nodes)), claims=[claim], gates=gates)
    decision = world.cluster.decide(a_claiming_pod("claim"))
    assert (decision.node is not None) is is_available
    if not is_available:
        assert decision.message == f"0/{nodes} nodes are available: {nodes} {NOT_AVAILABLE}. {DEALLOCATED}"
