"""Creates, adopts and deletes pods for a controller: with events, cached ahead of the watch, bounded in concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from mooring.base.errors import ApiError, Fault
from mooring.client import ApiClient
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.objects.selectors import LabelSelector
from mooring.simulated.records import Document, PodRecord, Record, controller_of, owned_by

T = TypeVar("T", bound=Record)


@dataclass(frozen=True)
class PodMessages:
    """The messages of a controller's events; `{pod}`, `{owner}` and `{error}` are filled in."""

    created: str = "Created pod: {pod}"
    create_failed: str = "Error creating: {error}"
    deleted: str = "Deleted pod: {pod}"
    delete_failed: str = "Error deleting: {error}"


class PodControl:
    """Pod operations of one controller."""

    def __init__(
        self,
        client: ApiClient,
        pods: Informer[PodRecord],
        events: CoreEventRecorder,
        source: EventSource,
        *,
        messages: PodMessages | None = None,
        concurrency: int = 32,
    ) -> None:
        self._client = client
        self._pods = pods
        self._events = events
        self._source = source
        self._messages = messages or PodMessages()
        self._deleting: set[str] = set()
        self._has_adopted: set[str] = set()
        self._free = asyncio.Semaphore(concurrency)
        pods.subscribe(deleted=lambda pod: self._deleting.discard(pod.uid))

    def pods_of(self, owner: Record) -> list[PodRecord]:
        """The owner's pods, without those that we have deleted."""
        return [pod for pod in self._pods.owned_by(owner.uid) if pod.uid not in self._deleting]

    def pods_until_deleted(self, owner: Record) -> list[PodRecord]:
        """The owner's pods until the watch reports them as deleted; those that we have deleted count as terminating."""
        return [
            _terminating(pod) if pod.uid in self._deleting and not pod.is_terminating else pod
            for pod in self._pods.owned_by(owner.uid)
        ]

    async def adopt(self, owner: Record, selector: LabelSelector) -> None:
        """Adopt pods of the selector that have no controller, such as those that an earlier owner orphaned.

        Done once for every owner, when it is new.
        """
        if owner.uid in self._has_adopted:
            return
        orphans = [
            pod
            for pod in self._pods.all()
            if pod.namespace == owner.namespace
            and pod.is_active
            and controller_of(pod) is None
            and selector.matches(pod.labels)
        ]
        for pod in orphans:
            body = {"metadata": {"uid": pod.uid, "ownerReferences": owned_by(owner)}}
            adopted = await self._client.patch(PodRecord.KIND, pod.name, pod.namespace, body)
            self._pods.cache_write(msgspec.convert(adopted, PodRecord))
        self._has_adopted.add(owner.uid)

    def forget(self, owner: Record) -> None:
        """The owner was deleted."""
        self._has_adopted.discard(owner.uid)

    async def create(self, owner: Record, pods: Sequence[Document]) -> None:
        """Create in batches that double (slow start), so that an invalid template fails once and not 500 times."""
        done, batch = 0, 1
        while done < len(pods):
            await asyncio.gather(*(self._create_one(owner, pod) for pod in pods[done : done + batch]))
            done += batch
            batch *= 2

    async def _create_one(self, owner: Record, pod: Document) -> None:
        async with self._free:
            try:
                created = await self._client.create(PodRecord.KIND, pod, owner.namespace)
            except ApiError as error:
                if is_namespace_terminating(error):
                    return
                if error.reason != "AlreadyExists":
                    message = self._messages.create_failed.format(pod=_name(pod), owner=owner.name, error=error)
                    self._events.record(owner, self._source, "FailedCreate", message, warning=True)
                raise
        self._pods.cache_write(msgspec.convert(created, PodRecord))
        message = self._messages.created.format(pod=_name(created), owner=owner.name)
        self._events.record(owner, self._source, "SuccessfulCreate", message)

    async def delete(self, owner: Record, pods: Iterable[PodRecord]) -> None:
        await asyncio.gather(*(self._delete_one(owner, pod) for pod in pods if not pod.is_terminating))

    async def _delete_one(self, owner: Record, pod: PodRecord) -> None:
        self._deleting.add(pod.uid)
        try:
            async with self._free:
                await self._client.delete(PodRecord.KIND, pod.name, pod.namespace, uid=pod.uid)
        except Fault as error:
            self._deleting.discard(pod.uid)
            if isinstance(error, ApiError) and error.code in (404, 409):
                return
            message = self._messages.delete_failed.format(pod=pod.name, owner=owner.name, error=error)
            self._events.record(owner, self._source, "FailedDelete", message, warning=True)
            raise
        message = self._messages.deleted.format(pod=pod.name, owner=owner.name)
        self._events.record(owner, self._source, "SuccessfulDelete", message)


def _name(pod: Document) -> str:
    metadata = pod["metadata"]
    return str(metadata.get("name") or metadata["generateName"])


def _terminating(pod: PodRecord) -> PodRecord:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=pod.metadata.creation_timestamp or "")
    return PodRecord(metadata=metadata, spec=pod.spec, status=pod.status)


async def report_status(
    client: ApiClient, informer: Informer[T], owner: T, present: Any, status: Document, *, replaces: bool = False
) -> None:
    """Patch the status where it differs from the present one.

    With `replaces` it is a merge patch with the resourceVersion that was read: a conflict if another client has written
    since.
    """
    known = msgspec.to_builtins(present)
    if all(_as_if_absent(known.get(key)) == _as_if_absent(value) for key, value in status.items()):
        return
    kind = type(owner).KIND
    body: Document = {"status": status}
    if replaces:
        body["metadata"] = {"uid": owner.uid, "resourceVersion": owner.metadata.resource_version}
    try:
        patched = await client.patch(
            kind,
            owner.name,
            owner.namespace,
            body,
            subresource="status",
            form="merge" if replaces else "strategic",
        )
    except ApiError as error:
        if error.code != 404:
            raise
        return
    informer.cache_write(msgspec.convert(patched, type(owner)))


def is_namespace_terminating(error: ApiError) -> bool:
    """Nothing can be created in the namespace, and a retry would not help: the owner is about to be deleted, too."""
    return error.code == 403 and "is being terminated" in error.message


def _as_if_absent(value: object) -> object:
    """Zero counts and empty lists are omitted on the wire."""
    return value or None
