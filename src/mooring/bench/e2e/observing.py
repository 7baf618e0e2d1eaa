"""Observes a contender until its pods are bound, or no more can be expected."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from mooring.bench.e2e.binding_watch import BindingWatch
from mooring.bench.e2e.running_contender import RunningContender

LOOK_SECONDS = 0.05
START_SECONDS, STALL_SECONDS = 300.0, 60.0
"""Without a first binding for so long, or another one, the run is over."""
GRACE_SECONDS = 1.0
"""Bindings that a process posted may be shown so long after its end."""


@dataclass(frozen=True)
class Observed:
    start_cpu_seconds: float | None
    """CPU time until the first binding."""
    trouble: str
    """Why not all pods were bound."""


async def observe(process: RunningContender, watch: BindingWatch) -> Observed:
    """Until all pods are bound, or no more can be expected."""
    start_cpu = None
    bound, progressed_at = 0, time.monotonic()
    while not watch.all.is_set():
        if start_cpu is None and watch.first.is_set():
            start_cpu = process.usage().cpu_seconds
        if len(watch.bound_at) > bound:
            bound, progressed_at = len(watch.bound_at), time.monotonic()
        quiet = time.monotonic() - progressed_at
        if process.has_ended and quiet > GRACE_SECONDS:
            return Observed(start_cpu, f"it ended with exit code {process.exit_code}.")
        patience = STALL_SECONDS if bound else START_SECONDS
        if quiet > patience:
            return Observed(start_cpu, f"no pod was bound for {patience:g} s.")
        process.usage()
        try:
            await asyncio.wait_for(watch.all.wait(), LOOK_SECONDS)
        except TimeoutError:
            continue
    return Observed(start_cpu, "")
