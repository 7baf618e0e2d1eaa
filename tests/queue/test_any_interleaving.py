"""Whatever happens in whatever order: the queue and its nominations do what a plain model of the rules does (Q1–Q46).

The model keeps one list of pods and looks at all of them each time; it knows nothing of heaps, indexes or replay
positions. After every step each pod must be where the model has it, and in one place only.
"""

import math
import os
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule
from tests.queue.builders import GATES_ELIMINATED, SERVICE_CHANGED, a_pod, a_queue, is_this_pod, scheduling_gates

from mooring.base.clock import ManualClock
from mooring.framework.events import ASSIGNED_POD_DELETED, NODE_ADDED, Action, ClusterEvent, Hint, pending_pod_changes
from mooring.objects.core import Pod
from mooring.queue import QueuedPodInfo, SchedulingQueue
from mooring.scheduler.watching.nominator import Nominator
from mooring.state.nominations import Nominations

EVERYTHING = ClusterEvent("*", Action.ALL)
WAITING = ("active", "backoff", "unschedulable", "gated")
DURATIONS = [1, 2, 4, 8, 10]
LIMIT = 60


def is_even(pod: Pod, _old: Any, _new: Any) -> bool:
    return pod.priority % 2 == 0


def fails(_pod: Pod, _old: Any, _new: Any) -> bool:
    raise RuntimeError("no idea")


HINTS = {
    "Gates": [GATES_ELIMINATED],
    "Headroom": [Hint("Node", Action.ADD)],
    "Ports": [Hint("Pod", Action.DELETE, is_even), Hint("Pod", Action.UPDATE_POD_LABEL, is_this_pod)],
    "Claims": [Hint("Node", Action.ADD, is_even), Hint("Pod", Action.DELETE)],
    "Broken": [Hint("Node", Action.ADD, fails)],
}
REFUSING = st.sets(st.sampled_from(["Headroom", "Ports", "Claims", "Broken", "Unknown"]), max_size=1)
NODES = st.sampled_from(["", "a", "b"])


@dataclass
class Modelled:
    """A pod as the model sees it."""

    pod: Pod
    place: str
    timestamp: float
    attempts: int = 0
    refusals: int = 0
    errors: int = 0
    unschedulable: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    flushed: float = 0.0
    latest: Pod | None = None
    is_deleted: bool = False
    happened: list[tuple[ClusterEvent, Any, Any]] = field(default_factory=list)
    waiting: QueuedPodInfo | None = None

    @property
    def window(self) -> int | None:
        failures = self.errors or self.refusals
        return math.floor(self.timestamp + DURATIONS[min(failures, 5) - 1]) if failures else None

    @property
    def key(self) -> tuple[int, float]:
        return -self.pod.priority, self.timestamp


