"""Namespaces from beginning to end: each has its default ServiceAccount, and one that goes is emptied before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.objects.meta import Kind
from mooring.simulated.discovery import Discovery
from mooring.simulated.records import NamespaceRecord
from mooring.simulated.watching import Watched
from mooring.simulated.work_queue import WorkQueue

SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts")
FINALIZER = "kubernetes"
LOOK_AGAIN_SECONDS = 0.5


class Namespaces:
    """Looks after namespaces."""

    def __init__(
        self, client: ApiClient, discovery: Discovery, namespaces: Watched[NamespaceRecord], *, clock: Clock
    ) -> None:
        self._client = client
        self._discovery = discovery
        self._namespaces = namespaces
        self._furnished: set[str] = set()
        self._work = WorkQueue("namespace", self._sync, clock=clock, log=Log("namespaces"), workers=4)
        namespaces.subscribe(changed=self._changed, deleted=lambda each: self._furnished.discard(each.uid))

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"namespaces": self._work.run}

    def _changed(self, namespace: NamespaceRecord) -> None:
        if namespace.is_terminating or namespace.uid not in self._furnished:
            self._work.add(namespace.name)

    async def _sync(self, name: str) -> None:
        namespace = self._namespaces.get(name)
        if namespace is None:
            return
        if not namespace.is_terminating:
            await self._furnish(namespace)
        elif FINALIZER in (namespace.spec.get("finalizers") or ()):
            if await self._is_empty(name):
                await self._finalize(name)
            else:
                self._work.add_after(name, LOOK_AGAIN_SECONDS)  # pods take their time to end

    async def _furnish(self, namespace: NamespaceRecord) -> None:
        account = {"metadata": {"name": "default", "namespace": namespace.name}}
        try:
            await self._client.create(SERVICE_ACCOUNT, account, namespace.name)
        except ApiError as error:
            if error.code not in (404, 409):
                raise
        self._furnished.add(namespace.uid)

    async def _is_empty(self, namespace: str) -> bool:
        """Ask everything in the namespace to go; True when nothing was left to ask."""
        left = 0
        for kind in await self._discovery.namespaced_kinds():
            try:
                found = await self._client.list(kind, namespace)
                left += len(found)
                for document in found:
                    if not document["metadata"].get("deletionTimestamp"):
                        await self._client.delete(kind, document["metadata"]["name"], namespace)
            except ApiError as error:
                if error.code not in (404, 405, 409):  # gone meanwhile, or a kind that is not stored
                    raise
        return left == 0

    async def _finalize(self, name: str) -> None:
        try:
            document = await self._client.get(NamespaceRecord.KIND, name)
            kept = [each for each in document["spec"].get("finalizers") or () if each != FINALIZER]
            document["spec"]["finalizers"] = kept
            await self._client.update(NamespaceRecord.KIND, document, subresource="finalize")
        except ApiError as error:
            if error.code != 404:
                raise
