"""Recorded decisions on the page: the list, the evidence of each, and the cluster as it was when it was decided.

The file is read when it is first needed, and again when it has grown. A cluster of the past is built on another thread
and kept for a while; everything that the page shows of a cluster, it shows of that one, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from mooring.base.clock import timestamp
from mooring.base.errors import MooringError
from mooring.base.nesting import decode
from mooring.config import Configuration, load_configuration
from mooring.framework import FeatureGates
from mooring.framework.registry import Registry
from mooring.recording import RecordedDecision, Recording
from mooring.replay import Replay, ReplayedDecision, ReplayResult, cluster_at
from mooring.web.access import Rights
from mooring.web.errors import RequestError, too_many
from mooring.web.mirror import Mirror, file_mirror
from mooring.web.redaction import redacted
from mooring.web.responses import json_response
from mooring.web.what_if_calls import read_body
from mooring.web.what_if_request import loaded_text
from mooring.why import Recomputation

WINDOW, MOST_WINDOW = 100, 1_000
KEPT_CLUSTERS = 3
"""Clusters of the past in memory."""
REREAD_SECONDS = 5.0
REPLAY_SECONDS = 20.0
MOST_DIFFERING = 1_000
MOST_WAITING = 8

Document = dict[str, Any]
A = TypeVar("A")


class _OutOfTime(Exception):
    """A replay took too long."""


class Recordings(Generic[A]):
    """One recording. `view` makes what serves a cluster of the past."""

    def __init__(
        self,
        path: str,
        registry: Registry,
        gates: FeatureGates,
        configuration: Configuration,
        view: Callable[[Mirror], A],
        *,
        is_configured: bool,
    ) -> None:
        """`is_configured`: the past is decided with the configuration, not with the recorded one."""
        self.path = path
        self._registry = registry
        self._gates = gates
        self._configuration = configuration
        self._is_configured = is_configured
        self._view = view
        # What a recomputation is built on must be the thread that ends it.
        self._thread = ThreadPoolExecutor(1, "recording")
        self._waiting = 0
        self._recording: Recording | None = None
        self._read_at = float("-inf")
        self._stamp: tuple[int, int] | None = None
        self._views: OrderedDict[int, tuple[A, Recomputation]] = OrderedDict()
        self.summary: Document | None = None

    def close(self) -> None:
        self._thread.submit(self._forget_all)
        self._thread.shutdown(wait=False)

    # What is served

    async def page(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        """A window of decisions: around `at`, or the last ones."""
        recording = await self.recording()
        window = _number(request.query.get("window"), "window", 1, MOST_WINDOW, WINDOW)
        total = len(recording.decisions)
        at = _number(request.query.get("at"), "at", 0, max(0, total - 1), max(0, total - 1))
        first = max(0, min(at - window // 2, total - window))
        hidden = await self._hidden(recording, rights)
        items = [_item(each) for each in recording.decisions[first : first + window] if _may_see(each, rights)]
        found = {
            "total": total,
            "from": first,
            "to": min(total, first + window),
            "at": at,
            "items": redacted(items, hidden),
            "notes": recording.notes,
        }
        return await json_response(request, found)

    async def decision(self, request: web.BaseRequest, rights: Rights, text: str) -> web.StreamResponse:
        """One decision with its evidence."""
        recording = await self.recording()
        index = _index(text, recording)
        decision = recording.decisions[index]
        rights.check_namespace(decision.pod.partition("/")[0])
        hidden = await self._hidden(recording, rights)
        evidence = await self._run(recording.evidence, index)
        found = _item(decision) | {"attempt": evidence.get("attempt"), "evidence": evidence}
        return await json_response(request, redacted(found, hidden))

    async def replay(self, request: web.BaseRequest, rights: Rights) -> web.StreamResponse:
        """What another configuration would have decided."""
        recording = await self.recording()
        body = await read_body(request)
        try:
            text = decode(body, dict[str, str]).get("config")
        except msgspec.DecodeError as error:
            raise RequestError(400, f"the request cannot be read: {error}.") from error
        if not text:
            raise RequestError(400, "give the configuration to replay with, as YAML.", field="config")
        configuration = loaded_text(text, self._registry, self._gates_of(recording), "config")
        found = await self._run(self._replayed, recording, configuration)
        found["differing"] = [each for each in found["differing"] if rights.may_see(each["pod"].partition("/")[0])]
        return await json_response(request, redacted(found, await self._hidden(recording, rights)))

    async def view_at(self, text: str) -> A:
        """What serves the cluster when decision `text` was made."""
        recording = await self.recording()
        index = _index(text, recording)
        found: A = await self._run(self._viewed, recording, index)
        return found

    async def recording(self) -> Recording:
        """Read again if it has grown. Raises `RequestError` while there is none."""
        if time.monotonic() >= self._read_at + REREAD_SECONDS:
            self._read_at = time.monotonic()
            await self._run(self._read)
        if self._recording is None:
            raise RequestError(404, f"{Path(self.path).name} is not there yet: nothing has been recorded.")
        return self._recording

    # On the thread

    def _read(self) -> None:
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return
        stamp = (found.st_size, found.st_mtime_ns)
        if stamp == self._stamp or not found.st_size:
            return
        recording = Recording.read(self.path)
        if self._recording is not None and recording.headers.keys() != self._recording.headers.keys():
            self._forget_all()  # the oldest segment may have gone: decisions have other places now
        self._recording, self._stamp = recording, stamp
        first, last = recording.times
        self.summary = {"from": timestamp(first), "to": timestamp(last), "decisions": len(recording.decisions)}

    def _viewed(self, recording: Recording, index: int) -> A:
        if index in self._views:
            self._views.move_to_end(index)
            return self._views[index][0]
        while len(self._views) >= KEPT_CLUSTERS:
            self._views.popitem(last=False)[1][1].__exit__(None, None, None)
        recomputation = Recomputation(
            cluster_at(recording, index), self._configured(recording, index), self._registry, self._gates_of(recording)
        )
        recomputation.__enter__()
        made = self._view(file_mirror(Path(self.path).name, "recording", recomputation, self._registry))
        self._views[index] = made, recomputation
        return made

    def _gates_of(self, recording: Recording) -> FeatureGates:
        """Those of the command line, if it sets any; otherwise those of the scheduler that recorded."""
        return self._gates if self._gates.changed() else recording.gates

    def _configured(self, recording: Recording, index: int) -> Configuration:
        """The recorded configuration, if it can be loaded here."""
        if not self._is_configured:
            with contextlib.suppress(MooringError):
                text = msgspec.json.encode(recording.configuration_at(index)).decode()
                return load_configuration(
                    text,
                    source="the recorded configuration",
                    registry=self._registry,
                    gates=self._gates_of(recording),
                ).configuration
        return self._configuration

    def _replayed(self, recording: Recording, configuration: Configuration) -> Document:
        deadline, found, is_partial = time.monotonic() + REPLAY_SECONDS, list[ReplayedDecision](), False

        def progress(_count: int) -> None:
            if time.monotonic() > deadline:
                raise _OutOfTime

        again = Replay(recording, configuration, self._registry, gates=self._gates_of(recording))
        try:
            again.run(progress, found)
        except _OutOfTime:
            is_partial = True
        result = ReplayResult()
        for each in found:
            result.add(each)
        return {
            "decisions": result.decisions,
            "same": result.same,
            "differs": len(result.differing),
            "differing": [_differing(each) for each in result.differing[:MOST_DIFFERING]],
            "skipped": result.skipped,
            "notes": [*recording.notes, *again.notes],
            "isPartial": is_partial,
        }

    def _forget_all(self) -> None:
        while self._views:
            self._views.popitem()[1][1].__exit__(None, None, None)

    async def _run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        if self._waiting >= MOST_WAITING:
            raise too_many("other parts of the recording are read; please try again in a few seconds.", seconds=5)
        self._waiting += 1
        running = asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
        running.add_done_callback(self._ended)
        return await asyncio.shield(running)

    def _ended(self, running: asyncio.Future[Any]) -> None:
        self._waiting -= 1
        if not running.cancelled():
            running.exception()  # its client may have gone

    async def _hidden(self, recording: Recording, rights: Rights) -> set[str]:
        """Of all namespaces with pods: evidence names victims, for which no decision was recorded."""
        if rights.all_namespaces:
            return set()
        namespaces = await self._run(recording.namespaces)
        return {each for each in namespaces if not rights.may_see(each)}


def _item(decision: RecordedDecision) -> Document:
    found: Document = {
        "index": decision.index,
        "number": decision.number,
        "time": timestamp(decision.time),
        "pod": decision.pod,
        "kind": decision.kind,
    }
    if decision.node:
        found["node"] = decision.node
    if decision.message:
        found["message"] = decision.message
    return found


def _differing(replayed: ReplayedDecision) -> Document:
    return {
        "index": replayed.index,
        "time": timestamp(replayed.time),
        "pod": replayed.pod,
        "was": replayed.was,
        "wasMessage": replayed.was_message,
        "would": replayed.would,
        "wouldMessage": replayed.would_message,
        "plugin": (replayed.move.plugin or None) if replayed.move is not None else None,
        "explanation": replayed.explained(),
    }


def _may_see(decision: RecordedDecision, rights: Rights) -> bool:
    return rights.may_see(decision.pod.partition("/")[0])


def _index(text: str, recording: Recording) -> int:
    total = len(recording.decisions)
    if not total:
        raise RequestError(404, "the recording has no decisions.")
    return _number(text, "at", 0, total - 1, total - 1)


def _number(text: str | None, field: str, least: int, most: int, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:12]) <= most:
        raise RequestError(400, f'{field} must be a number from {least} to {most}, got "{text[:40]}".', field=field)
    return int(text)
