"""Single calls of a plugin, one after the other, as the recorder made them.

A pod keeps its cycle until its next PreFilter. Before Permit it counts as placed, as in the scheduler, but the
recorder's nodes stay as they are. One that Permit lets wait waits until a step allows or rejects it. Time passes with
each step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from mooring.base.clock import parse_timestamp
from mooring.framework import NodeView, Plugin, Pod, QueuedPod, Refusal, Wait
from mooring.objects.placed import placed
from mooring.testing import a_cluster, a_cycle
from mooring_conformance.cases import Case, Step
from mooring_conformance.comparing import Difference
from mooring_conformance.our_decision import Json
from mooring_conformance.situation import Situation

SUCCESS: Json = {"code": "Success"}
QUEUED_AT = parse_timestamp("2024-01-01T00:00:00Z")
ELSEWHERE = "recorded/elsewhere"
RECORDED_AT = parse_timestamp("2026-01-01T00:00:00Z")
STEP_SECONDS = 0.001
GAP = "resource gap: "
"""What follows are Go's structures in no order."""


def step_differences(case: Case, situation: Situation, expect: Json) -> Iterator[Difference]:
    """Make the calls, and compare what they return. They leave their marks on the plugins of the situation."""
    calls = _Calls(situation)
    expected = expect.get("steps") or []
    for number, step in enumerate(case.steps):
        ours = calls.make(step)
        if number < len(expected) and ours != (theirs := _comparable(expected[number])):
            yield Difference(f"step {number}", f"{step.op} {step.pod}", ours, theirs, step.plugin)


class _Calls:
    def __init__(self, situation: Situation) -> None:
        self._services, self._placed, self._state = situation.services, situation.pods, situation.state
        self._plugins = {plugin.name: plugin for uses in situation.points.values() for plugin, _ in uses}
        self._cluster = a_cluster(services=situation.services)
        self._nodes = {node.name: node for node in self._cluster.nodes}
        self._pods = {pod.key: pod for pod in situation.parts.pods}
        self._cycles: dict[str, Any] = {}
        # After every time that a case names: what fails now has failed last.
        self._services.clock.advance(max(0.0, RECORDED_AT - self._services.clock.now()))

    def make(self, step: Step) -> Json:
        pod = self._pods[step.pod]
        self._services.clock.advance(STEP_SECONDS)
        if step.op == "preFilter" or step.pod not in self._cycles:
            self._cycles[step.pod] = a_cycle(pod, self._cluster)
        result = self._called(self._plugins[step.plugin], step, pod, self._cycles[step.pod])
        return _comparable(result | self._effects())

    def _called(self, plugin: Plugin, step: Step, pod: Pod, cycle: Any) -> Json:
        node = self._nodes.get(step.node)
        if step.op == "less":
            return SUCCESS | {"less": _key(plugin, pod) < _key(plugin, self._pods[step.other])}
        if step.op == "preFilter":
            return _verdict(plugin.pre_filter(pod, cycle))
        if step.op == "postFilter":
            no_node: Any = None  # every node is unschedulable; plugins of such steps do not read which
            return _verdict(plugin.post_filter(pod, no_node, no_node))
        assert node is not None, f"step {step.op} needs a node"
        return self._called_on(plugin, step.op, pod, node, cycle)

    def _called_on(self, plugin: Plugin, op: str, pod: Pod, node: NodeView, cycle: Any) -> Json:
        if op == "filter":
            return _verdict(plugin.filter(pod, node, cycle))
        if op == "reserve":
            if self._state.pod(pod.uid) is None:
                # On a node that is not there, for the same reason as in `_permit`.
                self._state.assume(pod, ELSEWHERE, self._services.clock.now())
            return _verdict(plugin.reserve(pod, node, cycle))
        if op == "permit":
            return self._permit(plugin, pod, node, cycle)
        if op == "unreserve":
            plugin.unreserve(pod, node, cycle)
            self._placed.permitted.pop(pod.uid, None)
            if self._state.is_assumed(pod.uid):
                self._state.forget(pod.uid)
        elif op == "postBind":
            asyncio.run(plugin.post_bind(pod, node, cycle))
        else:
            raise ValueError(f"there is no step {op}")
        return SUCCESS

    def _permit(self, plugin: Plugin, pod: Pod, node: NodeView, cycle: Any) -> Json:
        self._placed.permitted[pod.uid] = placed(pod, "", assumed_at=self._services.clock.now())
        result = plugin.permit(pod, node, cycle)
        if isinstance(result, Wait):
            self._services.waiting_pods.put(pod, node.name, plugin.name, result.seconds)
            return {"code": "Wait", "wait": result.seconds}
        if isinstance(result, Refusal):
            del self._placed.permitted[pod.uid]
        return _verdict(result)

    def _effects(self) -> Json:
        """What the call did to other pods."""
        waiting, queue = self._services.waiting_pods, self._services.queue
        keys = {pod.name: key for key, pod in self._pods.items()}
        effects = {
            "allowed": sorted(keys[name] for name in waiting.allowed),
            "rejected": {keys[name]: reason for name, reason in waiting.rejected},
            "activated": sorted(keys[name] for name in queue.activated),
        }
        waiting.allowed.clear()
        waiting.rejected.clear()
        queue.activated.clear()
        return effects


def _key(plugin: Plugin, pod: Pod) -> Any:
    return plugin.sort_key(QueuedPod(pod, QUEUED_AT, initial_attempt=QUEUED_AT))


def _verdict(result: object) -> Json:
    if not isinstance(result, Refusal):
        return SUCCESS
    return {"code": result.code.value, "reasons": list(result.reasons)}


def _comparable(step: Json) -> Json:
    """Without what is empty; of a gap only that there is one."""
    kept = {name: value for name, value in step.items() if value or name == "less"}
    if "allowed" in kept:
        kept["allowed"] = sorted(kept["allowed"])
    if reasons := kept.get("reasons"):
        kept["reasons"] = [GAP if reason.startswith(GAP) else reason for reason in reasons]
    return kept
