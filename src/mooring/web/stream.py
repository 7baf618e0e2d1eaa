"""Changes as they happen: server-sent events, with a bounded buffer for each client.

Decisions are sent when the watch shows them; counts, rows of nodes and the queue a few times a second at most, whatever
the number of changes. A client that reads too slowly loses what it has not read and gets `resync`: then it fetches all
of it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections import deque
from collections.abc import Callable
from typing import Any

from aiohttp import web

from mooring.base.errors import Fault
from mooring.state import RowView
from mooring.web.access import Rights
from mooring.web.errors import too_many
from mooring.web.mirror import Mirror
from mooring.web.node_columns import node_row
from mooring.web.pod_store import PodEvent
from mooring.web.responses import SECURITY_HEADERS, encoded

TICK_SECONDS = 0.5
PING_SECONDS = 15.0
"""Keeps proxies, and the gate, from taking the connection for an idle one."""
USER_SECONDS = 300.0
"""A stream of a user of the cluster ends after this, so that their rights are reviewed again."""
MOST_STREAMS = 100
MOST_BUFFERED = 1_000
MOST_RECENT = 500
"""Decisions that a page gets when it opens: those before it."""
MOST_ROWS = 1_000
"""Where more nodes have changed at once, the columns are fetched again."""

Document = dict[str, Any]
RESYNC = b"event: resync\ndata: {}\n\n"
PING = b"event: ping\ndata: {}\n\n"


def event(kind: str, document: Any) -> bytes:
    """JSON has no line breaks, so it is one line of data."""
    return b"event: " + kind.encode() + b"\ndata: " + encoded(document) + b"\n\n"


class _Client:
    """What one client has not been sent yet."""

    def __init__(self, rights: Rights) -> None:
        self.rights = rights
        self.buffer: deque[bytes] = deque()
        self.is_behind = False
        self.is_over = False
        self.wake = asyncio.Event()

    def put(self, encoded_event: bytes) -> None:
        if not self.is_behind:
            if len(self.buffer) < MOST_BUFFERED:
                self.buffer.append(encoded_event)
            else:
                self.buffer.clear()
                self.is_behind = True
        self.wake.set()

    def take(self) -> bytes:
        if self.is_behind:
            self.is_behind = False
            return RESYNC
        found = b"".join(self.buffer)
        self.buffer.clear()
        return found


class Streams:
    """All clients of `GET /stream`."""

    def __init__(
        self, mirror: Mirror, counts: Callable[[Rights], Document], resources: Callable[[], list[str]]
    ) -> None:
        self._mirror = mirror
        self._counts = counts
        self._resources = resources
        self._clients: set[_Client] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._changes = NodeChanges(mirror)
        self._revision = self._pending_revision = -1
        mirror.pods.on_event = self._decided

    def __len__(self) -> int:
        return len(self._clients)

    async def serve(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        """Until the client leaves, or the server ends."""
        if len(self._clients) >= MOST_STREAMS:
            raise too_many(
                f"{MOST_STREAMS} pages are open already; this one shows no changes as they happen.",
                status=503,
                seconds=30,
            )
        client = _Client(rights)
        headers = {**SECURITY_HEADERS, "Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        self._clients.add(client)
        try:
            self._tick_while_there_are_clients()
            await response.prepare(request)
            client.put(event("cluster", self._cluster(rights)))
            client.put(event("decisions", self._recent(rights)))
            ends_at = asyncio.get_running_loop().time() + USER_SECONDS if rights.token else math.inf
            while not client.is_over and asyncio.get_running_loop().time() < ends_at:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PING_SECONDS):
                        await client.wake.wait()
                client.wake.clear()
                await response.write(client.take() or PING)
        except (ConnectionError, Fault):
            pass  # the client has gone
        finally:
            self._clients.discard(client)
        return response

    def _recent(self, rights: Rights) -> list[PodEvent]:
        """The last ones that this user may see, the newest last."""
        seen = (each for each in reversed(self._mirror.pods.events) if rights.may_see(each.namespace))
        return list(itertools.islice(seen, MOST_RECENT))[::-1]

    def close(self) -> None:
        """End all streams."""
        if self._ticking is not None:
            self._ticking.cancel()
        for client in self._clients:
            client.is_over = True
            client.wake.set()

    def configured(self) -> None:
        """Another configuration is in force: every decision that a page shows may differ."""
        encoded_event = event("configuration", {"refetch": True})
        for client in self._clients:
            client.put(encoded_event)

    def _decided(self, found: PodEvent) -> None:
        if not self._clients:
            return
        encoded_event = event("decision", found)
        for client in self._clients:
            if client.rights.may_see(found.namespace):
                client.put(encoded_event)

    # Several times a second

    def _tick_while_there_are_clients(self) -> None:
        if self._ticking is None or self._ticking.done():
            self._changes.skip()
            self._revision, self._pending_revision = self._mirror.revision, self._mirror.pods.pending_revision
            self._ticking = asyncio.create_task(self._tick_forever(), name="changes for pages")

    async def _tick_forever(self) -> None:
        while self._clients:
            await asyncio.sleep(TICK_SECONDS)
            self.tick()

    def tick(self) -> None:
        """Send what has changed since the last tick."""
        mirror = self._mirror
        if mirror.revision == self._revision:
            return
        self._revision = mirror.revision
        nodes = self._changes.read(self._resources())
        encoded_nodes = event("nodes", nodes) if nodes is not None else None
        is_queue_changed = mirror.pods.pending_revision != self._pending_revision
        self._pending_revision = mirror.pods.pending_revision
        for client in self._clients:
            client.put(event("cluster", self._cluster(client.rights)))
            if encoded_nodes is not None and client.rights.nodes:
                client.put(encoded_nodes)
            if is_queue_changed:
                client.put(event("queue", {"revision": mirror.revision, "refetch": True}))

    def _cluster(self, rights: Rights) -> Document:
        mirror = self._mirror
        return {
            "revision": mirror.revision,
            "counts": self._counts(rights),
            "configuration": mirror.used.document(),
        }


class NodeChanges:
    """Which nodes came, went or changed since the last reading."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._names: set[str] = set()
        self._generations = (0, 0)
        self.skip()

    def skip(self) -> None:
        """What has changed so far is known to the reader."""
        state = self._mirror.recomputation.state
        self._generations = (state.node_changes.generation, state.pod_changes.generation)
        self._names = set(state.nodes.names)

    def read(self, resources: list[str]) -> Document | None:
        """None: no node has changed. `rows` are by their place in the columns as they are now."""
        state = self._mirror.recomputation.state
        of_nodes, of_pods = self._generations
        is_same = (of_nodes, of_pods) == (state.node_changes.generation, state.pod_changes.generation)
        if is_same:
            return None
        objects, pods = state.node_changes.since(of_nodes), state.pod_changes.since(of_pods)
        before = self._names
        self.skip()
        found: Document = {
            "revision": self._mirror.revision,
            "rows": {},
            "added": sorted(self._names - before),
            "removed": sorted(before - self._names),
        }
        rows = None if objects is None or pods is None else {*objects, *pods}
        if rows is None or len(rows) > MOST_ROWS:
            return found | {"refetch": True}
        changed = set(objects or ())
        views = [view for row in rows if row < len(state.views) and (view := state.views[row]) is not None]
        if views:
            places = state.nodes.places_of([view.row for view in views]).tolist()
            found["rows"] = {
                str(place): _row(view, resources, is_whole=view.row in changed)
                for place, view in zip(places, views, strict=True)
            }
        return found


def _row(view: RowView, resources: list[str], *, is_whole: bool) -> Document:
    row = node_row(view, resources)
    return row if is_whole else {key: row[key] for key in ("name", "pods", "requested", "fragmentation")}
