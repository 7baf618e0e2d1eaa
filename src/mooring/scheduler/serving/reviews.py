"""TokenReviews and SubjectAccessReviews, and how long their results are cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from mooring.base.clock import Clock
from mooring.base.errors import Fault
from mooring.objects import Kind
from mooring.scheduler.serving.users import User

KEPT_SECONDS = 10.0
LONGEST_SECONDS = 10.0
"""How long a request waits for the API server's review."""
MOST_KEPT = 4_096

TOKEN_REVIEWS = Kind("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)

A = TypeVar("A")


class Reviews(Protocol):
    """The reviews of an API server."""

    async def user_of(self, token: str) -> User | None:
        """The user of the token; None: the token is not valid."""
        ...

    async def allows(self, user: User, verb: str, path: str) -> bool: ...


class Writing(Protocol):
    """The verb of an API client that reviews use."""

    async def create(self, kind: Kind, document: dict[str, Any], /) -> dict[str, Any]: ...


class ClusterReviews:
    """`Reviews` by TokenReview and SubjectAccessReview."""

    def __init__(self, client: Writing) -> None:
        self._client = client

    async def user_of(self, token: str) -> User | None:
        review = await self._create(TOKEN_REVIEWS, {"token": token})
        status: dict[str, Any] = review.get("status") or {}
        if not status.get("authenticated"):
            return None
        user: dict[str, Any] = status.get("user") or {}
        extra = tuple((key, tuple(values)) for key, values in sorted((user.get("extra") or {}).items()))
        return User(user.get("username", ""), tuple(user.get("groups") or ()), user.get("uid", ""), extra)

    async def allows(self, user: User, verb: str, path: str) -> bool:
        return await self._allows(user, {"nonResourceAttributes": {"path": path, "verb": verb}})

    async def allows_resource(self, user: User, attributes: dict[str, Any]) -> bool:
        """Whether the user may do this with objects: verb, resource, group and namespace."""
        return await self._allows(user, {"resourceAttributes": attributes})

    async def _allows(self, user: User, attributes: dict[str, Any]) -> bool:
        spec = {
            "user": user.name,
            "groups": list(user.groups),
            "uid": user.uid,
            "extra": {key: list(values) for key, values in user.extra},
            **attributes,
        }
        review = await self._create(ACCESS_REVIEWS, spec)
        status: dict[str, Any] = review.get("status") or {}
        return bool(status.get("allowed")) and not status.get("denied")

    async def _create(self, kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self._client.create(kind, {"spec": spec})
        except TimeoutError as error:
            raise Fault(f"no response to a {kind.kind} within {LONGEST_SECONDS:g} s") from error


class ReviewCache(Generic[A]):
    """Review results that are cached for a while. At the limit, the oldest are dropped."""

    def __init__(self, clock: Clock, seconds: Callable[[A], float]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._results: dict[object, tuple[float, A]] = {}

    def get(self, key: object) -> tuple[A] | None:
        """The result in a tuple, because None may be one; None: not cached."""
        found = self._results.get(key)
        if found is None or found[0] <= self._clock.monotonic():
            return None
        return (found[1],)

    def last(self, key: object) -> A | None:
        """The last result, also if it has expired."""
        found = self._results.get(key)
        return found[1] if found is not None else None

    def put(self, key: object, result: A) -> A:
        self._results.pop(key, None)
        if len(self._results) >= MOST_KEPT:
            del self._results[next(iter(self._results))]
        self._results[key] = (self._clock.monotonic() + self._seconds(result), result)
        return result
