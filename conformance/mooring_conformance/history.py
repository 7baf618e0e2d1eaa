"""The same cluster by another way: things change, go and come back before the decision is taken.

What is counted standing (columns, tallies, carried terms, indexes) and what plugins keep between decisions must end
where it began. The way is random, and always the same for the same case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random

import msgspec

from mooring.engine import Form
from mooring.objects import KubeObject, Node, Pod
from mooring_conformance.situation import Situation

ROUNDS = 2
SHARE = 0.4
"""How much of the cluster is disturbed in each round."""

Repair = Callable[[], object]


def churn(situation: Situation) -> None:
    """Leave the situation as it was, by a detour."""
    chance = Random(situation.name)
    for _ in range(ROUNDS):
        disturbances = [each for each in _disturbances(situation, chance) if chance.random() < SHARE]
        chance.shuffle(disturbances)
        repairs = [disturb() for disturb in disturbances]
        # A decision in between makes state and plugins keep things that must not hold afterwards.
        situation.decide(Form.FASTER)
        chance.shuffle(repairs)
        for repair in repairs:
            repair()


def _disturbances(situation: Situation, chance: Random) -> Iterator[Callable[[], Repair]]:
    """What can happen to each thing of the cluster; each returns what puts it right again."""
    parts = situation.parts

    def with_pod(pod: Pod) -> Callable[[], Repair]:
        where = chance.choice(parts.nodes).name if parts.nodes and chance.random() < 0.5 else None
        return lambda: _pod_goes(situation, pod, where)

    def with_node(node: Node) -> Callable[[], Repair]:
        like = chance.choice(parts.nodes) if chance.random() < 0.5 else None
        return lambda: _node_changes(situation, node, like)

    def with_object(item: KubeObject) -> Callable[[], Repair]:
        return lambda: _object_goes(situation, item)

    steady = _first_with_an_image(parts.nodes)
    tied = _equally_important([pod for pod in parts.pods if pod.priority < situation.pod.priority])
    # (A pod that a step reserved stays reserved.)
    reserved = {pod.uid for pod in parts.pods if situation.state.is_assumed(pod.uid)}
    yield from (with_pod(pod) for pod in parts.pods if pod.uid not in tied | reserved)
    yield from (with_node(node) for node in parts.nodes if node.name not in steady)
    yield from map(with_object, parts.others)
    if parts.nodes:
        yield lambda: _pod_is_assumed(situation, chance.choice(parts.nodes).name)


def _equally_important(pods: Sequence[Pod]) -> set[str]:
    """Which of these must stay: the order in which equal ones came to a node decides which of them are evicted."""
    alike: dict[tuple[str, int, str | None], list[str]] = {}
    for pod in pods:
        alike.setdefault((pod.spec.node_name, pod.priority, pod.status.start_time), []).append(pod.uid)
    return {uid for uids in alike.values() if len(uids) > 1 for uid in uids}


def _first_with_an_image(nodes: Sequence[Node]) -> set[str]:
    """Nodes that must stay: an image has the size that was reported first, where nodes disagree, as upstream has it."""
    first: dict[str, tuple[str, int]] = {}
    steady = set()
    for node in nodes:
        for image in node.status.images:
            for name in image.names:
                whose, size = first.setdefault(name, (node.name, image.size_bytes))
                if size != image.size_bytes:
                    steady.add(whose)
    return steady


def _pod_goes(situation: Situation, pod: Pod, where: str | None) -> Repair:
    """Away, or assumed on some node; the assumption is confirmed there or taken back."""
    state = situation.state
    situation.take_pod(pod)
    if where is not None:
        state.assume(pod, where, at=0.0)

    def repair() -> None:
        if where is not None and not (situation.is_placed(pod) and pod.spec.node_name == where):
            state.forget(pod.uid)
        situation.put_pod(pod)

    return repair


def _pod_is_assumed(situation: Situation, where: str) -> Repair:
    """The pod that is to be decided about was on a node for a while."""
    situation.state.assume(situation.pod, where, at=0.0)
    return lambda: situation.state.forget(situation.pod.uid)


def _node_changes(situation: Situation, node: Node, like: Node | None) -> Repair:
    """Away, or with the labels, taints and resources of another."""
    state = situation.state
    if like is None:
        state.remove_node(node.name)
    else:
        metadata = msgspec.structs.replace(like.metadata, name=node.name, uid=node.uid)
        state.set_node(msgspec.structs.replace(like, metadata=metadata))
    return lambda: state.set_node(node)


def _object_goes(situation: Situation, item: KubeObject) -> Repair:
    situation.take(item)
    return lambda: situation.put(item)
