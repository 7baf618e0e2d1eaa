"""The ephemeral volume controller: creates the claims of pods' ephemeral volumes, owned by the pods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.objects.storage import PersistentVolumeClaim
from mooring.simulated.records import Document, PodRecord, owned_by


class EphemeralVolumeController:
    """Creates the claims of ephemeral volumes."""

    def __init__(
        self, client: ApiClient, pods: Informer[PodRecord], claims: Informer[PersistentVolumeClaim], *, clock: Clock
    ) -> None:
        self._client = client
        self._pods = pods
        self._claims = claims
        self._queue = WorkQueue("ephemeral volume", self._sync, clock=clock, log=Log("volumes"), workers=8)
        pods.subscribe(changed=self._pod_changed)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"ephemeral volumes": self._queue.run}

    def _pod_changed(self, pod: PodRecord) -> None:
        if any("ephemeral" in volume for volume in pod.spec.volumes):
            self._queue.add(pod.key)

    async def _sync(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or not pod.is_active:
            return
        for volume in pod.spec.volumes:
            if "ephemeral" in volume:
                await self._create(pod, f"{pod.name}-{volume['name']}", volume["ephemeral"])

    async def _create(self, pod: PodRecord, name: str, volume: Document) -> None:
        if self._claims.get(f"{pod.namespace}/{name}") is not None:
            return  # its own, or a conflicting one, which the scheduler reports
        template = volume.get("volumeClaimTemplate") or {}
        metadata = template.get("metadata") or {}
        body = {
            "metadata": {"name": name, "ownerReferences": owned_by(pod)}
            | {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)},
            "spec": template.get("spec") or {},
        }
        try:
            await self._client.create(PersistentVolumeClaim.KIND, body, pod.namespace)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
