"""What the schedulers of this user and machine respond about themselves: their queues, and how they decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from mooring.client import Connection
    from mooring.why.pod_document import DecidesBy


class SchedulersHere(NamedTuple):
    """None runs, if all of it is empty."""

    served: frozenset[str] = frozenset()
    """The schedulerNames that they serve."""
    queued: Mapping[str, dict[str, Any]] = {}
    """By uid of the pod: attempts, and the time of the next one."""
    deciding: tuple[DecidesBy, ...] = ()

    def first(self) -> DecidesBy:
        """How the first of them decides."""
        from mooring.why.pod_document import DecidesBy

        return self.deciding[0] if self.deciding else DecidesBy()


def schedulers_here(connection: Connection | None) -> SchedulersHere:
    """Of the cluster of this connection; None: a file, which has no schedulers."""
    if connection is None:
        return SchedulersHere()
    from mooring.scheduler.introspection.explain_client import query
    from mooring.why.pod_document import decides_by, of_this_version, served_by

    responses = query(connection.server, {"queue": True, "configuration": True}).responses
    with of_this_version():
        queued = {uid: each for response in responses for uid, each in response.get("queuedPods", {}).items()}
        deciding = tuple(decides_by(response) for response in responses if response.get("configuration"))
        return SchedulersHere(frozenset(served_by(responses)), queued, deciding)
