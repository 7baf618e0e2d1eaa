"""The rights of users of the cluster: the API server reviews their token, and what they may list.

Users see pods of the namespaces whose pods they may list, and nodes if they may list nodes. Results are kept for a
while; users without cluster-wide rights cause a review for each namespace, which is bounded.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from aiohttp import web

from mooring.base.clock import Clock
from mooring.base.errors import MooringError
from mooring.base.gated_connection import GatedConnection
from mooring.base.limited_log import LimitedLog
from mooring.base.log import Log
from mooring.scheduler.serving.authentication import Authentication, RequestCredentials
from mooring.scheduler.serving.reviews import ClusterReviews, ReviewCache
from mooring.scheduler.serving.users import TooManyRequests, Unauthenticated, User
from mooring.web.access import Rights
from mooring.web.errors import RequestError, too_many

KEPT_SECONDS = 30.0
MOST_NAMESPACES = 500
"""Of these it is reviewed whether a user may list their pods; others are not shown to them."""
AT_ONCE = 8
"""Reviews in flight, of all users together."""
NO_TOKEN = "sign in with a token of the cluster, such as `kubectl create token NAME` prints"
REVIEW_FAILED = "access could not be reviewed by the API server; the log of `mooring web` has the reason."

_log = Log("web")


class ClusterAccess:
    """`PageAccess` by TokenReview and SubjectAccessReview."""

    def __init__(self, clock: Clock, reviews: ClusterReviews, namespaces: Callable[[], Iterable[str]]) -> None:
        """`namespaces` are those that have pods now."""
        self._reviews = reviews
        self._namespaces = namespaces
        self._authentication = Authentication(clock, tokens=reviews)
        self._kept: ReviewCache[Rights] = ReviewCache(clock, lambda _: KEPT_SECONDS)
        self._running: dict[bytes, asyncio.Task[Rights]] = {}
        self._in_flight = asyncio.Semaphore(AT_ONCE)
        self._failures = LimitedLog(_log, now=clock.monotonic, lines=1)

    async def rights(self, request: web.BaseRequest, token: str) -> Rights:
        if not token:
            raise RequestError(401, NO_TOKEN, field="token")
        key = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        if (kept := self._kept.get(key)) is not None:
            return kept[0]
        running = self._running.get(key)
        if running is None:
            transport = request.transport
            client = transport.client if isinstance(transport, GatedConnection) else ""
            running = self._running[key] = asyncio.create_task(self._reviewed(token, client))
            running.add_done_callback(lambda _: self._running.pop(key, None))
        try:
            # Several requests of a page wait for the same reviews, and one that is cancelled must not end them.
            return self._kept.put(key, await asyncio.shield(running))
        except Unauthenticated as error:
            message = "the cluster does not accept this token; it may have expired."
            raise RequestError(401, message, field="token") from error
        except TooManyRequests as error:
            raise too_many(str(error)) from error
        except MooringError as error:
            self._failures.error(
                "SubjectAccessReview failed; requests are denied until it succeeds. The user of the kubeconfig must be "
                "allowed to create subjectaccessreviews.authorization.k8s.io: the ClusterRole system:auth-delegator "
                "grants it",
                err=error,
            )
            raise RequestError(503, REVIEW_FAILED) from error

    async def _reviewed(self, token: str, client: str) -> Rights:
        user = await self._authentication.user(RequestCredentials(token=token, client=client))
        nodes, all_pods = await asyncio.gather(self._may_list(user, "nodes"), self._may_list(user, "pods"))
        if all_pods:
            return Rights(user.name, nodes=nodes, token=token)
        known = sorted(self._namespaces())[:MOST_NAMESPACES]
        allowed = await asyncio.gather(*(self._may_list(user, "pods", each) for each in known))
        visible = frozenset(name for name, may in zip(known, allowed, strict=True) if may)
        return Rights(user.name, nodes=nodes, all_namespaces=False, namespaces=visible, token=token)

    async def _may_list(self, user: User, resource: str, namespace: str = "") -> bool:
        attributes: dict[str, Any] = {"verb": "list", "version": "v1", "resource": resource}
        if namespace:
            attributes["namespace"] = namespace
        async with self._in_flight:
            return await self._reviews.allows_resource(user, attributes)
