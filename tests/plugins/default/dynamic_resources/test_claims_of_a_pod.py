"""Which claims are a pod's, what keeps it out of the queue, and what refuses it before any node is looked at."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_slice,
    devices,
    first_of,
    wants,
)
from tests.plugins.verdicts import verdict

from mooring.base.errors import Fault
from mooring.framework import UNRESOLVABLE, Pod, Refusal
from mooring.objects.core import PodResourceClaim, PodResourceClaimStatus
from mooring.objects.resource import DeviceRequest, ResourceClaim
from mooring.plugins.default.dynamic_resources.plugin import NOTHING_TO_DEALLOCATE
from mooring.testing import a_cycle, a_pod


def a_pod_after_a_template(*statuses: PodResourceClaimStatus) -> Pod:
    pod = a_claiming_pod()
    force_setattr(pod.spec, "resource_claims", (PodResourceClaim(name="gpu", resource_claim_template_name="template"),))
    force_setattr(pod.status, "resource_claim_statuses", tuple(statuses))
    return pod


def a_pod_that_names_nothing() -> Pod:
    pod = a_claiming_pod()
    force_setattr(pod.spec, "resource_claims", (PodResourceClaim(name="gpu"),))
    return pod


MADE = PodResourceClaimStatus(name="gpu", resource_claim_name="made")
KEPT_OUT: dict[str, tuple[Pod, list[ResourceClaim], str | None]] = {
    "a pod without claims is let in": (a_pod(), [], None),
    "a pod with its claims too": (a_claiming_pod("a", "b"), [a_claim("a"), a_claim("b")], None),
    "a claim is missing": (a_claiming_pod("a", "b"), [a_claim("a")], 'could not find ResourceClaim "default/b"'),
    "a claim is being deleted": (
        a_claiming_pod("a"),
        [a_claim("a", deleted=True)],
        'resourceclaim "a" is being deleted',
    ),
    "no claim was made after the template yet": (
        a_pod_after_a_template(),
        [],
        'pod "default/pod": ResourceClaim not created yet',
    ),
    "one was made for another reference": (
        a_pod_after_a_template(PodResourceClaimStatus(name="nic", resource_claim_name="made")),
        [a_claim("made", made_for="uid")],
        'pod "default/pod": ResourceClaim not created yet',
    ),
    "one was made": (a_pod_after_a_template(MADE), [a_claim("made", made_for="uid")], None),
    "one was made for another pod": (
        a_pod_after_a_template(MADE),
        [a_claim("made", made_for="another")],
        "ResourceClaim default/made was not created for Pod default/pod (Pod is not owner)",
    ),
    "none was needed": (a_pod_after_a_template(PodResourceClaimStatus(name="gpu")), [], None),
    "a reference names neither": (
        a_pod_that_names_nothing(),
        [],
        'pod "default/pod", spec.resourceClaim "gpu": none of the supported fields are set',
    ),
}


@pytest.mark.parametrize(("pod", "claims", "reason"), KEPT_OUT.values(), ids=KEPT_OUT.keys())
def test_what_keeps_a_pod_out_of_the_queue(pod, claims, reason):
    expected = None if reason is None else (UNRESOLVABLE, (reason,))
    assert verdict(World(claims=claims).plugin.pre_enqueue(pod)) == expected


@pytest.mark.parametrize(("pod", "claims", "reason"), KEPT_OUT.values(), ids=KEPT_OUT.keys())
def test_the_same_refuses_a_pod_that_is_tried_all_the_same(pod, claims, reason):
    decision = World(claims=claims).cluster.decide(pod)
    if reason is not None:
        assert decision.message == f"0/1 nodes are available: {reason}. {NOTHING_TO_DEALLOCATE}"
    else:
        assert decision.node == "node"


def test_a_pod_without_claims_is_skipped():
    decision = World().cluster.decide(a_pod())
    assert decision.cycle.skipped_filters == {"DynamicResources"}
    assert decision.node == "node"


def test_a_pod_whose_template_needed_no_claim_is_skipped_too():
    decision = World().cluster.decide(a_pod_after_a_template(PodResourceClaimStatus(name="gpu")))
    assert decision.cycle.skipped_filters == {"DynamicResources"}


MISTAKES: dict[str, tuple[DeviceRequest, dict[str, bool], str]] = {
    "a class that does not exist": (wants(of="nothing"), {}, "request r: device class nothing does not exist"),
    "also in an alternative": (
        first_of("r", wants("s", of="gpu"), wants("t", of="nothing")),
        {},
        "request r/t: device class nothing does not exist",
    ),
    "a request that we do not understand": (
        DeviceRequest(name="r"),
        {},
        "resource claim default/claim, request r: unknown request type",
    ),
    "alternatives where they are switched off": (
        first_of("r", wants("s")),
        {"DRAPrioritizedList": False},
        "resource claim default/claim, request r: has subrequests, but the DRAPrioritizedList feature is disabled",
    ),
}


@pytest.mark.parametrize(("request_", "gates", "reason"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_claim_that_no_node_can_serve(request_, gates, reason):
    world = World(slices=[a_slice(*devices("one"))], claims=[a_claim("claim", request_)], gates=gates)
    pod = a_claiming_pod("claim")
    refusal = world.plugin.pre_filter(pod, a_cycle(pod, world.cluster))
    assert isinstance(refusal, Refusal)
    assert verdict(refusal) == (UNRESOLVABLE, (reason,))
    assert world.cluster.decide(pod).message == f"0/1 nodes are available: {reason}. {NOTHING_TO_DEALLOCATE}"


def test_a_request_without_a_class_is_a_fault():
    world = World(claims=[a_claim("claim", wants(of=""))])
    pod = a_claiming_pod("claim")
    with pytest.raises(Fault, match="request r: unsupported request type"):
        world.plugin.pre_filter(pod, a_cycle(pod, world.cluster))
