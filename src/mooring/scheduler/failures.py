"""What happens to a pod whose attempt failed: back into the queue, an event, a condition, and the room-making plan.

A pod that is gone or has a node meanwhile is dropped; nothing is said about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from mooring.base.log import Log
from mooring.client import ApiClient
from mooring.engine.decision import NO_NODES
from mooring.framework import Plan, Pod
from mooring.objects.core import ObjectReference
from mooring.objects.placed import PlacedPod
from mooring.queue import SchedulingQueue, Waiting
from mooring.scheduler.feeds import PodFeed
from mooring.scheduler.reporting import SCHEDULER_ERROR, UNSCHEDULABLE, Reporter, is_gone

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
            self._drop(waiting.pod)
            return
        self._queue.put_back(waiting, latest, unschedulable=unschedulable, pending=pending)
        self._reporter.failed(latest, message)
        self._reporter.condition(latest, reason, message, nominate)

    def _drop(self, pod: Pod) -> None:
        now = self._pods.uid_of(pod.key)
        if (node := self._pods.node_of(pod.uid)) is not None:
            _log.info("Pod has been assigned to node. Abort adding it back to queue.", pod=pod, node=node)
        elif now is not None and now != pod.uid:
            _log.v(2).info(
                "Pod was recreated while handling scheduling failure. Skip requeueing and status updates.",
                pod=pod,
                oldUID=pod.uid,
                newUID=now,
            )
        else:
            _log.info("Pod doesn't exist in informer cache", pod=pod)
        self._queue.done(pod.uid)

    def execute(self, plan: Plan, preemptor: Pod) -> None:
        """Evict whom a post_filter plugin chose, beside the loop. Their deletion is what wakes the preemptor."""
        victims = [victim for victim in plan.evict if not victim.is_terminating]
        if victims:
            task = asyncio.get_running_loop().create_task(self._make_room(victims, preemptor))
            self._evictions.add(task)
            task.add_done_callback(self._evictions.discard)

    async def finish(self, seconds: float) -> None:
        """At shutdown: let evictions that have begun end."""
        if self._evictions:
            await asyncio.wait(self._evictions, timeout=seconds)
        for task in self._evictions:
            task.cancel()

    async def _make_room(self, victims: Sequence[PlacedPod], preemptor: Pod) -> None:
        """The last victim goes when all others could be evicted: half a room helps nobody."""
        *others, last = victims
        evicted = await asyncio.gather(*(self._evict(victim, preemptor) for victim in others))
        if not all(evicted) or not await self._evict(last, preemptor):
            self._queue.activate([preemptor])

    async def _evict(self, victim: PlacedPod, preemptor: Pod) -> bool:
        """Delete this very pod; True also if it is gone already."""
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        }
        patch = {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(Pod.KIND, victim.name, victim.namespace, patch, subresource="status")
            await self._client.delete(Pod.KIND, victim.name, victim.namespace, uid=victim.uid)
        except Exception as error:  # whatever it is, the preemptor must not wait for what does not happen
            if is_gone(error):
                return True
            _log.error("Could not evict pod", pod=victim.key, preemptor=preemptor, err=error)
            return False
        about = ObjectReference(
            kind="Pod",
            api_version="v1",
            namespace=victim.namespace,
            name=victim.name,
            uid=victim.uid,
            resource_version=victim.resource_version,
        )
        self._reporter.preempted(about, preemptor, victim.node)
        return True
