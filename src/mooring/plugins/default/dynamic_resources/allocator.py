"""The search for devices on one node: claim by claim, request by request, device by device, with backtracking.

Every request tries its alternatives in order, every alternative the node's devices in order; the first solution is
taken. The order is kube-scheduler's, so the devices are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from enum import Enum

import msgspec

from mooring.framework import NodeView
from mooring.objects.quantity import billionths
from mooring.objects.resource import MOST_RESULTS
from mooring.plugins.default.dynamic_resources.allocated_devices import AllocatedDevices
from mooring.plugins.default.dynamic_resources.consumable_capacity import (
    NOTHING,
    Consumed,
    consumed_capacity,
    has_capacity,
)
from mooring.plugins.default.dynamic_resources.device_constraints import constraints_of
from mooring.plugins.default.dynamic_resources.device_requests import (
    AllocationFault,
    ClaimToAllocate,
    PoolsInvalid,
    ResolvedRequest,
    has_untolerated_taint,
    selects,
)
from mooring.plugins.default.dynamic_resources.features import Features
from mooring.plugins.default.dynamic_resources.resource_slices import (
    DeviceId,
    Pool,
    ResourceSliceIndex,
    SliceDevice,
    UsablePools,
    node_matches,
)
from mooring.plugins.default.dynamic_resources.shared_counters import CounterUse, FreeCounters

STEPS_BETWEEN_TIME_CHECKS = 256
DEVICES_IN_A_STEP = 32
"""Devices that are passed over while a step looks for one."""


class Outcome(Enum):
    """How a part of the search ended."""

    SOLVED = "everything is found"
    FAILED = "not this way"
    TOO_MANY = "the claim would hold more devices than it can, whichever they are"


Step = Generator["Step", Outcome, Outcome]
"""A part of the search: it yields the next part and is sent that one's outcome. So depth costs no recursion."""


class FoundDevice(msgspec.Struct, frozen=True):
    """A device for a request."""

    offered: SliceDevice
    wanted: ResolvedRequest
    consumed: Consumed
    """Of its capacity, if the device is shared."""
    is_share: bool


class FoundClaim(msgspec.Struct, frozen=True):
    """The devices for a claim, and which alternative each of its requests got."""

    devices: Sequence[FoundDevice]
    chosen: Sequence[ResolvedRequest]


class Allocator:
    """Finds devices for the claims of one pod on any node. What is in use does not change meanwhile."""

    def __init__(
        self,
        slices: ResourceSliceIndex,
        allocated_devices: AllocatedDevices,
        features: Features,
        check_time: Callable[[], None],
    ) -> None:
        self.slices = slices
        self.allocated_devices = allocated_devices
        self.features = features
        self.check_time = check_time
        """Raises `TimeoutError` when the search must end."""
        self.free_counters = FreeCounters(allocated_devices.is_allocated)

    def allocate(self, node: NodeView, claims: Sequence[ClaimToAllocate]) -> Sequence[FoundClaim] | None:
        """Devices for every claim, or None. Raises `AllocationFault`, `PoolsInvalid` or `TimeoutError`."""
        usable = self.slices.usable_by(node)
        search = _Search(self, node, claims, usable)
        if search.run():
            return search.found()
        if any(pool.is_invalid for pool in usable.pools):
            raise PoolsInvalid("invalid resource pools were encountered")
        return None


class _DeviceInSearch(msgspec.Struct):
    """What must be undone when the search deallocates a device."""

    claim: int
    wanted: ResolvedRequest
    pool: Pool
    offered: SliceDevice
    has_counters: bool = False
    constraints: int = 0
    is_marked: bool = False
    consumed: Consumed | None = None
    was_shared_before: bool = False
    is_result: bool = False


