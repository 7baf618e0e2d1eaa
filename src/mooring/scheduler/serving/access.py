"""Authorization of requests: delegated to the cluster, as kube-scheduler does.

The API server reviews what the user may read (SubjectAccessReview). Results are cached for ten seconds. Without an
API server, only the paths that are always allowed are served.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from mooring.base.clock import Clock
from mooring.base.errors import MooringError
from mooring.base.limited_log import LimitedLog
from mooring.base.log import Log
from mooring.scheduler.serving.authentication import Authentication, RequestCredentials
from mooring.scheduler.serving.review_limits import ReviewLimits
from mooring.scheduler.serving.reviews import KEPT_SECONDS, ReviewCache, Reviews
from mooring.scheduler.serving.users import ANONYMOUS, MASTERS, NotAuthorized, TooManyRequests, Undecided, User

ALWAYS_ALLOWED_PATHS = ("/healthz", "/readyz", "/livez")

_log = Log("serving")


class Access:
    """Authenticates and authorizes requests. `rights` None: there is no API server for access reviews."""

    def __init__(
        self,
        clock: Clock,
        authentication: Authentication,
        *,
        rights: Reviews | None,
        limits: ReviewLimits | None = None,
        always_allowed: Collection[str] = ALWAYS_ALLOWED_PATHS,
        allowed_seconds: float = KEPT_SECONDS,
        refused_seconds: float = KEPT_SECONDS,
    ) -> None:
        self._authentication = authentication
        self._rights = rights
        # A leading slash is understood, as it is upstream.
        self._always_allowed = tuple(f"/{path.lstrip('/')}" for path in always_allowed)
        self._reviewed: ReviewCache[bool] = ReviewCache(
            clock, lambda allowed: allowed_seconds if allowed else refused_seconds
        )
        self._limits = limits or ReviewLimits(clock.monotonic)
        self._failures = LimitedLog(_log, now=clock.monotonic, lines=1)

    async def check(self, verb: str, path: str, credentials: RequestCredentials) -> User:
        """The user, if they may. Raises `Unauthenticated`, `NotAuthorized`, `TooManyRequests` or `Undecided`.

        The paths that are always allowed are served to every client, also without the API server: a probe that fails
        because something else is down would restart the scheduler for nothing.
        """
        if self._is_always_allowed(path):
            return ANONYMOUS
        user = await self._authentication.user(credentials)
        if MASTERS in user.groups or await self._may(user, verb, path, credentials.client):
            return user
        raise NotAuthorized(f'forbidden: User "{user.name}" cannot {verb} path "{path}"')

    def _is_always_allowed(self, path: str) -> bool:
        return any(
            path == allowed or (allowed.endswith("*") and path.startswith(allowed[:-1]))
            for allowed in self._always_allowed
        )

    async def _may(self, user: User, verb: str, path: str, client: str) -> bool:
        if self._rights is None:
            return False
        # A digest: paths are as long as clients like.
        key = hashlib.sha256(repr((user, verb, path)).encode()).digest()
        kept = self._reviewed.get(key)
        if kept is not None:
            return kept[0]
        try:
            with self._limits.review(client, is_known=self._reviewed.last(key) is True):
                return self._reviewed.put(key, await self._rights.allows(user, verb, path))
        except TooManyRequests:
            raise
        except MooringError as error:
            self._failures.error(
                "SubjectAccessReview failed; requests are denied until it succeeds. The scheduler's user must be "
                "allowed to create subjectaccessreviews.authorization.k8s.io: the ClusterRole system:auth-delegator "
                "grants it",
                err=error,
            )
            # Not the reason: addresses, files and names of users are not for every client.
            public = "the SubjectAccessReview failed; see the scheduler's log"
            raise Undecided(f'Internal Server Error: "{path}": {public}') from error
