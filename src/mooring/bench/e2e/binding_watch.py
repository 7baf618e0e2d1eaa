"""When each pod got its node, as a watch shows it: one measurement for every contender, whatever it reports itself."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from urllib.parse import urlencode

import msgspec

from mooring.base.errors import ApiError, Unreachable
from mooring.bench.manifests import NAMESPACE
from mooring.client import ApiClient
from mooring.client.api import path_of
from mooring.objects import Pod

WATCH_SECONDS = 3600
RETRY_SECONDS = 0.2


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_event_decoder, _pod_decoder = msgspec.json.Decoder(_Event), msgspec.json.Decoder(_Pod)


class BindingWatch:
    """The bindings since it started, in the order in which they came.

    The server sends a pod when it has a node and not before. `all` is set when the awaited pods have theirs. Not a
    `Reflector`: that would list all running pods right before the measurement.
    """

    def __init__(self, client: ApiClient, awaited: Iterable[str]) -> None:
        self._client, self._awaited = client, set(awaited)
        self.bound_at: dict[str, float] = {}
        """Monotonic seconds by pod name; the first binding counts."""
        self.nodes: dict[str, str] = {}
        self.first, self.all = asyncio.Event(), asyncio.Event()
        self._version = ""
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> BindingWatch:
        """The watch starts at the version of an empty list: what is bound from now on."""
        page = await self._client.list_page(
            Pod.KIND, NAMESPACE, {"fieldSelector": "spec.nodeName!="}, limit=1, token=""
        )
        self._version = page.metadata.resource_version
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(ApiError, Unreachable):
                await self._watch()
            # Also after an orderly end: a server that refuses the version ends each watch at once.
            await asyncio.sleep(RETRY_SECONDS)

    async def _watch(self) -> None:
        query = {
            "watch": "true",
            "fieldSelector": "spec.nodeName!=",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        path = f"{path_of(Pod.KIND, NAMESPACE)}?{urlencode(query)}"
        begun = b""
        async with self._client.transport.stream(path, seconds=WATCH_SECONDS + 30) as chunks:
            async for chunk in chunks:
                now = time.monotonic()
                *lines, begun = (begun + chunk).split(b"\n")
                for line in lines:
                    self._on_event(line, now)

    def _on_event(self, line: bytes, now: float) -> None:
        event = _event_decoder.decode(line)
        if event.type not in ("ADDED", "MODIFIED"):
            return
        pod = _pod_decoder.decode(event.object)
        self._version = pod.metadata.resource_version
        name = pod.metadata.name
        if not pod.spec.node_name or name in self.bound_at:
            return
        self.bound_at[name] = now
        self.nodes[name] = pod.spec.node_name
        self.first.set()
        self._awaited.discard(name)
        if not self._awaited:
            self.all.set()
