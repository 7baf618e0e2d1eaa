"""Partitionable devices: the counters that the devices of a pool share.

A device can be taken while every counter of its pool has enough left, what allocated devices consume taken off.
"""

from __future__ import annotations

from collections.abc import Callable

from mooring.objects.quantity import billionths
from mooring.plugins.default.dynamic_resources.resource_slices import DeviceId, Pool, PoolId, SliceDevice

Counted = dict[tuple[str, str], int]
"""(counter set, counter) → amount."""


class FreeCounters:
    """What allocated devices leave of each pool's counters. One for all nodes of an attempt."""

    def __init__(self, is_allocated: Callable[[DeviceId], bool]) -> None:
        self._is_allocated = is_allocated
        self._free: dict[PoolId, Counted] = {}

    def of(self, pool: Pool) -> Counted:
        free = self._free.get(pool.id)
        if free is None:
            free = self._free[pool.id] = {
                (counter_set.name, name): billionths(counter.value)
                for counter_set in pool.counters.values()
                for name, counter in counter_set.counters.items()
            }
            for offered in (*pool.devices, *pool.elsewhere):
                if offered.device.consumes_counters and self._is_allocated(offered.id):
                    for key, amount in consumed_counters(offered).items():
                        free[key] -= amount
        return free


class CounterUse:
    """What the devices that are being taken consume of each pool."""

    def __init__(self, free: FreeCounters) -> None:
        self._free = free
        self._used: dict[PoolId, Counted] = {}

    def allocate(self, pool: Pool, offered: SliceDevice) -> bool:
        """Whether the counters suffice for one more device; if so, it counts from now on."""
        used = self._used.setdefault(pool.id, {})
        wanted = consumed_counters(offered)
        # A counter that is overdrawn already (free is negative) blocks the pool, whether or not the device needs it.
        for key, free in self._free.of(pool).items():
            if used.get(key, 0) + wanted.get(key, 0) > free:
                return False
        for key, amount in wanted.items():
            used[key] = used.get(key, 0) + amount
        return True

    def deallocate(self, pool: Pool, offered: SliceDevice) -> None:
        used = self._used[pool.id]
        for key, amount in consumed_counters(offered).items():
            used[key] -= amount


def consumed_counters(offered: SliceDevice) -> Counted:
    """What a device consumes, once it is taken."""
    consumed: Counted = {}
    for part in offered.device.consumes_counters:
        for name, counter in part.counters.items():
            key = part.counter_set, name
            consumed[key] = consumed.get(key, 0) + billionths(counter.value)
    return consumed
