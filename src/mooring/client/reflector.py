"""Lists and watches one kind and passes every object and every change to a feed, for as long as it runs.

One watch that begins with everything there is (a streaming list) and goes on with the changes; from a server that does
not offer it, a list and then a watch from where the list ended. When the watch ends, it is resumed from the last
resourceVersion; when that has expired (410 Gone), list again. It never gives up: while the server cannot be reached,
lacks the kind or forbids it, `problem` describes it in a sentence and the list/watch is retried with backoff.

The feed interprets the objects.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from mooring.base.errors import ApiError, Fault, MooringError, OperatorMistake, Unreachable
from mooring.base.log import Log
from mooring.base.nesting import Decoder, decode
from mooring.base.retry import Backoff, Retry
from mooring.client.api import PAGE, ApiClient, RawList, path_of, selectors
from mooring.client.list_pages import ListPages
from mooring.client.outages import REMINDER_SECONDS
from mooring.client.rights import rule
from mooring.client.transport import error_of
from mooring.objects import CustomResource, KubeObject, Pod
from mooring.objects.object_store import Present

T = TypeVar("T", bound=KubeObject)
Received = TypeVar("Received", contravariant=True)

GONE = 410
WATCH_SECONDS = 300
"""The server ends a watch after one to two times this, so that watches of many clients spread out."""
LARGEST_EVENT_BYTES = 64 * 1024 * 1024
"""Of one line of a watch: far more than the largest object that a cluster stores."""
BACKOFF = Backoff(initial_seconds=0.5, limit_seconds=10.0, jitter=0.5)
AWAY_BACKOFF = Backoff(initial_seconds=0.05, limit_seconds=1.0, jitter=0.5)
"""Backoff while the server cannot be reached, or cuts connections: tries cost it little then."""
SHORT_WATCH_SECONDS = 1.0
"""A watch that ends sooner without an event is a failure: reconnecting at once would be a busy loop."""
SILENT_LIST_SECONDS = 5.0
"""How long a streaming list may be silent before its end; then the server never sends the final bookmark."""
FORBIDDEN = 403
NO_REASON_TO_LIST = (401, FORBIDDEN, 404, 429)
"""Refusals of a streaming list that a plain one would meet too."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Feed(Protocol[Received]):
    """Receives the objects. Called on the event loop, in order; must neither wait nor raise."""

    def found(self, object: Received, /) -> None:
        """Part of a list, first or later, that is under way: one by one, so that a large list is never in memory as a
        whole. A list that fails is begun again."""
        ...

    def listed(self, present: Present, /) -> None:
        """The list is complete, and every object of it was `found`; what is not among it is gone."""
        ...

    def changed(self, object: Received, /) -> None:
        """Added or modified."""
        ...

    def deleted(self, object: Received, /) -> None:
        """Deleted; the object is its last state as far as the server sent it, at least its metadata."""
        ...


