from __future__ import annotations

from mooring.framework import QueuedPod
from mooring.testing import Services, a_plugin, a_pod

from .by_deadline import DEADLINE, ByDeadline


def queued(name: str, deadline: str | None = None, *, priority: int = 0, since: float = 0) -> QueuedPod:
    annotations = {} if deadline is None else {DEADLINE: deadline}
    return QueuedPod(a_pod(name, annotations=annotations, priority=priority), timestamp=since)


def in_order(*pods: QueuedPod) -> list[str]:
    return [each.pod.name for each in sorted(pods, key=a_plugin(ByDeadline).sort_key)]


def test_the_earliest_deadline_goes_first_whatever_the_priority():
    late = queued("late", "2026-11-16T18:00:00Z", priority=100)
    early = queued("early", "2026-11-16T18:00:00+01:00")
    assert in_order(late, queued("none", priority=1000), early) == ["early", "late", "none"]


def test_without_deadlines_it_is_priority_and_then_age():
    assert in_order(queued("young", since=2), queued("old", since=1), queued("high", priority=1, since=3)) == [
        "high",
        "old",
        "young",
    ]


def test_a_deadline_that_is_no_time_is_logged_and_goes_last():
    services = Services()
    key = a_plugin(ByDeadline, services).sort_key(queued("bad", "tomorrow"))
    assert key > a_plugin(ByDeadline).sort_key(queued("good", "2999-01-01T00:00:00Z"))
    assert services.log.messages == ["Ignoring a deadline that is not a time"]
