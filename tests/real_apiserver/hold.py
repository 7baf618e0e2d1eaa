"""A permit plugin for tests: pods wait for company, or for a time that passes."""

from __future__ import annotations

from mooring.framework import Allow, Cycle, NodeView, Plugin, Pod, Wait, WaitingPods

COMPANY, SECONDS = "wait-for", "wait-seconds"


class Hold(Plugin):
    """A pod with the label `wait-for` waits until another with the same value comes; at most `wait-seconds`."""

    def __init__(self, waiting: WaitingPods) -> None:
        self._waiting = waiting

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow | Wait:
        company = pod.labels.get(COMPANY)
        if company is None:
            return Allow()
        there = [each.pod.uid for each in self._waiting if each.pod.labels.get(COMPANY) == company]
        for uid in there:
            self._waiting.allow(uid, self.name)
        return Allow() if there else Wait(float(pod.labels.get(SECONDS, "60")))
