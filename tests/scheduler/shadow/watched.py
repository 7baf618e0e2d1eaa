"""A shadow with state, queue and feeds, where the test sends what the watch shows; and a scheduler for it to follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from tests.engine.builders import a_profile, made

from mooring.base.clock import ManualClock
from mooring.engine import decide
from mooring.framework import FeatureGates, Plugin, Refusal
from mooring.objects.core import Pod, PodCondition
from mooring.queue import ProfileRules, SchedulingQueue
from mooring.scheduler.metrics import SchedulerMetrics
from mooring.scheduler.shadow import Comparison, Shadow
from mooring.scheduler.shadow.observers import AfterUpdate, BeforeUpdate
from mooring.scheduler.watching.feeds import PodFeed
from mooring.scheduler.watching.observed_feed import ObservedFeed
from mooring.state import State
from mooring.testing import a_node_object, a_pod

NAME = "default-scheduler"

Gate = Callable[[Pod], Refusal | None]


def emptiest() -> Plugin:
    """Favours the node with the fewest pods."""
    return made("Emptiest", score=lambda _pod, node, _cycle: 100 - len(node.pods))


class Watched:
    """What the shadow reported is in `reported`."""

    def __init__(
        self,
        *plugins: Plugin | tuple[Plugin, int],
        nodes: Sequence[str] = ("a", "b"),
        gate: Gate | None = None,
        is_started: bool = True,
        **options: Any,
    ) -> None:
        self.clock = ManualClock()
        self.state = State()
        for name in nodes:
            self.state.set_node(a_node_object(name))
        self.profile = a_profile(*plugins)
        rules = ProfileRules(hints={}, pre_enqueue=[("Gate", gate)] if gate else [])
        self.queue = SchedulingQueue(self.clock, sort_key=lambda queued: queued.timestamp, profiles={NAME: rules})
        self.reported: list[Comparison] = []
        profiles = {NAME: self.profile}
        self.shadow = Shadow(profiles, self.state, self.queue, self.clock, self.reported.append, **options)
        pods = PodFeed(self.state, self.queue, [NAME])
        before, after = BeforeUpdate(self.shadow, self.state, [NAME]), AfterUpdate(self.shadow)
        metrics = SchedulerMetrics(FeatureGates(), self.clock)
        self.feed = ObservedFeed(pods, metrics, [before], [after])
        if is_started:
            self.feed.listed({})
        self._versions = 1

    def comes(self, name: str, *, is_decided: bool = True, **more: Any) -> Pod:
        """A pod appears; our own loop decides about it, or has not come to it yet."""
        pod = a_pod(name, **more)
        self.feed.changed(pod)
        if is_decided:
            self.decides()
        return pod

    def decides(self) -> None:
        """Our own loop has its turn."""
        while (waiting := self.queue.pop()) is not None:
            self.shadow.decided(waiting.pod, decide(self.profile, waiting.pod, self.state, attempt=waiting.attempts))
            self.queue.done(waiting.pod.uid)

    def changed(self, pod: Pod, *, node: str = "", refused: str | None = None, nominated: str = "") -> Pod:
        """The watch shows this of the pod."""
        self._versions += 1
        conditions = [
            PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message)
            for message in [refused]
            if message is not None
        ]
        status = msgspec.structs.replace(pod.status, conditions=conditions, nominated_node_name=nominated)
        metadata = msgspec.structs.replace(pod.metadata, resource_version=str(self._versions))
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        shown = msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status)
        self.feed.changed(shown)
        return shown

    def results(self) -> Mapping[str, str]:
        """Pod → result; each pod once."""
        names = [comparison.pod.partition("/")[2] for comparison in self.reported]
        assert len(set(names)) == len(names), f"one was reported twice: {names}"
        return {name: reported.result.value for name, reported in zip(names, self.reported, strict=True)}