class _Search:
    """One node's search: what is being taken for which claim, and the way back."""

    def __init__(
        self, allocator: Allocator, node: NodeView, claims: Sequence[ClaimToAllocate], usable: UsablePools
    ) -> None:
        self._allocator = allocator
        self._features = allocator.features
        self._allocated_devices = allocator.allocated_devices
        self._node = node
        self._claims = claims
        self._candidates = usable.candidates
        self._selectable: dict[tuple[ResolvedRequest, SliceDevice], bool] = {}
        self._held_by: dict[DeviceId, set[int]] = {}
        """Devices that are being taken → the claims that take them."""
        self._shared: dict[DeviceId, dict[str, int]] = {}
        """Shared devices that are being taken → how much of them."""
        self._counters = CounterUse(allocator.free_counters)
        self._all: dict[ResolvedRequest, Sequence[tuple[Pool, SliceDevice]]] = {}
        self._results: list[list[FoundDevice]] = [[] for _ in claims]
        self._chosen: list[dict[int, int]] = [{} for _ in claims]
        self._steps = 0
        for claim in claims:
            self._prepare(claim, usable.pools)
        self._constraints = [constraints_of(wanted.claim, self._features) for wanted in claims]

    def found(self) -> list[FoundClaim]:
        return [
            FoundClaim(
                self._results[at],
                [request.alternatives[self._chosen[at].get(place, 0)] for place, request in enumerate(wanted.requests)],
            )
            for at, wanted in enumerate(self._claims)
        ]

    def run(self) -> bool:
        self._allocator.check_time()
        steps: list[Step] = [self._claim(0)]
        outcome: Outcome | None = None
        while steps:
            try:
                below = steps[-1].send(outcome)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as ended:
                steps.pop()
                outcome = ended.value
            else:
                steps.append(below)
                outcome = None
        if outcome is Outcome.TOO_MANY:
            raise AllocationFault("allocation max size exceeded")
        return outcome is Outcome.SOLVED

    # Before the search: how many devices there will be

    def _prepare(self, claim: ClaimToAllocate, pools: Sequence[Pool]) -> None:
        fewest = 0
        for request in claim.requests:
            for wanted in request.alternatives:
                if wanted.takes_all:
                    self._all[wanted] = self._all_devices(claim, wanted, pools)
            fewest += min(self._count(wanted) for wanted in request.alternatives)
        if fewest > MOST_RESULTS:
            raise AllocationFault(
                f"claim {claim.claim.key}: number of requested devices {fewest} exceeds the claim limit of"
                f" {MOST_RESULTS}"
            )

    def _all_devices(
        self, claim: ClaimToAllocate, wanted: ResolvedRequest, pools: Sequence[Pool]
    ) -> Sequence[tuple[Pool, SliceDevice]]:
        devices = []
        for pool in pools:
            if not pool.is_usable:
                state = "being updated" if pool.is_incomplete else "invalid"
                raise AllocationFault(
                    f"claim {claim.claim.key}, request {wanted.name}: asks for all devices, but resource pool {pool.id}"
                    f" is currently {state}"
                )
            devices += [
                (pool, offered)
                for offered in pool.devices
                if self._is_selectable(wanted, offered) and self._has_capacity(wanted, offered)
            ]
        return devices

    def _count(self, wanted: ResolvedRequest) -> int:
        return len(self._all[wanted]) if wanted.takes_all else wanted.count

    # The search itself

    def _claim(self, at: int) -> Step:
        if at == len(self._claims):
            return Outcome.SOLVED
        return (yield self._request(at, 0))

    def _request(self, claim: int, at: int) -> Step:
        requests = self._claims[claim].requests
        if at == len(requests):
            outcome = yield self._claim(claim + 1)
            # That limits the next claim, not this one: with other devices here, the next may need fewer.
            return Outcome.FAILED if outcome is Outcome.TOO_MANY else outcome
        if not requests[at].is_prioritized:
            return (yield self._device(claim, at, requests[at].alternatives[0], 0, 0))
        ending = Outcome.TOO_MANY
        for place, wanted in enumerate(requests[at].alternatives):
            outcome = yield self._device(claim, at, wanted, 0, 0)
            if outcome is Outcome.SOLVED:
                self._chosen[claim][at] = place
                return outcome
            if outcome is Outcome.FAILED:
                ending = outcome
        return ending

    def _device(self, claim: int, request: int, wanted: ResolvedRequest, number: int, start: int) -> Step:
        """The devices from this number on. Their order means nothing, so only devices from `start` on are tried."""
        self._count_steps(1 + (len(self._candidates) - start) // DEVICES_IN_A_STEP)
        count = self._count(wanted)
        if wanted.takes_all and not count:
            return Outcome.FAILED
        if number >= count:
            return (yield self._request(claim, request + 1))
        if len(self._results[claim]) + count - number > MOST_RESULTS:
            return Outcome.TOO_MANY
        if wanted.takes_all:
            pool, offered = self._all[wanted][number]
            taken = self._allocate_device(claim, wanted, pool, offered, must=True)
            if taken is None:
                return Outcome.FAILED
            outcome = yield self._device(claim, request, wanted, number + 1, 0)
            if outcome is not Outcome.SOLVED:
                self._deallocate(taken)
            return outcome
        for place in range(start, len(self._candidates)):
            pool, offered = self._candidates[place]
            if self._is_taken(claim, wanted, offered.id):
                continue
            if not self._is_selectable(wanted, offered) or not self._has_capacity(wanted, offered):
                continue
            taken = self._allocate_device(claim, wanted, pool, offered, must=False)
            if taken is None:
                continue
            outcome = yield self._device(claim, request, wanted, number + 1, place + 1)
            if outcome is Outcome.SOLVED:
                return outcome
            self._deallocate(taken)
            if outcome is Outcome.TOO_MANY:  # no other device here would change how many there are
                return outcome
        return Outcome.FAILED

    def _count_steps(self, steps: int) -> None:
        self._steps += steps
        if self._steps >= STEPS_BETWEEN_TIME_CHECKS:
            self._steps = 0
            self._allocator.check_time()

    # One device

    def _is_taken(self, claim: int, wanted: ResolvedRequest, device: DeviceId) -> bool:
        holders = self._held_by.get(device)
        if wanted.has_admin_access:
            return holders is not None and claim in holders
        return bool(holders) or self._allocated_devices.is_exclusively_allocated(device)

    def _is_selectable(self, wanted: ResolvedRequest, offered: SliceDevice) -> bool:
        key = wanted, offered
        known = self._selectable.get(key)
        if known is None:
            known = self._selectable[key] = self._is_selected(wanted, offered)
        return known

    def _is_selected(self, wanted: ResolvedRequest, offered: SliceDevice) -> bool:
        device = offered.device
        if device.binding_conditions and not self._features.binding_conditions:
            return False
        if not all(selects(*selector, offered, self._allocator.check_time) for selector in wanted.selectors):
            return False
        return not offered.has_node_selection or node_matches(
            self._node, device.node_name, device.all_nodes, device.node_selector
        )

    def _has_capacity(self, wanted: ResolvedRequest, offered: SliceDevice) -> bool:
        if not self._features.consumable_capacity:
            return True
        consumed = self._allocated_devices.consumed(offered.id)
        being_taken = self._shared.get(offered.id)
        if not (consumed or being_taken or wanted.capacity or offered.has_policies):
            return True  # the request takes the whole device and none of it is consumed: the usual case
        return has_capacity(wanted.capacity, offered.device.capacity, consumed or NOTHING, being_taken or NOTHING)

    def _allocate_device(
        self, claim: int, wanted: ResolvedRequest, pool: Pool, offered: SliceDevice, *, must: bool
    ) -> _DeviceInSearch | None:
        """Allocate the device to this request, or return None.

        `must`: no other device will do, so a violated constraint is a fault.
        """
        device = offered.device
        can_be_shared = bool(device.allow_multiple_allocations) and self._features.consumable_capacity
        if not (can_be_shared and wanted.has_admin_access) and self._is_taken(claim, wanted, offered.id):
            return None
        if device.consumes_counters and not self._features.partitionable_devices:
            return None
        taken = _DeviceInSearch(claim, wanted, pool, offered)
        # The counters of a shared device are consumed once, by its first share.
        if device.consumes_counters and not (can_be_shared and self._is_shared(offered.id)):
            if not self._counters.allocate(pool, offered):
                return None
            taken.has_counters = True
        if self._features.device_taints and has_untolerated_taint(device, wanted.tolerations):
            self._deallocate(taken)
            return None
        for constraint in self._constraints[claim]:
            if not constraint.add(wanted.request, wanted.alternative, offered):
                self._deallocate(taken)
                if must:
                    raise AllocationFault(
                        f"claim {self._claims[claim].claim.key}, request {wanted.name}: cannot add device {offered.id}"
                        " because a claim constraint would not be satisfied"
                    )
                return None
            taken.constraints += 1
        if not can_be_shared:
            self._held_by.setdefault(offered.id, set()).add(claim)
            taken.is_marked = True
        if not self._has_capacity(wanted, offered):
            self._deallocate(taken)
            return None
        if can_be_shared:
            taken.was_shared_before = offered.id in self._shared
            taken.consumed = consumed_capacity(wanted.capacity, device.capacity)
            being_taken = self._shared.setdefault(offered.id, {})
            for name, amount in taken.consumed.items():
                being_taken[name] = being_taken.get(name, 0) + billionths(amount)
        self._results[claim].append(FoundDevice(offered, wanted, taken.consumed or {}, can_be_shared))
        taken.is_result = True
        return taken

    def _is_shared(self, device: DeviceId) -> bool:
        return device in self._shared or self._allocated_devices.consumed(device) is not None

    def _deallocate(self, taken: _DeviceInSearch) -> None:
        device = taken.offered.id
        if taken.is_result:
            self._results[taken.claim].pop()
        if taken.consumed is not None:
            being_taken = self._shared[device]
            for name, amount in taken.consumed.items():
                being_taken[name] -= billionths(amount)
            if not taken.was_shared_before:
                del self._shared[device]
        if taken.is_marked:
            self._held_by[device].discard(taken.claim)
        for constraint in reversed(self._constraints[taken.claim][: taken.constraints]):
            constraint.remove(taken.wanted.request, taken.wanted.alternative)
        if taken.has_counters:
            self._counters.deallocate(taken.pool, taken.offered)
