"""What happens to a pod whose attempt failed: back into the queue, an event, a condition, and the room-making plan.

A pod that is gone or has a node meanwhile is dropped; nothing is said about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.engine.decision import NO_NODES
from mooring.framework import Plan, Pod
from mooring.objects.core import ObjectReference
from mooring.objects.placed import PlacedPod
from mooring.queue import SchedulingQueue, Waiting
from mooring.scheduler.feeds import PodFeed
from mooring.scheduler.reporting import SCHEDULER_ERROR, UNSCHEDULABLE, Reporter

_log = Log("scheduler")


class Failures:
    """Takes over when a pod could not be placed or bound."""

    def __init__(self, client: ApiClient, queue: SchedulingQueue, pods: PodFeed, reporter: Reporter) -> None:
        self._client = client
        self._queue = queue
        self._pods = pods
        self._reporter = reporter
        self._evictions: set[asyncio.Task[None]] = set()

    def refused(
        self,
        waiting: Waiting,
        message: str,
        *,
        unschedulable: Collection[str] = (),
        pending: Collection[str] = (),
        nominate: str | None = None,
    ) -> None:
        """No node would do, and these plugins said so; they decide what may wake the pod."""
        if message == NO_NODES:
            _log.v(2).info("Unable to schedule pod; no nodes are registered to the cluster; waiting", pod=waiting.pod)
        else:
            _log.v(2).info("Unable to schedule pod; no fit; waiting", pod=waiting.pod, err=message)
        self._put_back(waiting, message, UNSCHEDULABLE, unschedulable, pending, nominate)

    def broken(self, waiting: Waiting, message: str) -> None:
        """Something failed that is no verdict: retried with the error backoff."""
        _log.error("Error scheduling pod; retrying", pod=waiting.pod, err=message)
        self._put_back(waiting, message, SCHEDULER_ERROR, (), (), "")

    def _put_back(
        self,
        waiting: Waiting,
        message: str,
        reason: str,
        unschedulable: Collection[str],
        pending: Collection[str],
        nominate: str | None,
    ) -> None:
        latest = self._pods.latest(waiting.pod.uid)
        if latest is None:
            _log.v(2).info("Pod is gone or has a node; not put back into the queue", pod=waiting.pod)
            self._queue.done(waiting.pod.uid)
            return
        self._queue.put_back(waiting, latest, unschedulable=unschedulable, pending=pending)
        self._reporter.failed(latest, message)
        self._reporter.condition(latest, reason, message, nominate)

    def execute(self, plan: Plan, preemptor: Pod) -> None:
        """Evict whom a post_filter plugin chose, beside the loop. Their deletion is what wakes the preemptor."""
        for victim in plan.evict:
            task = asyncio.get_running_loop().create_task(self._evict(victim, preemptor))
            self._evictions.add(task)
            task.add_done_callback(self._evictions.discard)

    async def _evict(self, victim: PlacedPod, preemptor: Pod) -> None:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        }
        try:
            await self._client.patch(
                Pod.KIND, victim.name, victim.namespace, {"status": {"conditions": [condition]}}, subresource="status"
            )
            await self._client.delete(Pod.KIND, victim.name, victim.namespace)
        except ApiError as error:
            if error.code != 404:
                _log.error("Could not evict pod", pod=victim.key, preemptor=preemptor, error=error)
                self._queue.activate([preemptor])
            return
        except Fault as error:
            _log.error("Could not evict pod", pod=victim.key, preemptor=preemptor, error=error)
            self._queue.activate([preemptor])
            return
        about = ObjectReference(
            kind="Pod",
            api_version="v1",
            namespace=victim.namespace,
            name=victim.name,
            uid=victim.uid,
            resource_version=victim.resource_version,
        )
        self._reporter.preempted(about, preemptor, victim.node)
