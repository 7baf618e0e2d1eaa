"""The scheduling queue: every pending pod is in exactly one place of it, and each move has a reason.

    add ──▶ gate (pre_enqueue) ──▶ active ──pop──▶ in flight ──done──▶ (bound, or no longer ours)
              │     ▲                ▲                 │
              ▼     │                │                 │ put_back
            gated ──┘             backoff ◀── event ── unschedulable

Plain and synchronous: nothing here waits, and time passes only when the clock says so. `pop` does what time has made
due by itself; `flush` does it for a loop that sleeps, until `next_flush`.
"""

from __future__ import annotations

import heapq
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
from mooring.queue.backoff import Backoff, has_ended, release_time
from mooring.queue.flights import Flights, Happened
from mooring.queue.gate import Gate
from mooring.queue.line import Line, Turn
from mooring.queue.observer import QueueObserver
from mooring.queue.operation import Operation
from mooring.queue.refused import Refused
from mooring.queue.waiting import Place, Waiting
from mooring.queue.wakers import QUEUE_SORT, Answer, OnFault, ProfileRules, Wakers, unheard

UNSCHEDULABLE_FLUSH_SECONDS = 30.0

POD_ADDED = ClusterEvent(UNSCHEDULABLE_POD, Action.ADD)
POD_UPDATED = ClusterEvent(UNSCHEDULABLE_POD, Action.UPDATE)
POD_DELETED = ClusterEvent(UNSCHEDULABLE_POD, Action.DELETE)
ATTEMPT_FAILED, BACKOFF_COMPLETE, POPPED_FROM_BACKOFF = "ScheduleAttemptFailure", "BackoffComplete", "PopFromBackoffQ"
"""Why pods enter a place, beside cluster events: label values of the metric of incoming pods."""


