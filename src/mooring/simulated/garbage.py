"""Removes what nobody owns any more: dependents of deleted owners.

Dependents are looked for among the kinds that we watch anyway (pods and what makes them). Their owners may be of any
kind: one that we do not watch is asked after, when a dependent appears and every half minute from then on.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.client.api import path_of
from mooring.objects.meta import OwnerReference
from mooring.simulated.discovery import Discovery, UnknownKind
from mooring.simulated.records import Record
from mooring.simulated.watching import Watched
from mooring.simulated.work_queue import WorkQueue

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
ASK_AGAIN_SECONDS = 30.0


class GarbageCollector:
    """Background deletion, foreground deletion and orphaning, as `kubectl delete --cascade` asks for them."""

    def __init__(self, client: ApiClient, discovery: Discovery, kinds: Sequence[Watched[Any]], *, clock: Clock) -> None:
        self._client = client
        self._discovery = discovery
        self._clock = clock
        self._log = Log("garbage")
        self._watched = {watched.type.KIND.plural: watched for watched in kinds}
        self._by_kind = {(watched.type.KIND.api_version, watched.type.KIND.kind): watched for watched in kinds}
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)
        self._strangers: dict[str, tuple[str, OwnerReference]] = {}
        self._work = WorkQueue("garbage", self._sync, clock=clock, log=self._log, workers=16)
        for plural, watched in self._watched.items():
            watched.subscribe(changed=self._changed_of(plural), deleted=self._deleted_of(plural))

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"garbage": self._work.run, "strangers": self._ask_after_strangers}

    def _changed_of(self, plural: str) -> Callable[[Record], None]:
        def changed(object: Record) -> None:
            key = f"{plural} {object.key}"
            for owner in object.metadata.owner_references:
                known = key in self._dependents[owner.uid]
                self._dependents[owner.uid].add(key)
                if not known and not self._is_seen(owner, object.namespace):
                    self._work.add(key)
            if object.is_terminating and {FOREGROUND, ORPHAN} & set(object.metadata.finalizers):
                self._work.add(key)

        return changed

    def _deleted_of(self, plural: str) -> Callable[[Record], None]:
        def deleted(object: Record) -> None:
            for owner in object.metadata.owner_references:
                siblings = self._dependents[owner.uid]
                siblings.discard(f"{plural} {object.key}")
                if not siblings:
                    del self._dependents[owner.uid]
                    self._strangers.pop(owner.uid, None)
                if (watched := self._by_kind.get((owner.api_version, owner.kind))) is not None:
                    # An owner that waits in the foreground may have waited for this one.
                    above = watched.get(_key(object.namespace, owner.name))
                    if above is not None and above.is_terminating:
                        self._work.add(f"{watched.type.KIND.plural} {above.key}")
            for dependent in self._dependents.get(object.uid, ()):
                self._work.add(dependent)

        return deleted

    async def _sync(self, key: str) -> None:
        plural, _, name = key.partition(" ")
        object = self._watched[plural].get(name)
        if object is None:
            return
        if object.is_terminating and FOREGROUND in object.metadata.finalizers:
            await self._finish_dependents(object)
        elif object.is_terminating and ORPHAN in object.metadata.finalizers:
            await self._free_dependents(object)
        elif object.metadata.owner_references and not object.is_terminating:
            await self._remove_if_unowned(object)

    async def _remove_if_unowned(self, object: Record) -> None:
        for owner in object.metadata.owner_references:
            if await self._exists(owner, object.namespace):
                return
        self._log.v(2).info("Deleting what nobody owns any more", kind=type(object).KIND.kind, object=object)
        await self._delete(object)

    def _is_seen(self, owner: OwnerReference, namespace: str) -> bool:
        """Whether a watch shows the owner; True is certain, False is not."""
        watched = self._by_kind.get((owner.api_version, owner.kind))
        if watched is None:
            return False
        found = watched.get(_key(namespace, owner.name))
        return found is not None and found.uid == owner.uid

    async def _exists(self, owner: OwnerReference, namespace: str) -> bool:
        if self._is_seen(owner, namespace):
            return True
        try:
            kind = await self._discovery.kind(owner.api_version, owner.kind)
            found = await self._client.get(kind, owner.name, namespace if kind.namespaced else None)
        except UnknownKind:
            return True  # a kind that went, or comes yet: nothing to conclude from
        except ApiError as error:
            if error.code == 404:
                return False
            raise
        if (owner.api_version, owner.kind) not in self._by_kind:
            self._strangers[owner.uid] = namespace, owner
        return bool(found["metadata"]["uid"] == owner.uid)

    async def _ask_after_strangers(self) -> None:
        while True:
            await self._clock.sleep(ASK_AGAIN_SECONDS)
            for uid, (namespace, owner) in list(self._strangers.items()):
                try:
                    if not await self._exists(owner, namespace):
                        self._strangers.pop(uid, None)
                        for dependent in self._dependents.get(uid, ()):
                            self._work.add(dependent)
                except Fault as error:
                    self._log.v(2).warning("An owner could not be asked after", owner=owner.name, err=str(error))

    def _dependents_of(self, owner: Record) -> list[Record]:
        found = []
        for key in self._dependents.get(owner.uid, ()):
            plural, _, name = key.partition(" ")
            if (dependent := self._watched[plural].get(name)) is not None:
                found.append(dependent)
        return found

    async def _finish_dependents(self, owner: Record) -> None:
        """Foreground: the dependents go first, then the owner."""
        dependents = self._dependents_of(owner)
        for dependent in dependents:
            if not dependent.is_terminating:
                await self._delete(dependent, "Foreground")
        if not dependents:
            await self._drop_finalizer(owner, FOREGROUND)

    async def _free_dependents(self, owner: Record) -> None:
        """Orphan: the dependents stay and forget their owner."""
        for dependent in self._dependents_of(owner):
            kept = [each for each in dependent.metadata.owner_references if each.uid != owner.uid]
            await self._patch(dependent, {"ownerReferences": [_written(each) for each in kept] or None})
        await self._drop_finalizer(owner, ORPHAN)

    async def _drop_finalizer(self, object: Record, finalizer: str) -> None:
        kept = [each for each in object.metadata.finalizers if each != finalizer]
        await self._patch(object, {"finalizers": kept or None})

    async def _patch(self, object: Record, metadata: dict[str, Any]) -> None:
        body = {"metadata": {"uid": object.uid, "resourceVersion": object.metadata.resource_version, **metadata}}
        try:
            await self._client.patch(type(object).KIND, object.name, object.namespace or None, body, form="merge")
        except ApiError as error:
            if error.code != 404:
                raise

    async def _delete(self, object: Record, propagation: str = "Background") -> None:
        path = path_of(type(object).KIND, object.namespace or None, object.name)
        options = {"propagationPolicy": propagation, "preconditions": {"uid": object.uid}}
        try:
            await self._client.transport.request("DELETE", path, json.dumps(options).encode())
        except ApiError as error:
            if error.code not in (404, 409):
                raise


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _written(owner: OwnerReference) -> dict[str, Any]:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": owner.controller,
    }
