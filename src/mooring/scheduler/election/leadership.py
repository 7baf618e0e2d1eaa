"""Leader election for one process, on a thread of its own: a long decision never costs the lease."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import uuid
from collections.abc import Callable

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import MooringError
from mooring.base.log import Log
from mooring.client import ApiClient, Connection
from mooring.client.fence import WriteFence
from mooring.config.model import LeaderElection
from mooring.objects import Kind
from mooring.scheduler.election.leader_election import Elector
from mooring.scheduler.election.side_thread import SideThread

CORE_EVENTS = Kind("", "v1", "Event", "events")
STEP_DOWN_SECONDS = 5.0

_log = Log("leaderelection")


def own_identity() -> str:
    """Unique: the host, and something that another process there does not have."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Leadership:
    """`leading` is set when we may schedule; `on_lost` is called, on another thread, when we may no longer.

    `fence` is that of the clients that write for the scheduler. Those that renew the lease and check rights have none.
    """

    def __init__(
        self,
        connection: Connection,
        settings: LeaderElection,
        clock: Clock,
        fence: WriteFence,
        *,
        component: str = "default-scheduler",
        on_lost: Callable[[BaseException], None],
        on_change: Callable[[bool], None] = lambda _: None,
        on_slow_path: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._clock = clock
        self._fence = fence
        self._component = component
        """The source of events about the lease."""
        self._on_change = on_change
        self._on_slow_path = on_slow_path
        self._thread = SideThread("leader election", self._run, on_lost)
        self._loop = asyncio.get_running_loop()
        self._elector: Elector | None = None
        self.identity = own_identity()
        self.leading = asyncio.Event()
        self.standing_by = asyncio.Event()
        """Set when another replica leads. Both belong to the loop that made this object."""

    def start(self) -> None:
        self._on_change(False)
        self._thread.start()

    def stop(self) -> None:
        """Release the lease, so that another replica need not wait. Blocks for a moment."""
        self._thread.stop(STEP_DOWN_SECONDS)

    def abandon(self, seconds: float) -> None:
        """The process is about to end while the scheduler's loop does not run. Nothing is written any more. The lease
        is released, within so many seconds, if no write is in flight that decides about pods: the next leader must not
        schedule beside it."""
        self._fence.close()
        if seconds <= 0 or self.leader != self.identity:
            return
        if self._fence.has_decisions_in_flight:
            _log.warning(
                "The lease is not released: a write is in flight; another replica leads when the lease has expired",
                seconds=self._settings.lease_duration_seconds,
            )
            return
        self._thread.stop(seconds)

    async def wait(self) -> None:
        """Until we lead."""
        await self.leading.wait()

    @property
    def leader(self) -> str:
        return self._elector.leader if self._elector is not None else ""

    def problem(self) -> str | None:
        """For the health check; may be called on any thread."""
        return self._elector.problem() if self._elector is not None else None

    async def _run(self, has_begun: Callable[[], None]) -> None:
        # Renewals must not wait behind other requests, so they have a client and connections of their own.
        async with ApiClient(self._connection, clock=self._clock, user_agent="mooring leader-election") as client:
            news: asyncio.Queue[str] = asyncio.Queue()
            self._elector = Elector(
                client,
                self._settings,
                self.identity,
                self._clock,
                self._fence,
                on_leading=lambda: self._began(news),
                on_stopped=lambda: self._on_change(False),
                on_regained=lambda: self._on_change(True),
                on_other=lambda _: self._set(self.standing_by),
                on_slow_path=self._on_slow_path,
            )
            has_begun()
            recording = asyncio.create_task(self._record(client, news))
            try:
                await self._elector.run()
            finally:
                recording.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await recording

    def _began(self, news: asyncio.Queue[str]) -> None:
        self._on_change(True)
        news.put_nowait("became leader")
        self._set(self.leading)

    def _set(self, event: asyncio.Event) -> None:
        with contextlib.suppress(RuntimeError):  # the scheduler has ended meanwhile
            self._loop.call_soon_threadsafe(event.set)

    async def _record(self, client: ApiClient, news: asyncio.Queue[str]) -> None:
        """Write events about the lease, which name the leader."""
        while True:
            what = await news.get()
            try:
                await client.create(CORE_EVENTS, self._event(what), self._settings.resource_namespace)
            except MooringError as error:
                _log.error("Failed to write an event about the lease", err=error)

    def _event(self, what: str) -> dict[str, object]:
        now = timestamp(self._clock.now())
        name, namespace = self._settings.resource_name, self._settings.resource_namespace
        return {
            "metadata": {"generateName": f"{name}.", "namespace": namespace},
            "involvedObject": {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "namespace": namespace,
                "name": name,
            },
            "reason": "LeaderElection",
            "message": f"{self.identity} {what}",
            "type": "Normal",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "count": 1,
            "firstTimestamp": now,
            "lastTimestamp": now,
        }