class SchedulingQueue:
    """The pods that wait for a node.

    `sort_key` orders them, least first; `profiles` says by scheduler name whom to ask about gates and events.
    `on_ready` is called, once per operation and at its end, when `pop` or `take_behind_failed_gates` may newly have
    something to return, or `next_flush` something to say.
    `on_entry` is called with place and reason at each entry into active, backoff or unschedulable.
    `on_fault` is called with plugin and point when a gate, a hint or the sort plugin raises or answers nonsense.
    `observer` is told how long gates and hints take.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        sort_key: Callable[[QueuedPod], Any],
        profiles: Mapping[str, ProfileRules],
        initial_backoff_seconds: float = 1.0,
        max_backoff_seconds: float = 10.0,
        max_unschedulable_seconds: float = 300.0,
        on_ready: Callable[[], None] = lambda: None,
        on_entry: Callable[[str, str], None] = lambda _place, _reason: None,
        on_fault: OnFault = unheard,
        observer: QueueObserver | None = None,
        log: Log | None = None,
    ) -> None:
        self._clock = clock
        self._sort_key = sort_key
        self._max_unschedulable_seconds = max_unschedulable_seconds
        self._on_ready = on_ready
        self._on_entry = on_entry
        self._log = log or Log("queue")
        self._backoff = Backoff(initial_backoff_seconds, max_backoff_seconds)
        self._on_fault = on_fault
        self._observer = observer
        self._wakers = Wakers(profiles, self._log, on_fault, observer)
        self._gate = Gate(profiles, self._log, on_fault, observer, self._gate_failed)
        self._behind_failed_gates: dict[str, Waiting] = {}
        self.last_told = ""
        """The label of the event that was told last, for whoever times it."""

        self._known: dict[str, Waiting] = {}
        self._active = Line(self._log, self._sort_failed)
        self._backing_off = Line(self._log, self._sort_failed)
        self._backing_off_after_error = Line(self._log)
        self._refused = Refused()
        self._flights = Flights()

        self._retries: list[tuple[float, str]] = []
        self._next_unschedulable_flush = clock.now() + UNSCHEDULABLE_FLUSH_SECONDS
        self._to_activate: list[str] = []
        self._is_ready = False
        self._operation = Operation(self._settle)

    # What the watch says of pending pods

    def add(self, pod: Pod) -> None:
        """A pod that waits for a node. One that is here already is updated."""
        if (known := self._known.get(pod.uid)) is not None:
            self.update(known.pod, pod)
        else:
            self._enter_new(pod, POD_ADDED)

    def update(self, old: Pod, new: Pod) -> None:
        """A change of a pod that waits, or that is being tried.

        One that is in no place enters. So pods that are assumed on a node must not come here.
        """
        if old.uid != new.uid:  # deleted and made again under the same name, between two looks
            self.delete(old)
            self.add(new)
            return
        self.last_told = POD_UPDATED.label
        waiting = self._known.get(new.uid)
        if waiting is None:
            self._enter_new(new, POD_UPDATED)
            return
        with self._operation:
            if waiting.place is Place.IN_FLIGHT:
                self._update_in_flight(old, new)
            elif waiting.place in (Place.UNSCHEDULABLE, Place.GATED):
                self._update_refused(waiting, old, new)
            else:
                waiting.pod = new
                self._line_up(waiting, waiting.place)

    def delete(self, pod: Pod) -> None:
        """A pod that no longer waits: deleted, or assigned to a node. One in flight goes when its attempt ends."""
        self.last_told = POD_DELETED.label
        self._behind_failed_gates.pop(pod.uid, None)  # whoever stands by is not asked for them, perhaps for days
        flight = self._flights.get(pod.uid)
        if flight is not None:
            flight.is_deleted = True
        elif (waiting := self._known.pop(pod.uid, None)) is not None:
            self._leave(waiting)

    # An attempt

    def pop(self) -> Waiting | None:
        """The pod to try now; None if there is none. It is in flight until `put_back` or `done`.

        When no pod is active, one that backs off after a refusal is tried early: nobody else wants the time.
        """
        with self._operation:
            self._do_what_is_due()
            waiting = self._active.take()
            if waiting is None and (waiting := self._backing_off.take()) is not None:
                self._on_entry(Place.ACTIVE.value, POPPED_FROM_BACKOFF)
            if waiting is not None:
                waiting.attempts += 1
                waiting.popped = self._clock.monotonic()
                self._flights.start(waiting)
            return waiting

    def put_back(
        self,
        waiting: Waiting,
        pod: Pod | None = None,
        *,
        unschedulable: Collection[str] = (),
        pending: Collection[str] = (),
    ) -> None:
        """The attempt failed: these plugins refused the pod, or, if none is named, an error ended it.

        `pod` is the latest object, where the caller knows a later one than the queue. A pod that was deleted or
        assigned during its attempt is dropped.
        """
        uid = waiting.pod.uid
        flight = self._flights.get(uid)
        if flight is None and uid in self._known:
            self._log.error("A pod that is in the queue cannot be put back into it", pod=waiting.pod)
            return
        happened = None if flight is None else self._flights.events_during(flight)
        if pod is None:
            pod = waiting.pod if flight is None else flight.latest or waiting.pod
        self.done(uid)
        if pod.uid != uid or (flight is not None and flight.is_deleted):
            self._log.v(5).info("Pod is gone; it is not put back", pod=waiting.pod)
            return

        with self._operation:
            waiting.pod = pod
            self._remember_failure(waiting, set(unschedulable), set(pending))
            self._known[uid] = waiting
            answer = self._replay(waiting, happened)
            self._move(waiting, answer, ATTEMPT_FAILED)

    def done(self, uid: str) -> None:
        """The pod leaves the queue: assumed on a node and past permit, or not ours any more. Twice is once."""
        if self._flights.end(uid) is not None:
            del self._known[uid]

    # What happens in the cluster

    def on(
        self, event: ClusterEvent, old: Any = None, new: Any = None, *, only: Callable[[Pod], bool] | None = None
    ) -> None:
        """Something happened: try again the refused pods it may help, of those that `only` lets through."""
        self.last_told = event.label
        if not self._wakers.is_of_interest(event):
            return
        with self._operation:
            for waiting in self._whom_it_may_help(event, new):
                if only is None or only(waiting.pod):
                    self._wake(waiting, event, old, new)
            self._flights.record(event, old, new)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods now, whatever they wait for; their gates still have a say.

        Asked for by a plugin while the queue is asking plugins, it is done right after that.
        """
        with self._operation:
            # The uids now: what is no pod must fail here, where whoever asks can be told.
            self._to_activate.extend([pod.uid for pod in pods])

    def reconsider(self, pod: Pod) -> None:
        """The pod's gate may have opened without an event: let in, it waits on as any other that was refused."""
        waiting = self._known.get(pod.uid)
        if waiting is None or waiting.gating is None:
            return
        gate = waiting.gating.plugin
        with self._operation:
            if self._gate.admits(waiting) and waiting.rejectors == {gate}:
                # An error ended its last attempt. Nobody refused it, so no event would bring it back.
                waiting.unschedulable_plugins.discard(gate)
                self._move(waiting, Answer.AFTER_BACKOFF, ATTEMPT_FAILED)
            else:
                self._refused.put(waiting)

    def take_behind_failed_gates(self) -> list[Waiting]:
        """Pods whose gate has failed since this was last asked, and which it still keeps out: nobody told them why."""
        if not self._behind_failed_gates:
            return []
        asked, self._behind_failed_gates = self._behind_failed_gates, {}
        return [
            waiting
            for uid, waiting in asked.items()
            if self._known.get(uid) is waiting and waiting.gating is not None and waiting.gating.is_failure
        ]

    def _gate_failed(self, waiting: Waiting) -> None:
        self._behind_failed_gates[waiting.pod.uid] = waiting
        self._is_ready = True

    def retry_after(self, pod: Pod, seconds: float) -> None:
        """Activate the pod after a while, if it still waits then."""
        with self._operation:
            heapq.heappush(self._retries, (self._clock.now() + max(0.0, seconds), pod.uid))
            self._is_ready = True

    def adopt(
        self, profiles: Mapping[str, ProfileRules], *, initial_backoff_seconds: float, max_backoff_seconds: float
    ) -> None:
        """Other rules from now on. No pod is lost, and none keeps waiting for what only the old rules would bring.

        The new gates are asked about every pod; whoever was refused is worth another try, as is whoever will be
        refused by the attempt that is under way.
        """
        self._backoff = Backoff(initial_backoff_seconds, max_backoff_seconds)
        self._wakers = Wakers(profiles, self._log, self._on_fault, self._observer)
        self._gate = Gate(profiles, self._log, self._on_fault, self._observer, self._gate_failed)
        with self._operation:
            for waiting in [*self._active, *self._backing_off, *self._backing_off_after_error]:
                if not self._gate.admits(waiting):
                    self._leave(waiting)
                    self._refused.put(waiting)
                    self._note(waiting, CONFIGURATION_RELOADED.label)
            self.on(CONFIGURATION_RELOADED)

    # Time

    def flush(self) -> None:
        """Do what time has made due. Call it as often as you like."""
        with self._operation:
            self._do_what_is_due()

    def next_flush(self) -> float:
        """When (in the clock's `now`) there is next something to flush."""
        heads = (line.head() for line in (self._backing_off, self._backing_off_after_error))
        releases = (release_time(head[0]) for head in heads if head is not None)
        retries = (due for due, _ in self._retries[:1])
        return min([self._next_unschedulable_flush, *releases, *retries])

    def _do_what_is_due(self) -> None:
        now = self._clock.now()
        # A clock that was set back must not put the flush off.
        self._next_unschedulable_flush = min(self._next_unschedulable_flush, now + UNSCHEDULABLE_FLUSH_SECONDS)
        for line in (self._backing_off, self._backing_off_after_error):
            while (head := line.head()) is not None and has_ended(head[0], now):
                self._line_up(head[1], Place.ACTIVE)
                self._note(head[1], BACKOFF_COMPLETE)
        while self._retries and self._retries[0][0] <= now:
            _, uid = heapq.heappop(self._retries)
            self._to_activate.append(uid)
        self._activate_requested()
        if now >= self._next_unschedulable_flush:
            self._next_unschedulable_flush = now + UNSCHEDULABLE_FLUSH_SECONDS
            self._flush_unschedulable(now)

    def _flush_unschedulable(self, now: float) -> None:
        """Nobody waits for ever on an event that a plugin forgot to name."""
        overdue = [
            waiting
            for waiting in self._refused
            if now - max(waiting.timestamp, waiting.flush_timestamp or 0.0) > self._max_unschedulable_seconds
        ]
        for waiting in overdue:
            waiting.was_flushed, waiting.flush_timestamp = True, now
            self._wake(waiting, UNSCHEDULABLE_TIMEOUT, None, None)
        if overdue:
            self._flights.record(UNSCHEDULABLE_TIMEOUT, None, None)

    # What can be seen from outside

    def __len__(self) -> int:
        """The pods that wait; those in flight do not count."""
        return len(self._known) - len(self._flights)

    def counts(self) -> dict[str, int]:
        return {
            Place.ACTIVE.value: len(self._active),
            Place.BACKOFF.value: len(self._backing_off) + len(self._backing_off_after_error),
            Place.UNSCHEDULABLE.value: len(self._refused) - self._refused.gated,
            Place.GATED.value: self._refused.gated,
        }

    def refused_by(self) -> Counter[tuple[str, str]]:
        """(plugin, scheduler name) → how many waiting pods the plugin refused last. May be asked on another thread."""
        return Counter(
            (plugin, waiting.pod.spec.scheduler_name)
            for waiting in list(self._known.values())
            if waiting.place is not Place.IN_FLIGHT
            for plugin in tuple(waiting.rejectors)
        )

    def waiting(self) -> Iterator[Waiting]:
        """The pods that wait, without those in flight, in no particular order."""
        return (waiting for waiting in self._known.values() if waiting.place is not Place.IN_FLIGHT)

    def in_flight(self) -> Iterator[Waiting]:
        """The pods that are being tried, in the order in which they were popped."""
        return iter(self._flights)

    def kept_events(self) -> Counter[str]:
        """By label: the events kept for pods in flight, and those pods. May be asked on another thread."""
        return self._flights.kept()

    def find(self, uid: str) -> Waiting | None:
        """A pod in the queue or in flight."""
        return self._known.get(uid)

    def where(self, pod: Pod | str) -> str:
        """The place of a pod, named by itself, its UID, `namespace/name` or name."""
        found = self._known.get(pod if isinstance(pod, str) else pod.uid)
        if found is None and isinstance(pod, str):
            found = next((one for one in self._known.values() if pod in (one.pod.key, one.pod.name)), None)
        return (Place.ABSENT if found is None else found.place).value

    # Moves. A pod changes its place only once every plugin has been asked, so that no answer can lose it.

    def _enter_new(self, pod: Pod, event: ClusterEvent) -> None:
        self.last_told = event.label
        waiting = self._known[pod.uid] = Waiting(pod, timestamp=self._clock.now())
        with self._operation:
            self._move(waiting, Answer.IMMEDIATELY, event.label)

    def _update_in_flight(self, old: Pod, new: Pod) -> None:
        flight = self._flights.get(new.uid)
        assert flight is not None
        flight.latest, flight.is_deleted = new, False
        for event in self._changes(old, new):
            if self._wakers.is_of_interest(event):
                self._flights.record(event, old, new)

    def _update_refused(self, waiting: Waiting, old: Pod, new: Pod) -> None:
        waiting.pod = new
        self._refused.put(waiting)
        for event in self._changes(old, new):
            self._wake(waiting, event, old, new)

    def _changes(self, old: Pod, new: Pod) -> list[ClusterEvent]:
        try:
            return pending_pod_changes(old, new)
        except ValueError as cause:  # a quantity that is none
            self._log.error("Cannot tell what changed in the pod", pod=new, err=cause)
            return [POD_UPDATED]

    def _remember_failure(self, waiting: Waiting, unschedulable: set[str], pending: set[str]) -> None:
        waiting.timestamp = self._clock.now()
        waiting.unschedulable_plugins, waiting.pending_plugins, waiting.gating = unschedulable, pending, None
        waiting.was_flushed, waiting.flush_timestamp = False, None
        if waiting.failed_by_error:
            waiting.consecutive_errors += 1
        else:
            waiting.unschedulable_count += 1
            waiting.consecutive_errors = 0

    def _replay(self, waiting: Waiting, happened: list[Happened] | None) -> Answer:
        """What the events during its attempt mean to a pod that was refused."""
        # Without a record of the attempt (it was done already), time is all that can help.
        if happened is None or waiting.failed_by_error:
            return Answer.AFTER_BACKOFF
        best = Answer.STAY
        hoped_for = Answer.IMMEDIATELY if waiting.pending_plugins else Answer.AFTER_BACKOFF
        for event, old, new in happened:
            best = max(best, self._wakers.answer(waiting, event, old, new))
            if best is hoped_for:
                break
        return best

    def _whom_it_may_help(self, event: ClusterEvent, new: Any) -> list[Waiting]:
        if not event.is_wildcard:
            concerned = self._wakers.concerned(event).items()
            return [waiting for name, plugins in concerned for waiting in self._refused.freed_by(name, plugins)]
        if not isinstance(new, Pod):
            return list(self._refused)
        meant = self._known.get(new.uid)
        return [] if meant is None else [meant]

    def _wake(self, waiting: Waiting, event: ClusterEvent, old: Any, new: Any) -> None:
        if waiting.place not in (Place.UNSCHEDULABLE, Place.GATED):
            return
        answer = self._wakers.answer(waiting, event, old, new)
        if answer is not Answer.STAY:
            self._move(waiting, answer, event.label)

    def _activate_requested(self) -> None:
        requested, self._to_activate = self._to_activate, []
        for uid in requested:
            waiting = self._known.get(uid)
            if waiting is None or waiting.place is Place.ACTIVE:
                continue
            if waiting.place is Place.IN_FLIGHT:
                self._flights.record(FORCE_ACTIVATE, None, waiting.pod)
            elif waiting.place is Place.BACKOFF:
                self._line_up(waiting, Place.ACTIVE)
                self._note(waiting, FORCE_ACTIVATE.label)
            else:
                self._move(waiting, Answer.IMMEDIATELY, FORCE_ACTIVATE.label)

    def _move(self, waiting: Waiting, answer: Answer, reason: str) -> None:
        """Bring a refused or a new pod where the answer sends it, if its gate agrees."""
        if answer is Answer.STAY or not self._gate.admits(waiting):
            was_elsewhere = waiting.place is Place.ABSENT
            if waiting.gating is not None:
                waiting.was_flushed = False  # what lets it in later is not the flush
            self._refused.put(waiting)
            if was_elsewhere:
                self._note(waiting, reason)
            return
        window = self._backoff.window(waiting)
        backs_off = window is not None and not has_ended(window, self._clock.now())
        self._line_up(waiting, Place.BACKOFF if backs_off and answer is Answer.AFTER_BACKOFF else Place.ACTIVE)
        self._note(waiting, reason)

    def _line_up(self, waiting: Waiting, place: Place) -> None:
        """Put the pod into the active or the backoff queue, wherever it was, at the turn it has now."""
        if place is Place.ACTIVE and waiting.initial_attempt is None:
            waiting.initial_attempt = self._clock.now()
        turn = self._turn(waiting)
        is_new_here = waiting.place is not place
        self._leave(waiting)
        waiting.place = place
        if place is Place.ACTIVE:
            self._active.put(waiting, turn)
        else:
            window = self._backoff.window(waiting) or 0
            if waiting.failed_by_error:
                self._backing_off_after_error.put(waiting, window=window)
            else:
                self._backing_off.put(waiting, turn, window)
        # Also where nothing can be popped yet: whoever sleeps until the next flush must hear that it is sooner now.
        self._is_ready |= is_new_here

    def _leave(self, waiting: Waiting) -> None:
        uid = waiting.pod.uid
        match waiting.place:
            case Place.ACTIVE:
                self._active.remove(uid)
            case Place.BACKOFF:
                self._backing_off.remove(uid)
                self._backing_off_after_error.remove(uid)
            case Place.UNSCHEDULABLE | Place.GATED:
                self._refused.remove(uid)
        waiting.place = Place.ABSENT

    def _turn(self, waiting: Waiting) -> Turn:
        try:
            return (0, self._sort_key(waiting))
        except KeyboardInterrupt:
            raise
        except BaseException as cause:
            plugin = self._sort_failed()
            self._log.error(
                "sort_key failed; the pod is tried after all others", plugin=plugin, pod=waiting.pod, err=cause
            )
            return (1,)

    def _sort_failed(self) -> str:
        plugin: str = getattr(getattr(self._sort_key, "__self__", None), "name", "sort_key")
        self._on_fault(plugin, QUEUE_SORT)
        return plugin

    def _note(self, waiting: Waiting, reason: str) -> None:
        place = Place.UNSCHEDULABLE if waiting.place is Place.GATED else waiting.place
        self._on_entry(place.value, reason)
        if detail := self._log.v(5):
            detail.info("Pod moved to an internal scheduling queue", pod=waiting.pod, event=reason, queue=place.value)

    def _settle(self) -> None:
        self._activate_requested()
        if self._is_ready:
            self._is_ready = False
            self._on_ready()
