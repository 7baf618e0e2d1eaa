"""What is reported of an attempt: the Scheduled and FailedScheduling events, and the PodScheduled condition.

A condition is patched only when it changes, and never delays a binding: patches run beside the loop, and a newer one
replaces one that has not been sent yet. A patch that fails because the API server is unavailable, starting or
overloaded is retried: the pod may have no later event that would cause another.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Any

import msgspec

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import ApiError
from mooring.base.log import Log
from mooring.base.retry import Backoff, Retry
from mooring.client import ApiClient, EventRecorder
from mooring.objects.core import ObjectReference, Pod
from mooring.scheduler.cycle.pod_patches import CONFLICT, RETRIED_AS_IT_IS, TRIES, is_gone, patch_status
from mooring.scheduler.watching.pod_observer import PodObserver

BACKOFF = Backoff(initial_seconds=1.0, limit_seconds=30.0)
_RETRIABLE = (401, 403, 408, CONFLICT, 429)
"""Beside 5xx. A server that is starting has not loaded its RBAC rules yet, and forbids what it will allow later."""

MOST_WRITERS = 16
"""Patches in flight. A client has few requests in flight for all: bindings would wait for thousands of patches."""

LONGEST_INSTANCE = 128
"""What an API server accepts as `reportingInstance`."""

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


class _StatusPatch(msgspec.Struct):
    """A patch of a pending pod's status."""

    pod: Pod
    body: dict[str, Any]
    is_retry: bool = False
    """Whether it failed before."""


