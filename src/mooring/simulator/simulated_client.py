"""The API server of a simulation, as the scheduler's client sees it: pods in memory, and no requests.

A write takes effect at once; the scheduler sees it as a watch event of its own, in the next step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.client import ApiClient, Connection
from mooring.client.api import Document, PatchForm
from mooring.client.http1 import Response
from mooring.client.transport import REQUEST_SECONDS, Transport
from mooring.objects import Kind, Pod
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.simulator.simulated_storage import SimulatedStorage

NOT_FOUND, NOT_IMPLEMENTED = 404, 501
FIRST_VERSION = 10**15
"""Later than any that a snapshot has."""


class _NoTransport(Transport):
    """No request leaves a simulation."""

    async def response(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> Response:
        raise ApiError(
            NOT_IMPLEMENTED,
            "NotImplemented",
            f"a simulation binds and evicts pods, and binds volumes: no {method} {path}",
        )


class SimulatedClient(ApiClient):
    """Binds and deletes the pods of a simulation."""

    def __init__(self, clock: Clock) -> None:
        connection = Connection(server="https://simulation.invalid", source="the simulation")
        super().__init__(connection, clock=clock)
        self.transport = _NoTransport(
            connection, clock=clock, user_agent="mooring simulate", in_flight=1, qps=None, burst=None
        )
        self.pods: dict[str, Pod] = {}
        """By namespace and name: those that exist."""
        self.on_bound: Callable[[Pod], None] = _ignore
        self.on_deleted: Callable[[Pod], None] = _ignore
        self._version = FIRST_VERSION
        self._storage: SimulatedStorage | None = None

    def next_version(self) -> str:
        self._version += 1
        return str(self._version)

    async def bind(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        pod = self._existing(namespace, name, uid)
        metadata = msgspec.structs.replace(
            pod.metadata,
            resource_version=self.next_version(),
            annotations={**pod.annotations, **(annotations or {})},
            labels={**pod.labels, **(labels or {})},
        )
        bound = Pod(metadata=metadata, spec=msgspec.structs.replace(pod.spec, node_name=node), status=pod.status)
        self.pods[pod.key] = bound
        asyncio.get_running_loop().call_soon(self.on_bound, bound)

    async def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        grace_seconds: int | None = None,
        uid: str | None = None,
    ) -> None:
        if kind != Pod.KIND:
            await super().delete(kind, name, namespace, grace_seconds=grace_seconds, uid=uid)
            return
        pod = self._existing(namespace or "", name, uid)
        del self.pods[pod.key]
        asyncio.get_running_loop().call_soon(self.on_deleted, pod)

    def attach(self, storage: SimulatedStorage) -> None:
        """What is written to claims and volumes goes there."""
        self._storage = storage

    async def patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        body: Any,
        *,
        subresource: str | None = None,
        form: PatchForm = "strategic",
    ) -> Document:
        """Conditions of pods are not kept: nothing here reads them."""
        if kind in (PersistentVolume.KIND, PersistentVolumeClaim.KIND) and self._storage is not None:
            return self._storage.patch(kind, name, namespace, body)
        if kind != Pod.KIND:
            return await super().patch(kind, name, namespace, body, subresource=subresource, form=form)
        self._existing(namespace or "", name, body.get("metadata", {}).get("uid"))
        return {}

    def _existing(self, namespace: str, name: str, uid: str | None) -> Pod:
        pod = self.pods.get(f"{namespace}/{name}")
        if pod is None or (uid is not None and pod.uid != uid):
            raise ApiError(NOT_FOUND, "NotFound", f'pods "{name}" not found')
        return pod


def _ignore(pod: Pod) -> None: ...
