"""What is logged once for a whole API server, however many kinds are watched on it: that it cannot be reached, and
that it has just started and has not loaded its RBAC rules yet."""

from __future__ import annotations

import re

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.client.rights import missing_rule

REMINDER_SECONDS = 300.0
"""How often a lasting problem is logged again."""
ROLES_SECONDS, BINDINGS_SECONDS = 15.0, 5.0
"""So long after its first response, roles that are not found are those of a server that starts; and, after an outage,
so long a missing right is."""
FORBIDDEN = 403
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
    """An API server that has just started refuses everything with 403 for a moment, until it has loaded its RBAC rules.

    At first it knows no binding, and the refusal is that of a missing right; then it names the roles that it does not
    find. Both may be true for good. So such a refusal is one of a server that starts only for some seconds after it
    responded again; and the first kind only where the connection was lost before.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._was_lost = False
        self._since: float | None = None
        """When it first responded since the connection was lost; None: not yet."""
        self._is_logged = False

    def connection_lost(self) -> None:
        self._was_lost, self._since, self._is_logged = True, None, False

    def responded(self) -> None:
        if self._since is None:
            self._since = self._clock.monotonic()

    def refused(self, refusal: ApiError) -> bool:
        """Whether it refused because it starts: the request is retried."""
        if self._since is None or refusal.code != FORBIDDEN or missing_rule(refusal.message) is None:
            return False
        names_a_role = _UNKNOWN_ROLE.search(refusal.message) is not None
        seconds = ROLES_SECONDS if names_a_role else BINDINGS_SECONDS if self._was_lost else 0.0
        is_starting = self._clock.monotonic() < self._since + seconds
        if is_starting and not self._is_logged:
            self._is_logged = True
            _log.warning("API server has just started and has not loaded its RBAC rules yet; retrying requests")
        return is_starting