class Model:
    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.pods: dict[str, Modelled] = {}
        self.retries: list[tuple[float, str]] = []
        self.nominations: dict[str, str] = {}
        self.next_timeout = clock.now() + 30

    def at(self, *places: str) -> list[Modelled]:
        return [one for one in self.pods.values() if one.place in places]

    def enter(self, one: Modelled, *, without_backoff: bool) -> None:
        """Q10, Q30: PreEnqueue runs on the way into activeQ and backoffQ; Queue means activeQ, or backoffQ while
        backoff lasts.
        """
        if one.pod.spec.scheduling_gates:
            one.place = "gated"
            one.unschedulable.add("Gates")
        elif one.window is None or one.window < math.floor(self.clock.now()) or without_backoff:
            one.place = "active"
        else:
            one.place = "backoff"

    def strategy(self, one: Modelled, event: ClusterEvent, old: Any, new: Any) -> str:
        """Q13, Q19, Q29: events of its plugin and wildcards requeue a gated pod; events since the pop are replayed; an
        event concerns the pods whose plugins registered it.
        """
        if event.is_wildcard:
            return "after backoff" if new is None or new.uid == one.pod.uid else "stay"

        def returns_queue(plugin: str) -> bool:
            hints = [hint for hint in HINTS.get(plugin, []) if hint.matches(event)]
            # A test that fails counts as yes.
            return any(hint.test in (None, fails) or hint.test(one.pod, old, new) for hint in hints)

        if one.place == "gated" and not any(hint.matches(event) for hint in HINTS["Gates"]):
            return "stay"
        if any(map(returns_queue, one.pending)):
            return "at once"
        return "after backoff" if any(map(returns_queue, one.unschedulable)) else "stay"

    def wake(self, one: Modelled, event: ClusterEvent, old: Any, new: Any) -> None:
        if one.place in ("unschedulable", "gated") and (strategy := self.strategy(one, event, old, new)) != "stay":
            self.enter(one, without_backoff=strategy == "at once")

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        for one in self.at("in flight"):
            one.happened.append((event, old, new))

    def happen(self, event: ClusterEvent, old: Any = None, *, at_most: int | None = None) -> None:
        """`at_most`: only pods of this priority or a lower one are requeued."""
        for one in self.at("unschedulable", "gated"):
            if at_most is None or one.pod.priority <= at_most:
                self.wake(one, event, old, None)
        self.record(event, old, None)

    def lose_nomination(self, pod: Pod) -> None:
        """3.2: to pods of its priority and below, the going of a nominated pod is a deletion."""
        self.happen(ASSIGNED_POD_DELETED, pod, at_most=pod.priority)

    def nominate(self, uid: str, node: str) -> None:
        """Q44: a pod is nominated to one node at most."""
        self.nominations.pop(uid, None)
        if node:
            self.nominations[uid] = node

    def activate(self, one: Modelled) -> None:
        """Q42: activation skips backoff, not PreEnqueue."""
        if one.place == "in flight":
            self.record(EVERYTHING, None, one.pod)
        elif one.place == "backoff":
            one.place = "active"
        elif one.place != "active":
            self.enter(one, without_backoff=True)

    def pass_time(self) -> None:
        """Q23, Q41: after its backoff a pod moves to activeQ; unschedulable pods are flushed after five minutes."""
        now = self.clock.now()
        for one in self.at("backoff"):
            if one.window is not None and one.window < math.floor(now):
                one.place = "active"
        for due, uid in sorted(self.retries):
            if due <= now and uid in self.pods:
                self.activate(self.pods[uid])
        self.retries = [(due, uid) for due, uid in self.retries if due > now]
        if now >= self.next_timeout:
            self.next_timeout = now + 30
            overdue = [
                one for one in self.at("unschedulable", "gated") if now - max(one.timestamp, one.flushed) > LIMIT
            ]
            for one in overdue:
                one.flushed = now
                self.wake(one, EVERYTHING, None, None)
            if overdue:
                self.record(EVERYTHING, None, None)

    def who_may_be_popped(self) -> list[Modelled]:
        """Q6, Q24, Q25: the best, and any that is as good."""
        if active := self.at("active"):
            best = min(one.key for one in active)
            return [one for one in active if one.key == best]
        refused = [one for one in self.at("backoff") if one.unschedulable or one.pending]
        turns = {one.pod.uid: (one.window or 0, one.key) for one in refused}
        return [one for one in refused if turns[one.pod.uid] == min(turns.values())]


