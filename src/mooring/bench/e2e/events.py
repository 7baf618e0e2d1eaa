"""The events that follow the bindings: how many there are, and when the last one came."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from mooring.bench.e2e.cluster import BenchCluster

LOOK_SECONDS = 0.2
STALL_SECONDS = 10.0
"""Without another event for so long, those that are missing are lost."""


@dataclass(frozen=True)
class Events:
    scheduled: int
    """Pods with a Scheduled event."""
    last_at: float


async def follow_events(cluster: BenchCluster, expected: int) -> Events:
    """Wait for the events that follow the bindings, and count those about scheduled pods."""
    awaited = expected
    while True:
        found, last_at = await wait_for_events(cluster, awaited)
        scheduled = len(await cluster.scheduled_pods())
        if scheduled >= expected or found < awaited:
            return Events(scheduled, last_at)
        awaited = found + expected - scheduled  # some have other reasons, such as FailedScheduling


async def wait_for_events(cluster: BenchCluster, expected: int) -> tuple[int, float]:
    """Until there are so many, or no more come. They are counted without reading them, so that the wait costs nothing.
    Returns how many there are, and when the last one was seen."""
    count, last_at = -1, time.monotonic()
    while count < expected and time.monotonic() - last_at < STALL_SECONDS:
        found = await cluster.event_count()
        if found > count:
            count, last_at = found, time.monotonic()
        if count < expected:
            await asyncio.sleep(LOOK_SECONDS)
    return count, last_at
