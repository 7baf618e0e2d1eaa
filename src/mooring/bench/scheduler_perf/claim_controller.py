"""The resource claim controller beside a workload with devices: it creates the claims of pods from their templates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder
from mooring.client.informer import Informer
from mooring.simulated.controllers.resource_claim_controller import ResourceClaimController
from mooring.simulated.records import ClaimRecord, ClaimTemplate, PodRecord


@asynccontextmanager
async def claim_controller(client: ApiClient) -> AsyncIterator[None]:
    """Runs until the block ends."""
    own = client.beside("mooring-bench")
    pods, claims = Informer(own, PodRecord), Informer(own, ClaimRecord)
    templates, events = Informer(own, ClaimTemplate), CoreEventRecorder(own, clock=own.clock, log=Log("devices"))
    controller = ResourceClaimController(own, pods, claims, templates, events, clock=own.clock)
    running = [informer.reflector.run() for informer in (pods, claims, templates)]
    tasks = [
        asyncio.ensure_future(each)
        for each in [*running, events.run(), *(run() for run in controller.tasks().values())]
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await own.close()
