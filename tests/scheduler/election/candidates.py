"""Candidates for one lease in memory, with time in the test's hands."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError
from mooring.client.fence import WriteFence
from mooring.config.model import LeaderElection
from mooring.objects import Kind
from mooring.scheduler.election.leader_election import Elector

SETTINGS = LeaderElection()


class MemoryLeases:
    """One lease, with the API server's optimistic locking; it can be made to fail or to hang."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.failure: Exception | None = None
        self.hangs = False
        self.writes = 0
        self.gets = 0

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    async def _response(self) -> None:
        await asyncio.sleep(0)
        if self.hangs:
            await asyncio.Event().wait()
        if self.failure is not None:
            raise self.failure

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any]:
        self.gets += 1
        await self._response()
        if self.lease is None:
            raise ApiError(404, "NotFound", "no such lease")
        return copy.deepcopy(self.lease)

    async def create(self, kind: Kind, body: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
        await self._response()
        if self.lease is not None:
            raise ApiError(409, "AlreadyExists", "there is one")
        return self._store(body)

    async def update(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        await self._response()
        if self.lease is None:
            raise ApiError(404, "NotFound", "no such lease")
        if body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._store(body)

    def renewed_by(self, identity: str) -> None:
        """Written while those who know the lease look away."""
        assert self.lease is not None
        self._store({**self.lease, "spec": {**self.spec, "holderIdentity": identity, "renewTime": "now"}})

    def _store(self, body: dict[str, Any]) -> dict[str, Any]:
        self.writes += 1
        metadata = {**body["metadata"], "resourceVersion": str(self.writes)}
        self.lease = copy.deepcopy({**body, "metadata": metadata})
        return copy.deepcopy(self.lease)


class FarLeases(MemoryLeases):
    """The same lease, over a network of its own."""

    def __init__(self, near: MemoryLeases) -> None:
        super().__init__()
        self._near = near

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any]:
        await self._response()
        return await self._near.get(kind, name, namespace)

    async def create(self, kind: Kind, body: dict[str, Any], namespace: str | None = None) -> dict[str, Any]:
        await self._response()
        return await self._near.create(kind, body, namespace)

    async def update(self, kind: Kind, body: dict[str, Any]) -> dict[str, Any]:
        await self._response()
        return await self._near.update(kind, body)


class Candidate:
    def __init__(
        self, name: str, leases: MemoryLeases, clock: ManualClock, election: LeaderElection = SETTINGS
    ) -> None:
        self.fence = WriteFence(clock.monotonic)
        self.elector = Elector(
            leases,
            election,
            name,
            clock,
            self.fence,
            on_leading=self._led,
            on_stopped=self._stopped,
            on_regained=self._regained,
            on_slow_path=self._looked_again,
            jitter=lambda: 0.5,
        )
        self.led = self.stopped = self.regained = self.second_looks = 0
        self.task = asyncio.ensure_future(self.elector.run())

    def _led(self) -> None:
        self.led += 1

    def _stopped(self) -> None:
        self.stopped += 1

    def _regained(self) -> None:
        self.regained += 1

    def _looked_again(self) -> None:
        self.second_looks += 1

    @property
    def leads(self) -> bool:
        return self.elector.is_leading

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


class Cluster:
    def __init__(self) -> None:
        self.leases, self.clock = MemoryLeases(), ManualClock()
        self.candidates: list[Candidate] = []

    async def candidate(
        self, name: str, leases: MemoryLeases | None = None, election: LeaderElection = SETTINGS
    ) -> Candidate:
        found = Candidate(name, leases or self.leases, self.clock, election)
        self.candidates.append(found)
        await self.settle()
        return found

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float, step: float = 0.5) -> None:
        while seconds > 0:
            self.clock.advance(min(step, seconds))
            seconds -= step
            await self.settle()


@asynccontextmanager
async def a_cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.leases.hangs = False  # the holder of the lease releases it, and would wait for a response
    for candidate in cluster.candidates:
        await candidate.stop()
