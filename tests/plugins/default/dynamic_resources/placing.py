"""A pod's way after the decision: reserve, pre_bind and unreserve, with the plugin alone."""

from __future__ import annotations

from collections.abc import Sequence

from tests.plugins.default.dynamic_resources.builders import World

from mooring.base.errors import PluginFault
from mooring.engine import Decision, reservation
from mooring.framework import Pod
from mooring.objects.resource import ResourceClaim
from mooring.plugins.default.dynamic_resources.pod_claims import PodClaims


class Placing:
    """One attempt to place a pod."""

    def __init__(self, world: World, pod: Pod) -> None:
        self.world, self.pod = world, pod
        self.decision: Decision = world.cluster.decide(pod)

    def reserve(self) -> None:
        assert self.decision.node is not None, self.decision.message
        assert reservation.reserve(self.world.cluster.profile, self.decision) is None

    async def pre_bind(self) -> None:
        assert self.decision.view is not None
        await self.world.plugin.pre_bind(self.pod, self.decision.view, self.decision.cycle.shown)

    async def unreserve(self) -> Sequence[PluginFault]:
        return await reservation.unreserve(self.world.cluster.profile, self.decision)

    @property
    def state(self) -> PodClaims:
        state: PodClaims = self.decision.cycle.shown.filter_state(self.world.plugin)
        return state


def reserved(world: World, pod: Pod) -> Placing:
    """The pod has a node, and its devices are reserved."""
    placing = Placing(world, pod)
    placing.reserve()
    return placing


async def bound(world: World, pod: Pod) -> Placing:
    """And they are written."""
    placing = reserved(world, pod)
    await placing.pre_bind()
    return placing


def claim_of(world: World, name: str = "claim") -> ResourceClaim:
    """What the API server has."""
    claim: ResourceClaim | None = world.services.objects(ResourceClaim).get(name, "default")
    assert claim is not None
    return claim


def devices_of(claim: ResourceClaim) -> list[str]:
    allocation = claim.status.allocation
    return [result.device for result in allocation.devices.results] if allocation is not None else []


def users_of(claim: ResourceClaim) -> list[str]:
    return [user.uid for user in claim.status.reserved_for]