class AnyInterleaving(RuleBasedStateMachine):
    pods = Bundle("pods")
    flying = Bundle("flying")

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(start=1000.25)
        self.rang_since_empty, self.sleeps_until = False, 0.0
        self.queue: SchedulingQueue = a_queue(
            self.clock,
            hints=HINTS,
            gates=[("Gates", scheduling_gates)],
            max_unschedulable_seconds=LIMIT,
            on_ready=self.ring,
        )
        self.nominations = Nominations()
        self.nominator = Nominator(self.nominations, self.queue)
        self.model = Model(self.clock)
        self.made = 0

    def ring(self) -> None:
        self.rang_since_empty = True

    @initialize(target=pods, priorities=st.lists(st.integers(0, 3), min_size=2, max_size=5))
    def begin(self, priorities: list[int]):
        return multiple(*[self.add(priority, is_gated=False, node="") for priority in priorities])

    @rule(target=pods, priority=st.integers(0, 3), is_gated=st.booleans(), node=NODES)
    def add(self, priority: int, is_gated: bool, node: str) -> str:
        self.made += 1
        pod = a_pod(f"pod-{self.made}", priority=priority, gates=["hold"] if is_gated else [], nominated=node)
        self.queue.add(pod)
        self.nominator.added(pod)
        one = self.model.pods[pod.uid] = Modelled(pod, "", self.clock.now())
        self.model.enter(one, without_backoff=True)
        if not is_gated:  # Q4
            self.model.nominate(pod.uid, node)
        return pod.uid

    @rule(
        uid=pods,
        priority=st.integers(0, 3),
        labels=st.sampled_from([{}, {"a": "b"}, {"a": "c"}]),
        drop_gates=st.booleans(),
        node=NODES,
    )
    def update(self, uid: str, priority: int, labels: dict[str, str], drop_gates: bool, node: str) -> None:
        one = self.model.pods.get(uid)
        if one is None:
            return
        old = one.latest or one.pod
        gates = [] if drop_gates else [gate.name for gate in old.spec.scheduling_gates]
        new = a_pod(old.name, priority=priority, labels=labels, gates=gates, nominated=node)
        self.queue.update(old, new)
        self.nominator.updated(old, new)
        if one.place == "in flight":
            one.latest, one.is_deleted = new, False
            for event in pending_pod_changes(old, new):
                self.model.record(event, old, new)
        else:
            one.pod = new
            for event in pending_pod_changes(old, new):
                self.model.wake(one, event, old, new)
        before = old.status.nominated_node_name
        if before or node:  # Q46
            self.model.nominate(uid, node)
        if before and before != node:
            self.model.lose_nomination(old)

    @rule(uid=consumes(pods))
    def delete(self, uid: str) -> None:
        one = self.model.pods.get(uid)
        if one is None:
            return
        latest = one.latest or one.pod
        self.queue.delete(latest)
        self.nominator.deleted(latest, was_assumed=False)
        if one.place == "in flight":
            one.is_deleted = True
        else:
            del self.model.pods[uid]
        self.model.nominate(uid, "")
        if latest.status.nominated_node_name:
            self.model.lose_nomination(latest)

    @rule(target=flying)
    def pop(self):
        uid = self.pop_one()
        return multiple() if uid is None else uid

    @rule(outcomes=st.lists(st.tuples(REFUSING, REFUSING), min_size=1, max_size=5))
    def try_and_fail(self, outcomes: list[tuple[set[str], set[str]]]) -> None:
        """Pods are tried one after the other, and nothing happens meanwhile."""
        for unschedulable, pending in outcomes:
            if (uid := self.pop_one()) is not None:
                self.put_back(uid, unschedulable, pending)

    def pop_one(self) -> str | None:
        self.model.pass_time()
        best = self.model.who_may_be_popped()
        waiting = self.queue.pop()
        if waiting is None:
            assert not best, f"{best[0].pod.name} was not popped"
            self.rang_since_empty, self.sleeps_until = False, self.queue.next_flush()
            return None
        one = self.model.pods[waiting.pod.uid]
        assert one in best, f"{one.pod.name} was popped before {[other.pod.name for other in best]}"
        one.place, one.attempts, one.waiting, one.happened = "in flight", one.attempts + 1, waiting, []
        assert (waiting.attempts, waiting.pod) == (one.attempts, one.pod)
        return one.pod.uid

    @rule(uid=consumes(flying), unschedulable=REFUSING, pending=REFUSING, nominate=st.none() | NODES)
    def put_back(self, uid: str, unschedulable: set[str], pending: set[str], nominate: str | None = None) -> None:
        """`nominate`: as decided by preemption; None leaves the pod's status."""
        one = self.model.pods[uid]
        assert one.waiting is not None
        self.queue.requeue(one.waiting, unschedulable=unschedulable, pending=pending)
        if one.is_deleted:
            del self.model.pods[uid]
            return
        latest = one.latest or one.pod
        self.nominator.decided(latest, nominate)
        self.model.nominate(uid, latest.status.nominated_node_name if nominate is None else nominate)
        one.pod, one.latest, one.timestamp, one.flushed = one.latest or one.pod, None, self.clock.now(), 0.0
        one.unschedulable, one.pending = set(unschedulable), set(pending)
        if unschedulable or pending:
            one.refusals, one.errors = one.refusals + 1, 0
            strategies = {self.model.strategy(one, *happened) for happened in one.happened}
        else:
            one.errors += 1
            strategies = {"after backoff"}
        if strategies <= {"stay"}:
            one.place = "unschedulable"
        else:
            self.model.enter(one, without_backoff="at once" in strategies)

    @rule(uid=consumes(flying))
    def succeed(self, uid: str) -> None:
        """Q48: assuming ends the nomination, a failure restores it."""
        self.queue.done(uid)
        self.nominator.placed(uid)
        self.model.nominate(uid, "")
        del self.model.pods[uid]

    @rule(event=st.sampled_from([NODE_ADDED, ASSIGNED_POD_DELETED, SERVICE_CHANGED, EVERYTHING]))
    def something_happens(self, event: ClusterEvent) -> None:
        self.queue.on_event(event)
        self.model.happen(event)

    @rule(uid=pods)
    def activate(self, uid: str) -> None:
        self.queue.activate([a_pod(uid=uid)])
        if uid in self.model.pods:
            self.model.activate(self.model.pods[uid])

    @rule(uid=pods, seconds=st.sampled_from([0.0, 0.5, 3.0]))
    def retry_after(self, uid: str, seconds: float) -> None:
        self.queue.retry_after(a_pod(uid=uid), seconds)
        self.model.retries.append((self.clock.now() + seconds, uid))

    @rule(seconds=st.sampled_from([0.125, 0.5, 0.75, 1.0, 2.25, 9.0, 31.0, 70.0]), and_flush=st.booleans())
    def wait(self, seconds: float, and_flush: bool) -> None:
        self.clock.advance(seconds)
        if and_flush:
            self.flush()

    def flush(self) -> None:
        self.queue.flush()
        self.model.pass_time()
        assert self.queue.next_flush() > self.clock.now()

    @rule()
    def wait_for_the_next_flush(self) -> None:
        """Nothing is due before the time that next_flush names."""
        self.flush()
        before = {uid: one.place for uid, one in self.model.pods.items()}
        due = self.queue.next_flush()
        self.clock.advance(math.nextafter(due, 0.0) - self.clock.now())
        self.flush_unchanged(before)
        self.clock.advance(due - self.clock.now())
        self.flush()

    def flush_unchanged(self, before: dict[str, str]) -> None:
        self.queue.flush()
        assert {uid: self.queue.where(uid) for uid in before} == before

    @invariant()
    def every_pod_is_where_the_model_has_it(self) -> None:
        assert {uid: self.queue.where(uid) for uid in self.model.pods} == {
            uid: one.place for uid, one in self.model.pods.items()
        }
        assert {one.pod.uid for one in (*self.queue.pending(), *self.queue.in_flight())} == self.model.pods.keys()

    @invariant()
    def no_pod_is_in_two_places(self) -> None:
        """Q1: a pending pod is in exactly one place."""
        assert self.queue.counts() == {place: len(self.model.at(place)) for place in WAITING}
        assert len(self.queue) == len(self.model.at(*WAITING))
        assert len(list(self.queue.in_flight())) == len(self.model.at("in flight"))

    @invariant()
    def every_pod_is_nominated_where_the_model_has_it(self) -> None:
        """Q44: to one node at most."""
        nominated = {uid: node for uid in self.model.pods if (node := self.nominations.node_of(uid))}
        assert nominated == self.model.nominations
        there = {pod.uid: node for node in ("a", "b") for pod in self.nominations.at(node)}
        assert there == self.model.nominations

    @invariant()
    def on_ready_is_called_when_there_is_something_to_pop(self) -> None:
        assert self.rang_since_empty or not self.model.who_may_be_popped()
        assert self.rang_since_empty or self.queue.next_flush() >= self.sleeps_until

    @invariant()
    def a_pod_that_waits_for_an_event_has_its_plugins(self) -> None:
        for one in self.queue.pending():
            if one.place in ("unschedulable", "gated"):
                assert one.rejectors
            assert (one.gating_plugin is not None) == (one.place == "gated")

    def teardown(self) -> None:
        """No pod is lost: after five minutes of silence every pod without a gate can be popped."""
        for one in self.model.at("in flight"):
            self.queue.done(one.pod.uid)
            del self.model.pods[one.pod.uid]
        self.clock.advance(LIMIT + 31)
        left = {one.pod.uid for one in self.model.pods.values() if not one.pod.spec.scheduling_gates}
        got = set()
        while (waiting := self.queue.pop()) is not None:
            got.add(waiting.pod.uid)
        assert left <= got


# `MOORING_EXAMPLES=5000 pytest tests/queue/test_any_interleaving.py` looks at many more.
TestAnyInterleaving = AnyInterleaving.TestCase
TestAnyInterleaving.settings = settings(
    max_examples=int(os.environ.get("MOORING_EXAMPLES", "100")), stateful_step_count=40, deadline=None
)
