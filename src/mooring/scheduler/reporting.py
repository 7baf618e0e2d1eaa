"""What the world is told about an attempt: the Scheduled and FailedScheduling events, and the PodScheduled condition.

A condition is patched only when it says something new, and never delays a binding: writes run beside the loop, the
newest word for a pod replacing one that has not been sent yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError, Fault
from mooring.base.log import Log
from mooring.client import ApiClient, EventRecorder
from mooring.objects.core import ObjectReference, Pod

TRIES, PAUSE_SECONDS, PAUSE_GROWTH = 4, 0.01, 5.0
RETRIED = (409, 500, 503)

UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"

_log = Log("scheduler")


def reference(pod: Pod) -> ObjectReference:
    return ObjectReference(
        kind="Pod",
        api_version="v1",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        resource_version=pod.metadata.resource_version,
    )


class Reporter:
    """Writes events and conditions in the name of the pod's profile."""

    def __init__(self, client: ApiClient, clock: Clock, profiles: Iterable[str]) -> None:
        self._client = client
        self._clock = clock
        self.recorder = EventRecorder(client, controller="mooring", clock=clock)
        self._events = {name: self.recorder.for_controller(name) for name in profiles}
        self._said: dict[str, tuple[str, str, str | None]] = {}
        """uid → the condition we wrote last; the watch may not have shown it to us yet."""
        self._unsent: dict[str, tuple[Pod, dict[str, Any]]] = {}
        self._writers: dict[str, asyncio.Task[None]] = {}

    def scheduled(self, pod: Pod, node: str) -> None:
        self._said.pop(pod.uid, None)
        self._events[pod.spec.scheduler_name].record(
            reference(pod),
            type="Normal",
            reason="Scheduled",
            action="Binding",
            note=f"Successfully assigned {pod.key} to {node}",
        )

    def failed(self, pod: Pod, message: str) -> None:
        self._events[pod.spec.scheduler_name].record(
            reference(pod), type="Warning", reason="FailedScheduling", action="Scheduling", note=message
        )

    def preempted(self, victim: ObjectReference, preemptor: Pod, node: str) -> None:
        self._events[preemptor.spec.scheduler_name].record(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {preemptor.uid} on node {node}",
        )

    def condition(self, pod: Pod, reason: str, message: str, nominate: str | None) -> None:
        """Say why the pod waits. `nominate`: None leaves the nomination, "" clears it, a name sets it."""
        if not self._is_news(pod, reason, message, nominate):
            return
        _log.v(3).info("Updating pod condition and nominated node name", pod=pod, reason=reason)
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
            "lastProbeTime": None,
        }
        old = pod.condition("PodScheduled")
        if old is None or old.status != "False":
            condition["lastTransitionTime"] = timestamp(self._clock.now())
        status: dict[str, Any] = {"conditions": [condition]}
        if nominate is not None:
            status["nominatedNodeName"] = nominate or None
        self._said[pod.uid] = (reason, message, nominate)
        # The uid makes it a word about this very pod, not about a namesake made meanwhile.
        self._unsent[pod.uid] = (pod, {"metadata": {"uid": pod.uid}, "status": status})
        if pod.uid not in self._writers:
            self._writers[pod.uid] = asyncio.get_running_loop().create_task(self._write(pod.uid))

    async def settle(self, pod: Pod) -> None:
        """Before the pod is bound: no earlier word about it may reach the server after the binding."""
        self._unsent.pop(pod.uid, None)
        if (writer := self._writers.get(pod.uid)) is not None:
            await writer

    def forget(self, uid: str) -> None:
        """The pod is gone or has a node: nothing is left to say."""
        self._said.pop(uid, None)
        self._unsent.pop(uid, None)

    def _is_news(self, pod: Pod, reason: str, message: str, nominate: str | None) -> bool:
        said = self._said.get(pod.uid)
        if said is not None:
            return said != (reason, message, nominate)
        old = pod.condition("PodScheduled")
        same = old is not None and (old.status, old.reason, old.message) == ("False", reason, message)
        return not same or (nominate is not None and nominate != pod.status.nominated_node_name)

    async def _write(self, uid: str) -> None:
        try:
            while (unsent := self._unsent.pop(uid, None)) is not None:
                await self._patch(*unsent)
        finally:
            del self._writers[uid]

    async def _patch(self, pod: Pod, body: dict[str, Any]) -> None:
        pause = PAUSE_SECONDS
        for attempt in range(1, TRIES + 1):
            try:
                await self._client.patch(Pod.KIND, pod.name, pod.namespace, body, subresource="status")
                return
            except Exception as error:  # whatever it is: a condition is not worth a pod
                if is_gone(error):
                    return
                if attempt == TRIES or not _may_pass(error):
                    self._said.pop(pod.uid, None)
                    _log.error("Error updating pod", pod=pod, err=error)
                    return
            await self._clock.sleep(pause)
            pause *= PAUSE_GROWTH

    async def flush(self, seconds: float) -> None:
        """Send what is on its way."""
        if self._writers:
            await asyncio.wait(list(self._writers.values()), timeout=seconds)
        await self.recorder.flush(seconds)

    async def close(self, seconds: float) -> None:
        """At shutdown: send what is on its way, and leave nothing running."""
        await self.flush(seconds)
        for writer in self._writers.values():
            writer.cancel()


def is_gone(error: Exception) -> bool:
    """Whether the API server says that the pod with our uid is no more; a namesake may have taken its place."""
    if not isinstance(error, ApiError):
        return False
    # kube-apiserver calls another uid in a patch an invalid change, in a deletion a conflict.
    is_other = error.code in (409, 422) and ("UID in precondition" in error.message or "metadata.uid" in error.message)
    return error.code == 404 or is_other


def _may_pass(error: Exception) -> bool:
    return error.code in RETRIED if isinstance(error, ApiError) else isinstance(error, Fault)
