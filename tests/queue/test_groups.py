"""Unschedulable pods that are alike are one group: a hint that is declared per template runs once for it."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.queue.builders import Recorded, a_pod, a_queue, fail, names, popped, scheduling_gates, wait

from mooring.base.clock import ManualClock
from mooring.framework.events import ASSIGNED_POD_DELETED, NODE_ADDED, Action, Hint
from mooring.objects.core import Pod
from mooring.queue import SchedulingQueue


def is_even(pod: Pod, _old: Any, _new: Any) -> bool:
    return pod.priority % 2 == 0


def is_labelled(pod: Pod, _old: Any, _new: Any) -> bool:
    return "a" in pod.labels


def has_an_odd_name(pod: Pod, _old: Any, _new: Any) -> bool:
    return int(pod.name) % 2 == 1


def is_this_pod(pod: Pod, old: Any, _new: Any) -> bool:
    return old is not None and pod.uid == old.uid


def fails_where_labelled(pod: Pod, _old: Any, _new: Any) -> bool:
    if pod.labels:
        raise RuntimeError("no idea")
    return False


def hints(*, per_template: bool) -> dict[str, list[Hint]]:
    def of_template(resource: str, action: Action, test: Any) -> Hint:
        return Hint(resource, action, test, per_template=per_template)

    return {
        "Gates": [of_template("Pod", Action.DELETE, is_even)],
        "Even": [of_template("Node", Action.ADD, is_even), of_template("Pod", Action.DELETE, is_this_pod)],
        "Labelled": [of_template("Node", Action.ADD, is_labelled), Hint("Pod", Action.DELETE)],
        "Named": [Hint("Node", Action.ADD, has_an_odd_name), of_template("Pod", Action.DELETE, is_even)],
        "Broken": [of_template("Node", Action.ADD, fails_where_labelled)],
    }


@dataclass
class Waiting:
    """An unschedulable pod to be."""

    priority: int
    labels: dict[str, str]
    unschedulable: set[str]
    pending: set[str]
    is_gated_later: bool


REJECTORS = st.sets(st.sampled_from(["Even", "Labelled", "Named", "Broken", "Unknown"]), max_size=2)
WAITING = st.builds(Waiting, st.integers(0, 2), st.sampled_from([{}, {"a": "b"}]), REJECTORS, REJECTORS, st.booleans())
EVENTS = st.sampled_from([NODE_ADDED, ASSIGNED_POD_DELETED])


@dataclass
class Both:
    """A queue that groups pods, and one in which each pod is evaluated."""

    clock: ManualClock = field(default_factory=ManualClock)

    def __post_init__(self) -> None:
        self.queues = [
            a_queue(self.clock, hints=hints(per_template=flag), gates=[("Gates", scheduling_gates)])
            for flag in (True, False)
        ]

    def each(self, act: Any) -> Any:
        results = [act(queue) for queue in self.queues]
        assert results[0] == results[1]
        return results[0]


@given(st.lists(WAITING, min_size=1, max_size=8), st.lists(st.tuples(EVENTS, st.integers(0, 8)), max_size=4))
def test_a_group_moves_as_its_pods_would_one_by_one(pods, events):
    """Q29–Q31: the same pods move to the same places, and come out in the same order."""
    both = Both()
    for name, wanted in enumerate(pods):
        pod = a_pod(str(name), priority=wanted.priority, labels=wanted.labels)
        both.each(lambda queue, pod=pod: queue.add(pod))

        def reject(queue: SchedulingQueue, wanted: Waiting = wanted) -> None:
            queue.requeue(popped(queue), unschedulable=wanted.unschedulable, pending=wanted.pending)

        both.each(reject)
        both.clock.advance(0.25)
        if wanted.is_gated_later:
            gated = a_pod(str(name), priority=wanted.priority, labels=wanted.labels, gates=["hold"])
            both.each(lambda queue, pod=pod, gated=gated: queue.update(pod, gated))
    for event, about in events:
        changed = a_pod(str(about)) if event is ASSIGNED_POD_DELETED else None
        both.each(lambda queue, event=event, changed=changed: queue.on_event(event, changed, None))
        both.each(lambda queue: [queue.where(str(name)) for name in range(len(pods))])
        both.clock.advance(0.5)
    both.each(lambda queue: names([queue.pop() for _ in range(len(pods) + 1)]))


def test_a_hint_that_is_declared_per_template_runs_once_for_pods_that_are_alike():
    """Q31: hints of plugins that rejected the pods run."""
    clock, rejects, reads_names = ManualClock(), Recorded(result=False), Recorded(result=False)
    hints = {
        "Fit": [Hint("Node", Action.ADD, rejects, per_template=True)],
        "Volumes": [Hint("Node", Action.ADD, reads_names)],
    }
    queue = a_queue(clock, hints=hints)
    for name in ("one", "two", "three"):
        queue.add(a_pod(name))
        fail(queue, refused_by="Fit")
    queue.add(a_pod("other", cpu="2"))
    fail(queue, refused_by="Fit")
    for name in ("four", "five"):
        queue.add(a_pod(name))
        fail(queue, refused_by="Volumes")
    queue.on_event(NODE_ADDED)
    assert [pod.name for pod, _, _ in rejects.calls] == ["one", "other"]
    assert [pod.name for pod, _, _ in reads_names.calls] == ["four", "five"]

    rejects.result = True
    queue.on_event(NODE_ADDED)
    wait(queue, clock, 2)
    assert len(rejects.calls) == 4
    assert names([queue.pop() for _ in range(5)]) == ["one", "two", "three", "other", None]


def test_the_pod_that_changed_is_evaluated_on_its_own():
    """Q31: a hint may compare the pod with the changed object."""
    queue = a_queue(hints={"Fit": [Hint("Pod", Action.DELETE, is_this_pod, per_template=True)]})
    for name in ("one", "two", "three"):
        queue.add(a_pod(name))
        fail(queue, refused_by="Fit")
    queue.on_event(ASSIGNED_POD_DELETED, a_pod("two"), None)
    assert [queue.where(name) for name in ("one", "two", "three")] == ["unschedulable", "backoff", "unschedulable"]
