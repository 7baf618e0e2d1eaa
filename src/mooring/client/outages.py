"""What is logged once for a whole API server, however many kinds are watched on it: that it cannot be reached, and
that it has just started and does not know its RBAC roles yet."""

from __future__ import annotations

import re

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log

REMINDER_SECONDS = 300.0
"""How often a lasting problem is logged again."""
ROLES_SECONDS = 15.0
"""So long after a connection was lost, roles that are not found are those of a server that starts."""
_UNKNOWN_ROLE = re.compile(r'\bRBAC: .*rbac\.authorization\.k8s\.io "[^"]*" not found')

_log = Log("client")


class Outage:
    """That the server cannot be reached. It lasts while any of those who watch a kind on it have not come back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._away: set[object] = set()
        self._began = 0.0
        self._logged: dict[str, float] = {}
        """When each problem was logged last in this outage."""

    def met(self, watcher: object, problem: str, log: Log) -> None:
        """This one cannot reach the server. Logged where the problem is new."""
        now = self._clock.monotonic()
        if not self._away:
            self._began = now
            self._logged.clear()
        self._away.add(watcher)
        if now >= self._logged.get(problem, float("-inf")) + REMINDER_SECONDS:
            self._logged[problem] = now
            log.warning("API server cannot be reached; retrying", problem=problem)

    def over(self, watcher: object, log: Log) -> None:
        """This one has a response, or has ended. Logged when it is the last one."""
        if watcher not in self._away:
            return
        self._away.remove(watcher)
        if not self._away:
            seconds = round(self._clock.monotonic() - self._began, 1)
            log.info("API server responds again; list/watch recovered", seconds=seconds)


class StartingServer:
    """An API server that has just started refuses everything with 403 for a moment, until it has read its roles.

    A binding to a role that does not exist is refused in the same words, and for good. So such a refusal is one of a
    server that starts only for some seconds after the connection was lost, or first made.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: float | None = None
        """None: no such refusal came since the connection was lost."""

    def connection_lost(self) -> None:
        self._until = None

    def refused(self, refusal: ApiError) -> bool:
        """Whether it refused because it starts: the request is retried."""
        if refusal.code != 403 or not _UNKNOWN_ROLE.search(refusal.message):
            return False
        now = self._clock.monotonic()
        if self._until is None:
            self._until = now + ROLES_SECONDS
            _log.warning("API server does not know its RBAC roles yet, as it has just started; retrying requests")
        return now < self._until
