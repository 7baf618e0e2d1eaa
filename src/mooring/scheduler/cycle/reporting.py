"""What the world is told about an attempt: the Scheduled and FailedScheduling events, and the PodScheduled condition.

A condition is patched only when it says something new, and never delays a binding: writes run beside the loop, the
newest word for a pod replacing one that has not been sent yet. A word that the server does not take now, because it is
away, starts or has no time, is kept and said again: nothing else may ever happen to the pod that would make us say it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.base.retry import Backoff, Retry
from mooring.client import ApiClient, EventRecorder
from mooring.objects.core import ObjectReference, Pod
from mooring.scheduler.cycle.pod_patches import CONFLICT, RETRIED_AS_IT_IS, TRIES, is_gone, patch_status
from mooring.scheduler.watching.pod_observer import PodObserver

BACKOFF = Backoff(initial_seconds=1.0, limit_seconds=30.0)
_TAKEN_LATER = (401, 403, 408, CONFLICT, 429)
"""Beside 5xx. A server that starts knows neither users nor their rights, and forbids what it will allow."""

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


@dataclass(slots=True)
class _Word:
    """What is to be said about a pod that waits."""

    pod: Pod
    body: dict[str, Any]
    is_late: bool = False
    """Whether the server would not take it before."""


class Reporter(PodObserver):
    """Writes events and conditions in the name of the pod's profile."""

    def __init__(
        self, client: ApiClient, clock: Clock, profiles: Iterable[str], *, events: ApiClient | None = None
    ) -> None:
        """`events`: a client for them alone, closed with the reporter; their number must not hold up anything else."""
        self._client = client
        self._clock = clock
        self._event_client = events
        self.recorder = EventRecorder(events or client, controller="mooring", clock=clock)
        self._events = {name: self.recorder.for_controller(name) for name in profiles}
        """One for each profile that there is or was: what it began, it still reports."""
        self._said: dict[str, tuple[str, str, str | None]] = {}
        """uid → the condition we wrote last; the watch may not have shown it to us yet."""
        self._unsent: dict[str, _Word] = {}
        self._writers: dict[str, asyncio.Task[None]] = {}
        self._untaken: dict[str, _Word] = {}
        """What the server would not take, in the order in which it is said again."""
        self._repeater: asyncio.Task[None] | None = None

    def adopt(self, profiles: Iterable[str]) -> None:
        """There are these profiles now."""
        self._events |= {name: self.recorder.for_controller(name) for name in profiles if name not in self._events}

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

    def record(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        """What a plugin says about the pod."""
        self._events[pod.spec.scheduler_name].record(
            reference(pod), type="Normal", reason=reason, action=action, note=note
        )

    def warned(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        """What should worry whoever runs the pod."""
        self._events[pod.spec.scheduler_name].record(
            reference(pod), type="Warning", reason=reason, action=action, note=note
        )

    def preempted(self, victim: ObjectReference, preemptor: Pod, node: str, *, in_memory: bool = False) -> None:
        """`in_memory`: the victim was on its way to the node and was only taken back."""
        where = " (in kube-scheduler memory)." if in_memory else ""
        self._events[preemptor.spec.scheduler_name].record(
            victim,
            type="Normal",
            reason="Preempted",
            action="Preempting",
            note=f"Preempted by pod {preemptor.uid} on node {node}{where}",
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
        self._untaken.pop(pod.uid, None)
        self._send(_Word(pod, {"metadata": {"uid": pod.uid}, "status": status}))

    async def nominate(self, pod: Pod, node: str) -> None:
        """Before the pod has to wait for its binding: say where it is about to go. A failure costs nothing."""
        await self.settle(pod)
        said = self._said.get(pod.uid)
        known = pod.status.nominated_node_name if said is None or said[2] is None else said[2]
        if known != node:  # most who made room for themselves go where they are nominated to
            await self._say_node(pod, node)

    async def clear_nomination(self, pod: Pod) -> bool:
        """The pod was outbid: its node goes to another. False: that could not be said."""
        return await self._say_node(pod, "")

    async def _say_node(self, pod: Pod, node: str) -> bool:
        # Whatever is said of its condition next is news: the watch may not have shown this by then.
        self._said[pod.uid] = ("", "", node)
        return await self._patch(pod, {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node or None}})

    def pending(self, pod: Pod) -> None:
        """The watch shows this of the pod. Once it shows what we said, it is what the next word is compared with."""
        said = self._said.get(pod.uid)
        if said is not None and not self._differs(pod, *said):
            del self._said[pod.uid]
            self._untaken.pop(pod.uid, None)  # it was taken after all; only the answer was lost

    async def settle(self, pod: Pod) -> None:
        """Before the pod is bound: no earlier word about it may reach the server after the binding."""
        self._take_back(pod.uid)
        if (writer := self._writers.get(pod.uid)) is not None:
            await writer
            self._take_back(pod.uid)

    def _take_back(self, uid: str) -> None:
        unheard = self._unsent.pop(uid, None), self._untaken.pop(uid, None)
        if any(unheard):
            # Nobody has heard it: if the binding fails, the same words are news.
            self._said.pop(uid, None)

    def not_pending(self, pod: Pod) -> None:
        """The pod is gone or has a node: nothing is left to report."""
        self._said.pop(pod.uid, None)
        self._unsent.pop(pod.uid, None)
        self._untaken.pop(pod.uid, None)

    def _is_news(self, pod: Pod, reason: str, message: str, nominate: str | None) -> bool:
        said = self._said.get(pod.uid)
        if said is not None:
            return said != (reason, message, nominate)
        return self._differs(pod, reason, message, nominate)

    def _differs(self, pod: Pod, reason: str, message: str, nominate: str | None) -> bool:
        old = pod.condition("PodScheduled")
        same = old is not None and (old.status, old.reason, old.message) == ("False", reason, message)
        return not same or (nominate is not None and nominate != pod.status.nominated_node_name)

    def _send(self, word: _Word) -> None:
        uid = word.pod.uid
        self._unsent[uid] = word
        if uid not in self._writers:
            self._writers[uid] = asyncio.get_running_loop().create_task(self._write(uid))

    async def _write(self, uid: str) -> None:
        try:
            while (word := self._unsent.pop(uid, None)) is not None:
                try:
                    await self._patch_waiting(word.pod, word.body)
                except Exception as error:  # whatever it is: a condition is not worth a pod
                    self._not_taken(word, error)
        finally:
            del self._writers[uid]

    def _not_taken(self, word: _Word, error: Exception) -> None:
        uid = word.pod.uid
        if is_gone(error):
            self._said.pop(uid, None)
            return
        (_log.v(2).info if word.is_late else _log.error)("Error updating pod", pod=word.pod, err=error)
        if not _is_taken_later(error):
            self._said.pop(uid, None)
        elif uid in self._said and uid not in self._unsent:  # neither forgotten nor overtaken meanwhile
            word.is_late = True
            self._untaken[uid] = word
            if self._repeater is None:
                self._repeater = asyncio.get_running_loop().create_task(self._repeat())

    async def _repeat(self) -> None:
        """Say again what was not taken: one word, and as long as they are taken, all others."""
        retry = Retry(BACKOFF, self._clock)
        try:
            while self._untaken:
                await retry.wait()
                if await self._all_taken():
                    retry.reset()
        finally:
            self._repeater = None

    async def _all_taken(self) -> bool:
        while self._untaken:
            uid = next(iter(self._untaken))
            self._send(self._untaken.pop(uid))
            await asyncio.wait([self._writers[uid]])
            if uid in self._untaken:  # as the last one now: the next time another is tried first
                return False
        return True

    async def _patch(self, pod: Pod, body: dict[str, Any]) -> bool:
        """Whether it was written, or nobody is left to be told."""
        try:
            await patch_status(self._client, self._clock, pod.namespace, pod.name, body)
            return True
        except Exception as error:
            self._said.pop(pod.uid, None)
            if is_gone(error):
                return True
            _log.error("Error updating pod", pod=pod, err=error)
            return False

    async def _patch_waiting(self, pod: Pod, body: dict[str, Any]) -> None:
        """Patch the version that we know. Has the pod changed, then only if nobody has bound it meanwhile.

        The watch may be late: a binding refused because of a rival's is often the first that we hear of it.
        """
        version = pod.metadata.resource_version
        for attempt in range(1, TRIES + 1):
            body["metadata"]["resourceVersion"] = version
            try:
                await patch_status(self._client, self._clock, pod.namespace, pod.name, body, retried=RETRIED_AS_IT_IS)
                return
            except ApiError as error:
                if attempt == TRIES or error.code != CONFLICT or is_gone(error):
                    raise
            now = await self._client.get(Pod.KIND, pod.name, pod.namespace)
            if now["spec"].get("nodeName"):
                return
            version = now["metadata"]["resourceVersion"]

    async def flush(self, seconds: float) -> None:
        """Send what is on its way."""
        if self._writers:
            await asyncio.wait(list(self._writers.values()), timeout=seconds)
        await self.recorder.flush(seconds)

    async def close(self, seconds: float) -> None:
        """At shutdown: send what is on its way, and leave nothing running."""
        await self.flush(seconds)
        if self._repeater is not None:
            self._repeater.cancel()
        for writer in self._writers.values():
            writer.cancel()
        if self._event_client is not None:
            await self._event_client.close()


def _is_taken_later(error: Exception) -> bool:
    """Whether the server may take the same words another time: the fault is not in them."""
    return not isinstance(error, ApiError) or error.code in _TAKEN_LATER or error.code >= 500
