"""The scheduling queue: every pending pod is in exactly one place of it, and each move has a reason.

    add ──▶ PreEnqueue ──▶ activeQ ──pop──▶ in flight ──done──▶ (bound, or not pending any more)
              │     ▲         ▲                │
              ▼     │         │                │ requeue
            gated ──┘      backoffQ ◀─ event ─ unschedulable pods

Synchronous: nothing here blocks, and time passes only by the clock. `pop` flushes what is due first; a loop that sleeps
until `next_flush` calls `flush`.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.framework.events import (
    CONFIGURATION_RELOADED,
    FORCE_ACTIVATE,
    UNSCHEDULABLE_POD,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    pending_pod_changes,
)
from mooring.framework.queued_pod import QueuedPod
from mooring.objects.core import Pod
from mooring.queue.backoff import PodBackoff
from mooring.queue.in_flight import InFlightEvent, InFlightPods
from mooring.queue.observer import QueueObserver
from mooring.queue.places import QueuePlaces
from mooring.queue.pre_enqueue import PreEnqueueGate
from mooring.queue.queued_pod_info import Place, QueuedPodInfo
from mooring.queue.queueing_hints import (
    Move,
    OnFault,
    PodFilter,
    ProfileRules,
    QueueingHints,
    QueueingStrategy,
    ignore_fault,
)

UNSCHEDULABLE_FLUSH_SECONDS = 30.0

POD_ADDED = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
POD_UPDATED = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)
POD_DELETED = ClusterEvent(UNSCHEDULABLE_POD, Action.DELETE)
ATTEMPT_FAILED, BACKOFF_COMPLETE, POPPED_FROM_BACKOFF = "ScheduleAttemptFailure", "BackoffComplete", "PopFromBackoffQ"
"""Why pods enter a place, beside cluster events: label values of the metric of incoming pods."""


def _oldest_first(queued: QueuedPod) -> float:
    return queued.timestamp


class SchedulingQueue:
    """The pending pods.

    `sort_key` orders them, least first; `profiles` has the PreEnqueue plugins and queueing hints by scheduler name.
    Both may be given later, by `set_profiles`.
    `on_ready` is called at the end of an operation after which `pop` or `take_pre_enqueue_errors` may return something
    new, or `next_flush` an earlier time.
    `on_entry` is called with place and reason at each entry into activeQ, backoffQ or the unschedulable pods.
    `on_fault` is called with plugin and extension point when PreEnqueue, a hint or the sort plugin raises or returns
    a value of the wrong type.
    `observer` records how long PreEnqueue and hints take.
    With `has_pod_groups`, members of a pod group whose attempt failed are retried after their backoff, whatever happens
    meanwhile: events of the group as a whole are not known.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        sort_key: Callable[[QueuedPod], Any] = _oldest_first,
        profiles: Mapping[str, ProfileRules] | None = None,
        initial_backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 10.0,
        max_unschedulable_seconds: float = 300.0,
        on_ready: Callable[[], None] = lambda: None,
        on_entry: Callable[[str, str], None] = lambda _place, _reason: None,
        on_fault: OnFault = ignore_fault,
        observer: QueueObserver | None = None,
        has_pod_groups: bool = False,
        log: Log | None = None,
    ) -> None:
        self._clock = clock
        self._has_pod_groups = has_pod_groups
        self._max_unschedulable_seconds = max_unschedulable_seconds
        self._on_ready = on_ready
        self._on_entry = on_entry
        self._log = log or Log("queue")
        self._on_fault = on_fault
        self._observer = observer
        self._hints = QueueingHints(profiles or {}, self._log, on_fault, observer)
        self._gate = PreEnqueueGate(profiles or {}, self._log, on_fault, observer, self._gate_failed)
        self._pre_enqueue_errors: dict[str, QueuedPodInfo] = {}

        self._pods: dict[str, QueuedPodInfo] = {}
        backoff = PodBackoff(initial_backoff_seconds, max_backoff_seconds)
        self._places = QueuePlaces(clock, sort_key, backoff, on_fault, self._log, has_pod_groups=has_pod_groups)
        self._in_flight = InFlightPods()

        self._retries: list[tuple[float, str]] = []
        self._first_retry: dict[str, float] = {}
        """By pod: the earliest of its retries."""
        self._next_unschedulable_flush = clock.now() + UNSCHEDULABLE_FLUSH_SECONDS
        self._to_activate: list[str] = []
        self._is_ready = False
        self._operation = _Operation(self._settle)

    # Watch events of pending pods. Each method returns the label of the event, for the metric of its handling.

    def add(self, pod: Pod) -> str:
        """Enqueue a pending pod, or update it if it is queued already."""
        if (queued := self._pods.get(pod.uid)) is not None:
            return self.update(queued.pod, pod)
        self._enqueue_new(pod, POD_ADDED)
        return POD_ADDED.label

    def update(self, old: Pod, new: Pod) -> str:
        """Update a queued or in-flight pod. A pod that is not in the queue is enqueued: never pass an assumed one."""
        if old.uid != new.uid:  # deleted and created again under the same name, between two watch events
            self.delete(old)
            return self.add(new)
        queued = self._pods.get(new.uid)
        if queued is None:
            self._enqueue_new(new, POD_UPDATED)
            return POD_UPDATED.label
        with self._operation:
            if queued.place is Place.IN_FLIGHT:
                self._update_in_flight(old, new)
            elif queued.place in (Place.UNSCHEDULABLE, Place.GATED):
                self._update_unschedulable(queued, old, new)
            else:
                queued.pod = new
                self._enqueue(queued, queued.place)
        return POD_UPDATED.label

    def delete(self, pod: Pod) -> str:
        """Remove a pod that was deleted or assigned to a node. One in flight is removed when its attempt ends."""
        self._pre_enqueue_errors.pop(pod.uid, None)  # a standby replica does not take them, perhaps for days
        flight = self._in_flight.get(pod.uid)
        if flight is not None:
            flight.is_deleted = True
        elif (queued := self._pods.pop(pod.uid, None)) is not None:
            self._places.remove(queued)
        return POD_DELETED.label

    # Scheduling attempts

    def active_namespaces(self) -> set[str]:
        """The namespaces of the pods in activeQ."""
        return {queued.pod.namespace for queued in self._places.active}

    def pop(self, first: Collection[str] = ()) -> QueuedPodInfo | None:
        """The next pod to schedule, or None. It is in flight until `requeue` or `done`.

        Pods of the namespaces in `first` are popped before others of the same priority. With an empty activeQ a pod is
        popped from backoffQ before its backoff ends, unless an error ended its attempt or it is of a pod group.
        """
        with self._operation:
            self._flush_due()
            queued = self._places.pop_active(first)
            if queued is None and (queued := self._places.pop_backoff()) is not None:
                self._on_entry(Place.ACTIVE.value, POPPED_FROM_BACKOFF)
            if queued is not None:
                self._start_attempt(queued)
            return queued

    def pop_member(self, uid: str) -> QueuedPodInfo | None:
        """Pop this pod, whatever its backoff, if PreEnqueue admits it; None if it cannot be popped now.

        For the pod group cycle, which schedules all members of a group that can be tried.
        """
        with self._operation:
            queued = self._pods.get(uid)
            if queued is None or queued.place is Place.IN_FLIGHT:
                return None
            if queued.place is not Place.ACTIVE:
                self._activate(queued)
            if queued.place is not Place.ACTIVE:
                return None
            self._places.remove(queued)
            self._start_attempt(queued)
            return queued

    def _start_attempt(self, queued: QueuedPodInfo) -> None:
        queued.attempts += 1
        queued.started_by = queued.requeued_by if queued.attempts > 1 else ""
        queued.popped = self._clock.monotonic()
        self._in_flight.start(queued)

    def requeue(
        self,
        queued: QueuedPodInfo,
        pod: Pod | None = None,
        *,
        unschedulable: Collection[str] = (),
        pending: Collection[str] = (),
    ) -> None:
        """Requeue a pod whose attempt failed: rejected by these plugins or, if none is named, ended by an error.

        `pod` is the latest object, where the caller has a later one than the queue. A pod that was deleted or assigned
        during its attempt is dropped.
        """
        uid = queued.pod.uid
        flight = self._in_flight.get(uid)
        if flight is None and uid in self._pods:
            self._log.error("Pod is already present in the queue; it is not requeued", pod=queued.pod)
            return
        events = None if flight is None else self._in_flight.events_during(flight)
        if pod is None:
            pod = queued.pod if flight is None else flight.latest or queued.pod
        self.done(uid)
        if pod.uid != uid or (flight is not None and flight.is_deleted):
            self._log.v(5).info("Pod was deleted during its attempt; it is not requeued", pod=queued.pod)
            return

        with self._operation:
            queued.pod = pod
            self._record_failure(queued, set(unschedulable), set(pending))
            self._pods[uid] = queued
            strategy = self._replay(queued, events)
            self._move(queued, strategy, ATTEMPT_FAILED)

    def done(self, uid: str) -> None:
        """End the pod's attempt for good: assumed and past permit, or not pending any more. Idempotent."""
        if self._in_flight.end(uid) is not None:
            del self._pods[uid]

    # Cluster events

    def on_event(self, event: ClusterEvent, old: Any = None, new: Any = None, *, only: PodFilter | None = None) -> str:
        """Requeue the unschedulable pods that the event may make schedulable, of those that pass `only`."""
        if not self._hints.is_registered(event):
            return event.label
        with self._operation:
            label = event.label
            for queued, strategy in self._moves_on(event, old, new, only):
                self._move_waiting(queued, strategy, label)
            self._in_flight.record(event, old, new)
        return event.label

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move these pods to activeQ, whatever they wait for, if PreEnqueue admits them.

        A plugin may call this from within a queue operation; the pods move at the end of that operation.
        """
        with self._operation:
            # The UIDs now: what is no pod must raise here, in the caller.
            self._to_activate.extend([pod.uid for pod in pods])

    def recheck_pre_enqueue(self, pod: Pod) -> None:
        """Run PreEnqueue again for a gated pod: its plugin may admit it now without an event.

        Once admitted it waits for an event as any other unschedulable pod.
        """
        queued = self._pods.get(pod.uid)
        if queued is None or queued.gating is None:
            return
        gate = queued.gating.plugin
        with self._operation:
            if self._gate.admits(queued) and queued.rejectors == {gate}:
                # An error ended its last attempt. No plugin rejected it, so no event would requeue it.
                queued.unschedulable_plugins.discard(gate)
                self._move(queued, QueueingStrategy.AFTER_BACKOFF, ATTEMPT_FAILED)
            else:
                self._places.unschedulable.put(queued)

    def take_pre_enqueue_errors(self) -> list[QueuedPodInfo]:
        """Gated pods whose PreEnqueue plugin failed since the last call: their events are still to be written."""
        if not self._pre_enqueue_errors:
            return []
        failed, self._pre_enqueue_errors = self._pre_enqueue_errors, {}
        return [
            queued
            for uid, queued in failed.items()
            if self._pods.get(uid) is queued and queued.gating is not None and queued.gating.is_failure
        ]

    def _gate_failed(self, queued: QueuedPodInfo) -> None:
        self._pre_enqueue_errors[queued.pod.uid] = queued
        self._is_ready = True

    def retry_after(self, pod: Pod, seconds: float) -> None:
        """Activate the pod after this time, if it is still pending then."""
        with self._operation:
            due = self._clock.now() + max(0.0, seconds)
            heapq.heappush(self._retries, (due, pod.uid))
            self._first_retry[pod.uid] = min(due, self._first_retry.get(pod.uid, due))
            self._is_ready = True

    @property
    def has_retries(self) -> bool:
        """Whether a pod that still waits is to be activated at a certain time."""
        return any(uid in self._pods for _, uid in self._retries)

    def set_profiles(
        self,
        profiles: Mapping[str, ProfileRules],
        *,
        sort_key: Callable[[QueuedPod], Any] | None = None,
        initial_backoff_seconds: float,
        max_backoff_seconds: float,
    ) -> None:
        """Replace the profiles' plugins. No pod is lost, and none waits for an event of a plugin that is gone.

        PreEnqueue runs again for every pod. Unschedulable pods are requeued, and so are pods in flight whose attempt
        fails. `sort_key` can be set only while the queue is empty: plugins, which may activate pods, are built after
        the queue.
        """
        if sort_key is not None:
            assert not self._pods, "the queue is sorted already"
        self._places.configure(PodBackoff(initial_backoff_seconds, max_backoff_seconds), sort_key)
        self._hints = QueueingHints(profiles, self._log, self._on_fault, self._observer)
        self._gate = PreEnqueueGate(profiles, self._log, self._on_fault, self._observer, self._gate_failed)
        with self._operation:
            for queued in self._places.in_queues():
                if not self._gate.admits(queued):
                    self._places.remove(queued)
                    self._places.unschedulable.put(queued)
                    self._record_move(queued, CONFIGURATION_RELOADED.label)
            self.on_event(CONFIGURATION_RELOADED)

    # Time

    def flush(self) -> None:
        """Move what time has made due: ended backoffs, delayed activations, pods unschedulable for too long."""
        with self._operation:
            self._flush_due()

    def next_flush(self) -> float:
        """When, in the clock's `now`, `flush` next has something to do."""
        retries = (due for due, _ in self._retries[:1])
        return min([self._next_unschedulable_flush, *self._places.next_releases(), *retries])

    def _flush_due(self) -> None:
        now = self._clock.now()
        # A clock that was set back must not put the flush off.
        self._next_unschedulable_flush = min(self._next_unschedulable_flush, now + UNSCHEDULABLE_FLUSH_SECONDS)
        while (queued := self._places.with_ended_backoff(now)) is not None:
            self._enqueue(queued, Place.ACTIVE)
            self._record_move(queued, BACKOFF_COMPLETE)
        while self._retries and self._retries[0][0] <= now:
            _, uid = heapq.heappop(self._retries)
            self._first_retry.pop(uid, None)
            self._to_activate.append(uid)
        if self._to_activate:
            self._activate_requested()
        if now >= self._next_unschedulable_flush:
            self._next_unschedulable_flush = now + UNSCHEDULABLE_FLUSH_SECONDS
            self._flush_unschedulable(now)

    def _flush_unschedulable(self, now: float) -> None:
        """No pod waits for ever on an event that its plugin failed to register."""
        overdue = [
            queued
            for queued in self._places.unschedulable
            if now - max(queued.timestamp, queued.flush_timestamp or 0.0) > self._max_unschedulable_seconds
        ]
        for queued in overdue:
            queued.was_flushed, queued.flush_timestamp = True, now
            self._requeue_on(queued, UNSCHEDULABLE_TIMEOUT, None, None)
        if overdue:
            self._in_flight.record(UNSCHEDULABLE_TIMEOUT, None, None)

    # Introspection

    def __len__(self) -> int:
        """The queued pods, without those in flight."""
        return len(self._pods) - len(self._in_flight)

    def counts(self) -> dict[str, int]:
        return self._places.counts()

    def unschedulable_by_plugin(self) -> Counter[tuple[str, str]]:
        """(plugin, scheduler name) → how many queued pods the plugin rejected last. Safe to call on another thread."""
        return Counter(
            (plugin, queued.pod.spec.scheduler_name)
            for queued in list(self._pods.values())
            if queued.place is not Place.IN_FLIGHT
            for plugin in tuple(queued.rejectors)
        )

    def pending(self) -> Iterator[QueuedPodInfo]:
        """The queued pods, without those in flight, in no particular order."""
        return (queued for queued in self._pods.values() if queued.place is not Place.IN_FLIGHT)

    def in_flight(self) -> Iterator[QueuedPodInfo]:
        """The pods in flight, in the order in which they were popped."""
        return iter(self._in_flight)

    def in_flight_events(self) -> Counter[str]:
        """By label: the events recorded for pods in flight, and those pods. Safe to call on another thread."""
        return self._in_flight.counts()

    def find(self, uid: str) -> QueuedPodInfo | None:
        """A pod in the queue or in flight."""
        return self._pods.get(uid)

    def started_by(self, uid: str) -> str:
        """What requeued the pod for its attempt under way; "" for its first one."""
        queued = self._pods.get(uid)
        return "" if queued is None else queued.started_by

    def next_attempt(self, queued: QueuedPodInfo) -> float | None:
        """When, in the clock's `now`, the pod is tried at the latest without any event; None: at once, or never."""
        if queued.place not in (Place.BACKOFF, Place.UNSCHEDULABLE):
            return None
        requested = self._first_retry.get(queued.pod.uid)
        moved = self._places.backoff_ends(queued) if queued.place is Place.BACKOFF else self._flushed_at(queued)
        return min((at for at in (requested, moved) if at is not None), default=None)

    def _flushed_at(self, queued: QueuedPodInfo) -> float:
        """When a pod has been unschedulable for too long."""
        due = max(queued.timestamp, queued.flush_timestamp or 0.0) + self._max_unschedulable_seconds
        flushes = max(0, math.floor((due - self._next_unschedulable_flush) / UNSCHEDULABLE_FLUSH_SECONDS) + 1)
        return self._next_unschedulable_flush + flushes * UNSCHEDULABLE_FLUSH_SECONDS

    def where(self, pod: Pod | str) -> str:
        """The place of a pod, named by itself, its UID, `namespace/name` or name."""
        found = self._pods.get(pod if isinstance(pod, str) else pod.uid)
        if found is None and isinstance(pod, str):
            found = next((one for one in self._pods.values() if pod in (one.pod.key, one.pod.name)), None)
        return (Place.ABSENT if found is None else found.place).value

    # Moves. A pod changes its place only after every plugin has returned, so that no fault can lose it.

    def _enqueue_new(self, pod: Pod, event: ClusterEvent) -> None:
        queued = self._pods[pod.uid] = QueuedPodInfo(pod, timestamp=self._clock.now())
        with self._operation:
            self._move(queued, QueueingStrategy.IMMEDIATELY, event.label)

    def _update_in_flight(self, old: Pod, new: Pod) -> None:
        flight = self._in_flight.get(new.uid)
        assert flight is not None
        flight.latest, flight.is_deleted = new, False
        for event in self._changes(old, new):
            if self._hints.is_registered(event):
                self._in_flight.record(event, old, new)

    def _update_unschedulable(self, queued: QueuedPodInfo, old: Pod, new: Pod) -> None:
        queued.pod = new
        self._places.unschedulable.put(queued)
        for event in self._changes(old, new):
            self._requeue_on(queued, event, old, new)

    def _changes(self, old: Pod, new: Pod) -> list[ClusterEvent]:
        try:
            return pending_pod_changes(old, new)
        except ValueError as cause:  # an invalid quantity
            self._log.error("Failed to compute what changed in the pod", pod=new, err=cause)
            return [POD_UPDATED]

    def _record_failure(self, queued: QueuedPodInfo, unschedulable: set[str], pending: set[str]) -> None:
        queued.timestamp = self._clock.now()
        queued.unschedulable_plugins, queued.pending_plugins, queued.gating = unschedulable, pending, None
        queued.was_flushed, queued.flush_timestamp = False, None
        if queued.failed_by_error:
            queued.consecutive_errors += 1
        else:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0

    def _replay(self, queued: QueuedPodInfo, events: list[InFlightEvent] | None) -> QueueingStrategy:
        """The queueing strategy by the events during the pod's attempt."""
        queued.requeued_by = ATTEMPT_FAILED
        # Without a record of the attempt (it was done already) only its backoff requeues the pod.
        if events is None or queued.failed_by_error or self._is_member(queued):
            return QueueingStrategy.AFTER_BACKOFF
        best = QueueingStrategy.SKIP
        best_possible = QueueingStrategy.IMMEDIATELY if queued.pending_plugins else QueueingStrategy.AFTER_BACKOFF
        for event, old, new in events:
            strategy = self._hints.strategy(queued, event, old, new)
            if strategy > best:
                best, queued.requeued_by = strategy, event.label
            if best is best_possible:
                break
        return best

    def _moves_on(self, event: ClusterEvent, old: Any, new: Any, only: PodFilter | None) -> list[Move]:
        """Which unschedulable pods the event moves, and how, in the order in which they came."""
        waiting = self._places.unschedulable
        if not waiting:
            return []
        if event.is_wildcard:
            pods = [queued for queued in waiting if only is None or only(queued.pod)]
            return [(queued, self._hints.strategy(queued, event, old, new)) for queued in pods]
        concerned = self._hints.concerned_by(event, old, new, waiting.one_waiting_for)
        groups = waiting.waiting_for(concerned)
        moves = self._hints.moves((group.pods for group in groups), event, old, new, only)
        moves.sort(key=lambda move: move[0].entry)
        return moves

    def _requeue_on(self, queued: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> None:
        if queued.place in (Place.UNSCHEDULABLE, Place.GATED):
            self._move_waiting(queued, self._hints.strategy(queued, event, old, new), event.label)

    def _move_waiting(self, queued: QueuedPodInfo, strategy: QueueingStrategy, reason: str) -> None:
        if strategy is not QueueingStrategy.SKIP and queued.place in (Place.UNSCHEDULABLE, Place.GATED):
            self._move(queued, strategy, reason)

    def _activate_requested(self) -> None:
        requested, self._to_activate = self._to_activate, []
        for uid in requested:
            queued = self._pods.get(uid)
            if queued is None or queued.place is Place.ACTIVE:
                continue
            if queued.place is not Place.IN_FLIGHT:
                self._activate(queued)
            elif not self._is_member(queued):
                self._in_flight.record(FORCE_ACTIVATE, None, queued.pod)

    def _activate(self, queued: QueuedPodInfo) -> None:
        if queued.place is Place.BACKOFF:
            self._enqueue(queued, Place.ACTIVE)
            self._record_move(queued, FORCE_ACTIVATE.label)
        else:
            self._move(queued, QueueingStrategy.IMMEDIATELY, FORCE_ACTIVATE.label)

    def _is_member(self, queued: QueuedPodInfo) -> bool:
        """Whether the pod is scheduled with its pod group."""
        return self._has_pod_groups and queued.pod.spec.scheduling_group is not None

    def _move(self, queued: QueuedPodInfo, strategy: QueueingStrategy, reason: str) -> None:
        """Move a new or unschedulable pod by the strategy, if PreEnqueue admits it."""
        if strategy is QueueingStrategy.SKIP or not self._gate.admits(queued):
            was_elsewhere = queued.place is Place.ABSENT
            if queued.gating is not None:
                queued.was_flushed = False  # the flush is not what admits it later
            self._places.unschedulable.put(queued)
            if was_elsewhere:
                self._record_move(queued, reason)
            return
        if reason != ATTEMPT_FAILED:
            queued.requeued_by = reason
        backs_off = strategy is QueueingStrategy.AFTER_BACKOFF and self._places.backs_off(queued)
        self._enqueue(queued, Place.BACKOFF if backs_off else Place.ACTIVE)
        self._record_move(queued, reason)

    def _enqueue(self, queued: QueuedPodInfo, place: Place) -> None:
        # Also where nothing can be popped yet: the next flush may be earlier now.
        self._is_ready |= self._places.enqueue(queued, place)

    def _record_move(self, queued: QueuedPodInfo, reason: str) -> None:
        place = Place.UNSCHEDULABLE if queued.place is Place.GATED else queued.place
        self._on_entry(place.value, reason)
        if detail := self._log.v(5):
            detail.info("Pod moved to an internal scheduling queue", pod=queued.pod, event=reason, queue=place.value)

    def _settle(self) -> None:
        if self._to_activate:
            self._activate_requested()
        if self._is_ready:
            self._is_ready = False
            self._on_ready()


class _Operation:
    """`with` it the queue is being changed. Calls `settle` at the end of the outermost one.

    So what plugins request of the queue while it runs them is done afterwards.
    """

    __slots__ = ("_depth", "_settle")

    def __init__(self, settle: Callable[[], None]) -> None:
        self._settle = settle
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        try:
            if self._depth == 1:
                self._settle()
        finally:
            self._depth -= 1