class Reporter(PodObserver):
    """Writes events and conditions in the name of the pod's profile."""

    def __init__(
        self, client: ApiClient, clock: Clock, profiles: Iterable[str], *, events: ApiClient | None = None
    ) -> None:
        """`events`: a client for them alone, closed with the reporter; their number must not delay other requests."""
        self._client = client
        self._clock = clock
        self._event_client = events
        self.recorder = EventRecorder(
            events or client, controller="mooring", clock=clock, yields_to=client if events is not None else None
        )
        self._events = {name: self.recorder.for_controller(name) for name in profiles}
        """One for each profile, also removed ones: their attempts in flight are still reported."""
        self._written: dict[str, tuple[str, str, str | None]] = {}
        """uid → the condition we wrote last; the watch may not have shown it to us yet."""
        self._unsent: dict[str, _StatusPatch] = {}
        """uid → the patch that is sent next, in the order in which they are sent."""
        self._writers: dict[str, asyncio.Task[None]] = {}
        self._retry_queue: dict[str, _StatusPatch] = {}
        """Patches that failed, in the order in which they are retried."""
        self._retrier: asyncio.Task[None] | None = None

    def adopt(self, profiles: Iterable[str]) -> None:
        """Use these profiles from now on."""
        self._events |= {name: self.recorder.for_controller(name) for name in profiles if name not in self._events}

    def scheduled(self, pod: Pod, node: str) -> None:
        self._written.pop(pod.uid, None)
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
        """A plugin's event about the pod."""
        self._events[pod.spec.scheduler_name].record(
            reference(pod), type="Normal", reason=reason, action=action, note=note
        )

    def warned(self, pod: Pod, *, reason: str, action: str, note: str) -> None:
        """A warning for the pod's user."""
        self._events[pod.spec.scheduler_name].record(
            reference(pod), type="Warning", reason=reason, action=action, note=note
        )

    def problem(self, regarding: ObjectReference, plugin: str, *, reason: str, note: str, is_warning: bool) -> None:
        """What a plugin reports of its outside data. Events of two plugins are not counted as one that repeats."""
        instance = f"{plugin}-{socket.gethostname()}"[:LONGEST_INSTANCE]
        self.recorder.for_controller("mooring", instance).record(
            regarding, type="Warning" if is_warning else "Normal", reason=reason, action="Fetching", note=note
        )

    def preempted(self, victim: ObjectReference, note: str, *, scheduler_name: str) -> None:
        self._events[scheduler_name].record(victim, type="Normal", reason="Preempted", action="Preempting", note=note)

    def condition(self, pod: Pod, reason: str, message: str, nominate: str | None) -> None:
        """Patch why the pod is pending. `nominate`: None leaves the nomination, "" clears it, a name sets it."""
        if not self._is_change(pod, reason, message, nominate):
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
        self._written[pod.uid] = (reason, message, nominate)
        # The uid is a precondition: a pod that was recreated under the same name is not patched.
        self._retry_queue.pop(pod.uid, None)
        self._send(_StatusPatch(pod, {"metadata": {"uid": pod.uid}, "status": status}))

    async def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a pod to its node before it has to wait for its binding. A failure costs nothing."""
        await self.settle(pod)
        written = self._written.get(pod.uid)
        known = pod.status.nominated_node_name if written is None or written[2] is None else written[2]
        if known != node:  # most preemptors are bound to the node they are nominated to
            await self._patch_nomination(pod, node)

    async def clear_nomination(self, pod: Pod) -> bool:
        """A pod of higher priority preempts on the node. False: the patch failed."""
        return await self._patch_nomination(pod, "")

    async def _patch_nomination(self, pod: Pod, node: str) -> bool:
        # The next condition is a change in any case: the watch may not have shown this one by then.
        self._written[pod.uid] = ("", "", node)
        return await self._patch(pod, {"metadata": {"uid": pod.uid}, "status": {"nominatedNodeName": node or None}})

    def pending(self, pod: Pod) -> None:
        """The watch delivered the pod. Once it has our patch, the next one is compared with the pod itself."""
        written = self._written.get(pod.uid)
        if written is not None and not self._differs(pod, *written):
            del self._written[pod.uid]
            self._retry_queue.pop(pod.uid, None)  # it was applied after all; only the response was lost

    def is_unsettled(self, pod: Pod) -> bool:
        """Whether `settle` has anything to do."""
        uid = pod.uid
        return uid in self._writers or uid in self._unsent or uid in self._retry_queue

    async def settle(self, pod: Pod) -> None:
        """Before the pod is bound: no earlier patch about it may reach the server after the binding."""
        self._drop_unsent(pod.uid)
        if (writer := self._writers.get(pod.uid)) is not None:
            await writer
            self._drop_unsent(pod.uid)

    def _drop_unsent(self, uid: str) -> None:
        unsent = self._unsent.pop(uid, None), self._retry_queue.pop(uid, None)
        if any(unsent):
            # Not written: if the binding fails, the same condition is a change again.
            self._written.pop(uid, None)

    def not_pending(self, pod: Pod) -> None:
        """The pod was deleted or assigned: nothing is left to report."""
        self._written.pop(pod.uid, None)
        self._unsent.pop(pod.uid, None)
        self._retry_queue.pop(pod.uid, None)

    def _is_change(self, pod: Pod, reason: str, message: str, nominate: str | None) -> bool:
        written = self._written.get(pod.uid)
        if written is not None:
            return written != (reason, message, nominate)
        return self._differs(pod, reason, message, nominate)

    def _differs(self, pod: Pod, reason: str, message: str, nominate: str | None) -> bool:
        old = pod.condition("PodScheduled")
        same = old is not None and (old.status, old.reason, old.message) == ("False", reason, message)
        return not same or (nominate is not None and nominate != pod.status.nominated_node_name)

    def _send(self, patch: _StatusPatch) -> None:
        self._unsent[patch.pod.uid] = patch
        self._start_writers()

    def _start_writers(self) -> None:
        while len(self._writers) < MOST_WRITERS:
            uid = next((uid for uid in self._unsent if uid not in self._writers), None)
            if uid is None:
                return
            self._start_writer(uid)

    def _start_writer(self, uid: str) -> None:
        self._writers[uid] = asyncio.get_running_loop().create_task(self._write(uid))

    async def _write(self, uid: str) -> None:
        try:
            while (patch := self._unsent.pop(uid, None)) is not None:
                try:
                    await self._patch_waiting(patch.pod, patch.body)
                except Exception as error:  # any error: a condition that cannot be written must not lose the pod
                    self._patch_failed(patch, error)
        finally:
            del self._writers[uid]
            self._start_writers()

    def _patch_failed(self, patch: _StatusPatch, error: Exception) -> None:
        uid = patch.pod.uid
        if is_gone(error):
            self._written.pop(uid, None)
            return
        (_log.v(2).info if patch.is_retry else _log.error)("Error updating pod", pod=patch.pod, err=error)
        if not _is_retriable(error):
            self._written.pop(uid, None)
        elif uid in self._written and uid not in self._unsent:  # neither dropped nor superseded meanwhile
            patch.is_retry = True
            self._retry_queue[uid] = patch
            if self._retrier is None:
                self._retrier = asyncio.get_running_loop().create_task(self._retry())

    async def _retry(self) -> None:
        """Retry failed patches: one, and as long as they succeed, all others."""
        retry = Retry(BACKOFF, self._clock)
        try:
            while self._retry_queue:
                await retry.wait()
                if await self._retry_all():
                    retry.reset()
        finally:
            self._retrier = None

    async def _retry_all(self) -> bool:
        while self._retry_queue:
            uid = next(iter(self._retry_queue))
            self._unsent[uid] = self._retry_queue.pop(uid)
            if uid not in self._writers:
                self._start_writer(uid)
            await asyncio.wait([self._writers[uid]])
            if uid in self._retry_queue:  # behind the others: the next retry starts with another one
                return False
        return True

    async def _patch(self, pod: Pod, body: dict[str, Any]) -> bool:
        """Whether it was written, or the pod is deleted."""
        try:
            await patch_status(self._client, self._clock, pod.namespace, pod.name, body)
            return True
        except Exception as error:
            self._written.pop(pod.uid, None)
            if is_gone(error):
                return True
            _log.error("Error updating pod", pod=pod, err=error)
            return False

    async def _patch_waiting(self, pod: Pod, body: dict[str, Any]) -> None:
        """Patch the version that we know. If the pod has changed, then only if it has no node meanwhile.

        The watch may be late: a binding that conflicts with another scheduler's is often the first sign of that.
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
        """Send what is queued."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._writers and (left := until - loop.time()) > 0:
            await asyncio.wait(list(self._writers.values()), timeout=left)
        await self.recorder.flush(seconds)

    async def close(self, seconds: float) -> None:
        """At shutdown: send what is queued, and leave nothing running."""
        await self.flush(seconds)
        if self._retrier is not None:
            self._retrier.cancel()
        self._unsent.clear()
        for writer in self._writers.values():
            writer.cancel()
        if self._event_client is not None:
            await self._event_client.close()


def _is_retriable(error: Exception) -> bool:
    """Whether the same patch may succeed later: the error is the server's."""
    return not isinstance(error, ApiError) or error.code in _RETRIABLE or error.code >= 500
