"""Single calls of a plugin, one after the other, as the recorder made them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from mooring.framework import NodeView, Plugin, Pod, Refusal
from mooring.testing import a_cluster, a_cycle
from mooring_conformance.cases import Case
from mooring_conformance.comparing import Difference
from mooring_conformance.our_decision import Json
from mooring_conformance.situation import Situation

SUCCESS: Json = {"code": "Success"}


def step_differences(case: Case, situation: Situation, expect: Json) -> Iterator[Difference]:
    """Make the calls, and compare what they return. They leave their marks on the plugins of the situation."""
    plugins = {plugin.name: plugin for uses in situation.points.values() for plugin, _ in uses}
    cluster = a_cluster(services=situation.services)
    nodes = {node.name: node for node in cluster.nodes}
    pods = {pod.key: pod for pod in situation.parts.pods}
    expected = expect.get("steps") or []
    for number, step in enumerate(case.steps):
        pod = pods[step.pod]
        ours = _called(plugins[step.plugin], step.op, pod, nodes[step.node], a_cycle(pod, cluster))
        if number < len(expected) and ours != expected[number]:
            yield Difference(f"step {number}", f"{step.op} {step.pod}", ours, expected[number], step.plugin)


def _called(plugin: Plugin, op: str, pod: Pod, node: NodeView, cycle: Any) -> Json:
    if op == "filter":
        return _verdict(plugin.filter(pod, node, cycle))
    if op == "reserve":
        return _verdict(plugin.reserve(pod, node, cycle))
    if op == "unreserve":
        plugin.unreserve(pod, node, cycle)
    elif op == "postBind":
        asyncio.run(plugin.post_bind(pod, node, cycle))
    else:
        raise ValueError(f"there is no step {op}")
    return SUCCESS


def _verdict(refusal: Refusal | None) -> Json:
    return SUCCESS if refusal is None else {"code": refusal.code.value, "reasons": list(refusal.reasons)}
