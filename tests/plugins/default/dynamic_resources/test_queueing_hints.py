"""What wakes a pod that waits for devices."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import World, a_claim, a_claiming_pod, a_class, a_slice, allocated

from mooring.framework import Action, ClusterEvent, Node, Pod
from mooring.framework.events import NODE_ADDED, pending_pod_changes, registered_hints, resource_name
from mooring.objects.core import PodResourceClaim, PodResourceClaimStatus
from mooring.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from mooring.testing import a_node_object, a_pod

CLAIM, OTHER = a_claim("claim"), a_claim("other")
GIVEN = a_claim("claim", allocation=allocated())
CHANGES: dict[str, tuple[Pod, ResourceClaim | None, ResourceClaim, bool]] = {
    "its claim is created": (a_claiming_pod("claim"), None, CLAIM, True),
    "another claim is created": (a_claiming_pod("claim"), None, OTHER, False),
    "its claim is allocated": (a_claiming_pod("claim"), CLAIM, GIVEN, True),
    "its claim is changed, but not its status": (a_claiming_pod("claim"), GIVEN, GIVEN, False),
    "another claim gives its devices back": (
        a_claiming_pod("claim"),
        a_claim("other", allocation=allocated()),
        OTHER,
        True,
    ),
    "another claim is allocated": (a_claiming_pod("claim"), OTHER, a_claim("other", allocation=allocated()), False),
    "devices are given back, but a claim is missing": (
        a_claiming_pod("claim", "missing"),
        a_claim("other", allocation=allocated()),
        OTHER,
        False,
    ),
    "a pod without claims waits for devices": (a_pod(), a_claim("other", allocation=allocated()), OTHER, True),
}


def wakes(world: World, pod: Pod, event: ClusterEvent, before: object, after: object) -> bool:
    return any(
        hint.matches(event) and (hint.test is None or hint.test(pod, before, after))
        for hint in registered_hints(world.plugin.events(), can_refuse=True)
    )


@pytest.mark.parametrize(("pod", "before", "after", "does"), CHANGES.values(), ids=CHANGES.keys())
def test_changes_of_claims(pod, before, after, does):
    world = World(claims=[CLAIM, OTHER])
    world.services.objects(ResourceClaim).put(after)
    event = ClusterEvent(resource_name(ResourceClaim), Action.ADD if before is None else Action.UPDATE)
    assert wakes(world, pod, event, before, after) is does


def test_a_deleted_claim_requeues_no_pod():
    event = ClusterEvent(resource_name(ResourceClaim), Action.DELETE)
    assert not wakes(World(claims=[CLAIM]), a_claiming_pod("claim"), event, OTHER, None)


ALWAYS = {
    "a new node": (NODE_ADDED, None, a_node_object()),
    "a new class": (ClusterEvent(resource_name(DeviceClass), Action.ADD), None, a_class()),
    "a changed class": (ClusterEvent(resource_name(DeviceClass), Action.UPDATE), a_class(), a_class("gpu", "true")),
    "a new slice": (ClusterEvent(resource_name(ResourceSlice), Action.ADD), None, a_slice()),
    "a changed slice": (ClusterEvent(resource_name(ResourceSlice), Action.UPDATE), a_slice(), a_slice()),
    **{
        f"a node with another {what}": (ClusterEvent(resource_name(Node), action), a_node_object(), a_node_object())
        for what, action in {
            "label": Action.UPDATE_NODE_LABEL,
            "size": Action.UPDATE_NODE_ALLOCATABLE,
            "taint": Action.UPDATE_NODE_TAINT,
        }.items()
    },
}


@pytest.mark.parametrize(("event", "before", "after"), ALWAYS.values(), ids=ALWAYS.keys())
def test_what_always_wakes(event, before, after):
    assert wakes(World(), a_claiming_pod("claim"), event, before, after)


def after_a_template(uid: str, *made: str) -> Pod:
    pod = a_claiming_pod(uid=uid)
    force_setattr(pod.spec, "resource_claims", (PodResourceClaim(name="gpu", resource_claim_template_name="template"),))
    force_setattr(
        pod.status,
        "resource_claim_statuses",
        tuple(PodResourceClaimStatus(name="gpu", resource_claim_name=name) for name in made),
    )
    return pod


GENERATED = {
    "its claim was made": (after_a_template("uid"), after_a_template("uid", "made"), True),
    "it was made, but we have not seen it": (after_a_template("uid"), after_a_template("uid", "unseen"), False),
    "another pod's claim was made": (after_a_template("another"), after_a_template("another", "made"), False),
}


@pytest.mark.parametrize(("before", "after", "does"), GENERATED.values(), ids=GENERATED.keys())
def test_claims_made_after_a_template(before, after, does):
    world = World(claims=[a_claim("made", made_for="uid")])
    (event,) = pending_pod_changes(before, after)
    assert wakes(world, after_a_template("uid"), event, before, after) is does
