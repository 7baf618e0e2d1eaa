"""When a configuration is reloaded, and how that is reported.

On request (SIGHUP), or because the watched files have changed and then did not change until the next check: a file
that is half written is not read. An invalid configuration is reported once, in log, metric and event, and the version
in force is kept. If the cluster's state and not the files prevented the reload, it is retried periodically.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from mooring.base.clock import Clock
from mooring.base.errors import OperatorMistake
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.config import Configuration
from mooring.framework.plugin_files import bring_back, plugin_modules
from mooring.framework.registry import Registry
from mooring.objects.core import ObjectReference
from mooring.scheduler.loop import Scheduler
from mooring.scheduler.reload.versions import Adopted, NotNow
from mooring.scheduler.reload.watched_files import WatchedFiles

LOOK_SECONDS = 1.0
AGAIN_SECONDS = 60.0

RELOADS = "mooring_config_reloads_total"
SUCCESSFUL = "mooring_config_last_reload_successful"
SUCCEEDED_AT = "mooring_config_last_reload_success_timestamp_seconds"

Read = Callable[[], tuple[Configuration, Registry]]
Prepare = Callable[[Configuration, Registry], Awaitable[None]]

_log = Log("reload")


class Reloader:
    """Reads again what the scheduler was started with, and passes it to the scheduler."""

    def __init__(
        self, scheduler: Scheduler, read: Read, files: WatchedFiles, clock: Clock, prepare: Prepare | None = None
    ) -> None:
        """`read` raises what it raises at the start, if the files are wrong. `prepare` is awaited before adopting."""
        self._scheduler = scheduler
        self._read = read
        self._prepare = prepare
        self._files = files
        self._clock = clock
        self._in_force = files.digest()
        """Of the files when they were last read."""
        self._requested = asyncio.Event()
        self._again_at: float | None = None
        metrics = scheduler.metrics.plugins
        self._reloads = metrics.counter(RELOADS, "Reloads of the configuration, by result.", "result")
        self._successful = metrics.gauge(SUCCESSFUL, "Whether the last reload of the configuration succeeded.")
        self._succeeded_at = metrics.gauge(SUCCEEDED_AT, "When the configuration was last loaded successfully.")
        for result in ("success", "failure"):
            self._reloads.inc(0, result=result)
        self._succeeded()

    def request(self) -> None:
        """Reload once, as soon as possible."""
        self._requested.set()

    async def run(self, *, watches: bool) -> None:
        """Reload on request and, if it `watches`, when the files change; until cancelled."""
        await self._scheduler.ready.wait()
        seen = self._in_force
        while True:
            await self._until_requested_or_time_to_look(watches)
            was_requested = self._requested.is_set()
            self._requested.clear()
            now = await asyncio.to_thread(self._files.digest)
            is_still, seen = now == seen, now
            is_new = watches and is_still and now != self._in_force
            is_due = self._again_at is not None and self._clock.monotonic() >= self._again_at
            if was_requested or is_new or is_due:
                self._in_force = now
                await self.reload(logs_unchanged=was_requested or is_new)

    async def _until_requested_or_time_to_look(self, watches: bool) -> None:
        requested = asyncio.ensure_future(self._requested.wait())
        ends: list[asyncio.Future[Any]] = [requested]
        if watches or self._again_at is not None:
            ends.append(asyncio.ensure_future(self._clock.sleep(LOOK_SECONDS)))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()

    async def reload(self, *, logs_unchanged: bool = True) -> bool:
        """Read everything again and adopt it. False: that failed, and the version in force is kept."""
        known = plugin_modules()
        try:
            configuration, registry = self._read()
            if self._prepare is not None:
                await self._prepare(configuration, registry)
            adopted = await self._scheduler.adopt(configuration, registry)
        except BaseException as error:  # plugin files are executed: they may raise anything
            bring_back(known)
            if not is_its_own(error):
                raise
            self._failed(error)
            return False
        self._again_at = None
        self._reloads.inc(result="success")
        self._succeeded()
        if adopted.is_news:
            self._report(adopted)
        elif logs_unchanged:
            _log.info("Configuration reloaded; nothing in it has changed", version=self._scheduler.version)
        return True

    def _succeeded(self) -> None:
        self._successful.set(1)
        self._succeeded_at.set(self._clock.now())

    def _report(self, adopted: Adopted) -> None:
        news = {
            "built": adopted.built,
            "retired": adopted.retired,
            "profilesAdded": adopted.added,
            "profilesRemoved": adopted.removed,
        }
        changes = {name: ", ".join(values) for name, values in news.items() if values}
        _log.info("Configuration reloaded", version=adopted.number, **changes)
        words = "".join(f"; {name}: {values}" for name, values in changes.items())
        self._record(
            "Normal", "ConfigurationReloaded", f"Version {adopted.number} of the configuration is in use{words}"
        )

    def _failed(self, error: BaseException) -> None:
        self._again_at = self._clock.monotonic() + AGAIN_SECONDS if isinstance(error, NotNow) else None
        self._reloads.inc(result="failure")
        self._successful.set(0)
        why = in_a_line(error)
        version = self._scheduler.version
        _log.error("Configuration not reloaded; keeping the last good version", version=version, err=why)
        self._record(
            "Warning",
            "ConfigurationReloadFailed",
            f"Version {version} of the configuration stays in use, because {why}",
        )

    def _record(self, kind: Literal["Normal", "Warning"], reason: str, note: str) -> None:
        self._scheduler.reporter.recorder.record(self._about(), type=kind, reason=reason, action="Reload", note=note)

    def _about(self) -> ObjectReference:
        """The object of the events: the scheduler's own pod, where it is known; else its lease."""
        # Other files make another event: a series shows only the note of the first.
        version = self._in_force[:16]
        name, namespace = os.environ.get("POD_NAME", ""), os.environ.get("POD_NAMESPACE", "")
        if name and namespace:
            uid = self._scheduler.uid_of(f"{namespace}/{name}") or ""
            return ObjectReference(
                kind="Pod", api_version="v1", namespace=namespace, name=name, uid=uid, resource_version=version
            )
        lease = self._scheduler.configuration.leader_election
        return ObjectReference(
            kind="Lease",
            api_version="coordination.k8s.io/v1",
            namespace=lease.resource_namespace,
            name=lease.resource_name,
            resource_version=version,
        )


def in_a_line(error: BaseException) -> str:
    """What is wrong, for readers of logs and of `kubectl get events`, which shows the first line of a note."""
    if not isinstance(error, OperatorMistake) or not error.problems:
        return described(error)
    problems = [
        f"{problem.path}{f' (line {problem.line})' if problem.line is not None else ''}: {problem.message}"
        for problem in error.problems
    ]
    return f"{error.summary.rstrip('.')}: {'; '.join(problems)}"
