"""Whatever claims pods of a group share: no device has two claims, and each pod can use the claims that it names."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plugins.default.dynamic_resources.builders import World, a_claim, a_slice, devices, wants
from tests.plugins.default.dynamic_resources.placing import Placing
from tests.plugins.default.dynamic_resources.test_group_claims import GANGS_ALONE, GATES, a_group, a_member

from mooring.objects.core import PodResourceClaim
from mooring.objects.placement_rules import selector_matches
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource import ResourceClaim
from mooring.testing import a_node

NODES = ["node-1", "node-2"]
NAMES = ["a", "b", "c"]
few = settings(max_examples=80, deadline=None)


def entry(name: str) -> PodResourceClaim:
    return PodResourceClaim(name=name, resource_claim_name=name)


def a_world(offered: dict[str, int], of_group: set[str], *, with_gate: bool) -> World:
    slices = [a_slice(*devices(*(f"gpu-{at}" for at in range(count))), node=node) for node, count in offered.items()]
    claims = [a_claim(name, wants()) for name in NAMES]
    gates = GATES if with_gate else GANGS_ALONE
    world = World(*(a_node(node) for node in offered), slices=slices, claims=claims, gates=gates)
    world.services.objects(PodGroup).put(a_group(*map(entry, sorted(of_group))))
    return world


def tried(world: World, used: list[list[str]]) -> list[Placing]:
    """Members are tried one after the other, and undone in reverse order, as in a pod group cycle."""
    placed: list[Placing] = []
    for at, names in enumerate(used):
        placing = Placing(world, a_member(*map(entry, names), uid=f"pod-{at}"))
        if placing.decision.node is None:
            continue
        placing.decision.cycle.is_trial = True
        placing.reserve()
        placed.append(placing)
    return placed


async def undone(placed: list[Placing]) -> None:
    for placing in reversed(placed):
        await placing.unreserve()
        placing.decision.cycle.is_trial = False


@few
@given(
    offered=st.fixed_dictionaries({node: st.integers(0, 2) for node in NODES}),
    used=st.lists(st.lists(st.sampled_from(NAMES), unique=True, min_size=1), min_size=1, max_size=4),
    of_group=st.sets(st.sampled_from(NAMES)),
    with_gate=st.booleans(),
    failing=st.sets(st.integers(0, 3)),
    order=st.randoms(use_true_random=False),
)
def test_claims_of_pods_that_are_placed_together(offered, used, of_group, with_gate, failing, order):
    """G46, G47: some of the pods fail before they write anything; the others write their claims in any order."""
    world = a_world(offered, of_group, with_gate=with_gate)

    async def story() -> list[Placing]:
        placed = tried(world, used)
        await undone(placed)
        assert len(world.services.claims_in_flight) == 0
        for placing in placed:
            placing.reserve()
        going = [placing for at, placing in enumerate(placed) if at not in failing]
        for placing in placed:
            if placing not in going:
                await placing.unreserve()
        order.shuffle(going)
        await asyncio.gather(*(placing.pre_bind() for placing in going))
        return going

    going = asyncio.run(story())
    assert len(world.services.claims_in_flight) == 0
    claims = {claim.name: claim for claim in world.services.objects(ResourceClaim).all()}
    held = Counter(
        (result.pool, result.device)
        for claim in claims.values()
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )
    assert set(held.values()) <= {1}
    for placing in going:
        node = placing.decision.node
        assert node is not None
        for reference in placing.pod.spec.resource_claims:
            claim = claims[reference.name]
            selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
            assert selector is not None
            assert selector_matches(selector, node, {})
            user = "group" if with_gate and reference.name in of_group else placing.pod.uid
            assert [each.uid for each in claim.status.reserved_for].count(user) == 1