class _WatchEvent(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _JustMeta(msgspec.Struct):
    metadata: _Meta


class _RawMeta(msgspec.Struct):
    metadata: msgspec.Raw


class _Resource(msgspec.Struct):
    name: str


class _Served(msgspec.Struct):
    """What a group's version has."""

    resources: list[_Resource] = []


_event_decoder = Decoder(_WatchEvent)
_meta_decoder = Decoder(_JustMeta)
_raw_meta_decoder = Decoder(_RawMeta)


class _StreamingList(Generic[T]):
    """A streaming list under way: passes on what it brings, and notes what there is. Changes may come among it."""

    def __init__(self, limit: asyncio.Timeout, feed: Feed[T]) -> None:
        self._limit = limit
        self._feed = feed
        self.present: dict[str, str] = {}

    def extend(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time() + SILENT_LIST_SECONDS)

    def is_complete(self) -> None:
        self._limit.reschedule(None)

    def changed(self, object: T) -> None:
        self.present[object.key] = object.uid
        self._feed.found(object)

    def deleted(self, object: T) -> None:
        self.present.pop(object.key, None)
        self._feed.deleted(object)


class Reflector(Generic[T]):
    """Keeps one feed up to date with one kind."""

    def __init__(
        self,
        client: ApiClient,
        type_: type[T],
        feed: Feed[T],
        *,
        field_selector: str = "",
        label_selector: str = "",
        namespace: str | None = None,
        log: Log | None = None,
        on_document: Callable[[T, msgspec.Raw], None] | None = None,
    ) -> None:
        """`on_document` is called with every decoded object and its JSON, before the feed receives the object."""
        self.kind = type_.KIND
        self.synced = asyncio.Event()
        self.settled = asyncio.Event()
        """Set with the first list or the first problem: from then on it is known whether the kind can be listed."""
        self.problem: str | None = None
        self.is_unserved = False
        """The problem is that the server does not have the kind."""
        self.is_listed = False
        """Whether the feed knows what there is: not before the first list, nor once a custom kind has gone. While the
        server is unreachable nothing changes: what was listed last still counts."""
        self._client = client
        self._clock = client.clock
        self._type = type_
        self._decoder = Decoder(type_)
        self._feed = feed
        self._on_document = on_document
        self._namespace = namespace
        self._query = selectors(label_selector, field_selector)
        self._log = log if log is not None else Log("reflector")
        self._version: str | None = None
        self._streaming: _StreamingList[T] | None = None
        """None while no streaming list is under way."""
        self._logged_at = float("-inf")
        self._undecodable: dict[tuple[str, str], str] = {}
        self._retry = Retry(BACKOFF, self._clock)
        self._was_away = False
        """The failures were those of an unreachable server; once it responds, the backoff is reset."""
        self._is_hidden = False
        """Not served, and listing it is forbidden: another attempt would only add to the 403s that operators count."""

    async def run(self) -> None:
        """List and watch until cancelled."""
        try:
            await self._run()
        finally:
            self._client.transport.outage.over(self, self._log)

    async def _run(self) -> None:
        while True:
            try:
                if self._is_hidden and await self._is_unserved():
                    await self._back_off()
                    continue
                self._is_hidden = False
                if self._version is None:
                    if await self._stream():
                        continue
                    await self._list()
                await self._watch()
            except ApiError as error:
                self._client.transport.outage.over(self, self._log)
                if self._was_away:
                    self._was_away = False
                    self._retry.reset()
                if error.code == GONE and not self._retry.failures:
                    # The resourceVersion has expired. List at once; if that fails, with backoff.
                    self._version = None
                    self._retry.failed()  # counted; the next one backs off
                    continue
                if error.code == FORBIDDEN and await self._is_unserved():
                    self._is_hidden = True
                    self._lost_kind()
                else:
                    self._refused(error)
                await self._back_off(error.retry_after)
            except Unreachable as error:
                self._was_away = True
                self._lost_server(str(error))
                await self._until_back()
            except (Fault, OperatorMistake) as error:
                # A missing credential file is a mistake at the start, and may be temporary later.
                self._report_problem(str(error))
                await self._back_off()

    async def _stream(self) -> bool:
        """List and watch in one response, until that ends. False: the server does not offer it, so list."""
        try:
            async with asyncio.timeout(SILENT_LIST_SECONDS) as limit:
                self._streaming = _StreamingList(limit, self._feed)
                await self._watch_with({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
                why = "it ended before everything had come"
        except ApiError as error:
            if self._streaming is None or error.code in NO_REASON_TO_LIST:
                raise
            why = error.message
        except TimeoutError:
            why = f"it was silent for {SILENT_LIST_SECONDS:g} s without the bookmark that ends the initial events"
        finally:
            if is_partial := self._streaming is not None:
                self._streaming, self._version = None, None
        if is_partial:
            self._log.v(4).info("Streaming list is not available; listing instead", kind=self.kind.name, why=why)
        return not is_partial

    async def _list(self) -> None:
        present, version = await self._pages(PAGE)
        self._listed(present, version)

    async def _pages(self, limit: int) -> tuple[Present, str]:
        """What there is, and the version of the list. The server prepares the next page while one is decoded."""
        present: dict[str, str] = {}
        token, coming, pages = "", self._page(limit, ""), ListPages(self.kind)
        try:
            while True:
                page = await coming
                token = pages.follow(len(page.items or ()), page.metadata.next)
                if token:
                    coming = self._page(limit, token)
                    await asyncio.sleep(0)  # the request leaves
                for raw in page.items or ():
                    if (found := self._decoded(raw)) is not None:
                        present[found.key] = found.uid
                        self._feed.found(found)
                if not token:
                    return present, page.metadata.resource_version
        except ApiError as error:
            if error.code != GONE or not token:
                raise
            return await self._pages(0)  # too slow for this snapshot: take everything in one response
        finally:
            coming.cancel()

    def _page(self, limit: int, token: str) -> asyncio.Task[RawList]:
        page = self._client.list_page(self.kind, self._namespace, self._query, limit=limit, token=token)
        return asyncio.get_running_loop().create_task(page)

    def _listed(self, present: Present, version: str) -> None:
        self._version = version
        self._recovered()
        self.is_listed = True
        self._feed.listed(present)
        self.synced.set()
        self.settled.set()

    async def _watch(self) -> None:
        await self._watch_with({"resourceVersion": self._version or ""})

    async def _watch_with(self, start: dict[str, str]) -> None:
        """One watch, from its start to its end."""
        seconds = int(WATCH_SECONDS * (1 + random.random()))
        query = self._query | {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)} | start
        path = f"{path_of(self.kind, self._namespace)}?{urlencode(query)}"
        started, before, is_cut = self._clock.monotonic(), self._version, False
        # The server ends the watch; the extra seconds are for one that forgets to.
        is_urgent = self.kind == Pod.KIND  # decisions wait for it
        async with self._client.transport.stream(path, seconds=seconds + 30, is_urgent=is_urgent) as chunks:
            if self._streaming is None:
                self._recovered()
            try:
                await self._follow(chunks)
            except Unreachable as error:
                if self._streaming is not None:
                    raise
                # Not a problem yet: it is one if the next request fails too.
                is_cut = True
                self._log.v(4).info("Watch closed; resuming it", kind=self.kind.name, err=error)
        if self._streaming is not None:
            return
        if self._version != before or self._clock.monotonic() - started >= SHORT_WATCH_SECONDS:
            self._retry.reset()
        elif is_cut:
            await self._until_back()
        else:
            await self._back_off()

    async def _follow(self, chunks: AsyncIterator[bytes]) -> None:
        """Apply line after line. A line that was cut off is not applied: the next watch brings that change again."""
        begun: list[bytes] = []
        size = 0
        async for chunk in chunks:
            first, *others = chunk.split(b"\n")
            begun.append(first)
            size += len(first)
            if others:
                self._apply(b"".join(begun))
                for line in others[:-1]:
                    self._apply(line)
                begun = [others[-1]]
                size = len(others[-1])
            if size > LARGEST_EVENT_BYTES:
                raise Fault(f"the watch of {self.kind.name} brought an event of more than {LARGEST_EVENT_BYTES} bytes")
            if self._streaming is not None:
                self._streaming.extend()

    def _apply(self, line: bytes) -> None:
        if not line:
            return
        try:
            event = _event_decoder.decode(line)
            if event.type == "BOOKMARK":
                self._mark(_meta_decoder.decode(event.object).metadata)
                return
        except msgspec.DecodeError as error:
            self._version = None  # a new list brings what this event would have
            raise Fault(f"the watch of {self.kind.name} brought a line that is no event: {error}") from error
        match event.type:
            case "ADDED" | "MODIFIED":
                if (found := self._decoded(event.object)) is not None:
                    self._version = self._place_of(found)
                    (self._streaming or self._feed).changed(found)
            case "DELETED":
                self._delete(event.object)
            case "ERROR":
                raise error_of(event.object)
            case other:
                self._log.warning("Ignoring a watch event of unknown type", type=other, kind=self.kind.name)

    def _place_of(self, found: T) -> str:
        """The resourceVersion to resume from after this change. Without one, a new list is needed."""
        if not (found.metadata.name and found.metadata.resource_version):
            self._version = None
            raise Fault(f"the watch of {self.kind.name} brought an object without a name or a version")
        return found.metadata.resource_version

    def _mark(self, bookmark: _Meta) -> None:
        """All events up to here have arrived; and perhaps all initial events of a streaming list."""
        self._version = bookmark.resource_version or self._version
        if self._streaming is not None and (bookmark.annotations or {}).get(INITIAL_EVENTS_END) == "true":
            streaming, self._streaming = self._streaming, None
            streaming.is_complete()
            self._listed(streaming.present, self._version or "")

    def _delete(self, raw: msgspec.Raw) -> None:
        found = self._decoded(raw, quietly=True)
        if found is None:
            # It cannot be read, but it may have been readable once: the feed must still lose it.
            try:
                found = self._decoder.decode(b'{"metadata":' + bytes(_raw_meta_decoder.decode(raw).metadata) + b"}")
            except msgspec.DecodeError:
                # A new list will be without it.
                raise ApiError(GONE, "Expired", "a deleted object could not be read") from None
        self._undecodable.pop((found.metadata.namespace, found.metadata.name), None)
        self._version = self._place_of(found)
        (self._streaming or self._feed).deleted(found)

    def _decoded(self, raw: msgspec.Raw, *, quietly: bool = False) -> T | None:
        """The object, or None (and an error in the log, once per version) when it does not have our shape."""
        try:
            found = self._decoder.decode(raw)
        except msgspec.DecodeError as error:
            self._cannot_decode(raw, error, quietly)
            return None
        if self._undecodable:
            self._undecodable.pop((found.metadata.namespace, found.metadata.name), None)
        if self._on_document is not None and not quietly:
            self._on_document(found, raw)
        return found

    def _cannot_decode(self, raw: msgspec.Raw, error: msgspec.DecodeError, quietly: bool) -> None:
        try:
            meta = _meta_decoder.decode(raw).metadata
        except msgspec.DecodeError:
            meta = _Meta()
        if self._version is not None and meta.resource_version:
            self._version = meta.resource_version
        key = (meta.namespace, meta.name)
        if quietly or self._undecodable.get(key) == meta.resource_version:
            return
        self._undecodable[key] = meta.resource_version
        message, _, field = str(error).partition(" - at `$.")
        self._log.error(
            "Skipping an object that cannot be decoded",
            kind=self.kind.name,
            object=f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name,
            field=field.rstrip("`"),
            err=message,
        )

    def _refused(self, error: ApiError) -> None:
        has_expired = error.code == GONE and self._version is not None
        if error.code in (400, GONE, 422) or "Too large resource version" in error.message:
            self._version = None  # the server cannot continue from there (it may be another one, or restored)
        if has_expired:  # as after an outage, in which others changed objects: the next list has them
            self._log.v(4).info("Watch expired; listing again", kind=self.kind.name)
            return
        match error.code:
            case 404:
                self._lost_kind()
            case 403:
                self._report_problem(self._forbidden(error))
            case 401:
                where = self._client.connection
                self._report_problem(
                    f"{where.host} does not accept the credentials (from {where.source}): {error.message}"
                )
            case _:
                self._report_problem(f"the server cannot list or watch {self.kind.name}: {error.message}")

    async def _is_unserved(self) -> bool:
        """Whether a kind of Kubernetes' own, which we may not list, is not there to be listed.

        The API server checks rights before kinds, and an older cluster grants kube-scheduler nothing on what it does
        not have.
        """
        if not self.kind.group or issubclass(self._type, CustomResource):
            return False
        try:
            body = await self._client.transport.request("GET", f"/apis/{self.kind.api_version}")
            served = decode(body, _Served)
        except ApiError as error:
            return error.code == 404
        except (MooringError, msgspec.DecodeError):
            return False
        return all(each.name != self.kind.plural for each in served.resources)

    def _lost_kind(self) -> None:
        if is_custom := issubclass(self._type, CustomResource):
            hint = "is its CustomResourceDefinition installed?"
        else:
            hint = "is that API enabled there?"
        self._version = None
        if self.is_listed or not is_custom:
            # The kind was served before and is not any more; its objects are gone with it. A kind of Kubernetes' own
            # that the server does not serve has no objects: an older server must not keep every pod waiting for what
            # it cannot know.
            self._feed.listed({})
        self.is_listed = not is_custom
        self._report_problem(f"the server has no {self.kind.name} ({self.kind.version}); {hint}", is_unserved=True)

    def _forbidden(self, error: ApiError) -> str:
        needed = rule(self.kind.group, self.kind.plural, ("list", "watch"))
        return (
            f"not allowed to list and watch {self.kind.name}; this RBAC rule would allow it: {needed} ({error.message})"
        )

    def _lost_server(self, problem: str) -> None:
        """Logged once for all kinds."""
        self._client.transport.outage.met(self, problem, self._log)
        self.problem, self.is_unserved, self._logged_at = problem, False, float("-inf")
        self.settled.set()

    def _report_problem(self, problem: str, *, is_unserved: bool = False) -> None:
        now = self._clock.monotonic()
        if problem != self.problem or now >= self._logged_at + REMINDER_SECONDS:
            self._log.warning("Failed to list/watch resource", kind=self.kind.name, problem=problem)
            self._logged_at = now
        self.problem, self.is_unserved = problem, is_unserved
        self.settled.set()

    def _recovered(self) -> None:
        if self.problem is not None:
            is_own = self._logged_at != float("-inf")
            (self._log if is_own else self._log.v(4)).info("List/watch recovered", kind=self.kind.name)
        self._client.transport.outage.over(self, self._log)
        self.problem, self.is_unserved = None, False

    async def _back_off(self, at_least: float | None = None) -> None:
        await self._retry.wait(at_least or 0.0)

    async def _until_back(self) -> None:
        """A backoff that ends early when the server responds to any other request."""
        await self._client.transport.pause(self._retry.failed(AWAY_BACKOFF))
