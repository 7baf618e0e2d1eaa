"""Claims of a pod group: which they are, what they are reserved for, and which pods share an unwritten allocation."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_slice,
    allocated,
    devices,
    wants,
)
from tests.plugins.default.dynamic_resources.placing import Placing, claim_of, devices_of, users_of

from mooring.framework import UNRESOLVABLE, Pod, PostFilterRefusal, Refusal, Skip
from mooring.framework.verdicts import ClaimRelease
from mooring.objects import OwnerReference
from mooring.objects.core import PodResourceClaim, PodResourceClaimStatus
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource import ConsumerReference, ResourceClaim
from mooring.plugins.default.dynamic_resources.plugin import UNRESERVED
from mooring.testing import a_cycle, a_node, a_pod, a_pod_group

GATES = {"GenericWorkload": True, "GangScheduling": True, "DRAWorkloadResourceClaims": True}
GANGS_ALONE = {"GenericWorkload": True, "GangScheduling": True}
BY_NAME = PodResourceClaim(name="gpu", resource_claim_name="claim")
BY_TEMPLATE = PodResourceClaim(name="gpu", resource_claim_template_name="gpu")
GROUP_USER = ConsumerReference(api_group="scheduling.k8s.io", resource="podgroups", name="gang", uid="group")


def a_world(
    *claims: ResourceClaim,
    of_group: Sequence[PodResourceClaim] | None = (BY_NAME,),
    gates: dict[str, bool] = GATES,
    nodes: Sequence[str] = ("node",),
) -> World:
    """The first node has two devices. `of_group`: the claims of the PodGroup; None: there is no PodGroup."""
    slices = [a_slice(*devices("gpu-0", "gpu-1"), node=nodes[0])]
    world = World(
        *(a_node(name) for name in nodes), slices=slices, claims=claims or [a_claim("claim", wants())], gates=gates
    )
    if of_group is not None:
        world.services.objects(PodGroup).put(a_group(*of_group))
    return world


def a_group(*claims: PodResourceClaim, created: str | None = None) -> PodGroup:
    group = a_pod_group("gang", uid="group", min_count=2)
    force_setattr(group.spec, "resource_claims", tuple(claims))
    if created is not None:
        force_setattr(
            group.status, "resource_claim_statuses", (PodResourceClaimStatus(name="gpu", resource_claim_name=created),)
        )
    return group


def a_member(*claims: PodResourceClaim, uid: str = "one", created: str | None = None) -> Pod:
    """A pod of the gang. `created`: the claim that its status names for the entry `gpu`."""
    pod = a_pod(uid, uid=uid, group="gang")
    force_setattr(pod.spec, "resource_claims", tuple(claims or [BY_NAME]))
    if created is not None:
        force_setattr(
            pod.status, "resource_claim_statuses", (PodResourceClaimStatus(name="gpu", resource_claim_name=created),)
        )
    return pod


def owned(claim: ResourceClaim, **owner: str) -> ResourceClaim:
    """The claim as the resource claim controller creates it for the group."""
    of_group = {"api_version": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "name": "gang", "uid": "group"}
    force_setattr(claim.metadata, "owner_references", (OwnerReference(**{**of_group, **owner}, controller=True),))
    return claim


def tried(world: World, pod: Pod) -> Placing:
    """The pod is tried with other pods of its group, and reserved."""
    placing = Placing(world, pod)
    placing.decision.cycle.is_trial = True
    placing.reserve()
    return placing


def verdict(world: World, pod: Pod) -> str:
    """What pre_filter returns."""
    found = world.plugin.pre_filter(pod, a_cycle(pod, world.cluster))
    if isinstance(found, Refusal):
        assert found.code is UNRESOLVABLE
        return found.reasons[0]
    return "skip" if isinstance(found, Skip) else "pass"


RESERVED = {
    "the same entry in the group": (BY_NAME, BY_NAME, GATES, "podgroups"),
    "another name of the entry": (
        BY_NAME,
        PodResourceClaim(name="other", resource_claim_name="claim"),
        GATES,
        "pods",
    ),
    "another claim under the name": (BY_NAME, PodResourceClaim(name="gpu", resource_claim_name="other"), GATES, "pods"),
    "a template under the name": (BY_NAME, BY_TEMPLATE, GATES, "pods"),
    "the gate is off": (BY_NAME, BY_NAME, GANGS_ALONE, "pods"),
}


@pytest.mark.parametrize(("of_pod", "of_group", "gates", "resource"), RESERVED.values(), ids=RESERVED.keys())
async def test_what_a_claim_is_reserved_for(of_pod, of_group, gates, resource):
    """G45, G46: the group, if its spec has the same entry as that of the pod."""
    world = a_world(of_group=[of_group], gates=gates)
    placing = Placing(world, a_member(of_pod))
    placing.reserve()
    await placing.pre_bind()
    [user] = claim_of(world).status.reserved_for
    assert user.resource == resource
    assert user == GROUP_USER or resource == "pods"


async def test_a_claim_that_is_reserved_for_the_group_is_not_written_again():
    """G46: pods that come later use the claim as it is."""
    claim = a_claim("claim", allocation=allocated())
    force_setattr(claim.status, "reserved_for", (GROUP_USER,))
    world = a_world(claim)
    placing = Placing(world, a_member(uid="later"))
    placing.reserve()
    await placing.pre_bind()
    assert world.services.claim_writer.written == []


async def test_a_failed_pod_does_not_unreserve_the_claim_of_its_group():
    """G46: other pods of the group may use it."""
    world = a_world()
    placing = Placing(world, a_member())
    placing.reserve()
    await placing.pre_bind()
    await placing.unreserve()
    assert claim_of(world).status.reserved_for == (GROUP_USER,)
    assert devices_of(claim_of(world)) == ["gpu-0"]


NEITHER = "ResourceClaim default/made was not created for Pod default/one (neither Pod nor PodGroup gang is the owner)"
OWNERS = {
    "the group": ({}, GATES, "pass"),
    "the group, in a later version of the API": ({"api_version": "scheduling.k8s.io/v1"}, GATES, "pass"),
    "another group": ({"name": "other"}, GATES, NEITHER),
    "another kind of that name": ({"api_version": "scheduling.x-k8s.io/v1alpha1"}, GATES, NEITHER),
    "the pod": ({"api_version": "v1", "kind": "Pod", "name": "one", "uid": "one"}, GATES, "pass"),
    "the group, with the gate off": (
        {},
        GANGS_ALONE,
        "ResourceClaim default/made was not created for Pod default/one (Pod is not owner)",
    ),
}


@pytest.mark.parametrize(("owner", "gates", "expected"), OWNERS.values(), ids=OWNERS.keys())
def test_whose_claim_a_pod_may_use_for_a_template(owner, gates, expected):
    """G51: one that was created for the pod, or for its group."""
    world = a_world(owned(a_claim("made", wants()), **owner), of_group=[BY_TEMPLATE], gates=gates)
    assert verdict(world, a_member(BY_TEMPLATE, created="made")) == expected


def test_a_pod_without_a_group_may_not_use_the_claim_of_one():
    """G51: where kube-scheduler crashes, the pod is refused."""
    world = a_world(owned(a_claim("made", wants())))
    pod = a_member(BY_TEMPLATE, created="made")
    force_setattr(pod.spec, "scheduling_group", None)
    assert verdict(world, pod).endswith("was not created for Pod default/one (Pod is not owner)")


def test_a_pod_waits_until_its_status_names_the_claim():
    """G49: the resource claim controller writes that once the claim of the group exists."""
    world = a_world(of_group=[BY_TEMPLATE])
    waiting = a_member(BY_TEMPLATE)
    refused = world.plugin.pre_enqueue(waiting)
    assert refused is not None
    assert refused.reasons == ('pod "default/one": ResourceClaim not created yet',)
    world.services.objects(ResourceClaim).put(owned(a_claim("made", wants())))
    named = a_member(BY_TEMPLATE, created="made")
    assert world.plugin.pre_enqueue(named) is None
    assert world.plugin._claim_was_generated(waiting, waiting, named)


def test_without_the_object_of_its_group_a_pod_is_refused():
    """G45: whether a claim belongs to the group is unknown then, and pods without claims are refused, too."""
    world = a_world(of_group=None)
    missing = 'podgroup.scheduling.k8s.io "gang" not found'
    plain = a_pod("plain", group="gang")
    assert (verdict(world, a_member()), verdict(world, plain)) == (missing, missing)
    assert world.plugin.sign(plain) is None
    assert verdict(a_world(of_group=None, gates=GANGS_ALONE), plain) == "skip"


# An allocation that is not written yet


def test_pods_that_are_tried_together_share_an_allocation():
    """G47: the second gets the devices of the first; a pod outside of the trial waits."""
    world = a_world()
    first = tried(world, a_member(uid="one"))
    second = tried(world, a_member(uid="two"))
    assert second.state.allocations == first.state.allocations
    assert len(world.services.claims_in_flight) == 1


def test_no_pod_shares_an_allocation_outside_of_a_trial():
    """G47: the claim of a pod that is being bound is in flight until it is written."""
    world = a_world()
    placing = Placing(world, a_member(uid="one"))
    placing.reserve()
    assert verdict(world, a_member(uid="two")) == "resource claim default/claim is in the process of being allocated"


async def test_an_allocation_stays_in_flight_until_the_last_pod_gives_it_up():
    """G47: undoing a trial leaves nothing behind."""
    world = a_world()
    first, second = (tried(world, a_member(uid=uid)) for uid in ("one", "two"))
    await second.unreserve()
    assert len(world.services.claims_in_flight) == 1
    await first.unreserve()
    assert len(world.services.claims_in_flight) == 0


def test_the_nodes_of_a_shared_allocation_are_the_only_ones():
    """G47: a device of one node ties all pods that share it to that node."""
    world = a_world(nodes=("near", "far"))
    tried(world, a_member(uid="one"))
    second = Placing(world, a_member(uid="two"))
    assert second.decision.node == "near"
    assert world.filter(a_member(uid="three"), "far") is not None


def test_a_claim_of_its_own_beside_a_shared_one_gets_another_device():
    """G47: each claim has its own devices, in whichever order they stand in the spec."""
    own = PodResourceClaim(name="own", resource_claim_name="own")
    for entries in ([BY_NAME, own], [own, BY_NAME]):
        world = a_world(a_claim("claim", wants()), a_claim("own", wants()))
        tried(world, a_member(uid="one"))
        second = tried(world, a_member(*entries, uid="two"))
        found = {
            second.state.claims[at].name: allocation.devices.results[0].device
            for at, allocation in second.state.allocations.items()
        }
        assert found == {"claim": "gpu-0", "own": "gpu-1"}


@pytest.mark.parametrize("gates", [GATES, GANGS_ALONE], ids=["reserved for the group", "reserved for pods"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the first writes it", "the second writes it"])
async def test_of_pods_that_share_an_allocation_one_writes_it(gates, order):
    """G46, G47: whichever comes first; the others find it written, without a conflict."""
    world = a_world(gates=gates)
    placings = [tried(world, a_member(uid=uid)) for uid in ("one", "two")]
    for placing in reversed(placings):
        await placing.unreserve()
        placing.decision.cycle.is_trial = False
    for placing in placings:
        placing.reserve()
    await asyncio.gather(*(placings[at].pre_bind() for at in order))
    assert devices_of(claim_of(world)) == ["gpu-0"]
    expected = ["group"] if gates is GATES else [placings[at].pod.uid for at in order]
    assert users_of(claim_of(world)) == expected
    verbs = [verb for verb, _ in world.services.claim_writer.written]
    assert verbs == ["add_finalizer", *["write_reserved_for"] * len(expected)]
    assert len(world.services.claims_in_flight) == 0


# An allocation that no node can use


def a_stuck_claim(*users: ConsumerReference) -> ResourceClaim:
    claim = a_claim("claim", allocation=allocated(on="gone"))
    force_setattr(claim.status, "reserved_for", tuple(users))
    return claim


def given_up(world: World, pod: Pod) -> Refusal:
    """What post_filter returns of this plugin."""
    decision = world.cluster.decide(pod)
    assert decision.node is None
    [result] = [each.result for each in decision.post_filtered.results if each.plugin == world.plugin.name]
    assert isinstance(result, Refusal)
    return result


def test_a_claim_of_the_group_is_unreserved_first_and_deallocated_then():
    """G48: with no pod of the group on a node, none can use it."""
    pod = a_member()
    world = a_world(a_stuck_claim(GROUP_USER))
    world.cluster.state.set_pending(pod)
    refused = given_up(world, pod)
    assert (refused.reasons, refused.code) == ((UNRESERVED,), UNRESOLVABLE)
    assert isinstance(refused, PostFilterRefusal)
    assert refused.deallocate == (ClaimRelease("default", "claim", "claim-claim", unreserve="group"),)
    world.services.objects(ResourceClaim).put(a_stuck_claim())
    assert given_up(world, pod).reasons == ("deallocation of ResourceClaim completed",)


def test_a_claim_that_a_pod_of_the_group_uses_stays_reserved():
    """G48: a pod of the group has a node; one that is only tried on it does not count."""
    pod, other = a_member(), a_member(uid="two")
    world = a_world(a_stuck_claim(GROUP_USER))
    world.cluster.state.set_pending(pod)
    world.cluster.state.assume_in_trial(other, "node", 0.0)
    assert given_up(world, pod).reasons == (UNRESERVED,)
    world.cluster.state.forget(other.uid)
    world.cluster.state.assume(other, "node", 0.0)
    assert given_up(world, pod).reasons == ("still not schedulable",)


def test_a_claim_that_is_shared_in_a_trial_is_not_deallocated():
    """G48: it is not allocated yet."""
    world = a_world(nodes=("near", "far"))
    tried(world, a_member(uid="one"))
    world.cluster.state.set_pending(pod := a_member(uid="two"))
    force_setattr(pod.spec, "node_selector", {"kubernetes.io/hostname": "far"})
    cycle = a_cycle(pod, world.cluster)
    assert world.plugin.filter(pod, world.cluster.node("far"), cycle) is not None
    state = cycle.filter_state(world.plugin)
    assert (state.unavailable, list(state.shared)) == ({0}, [0])
