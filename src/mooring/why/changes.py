"""A change that may bring a pod to a node: of the pod, of nodes, of other pods, or of objects that plugins read."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from mooring.framework import Pod
from mooring.objects import Node
from mooring.objects.meta import KubeObject
from mooring.objects.placed import PlacedPod
from mooring.objects.wire import Wire

S = TypeVar("S", bound=Wire)


class ProposedChange(msgspec.Struct, frozen=True):
    """What is done, in words for people, and what it makes of the cluster. Nothing is changed anywhere by it."""

    sentence: str
    """An instruction: "delete shop/web-3"."""
    pod: Pod | None = None
    """The pod as it would be; None: as it is."""
    nodes: tuple[Node, ...] = ()
    """Nodes as they would be."""
    deleted: tuple[str, ...] = ()
    """The uids of pods that are gone."""
    resized: tuple[PlacedPod, ...] = ()
    """Pods on nodes that request less."""
    objects: tuple[KubeObject, ...] = ()
    """Objects that plugins read: new ones, or as they would be."""
    created: dict[str, Any] | None = None
    """The manifest of a new object."""
    manifest: dict[str, Any] | None = None
    """What to paste into the pod's manifest."""
    command: str = ""
    """What to run instead."""

    def after(self, pod: Pod) -> Pod:
        """The pod with the change."""
        return pod if self.pod is None else self.pod


def command(*arguments: str) -> str:
    """A command to paste: names in it are quoted where a shell would read them as something else."""
    return shlex.join(arguments)


def combined(changes: Iterable[ProposedChange]) -> ProposedChange:
    """Several changes, made one after the other: a later pod or node is made of the earlier one."""
    steps = list(changes)
    if len(steps) == 1:
        return steps[0]
    nodes = {node.name: node for step in steps for node in step.nodes}
    deleted = tuple(dict.fromkeys(uid for step in steps for uid in step.deleted))
    resized = {pod.uid: pod for step in steps for pod in step.resized if pod.uid not in deleted}
    manifest: dict[str, Any] = {}
    for step in steps:
        manifest = merged(manifest, step.manifest or {})
    return ProposedChange(
        " and ".join(step.sentence for step in steps),
        pod=next((step.pod for step in reversed(steps) if step.pod is not None), None),
        nodes=tuple(nodes.values()),
        deleted=deleted,
        resized=tuple(resized.values()),
        objects=tuple(each for step in steps for each in step.objects),
        created=next((step.created for step in steps if step.created is not None), None),
        manifest=manifest or None,
        command=" && ".join(step.command for step in steps if step.command),
    )


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two parts of a manifest in one; lists of the later replace those of the earlier."""
    both = dict(one)
    for key, value in other.items():
        known = both.get(key)
        both[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return both


def with_spec(pod: Pod, **fields: Any) -> Pod:
    """The pod with other fields in its spec."""
    return Pod(metadata=pod.metadata, spec=_replaced(pod.spec, fields), status=pod.status)


def _replaced(part: S, fields: Mapping[str, Any]) -> S:
    """The part of an object with other fields; a list becomes a tuple, as in all objects."""
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    return msgspec.structs.replace(part, **given)


def with_node_fields(node: Node, *, labels: dict[str, str] | None = None, spec: dict[str, Any] | None = None) -> Node:
    """The node with other labels, or other fields in its spec."""
    metadata = node.metadata if labels is None else msgspec.structs.replace(node.metadata, labels=labels)
    return Node(
        metadata=metadata,
        spec=node.spec if spec is None else _replaced(node.spec, spec),
        status=node.status,
    )
