"""Binds a pod through the API server, and finds out what became of a binding whose answer was lost.

To take a lost answer for a failure would give the pod's room to another, while the pod may be there. So the binding is
said again, until the server answers. That it is there already is then what we wanted.
"""

from __future__ import annotations

from mooring.base.clock import Clock
from mooring.base.errors import ApiError, Unreachable
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.framework import Pod

PAUSE_SECONDS, MOST_PAUSE_SECONDS, PAUSE_GROWTH = 0.05, 2.0, 2.0
MOST_DOUBT_SECONDS = 60.0
"""How long a server may answer without saying where the pod is."""
NOT_FOUND = 404

_log = Log("scheduler")


class ApiBinder:
    """The `Binder` service: pods/binding, with the pod's uid as precondition."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def bind(self, pod: Pod, node: str) -> None:
        pause, in_doubt_since = PAUSE_SECONDS, None
        while True:
            try:
                await self._client.bind(pod.namespace, pod.name, pod.uid, node)
                return
            except Unreachable as error:
                in_doubt_since = in_doubt_since or self._clock.monotonic()
                _log.v(1).info("The answer to a binding was lost; asking again", pod=pod, node=node, err=error)
            except ApiError as error:
                # A server that breaks down may have done what it was asked for; one that starts forbids everything.
                if in_doubt_since is None and error.code < 500:
                    raise
                in_doubt_since = in_doubt_since or self._clock.monotonic()
                where = await self._where(pod)
                if where == node:
                    return
                if where is not None or self._clock.monotonic() > in_doubt_since + MOST_DOUBT_SECONDS:
                    raise
            await self._clock.sleep(pause)
            pause = min(MOST_PAUSE_SECONDS, pause * PAUSE_GROWTH)

    async def _where(self, pod: Pod) -> str | None:
        """The pod's node, "" if it has none or is no more; None if the server does not say."""
        try:
            now = await self._client.get(Pod.KIND, pod.name, pod.namespace)
        except ApiError as error:
            return "" if error.code == NOT_FOUND else None
        except Unreachable:
            return None
        return str(now["spec"].get("nodeName", "")) if now["metadata"]["uid"] == pod.uid else ""
