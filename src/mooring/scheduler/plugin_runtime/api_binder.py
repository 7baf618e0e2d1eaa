"""Binds a pod through the API server, and resolves bindings whose response was lost.

If a lost response counted as a failure, the node could be given to another pod while this one is bound. So the binding
is retried until the server responds. That the pod is bound already is then success. 503 and 504 of an overloaded
server or its proxy are no final responses either: the pod stays assumed for a while, instead of backing off although
the server has recovered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Unreachable
from mooring.base.log import Log
from mooring.base.retry import Backoff, Retry
from mooring.client import ApiClient
from mooring.framework import Pod
from mooring.framework.pod_metadata import NOTHING, BindingMetadata, check_metadata, check_size

BACKOFF = Backoff(initial_seconds=0.05, limit_seconds=2.0)
MOST_DOUBT_SECONDS = 60.0
"""How long a server may respond without the pod's node."""
MOST_RETRIES_SECONDS = 15.0
"""How long a binding is retried while the server is overloaded; then the pod backs off."""
NOT_FOUND = 404
NO_TIME = (503, 504)

_log = Log("scheduler")


class ApiBinder:
    """The `Binder` service: pods/binding, with the pod's uid as precondition. All plugins share one."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

        self._added: dict[str, BindingMetadata] = {}
        """By the uids of pods that are being bound: what the plugins of the attempt added."""

    @contextmanager
    def carrying(self, pod: Pod, added: BindingMetadata | None) -> Iterator[None]:
        """Inside the `with`, a binding of the pod carries what was added."""
        if added is None:
            yield
            return
        self._added[pod.uid] = added
        try:
            yield
        finally:
            del self._added[pod.uid]

    async def bind(
        self,
        pod: Pod,
        node: str,
        *,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        added = self._added.get(pod.uid)
        if added is None and not annotations and not labels:
            await self._bind(pod, node, NOTHING, NOTHING)
            return
        annotations, labels = annotations or NOTHING, labels or NOTHING
        check_metadata(annotations, labels)
        if added is not None:
            annotations, labels = {**added.annotations, **annotations}, {**added.labels, **labels}
        if annotations:
            check_size({**pod.annotations, **annotations})
        await self._bind(pod, node, annotations, labels)
        if added is not None:
            added.is_sent = True

    async def _bind(self, pod: Pod, node: str, annotations: Mapping[str, str], labels: Mapping[str, str]) -> None:
        retry, in_doubt_since, is_away = None, None, False
        while True:
            try:
                await self._client.bind(pod.namespace, pod.name, pod.uid, node, annotations=annotations, labels=labels)
                return
            except Unreachable as error:
                in_doubt_since, is_away = in_doubt_since or self._clock.monotonic(), True
                _log.v(1).info("No response to a binding request; retrying", pod=pod, node=node, err=error)
            except ApiError as error:
                # A server that crashes may have written it; one that is starting forbids everything.
                if in_doubt_since is None and error.code < 500:
                    raise
                in_doubt_since = in_doubt_since or self._clock.monotonic()
                if is_away:  # it is back, and forbids requests while it starts
                    is_away, retry = False, None
                where = await self._where(pod)
                if where == node:
                    return
                if self._clock.monotonic() > in_doubt_since + self._patience(error, where):
                    raise
            retry = retry or Retry(BACKOFF, self._clock)
            if is_away:
                await self._client.transport.pause(retry.failed())
            else:
                await retry.wait()

    def _patience(self, error: ApiError, where: str | None) -> float:
        """How long after the first doubt such a response is not final."""
        if where is None:
            return MOST_DOUBT_SECONDS
        return MOST_RETRIES_SECONDS if where == "" and error.code in NO_TIME else -1.0

    async def _where(self, pod: Pod) -> str | None:
        """The pod's node, "" if it has none or is deleted; None if it cannot be read."""
        try:
            now = await self._client.get(Pod.KIND, pod.name, pod.namespace)
        except ApiError as error:
            return "" if error.code == NOT_FOUND else None
        except Unreachable:
            return None
        return str(now["spec"].get("nodeName", "")) if now["metadata"]["uid"] == pod.uid else ""
