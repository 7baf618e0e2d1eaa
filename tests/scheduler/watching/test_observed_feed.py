"""The feed of a watch: observers before and after the handler, and the time of an event under its label."""

from __future__ import annotations

from tests.lists import list_into

from mooring.base.clock import ManualClock
from mooring.framework import FeatureGates
from mooring.objects import Pod
from mooring.objects.object_store import Present
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.watching.observed_feed import ObservedFeed
from mooring.testing import a_pod

SECONDS = "scheduler_event_handling_duration_seconds_sum"


class Observer:
    """Records the events that it sees, under its name."""

    def __init__(self, name: str, events: list[str]) -> None:
        self._name, self._events = name, events

    def found(self, pod: Pod) -> None:
        self._events.append(f"{self._name} found {pod.name}")

    def listed(self, present: Present) -> None:
        self._events.append(f"{self._name} listed {len(present)}")

    def changed(self, pod: Pod) -> None:
        self._events.append(f"{self._name} changed {pod.name}")

    def deleted(self, pod: Pod) -> None:
        self._events.append(f"{self._name} deleted {pod.name}")


class Handler(Observer):
    """Takes two seconds for an event, and publishes a cluster event for pods called "web"."""

    def __init__(self, events: list[str], clock: ManualClock) -> None:
        super().__init__("handler", events)
        self._clock = clock

    def changed(self, pod: Pod) -> str:  # type: ignore[override]
        super().changed(pod)
        self._clock.advance(2.0)
        return "AssignedPodAdd" if pod.name == "web" else ""

    def deleted(self, pod: Pod) -> str:  # type: ignore[override]
        super().deleted(pod)
        self._clock.advance(2.0)
        return "AssignedPodDelete"


def a_feed() -> tuple[ObservedFeed[Pod], list[str], SchedulerMetrics]:
    events: list[str] = []
    clock = ManualClock()
    metrics = SchedulerMetrics(FeatureGates(), clock)
    before = [Observer("first", events), Observer("second", events)]
    return ObservedFeed(Handler(events, clock), metrics, before, [Observer("after", events)]), events, metrics


def handled(metrics: SchedulerMetrics, label: str) -> float | None:
    return metrics.registry.get_sample_value(SECONDS, {"event": label})


def test_observers_see_an_event_before_or_after_the_handler():
    feed, events, _ = a_feed()
    list_into(feed, [a_pod("web")])
    feed.changed(a_pod("web"))
    feed.deleted(a_pod("web"))
    calls = ("found web", "listed 1", "changed web", "deleted web")
    assert events == [f"{name} {call}" for call in calls for name in ("first", "second", "handler", "after")]


def test_an_event_is_timed_under_the_label_of_its_cluster_event():
    feed, _, metrics = a_feed()
    feed.changed(a_pod("web"))
    feed.deleted(a_pod("web"))
    assert (handled(metrics, "AssignedPodAdd"), handled(metrics, "AssignedPodDelete")) == (2.0, 2.0)


def test_an_event_without_a_cluster_event_is_not_timed():
    feed, _, metrics = a_feed()
    feed.changed(a_pod("other"))
    assert SECONDS not in metrics.text().decode()
