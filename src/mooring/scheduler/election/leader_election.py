"""One scheduler of several leads: it holds a Lease and renews it; the others wait until it stops doing so.

Time is measured here, never read off the lease: clocks of two machines differ, so a lease counts as abandoned when
*we* have seen no change in it for its duration. A leader that cannot renew in time must stop before the others take
over; that is why renewDeadline is shorter than leaseDuration. It stops writing then, and resumes when it could renew
after all; it ends only where another replica has acquired the lease. A leader that was stopped meanwhile cannot know
in time; so each renewal extends a `WriteFence`, which holds back what would be written after the lease expired.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from mooring.base.clock import Clock, micro_timestamp
from mooring.base.errors import ApiError, Fault, MooringError
from mooring.base.log import Log
from mooring.client.fence import WriteFence
from mooring.client.rights import rule
from mooring.config.model import LeaderElection
from mooring.objects import Kind

LEASES = Kind("coordination.k8s.io", "v1", "Lease", "leases")
JITTER = 1.2
"""Tries to acquire are spread over retryPeriod × (1 … 1 + this), so that candidates do not try in step."""
HEALTH_LEEWAY_SECONDS = 20.0
REGAIN_SECONDS = 0.2

_log = Log("leaderelection")

Document = dict[str, Any]
A = TypeVar("A")


class Leases(Protocol):
    """The verbs of an API client that an election uses."""

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Document: ...
    async def create(self, kind: Kind, body: Document, namespace: str | None = None) -> Document: ...
    async def update(self, kind: Kind, body: Document) -> Document: ...


class LeaseLost(Fault):
    """Another replica leads now, or has led."""


@dataclass
class _Seen:
    """The lease as we last saw it, and when we saw it change."""

    lease: Document
    at: float

    @property
    def spec(self) -> Document:
        return self.lease.get("spec") or {}

    @property
    def holder(self) -> str:
        return str(self.spec.get("holderIdentity") or "")

    def ends(self) -> float:
        return self.at + float(self.spec.get("leaseDurationSeconds") or 0)


class Elector:
    """A candidate. `run` leads when it may and raises `LeaseLost` when another does; cancelled, it steps down."""

    def __init__(
        self,
        leases: Leases,
        settings: LeaderElection,
        identity: str,
        clock: Clock,
        fence: WriteFence,
        *,
        on_leading: Callable[[], None],
        on_stopped: Callable[[], None] = lambda: None,
        on_regained: Callable[[], None] = lambda: None,
        on_other: Callable[[str], None] = lambda _: None,
        on_slow_path: Callable[[], None] = lambda: None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._leases = leases
        self._settings = settings
        self.identity = identity
        self._clock = clock
        self._fence = fence
        self._on_leading = on_leading
        self._on_stopped = on_stopped
        self._on_regained = on_regained
        self._on_other = on_other
        self._on_slow_path = on_slow_path
        self._jitter = jitter
        self._seen: _Seen | None = None
        self._renewed_at: float | None = None
        """None while we do not lead: before the first lease, and while one could not be renewed in time."""
        self._has_led = False
        self._reported_leader = ""

    @property
    def name(self) -> str:
        return f"{self._settings.resource_namespace}/{self._settings.resource_name}"

    @property
    def _written_duration(self) -> int:
        """The lease duration that other replicas read: whole seconds."""
        return int(self._settings.lease_duration_seconds)

    @property
    def is_leading(self) -> bool:
        return self._renewed_at is not None

    @property
    def leader(self) -> str:
        """The holder of the lease, as last observed; "" for none."""
        return self._seen.holder if self._seen is not None else ""

    def problem(self) -> str | None:
        """For the health check: we hold the lease and have not been able to renew it for far too long."""
        if self._renewed_at is None:
            return None
        silent = self._clock.monotonic() - self._renewed_at
        if silent > self._settings.lease_duration_seconds + HEALTH_LEEWAY_SECONDS:
            return f"failed election to renew leadership on lease {self._settings.resource_name}"
        return None

    async def run(self) -> None:
        """Wait for the lease, then keep it. Ends only by `LeaseLost` or by being cancelled."""
        _log.info("Attempting to acquire leader lease...", lock=self.name)
        try:
            await self._acquire()
            _log.info("Successfully acquired lease", lock=self.name)
            self._has_led = True
            self._on_leading()
            while True:
                await self._clock.sleep(self._settings.retry_period_seconds)
                if not await self._renew():
                    await self._regain()
        except asyncio.CancelledError:
            if self._has_led:
                self._fence.close()
                await asyncio.shield(self._release())
            raise
        finally:
            if self._has_led:
                self._fence.close()
                self._stop_leading()

    async def _acquire(self) -> None:
        while not await self._try():
            pause = self._settings.retry_period_seconds
            await self._clock.sleep(pause + self._jitter() * JITTER * pause)

    async def _renew(self) -> bool:
        """Renew the lease; False if that could not be done in time."""
        deadline = self._deadline()
        while not await self._try(self._most_seconds_to_renew()):
            self._check_not_taken()
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            await self._clock.sleep(min(left, self._settings.retry_period_seconds))
        return True

    def _deadline(self) -> float:
        """As kube-scheduler counts it, from the first try to renew; but well before others may take the lease over."""
        assert self._renewed_at is not None
        within = self._settings.renew_deadline_seconds
        latest = self._expires() - self._settings.retry_period_seconds
        return max(self._renewed_at + within, min(self._clock.monotonic() + within, latest))

    async def _regain(self) -> None:
        """The lease could not be renewed in time, and may expire: write nothing until it is renewed after all.

        It can be renewed for as long as no other replica has taken it, however long the API server was away: the
        server refuses a version of the lease that is not the last. So nothing needs to be listed again, and no replica
        waits for the lease of one that has ended.
        """
        self._fence.suspend()
        self._stop_leading()
        _log.error("Failed to renew the lease in time; nothing is written until it is renewed", lock=self.name)
        while not await self._try():
            self._check_not_taken()
            await self._clock.sleep(min(REGAIN_SECONDS, self._settings.retry_period_seconds))
        _log.info("Renewed the lease; no other replica had taken it", lock=self.name)
        self._on_regained()

    def _check_not_taken(self) -> None:
        """Another replica may have led and released it again, so that it has no holder: that is lost too."""
        if self._seen is not None and self._seen.holder != self.identity:
            holder = f"is held by {self._seen.holder} now" if self._seen.holder else "was held by another replica"
            raise LeaseLost(f"the lease {self.name} {holder}")

    def _stop_leading(self) -> None:
        if self.is_leading:
            self._renewed_at = None
            self._on_stopped()

    def _expires(self) -> float:
        """When other replicas may acquire the lease, by the one that observed its last renewal first."""
        assert self._renewed_at is not None
        return self._renewed_at + self._written_duration

    def _most_seconds_to_renew(self) -> float:
        """How long a renewal may take: one that is in flight when the lease ends may lead beside another replica."""
        left = self._expires() - self._clock.monotonic()
        # One that was stopped for longer may still try: perhaps no other replica has acquired the lease meanwhile.
        return left / 2 if left > 0 else math.inf

    async def _try(self, at_most_seconds: float = math.inf) -> bool:
        """Take or renew the lease; whether we hold it now. Failures are logged, and retried by the caller."""
        began, fenced_at = self._clock.monotonic(), self._fence.now()
        try:
            async with _Deadline(self._clock, min(at_most_seconds, self._settings.renew_deadline_seconds / 2)):
                holds = await self._take_or_renew()
        except (MooringError, TimeoutError) as error:
            what = "Failed to renew the lease" if self._has_led else "Failed to acquire the lease"
            # After a leader has stopped leading, the failure to renew is in the log already.
            log = _log.v(2).info if self._has_led and not self.is_leading else _log.error
            log(what, lock=self.name, err=self._why(error))
            return False
        if holds:
            # Not when the response came: others may have seen the lease before us.
            self._renewed_at = began
            self._fence.extend(fenced_at + self._written_duration)
        self._report_leader()
        return holds

    def _why(self, error: Exception) -> str:
        """Names all the rights that an election needs, so that they can be granted at once."""
        if isinstance(error, TimeoutError):
            return "no response in time"
        if not isinstance(error, ApiError) or error.code != 403:
            return str(error)
        wanted = rule(LEASES.group, LEASES.plural, ("get", "create", "update"))
        namespace = self._settings.resource_namespace
        return f"{error.message}; a Role in namespace {namespace} with this rule would allow it: {wanted}"

    async def _take_or_renew(self) -> bool:
        if self._seen is not None and self._seen.holder == self.identity:
            # The usual case in one request. If another client has written meanwhile, the slow path finds out which.
            try:
                await self._write(self._seen.lease)
            except ApiError as error:
                if error.code != 409 and error.code != 404:
                    raise
                self._on_slow_path()
            else:
                return True
        return await self._look_and_take()

    async def _look_and_take(self) -> bool:
        try:
            found = await self._leases.get(LEASES, self._settings.resource_name, self._settings.resource_namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return await self._create()
        self._see(found)
        assert self._seen is not None
        if self._has_led and self._seen.holder != self.identity:
            return False
        if self._seen.holder not in ("", self.identity) and self._seen.ends() > self._clock.monotonic():
            _log.v(4).info("Lease is held by and has not yet expired", lock=self.name, holder=self._seen.holder)
            return False
        try:
            await self._write(found)
        except ApiError as error:
            if error.code != 409:
                raise
            return False  # another replica was faster; the next look shows which
        return True

    async def _create(self) -> bool:
        metadata = {"name": self._settings.resource_name, "namespace": self._settings.resource_namespace}
        lease = {"metadata": metadata, "spec": self._spec({})}
        try:
            self._see(await self._leases.create(LEASES, lease, self._settings.resource_namespace))
        except ApiError as error:
            if error.code != 409:
                raise
            return False
        return True

    async def _write(self, lease: Document) -> None:
        spec = lease.get("spec") or {}
        self._see(await self._leases.update(LEASES, {**lease, "spec": self._spec(spec)}))

    def _spec(self, before: Document) -> Document:
        """The lease as ours; a new holder counts a transition."""
        now = micro_timestamp(self._clock.now())
        is_ours = before.get("holderIdentity") == self.identity
        transitions = int(before.get("leaseTransitions") or 0)
        return {
            **before,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self._written_duration,
            "acquireTime": before.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": transitions if is_ours or not before else transitions + 1,
        }

    async def _release(self) -> None:
        """Release the lease, so that the next leader need not wait until it expires."""
        if self._seen is None or self._seen.holder != self.identity:
            return
        try:
            async with _Deadline(self._clock, self._settings.renew_deadline_seconds / 2):
                await self._give_back(self._seen.lease)
        except (MooringError, TimeoutError) as error:
            _log.error("Failed to release the lease", lock=self.name, err=error)

    async def _give_back(self, lease: Document) -> None:
        try:
            await self._free(lease)
        except ApiError as error:
            if error.code != 409:
                raise
            # A cancelled renewal may have been written: the lease may be newer than the one we observed.
            found = await self._leases.get(LEASES, self._settings.resource_name, self._settings.resource_namespace)
            if (found.get("spec") or {}).get("holderIdentity") == self.identity:
                await self._free(found)

    async def _free(self, lease: Document) -> None:
        now = micro_timestamp(self._clock.now())
        free = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now, "acquireTime": now}
        await self._leases.update(LEASES, {**lease, "spec": {**(lease.get("spec") or {}), **free}})
        _log.info("Released the lease", lock=self.name)

    def _see(self, lease: Document) -> None:
        """The lease duration restarts only when the lease changes: its own times are by another machine's clock."""
        if self._seen is None or self._seen.spec != (lease.get("spec") or {}):
            self._seen = _Seen(lease, self._clock.monotonic())
        else:
            self._seen.lease = lease

    def _report_leader(self) -> None:
        if self.leader and self.leader != self._reported_leader:
            self._reported_leader = self.leader
            if self.leader != self.identity:
                _log.info("New leader elected", identity=self.leader, lock=self.name)
                self._on_other(self.leader)


class _Deadline:
    """As `asyncio.timeout`, by our clock."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._is_over = False

    async def __aenter__(self) -> None:
        self._task = asyncio.current_task()
        self._alarm = asyncio.ensure_future(self._clock.sleep(self._seconds))
        self._alarm.add_done_callback(self._ring)

    def _ring(self, alarm: asyncio.Future[None]) -> None:
        if not alarm.cancelled() and self._task is not None:
            self._is_over = True
            self._task.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._alarm.remove_done_callback(self._ring)
        self._alarm.cancel()
        if self._is_over and self._task is not None and kind is asyncio.CancelledError:
            self._task.uncancel()
            raise TimeoutError from error
