"""Whether whoever asks may: delegated to the cluster, as kube-scheduler does.

What the user may read is asked of the API server (SubjectAccessReview). Answers are kept for ten seconds. Where no
API server is known to ask, only what is always allowed is allowed.
"""

from __future__ import annotations

from collections.abc import Collection

from mooring.base.clock import Clock
from mooring.base.errors import MooringError
from mooring.base.log import Log
from mooring.scheduler.serving.authentication import SAID_AGAIN_SECONDS, Authentication, Shown
from mooring.scheduler.serving.reviews import KEPT_SECONDS, Kept, Reviews
from mooring.scheduler.serving.users import ANONYMOUS, MASTERS, Forbidden, Undecided, User

ALWAYS_ALLOWED_PATHS = ("/healthz", "/readyz", "/livez")

_log = Log("serving")


class Access:
    """Decides who asks and whether they may. `rights` None: there is no API server to ask."""

    def __init__(
        self,
        clock: Clock,
        authentication: Authentication,
        *,
        rights: Reviews | None,
        always_allowed: Collection[str] = ALWAYS_ALLOWED_PATHS,
        allowed_seconds: float = KEPT_SECONDS,
        refused_seconds: float = KEPT_SECONDS,
    ) -> None:
        self._authentication = authentication
        self._rights = rights
        # A leading slash is understood, as it is upstream.
        self._always_allowed = tuple(f"/{path.lstrip('/')}" for path in always_allowed)
        self._answers: Kept[bool] = Kept(clock, lambda allowed: allowed_seconds if allowed else refused_seconds)
        self._said: Kept[bool] = Kept(clock, lambda _: SAID_AGAIN_SECONDS)

    async def check(self, verb: str, path: str, shown: Shown) -> User:
        """The user, if they may. Raises `Unauthenticated`, `Forbidden` or `Undecided`.

        What is always allowed is answered to anybody, also where the API server cannot be asked: a probe that fails
        because something else is down would restart the scheduler for nothing.
        """
        if self._is_always_allowed(path):
            return ANONYMOUS
        user = await self._authentication.user(shown)
        if MASTERS in user.groups or await self._may(user, verb, path):
            return user
        raise Forbidden(f'forbidden: User "{user.name}" cannot {verb} path "{path}"')

    def _is_always_allowed(self, path: str) -> bool:
        return any(
            path == allowed or (allowed.endswith("*") and path.startswith(allowed[:-1]))
            for allowed in self._always_allowed
        )

    async def _may(self, user: User, verb: str, path: str) -> bool:
        if self._rights is None:
            return False
        question = (user, verb, path)
        kept = self._answers.get(question)
        if kept is not None:
            return kept[0]
        try:
            return self._answers.put(question, await self._rights.allows(user, verb, path))
        except MooringError as error:
            if self._said.get(str(error)) is None:
                self._said.put(str(error), True)
                _log.error(
                    "Nobody can be let in: whether they may cannot be asked. The scheduler's user must be allowed to "
                    "create subjectaccessreviews.authorization.k8s.io: the ClusterRole system:auth-delegator grants it",
                    err=error,
                )
            # Not why: addresses, files and names of users are nothing for whoever asks.
            said = "whether you may read it could not be asked; the scheduler's log says why"
            raise Undecided(f'Internal Server Error: "{path}": {said}') from error
