"""The group of a pod: which it waits for and what is missing, from API objects to words."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.why.clusters import recomputing

from mooring.explain.group_words import group_lines
from mooring.objects import ObjectMeta
from mooring.objects.core import Pod, PodResourceClaim, PodResourceClaimStatus
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, Condition, PodGroup
from mooring.objects.resource import Allocation, ResourceClaim, ResourceClaimStatus
from mooring.testing import a_node_object, a_pod, a_pod_group
from mooring.why import recomputed, why_not
from mooring.why.pod_groups import group_of


def members(count: int, *, with_node: int = 0, **more):
    return [a_pod(f"worker-{at}", group="red", node="one" if at < with_node else "", **more) for at in range(count)]


GANG = a_pod_group("red", min_count=4)
CASES = {
    "no group of that name": (None, members(3), "It waits for PodGroup red, which does not exist."),
    "too few members": (GANG, members(3), "It waits for gang red: 3 of 4 members exist."),
    "members without a node": (
        GANG,
        members(5, with_node=1),
        "It waits for gang red: 5 members exist, 1 of 4 that it needs have a node.",
    ),
    "a gang that runs": (
        GANG,
        members(5, with_node=4),
        "It belongs to gang red: 4 members have a node, of at least 4.",
    ),
    "a gang of one": (
        a_pod_group("red", min_count=1),
        members(1),
        "It waits for gang red: 1 member exists, 0 of 1 that it needs have a node.",
    ),
    "a gang of one that runs": (
        a_pod_group("red", min_count=1),
        members(1, with_node=1),
        "It belongs to gang red: 1 member has a node, of at least 1.",
    ),
    "a basic group": (
        a_pod_group("red"),
        members(2, with_node=1),
        "It belongs to PodGroup red: 1 of 2 members have a node.",
    ),
    "pods that were not listed": (GANG, None, "It belongs to gang red, of at least 4."),
    "pods of other groups and namespaces do not count": (
        GANG,
        [*members(1), a_pod("a", group="blue"), a_pod("b", group="red", namespace="other"), a_pod("c")],
        "It waits for gang red: 1 of 4 members exist.",
    ),
}


@pytest.mark.parametrize(("group", "pods", "line"), CASES.values(), ids=CASES.keys())
def test_what_the_group_lacks_is_named(group, pods, line):
    found = group_of(a_pod("worker-0", group="red"), group, pods)
    assert found is not None
    assert list(group_lines(found)) == [f"  {line}"]


def test_a_pod_without_a_group_has_none():
    assert group_of(a_pod(), None, []) is None


def test_a_pending_member_is_decided_alone_and_that_is_shown():
    nodes, pod = [a_node_object("one")], a_pod("worker-0", group="red")
    with recomputing(nodes, [pod]) as recomputation:
        assert recomputed(recomputation, pod)["lacksGroup"]
        assert why_not(recomputation, pod, "one")["lacksGroup"]


@pytest.mark.parametrize("pod", [a_pod(), a_pod("worker-0", group="red", node="one")], ids=["no member", "bound"])
def test_a_group_is_not_missed_where_it_does_not_matter(pod: Pod):
    with recomputing([a_node_object("one")], [pod]) as recomputation:
        assert "lacksGroup" not in recomputed(recomputation, pod)
        assert "lacksGroup" not in why_not(recomputation, pod, "one")


def test_a_member_that_is_gated_is_not_decided_alone_or_otherwise():
    pod = a_pod("worker-0", group="red", gates=["later"])
    with recomputing([a_node_object("one")], [pod]) as recomputation:
        assert "lacksGroup" not in recomputed(recomputation, pod)


def test_finished_pods_are_no_members():
    done = a_pod("old", group="red")
    force_setattr(done.status, "phase", "Succeeded")
    found = group_of(a_pod("worker-0", group="red"), GANG, [done, *members(2)])
    assert found is not None
    assert found["members"] == 2


def unschedulable() -> PodGroup:
    group = a_pod_group("red", min_count=2, topology_key="rack")
    force_setattr(
        group.status,
        "conditions",
        (
            Condition(
                type=POD_GROUP_SCHEDULED, status="False", reason="Unschedulable", message="no feasible placements"
            ),
        ),
    )
    return group


def test_topology_and_the_scheduler_s_own_message_follow():
    found = group_of(a_pod("worker-0", group="red"), unschedulable(), members(2))
    assert found is not None
    assert list(group_lines(found))[1:] == [
        "  All members run on nodes with one value of the label rack.",
        "  The group: Unschedulable: no feasible placements",
    ]


def a_claim(name: str, *, allocation: Allocation | None = None, namespace: str = "default") -> ResourceClaim:
    metadata = ObjectMeta(name=name, namespace=namespace)
    return ResourceClaim(metadata=metadata, status=ResourceClaimStatus(allocation=allocation))


NOT_THERE = "Claim gpu of the group: ResourceClaim mine does not exist."
NO_DEVICES = "Claim gpu of the group: ResourceClaim mine has no devices yet."
CLAIMS: dict[str, tuple[dict[str, str], str | None, list[ResourceClaim] | None, list[str]]] = {
    "a claim that does not exist": ({"resource_claim_name": "mine"}, None, [], [NOT_THERE]),
    "a claim of another namespace": (
        {"resource_claim_name": "mine"},
        None,
        [a_claim("mine", namespace="other")],
        [NOT_THERE],
    ),
    "a claim without devices": ({"resource_claim_name": "mine"}, None, [a_claim("mine")], [NO_DEVICES]),
    "a claim with devices": ({"resource_claim_name": "mine"}, None, [a_claim("mine", allocation=Allocation())], []),
    "a template whose claim is not created": (
        {"resource_claim_template_name": "t"},
        None,
        [],
        ["Claim gpu of the group: no ResourceClaim is created yet from template t."],
    ),
    "a template whose claim has no devices": (
        {"resource_claim_template_name": "t"},
        "mine",
        [a_claim("mine")],
        [NO_DEVICES],
    ),
    "claims that were not listed": ({"resource_claim_name": "mine"}, None, None, []),
}


@pytest.mark.parametrize(("entry", "created", "claims", "lines"), CLAIMS.values(), ids=CLAIMS.keys())
def test_which_claim_of_the_group_is_missing_or_has_no_devices(entry, created, claims, lines):
    group = a_pod_group("red", min_count=4)
    force_setattr(group.spec, "resource_claims", (PodResourceClaim(name="gpu", **entry),))
    if created is not None:
        force_setattr(
            group.status, "resource_claim_statuses", (PodResourceClaimStatus(name="gpu", resource_claim_name=created),)
        )
    found = group_of(a_pod("worker-0", group="red"), group, None, claims)
    assert found is not None
    assert list(group_lines(found))[1:] == [f"  {line}" for line in lines]
